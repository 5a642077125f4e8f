//! A simulated recording, replayed under the scheduler that made it, comes back.

use fairground_analysis::{Analysis, Options};
use fairground_session::{
    COSTS_DEFAULT, Charges, MachineSpec, Near, OwnScheduler, Plan, RunSpec, Scheduler,
    SchedulerSpec, Unwatched, find_workload, nearness, recorded_machine, replay_workload,
};
use fairground_trace::{Trace, read, write_ftrace};

fn words(sched: &str, machine: MachineSpec) -> RunSpec {
    let scheduler = SchedulerSpec { sched: vec![sched.to_owned()], ..Default::default() };
    RunSpec { scheduler, machine, ..Default::default() }
}

/// As a file of the recording has it.
fn recorded(workload: &str, sched: &str, cpus: u32, ms: u64) -> Trace {
    let workload = find_workload(workload).expect("a workload of the library");
    let mut spec = words(sched, MachineSpec { cpus: Some(cpus), ..Default::default() });
    spec.target.calls = true;
    let run = spec.resolve(&workload, false).expect("a machine");
    let scheduler = Scheduler::load(sched, None, Default::default()).expect("a scheduler");
    let plan = Plan::new(&scheduler, &workload, run.machine, ms * 1_000_000);
    let outcome = plan.run(&Unwatched).expect("it runs");
    let mut text = Vec::new();
    write_ftrace(&outcome.trace, &mut text).expect("memory takes it");
    read("recording.txt", &*text).expect("it reads its own text")
}

/// How far the switches of the replay are off, %, and their class.
fn switches_off(trace: &Trace) -> (f64, Near) {
    let own = OwnScheduler::of(&trace.origin).expect("it is known").expect("the recording tells");
    let spec = words(&own.spec, recorded_machine(&MachineSpec::default(), trace));
    let make = |charges| replay_workload("replay", trace, charges).expect("a workload").0;
    let first = make(Charges::of(&spec.machine.cost_model(COSTS_DEFAULT).expect("costs")));
    let workload = make(Charges::under(&spec, &first).expect("it runs"));
    let run = spec.resolve(&workload, false).expect("a machine");
    let scheduler = Scheduler::load(&own.spec, None, Default::default()).expect("a scheduler");
    let plan = Plan::new(&scheduler, &workload, run.machine, run.duration_ns);
    let replayed = plan.run(&Unwatched).expect("it runs").analysis;
    let original = Analysis::of(trace, &Options::default());
    let all = nearness(&original, &replayed);
    let switches = all.iter().find(|one| one.what == "switches").expect("it is compared");
    (switches.off_percent.expect("enough"), switches.near.expect("enough"))
}

#[test]
fn a_simulated_recording_comes_back_under_its_scheduler() {
    // Timers, tasks that wake each other in turns and in crowds, hogs, affinities, and yields.
    let loads = [
        ("sleepers:8", 1, 400),
        ("pipe:1", 1, 60),
        ("pipe:1", 2, 60),
        ("hackbench:1", 1, 150),
        ("lat_ctx:8", 2, 60),
        ("mix:4:0:0:0 4:5:500:500", 2, 400),
        ("yieldpair:2", 1, 40),
    ];
    // Under `o1` the first sleepers run for two seconds before others come.
    for (sched, slice_ms) in [("eevdf@6.18", 1_200), ("cfs@6.1", 1_200), ("o1", 2_500)] {
        for (load, cpus, ms) in loads.into_iter().chain([("slice:8", 1, slice_ms)]) {
            let (off, near) = switches_off(&recorded(load, sched, cpus, ms));
            assert_eq!(near, Near::Near, "{load} under {sched} on {cpus} CPUs: {off:.1} %");
        }
    }
}
