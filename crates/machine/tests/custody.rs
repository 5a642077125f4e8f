//! What a scheduler is told of tasks that leave it, and from where it may select CPUs: `kernel/sched/ext/ext.c` and
//! `idle.c` of Linux 7.2.

use fairground_machine::{ExitKind, Machine, RunResult, Setting};
use fairground_workload::{Op, SchedPolicy, TaskSpec, Workload};

use crate::support::{MS, cpus, free_machine, policy, run, sleep, task, workload};

const END_NS: u64 = 50 * MS;

/// Tasks that compute, sleep, and change their affinity while they compute.
fn load() -> Workload {
    let looped = |ops| vec![Op::Loop(None, ops)];
    workload(vec![
        task("hog", 3, vec![Op::RunForever]),
        task("nap", 2, looped(vec![sleep(MS), run(MS / 3)])),
        task(
            "mover",
            1,
            looped(vec![
                Op::SetAffinity(cpus(0, 0)),
                run(MS),
                Op::SetAffinity(cpus(1, 1)),
                run(MS),
            ]),
        ),
    ])
}

/// Tasks that it got, those that left to run, those that left for a change, and idle CPUs that it found.
fn counts(set: &[(&str, &str)]) -> [u64; 4] {
    let set: Vec<Setting> = set.iter().map(|(name, value)| Setting::initial(name, value)).collect();
    let mut config = free_machine(2);
    config.check = true;
    let mut machine = Machine::new(&config, &policy("custody"), &set, &load()).expect("it is made");
    machine.run_until(END_NS).expect("it runs");
    assert_eq!(machine.exit(), None);
    machine.stop().expect("it stops");
    let value = |name| machine.variable_field(name, 0, 8).expect("a counter");
    let counts = ["given", "dispatched", "changed", "idle_found"].map(value);
    assert_eq!(machine.finish().expect("it ends").exit.kind, ExitKind::Unregistered);
    counts
}

#[test]
fn each_task_that_the_scheduler_got_leaves_it_once() {
    for from_select_cpu in ["off", "on"] {
        let [given, dispatched, changed, _] = counts(&[("from_select_cpu", from_select_cpu)]);
        assert!(given > 0 && dispatched > 0, "{given} given, {dispatched} dispatched");
        assert!(changed > 0, "those that still wait at the end leave for a change");
        assert_eq!(given, dispatched + changed);
    }
}

#[test]
fn a_task_that_was_dispatched_at_once_never_leaves() {
    for place in ["GLOBAL", "LOCAL"] {
        for from_select_cpu in ["off", "on"] {
            let set = [("place", place), ("from_select_cpu", from_select_cpu)];
            let [given, dispatched, changed, _] = counts(&set);
            assert_eq!([given, dispatched, changed], [0; 3], "{set:?}");
        }
    }
}

#[test]
fn enqueue_may_select_an_idle_cpu() {
    let [.., idle_found] = counts(&[]);
    assert!(idle_found > 0);
}

#[test]
fn other_callbacks_may_not_select_cpus() {
    let set = [Setting::initial("select_in_running", "on")];
    let mut machine =
        Machine::new(&free_machine(2), &policy("custody"), &set, &load()).expect("it is made");
    machine.run_until(END_NS).expect("it runs");
    let exit = machine.exit().expect("it is ejected");
    assert_eq!(exit.kind, ExitKind::Error);
    assert!(exit.message.contains("kfunc with mask"), "{}", exit.message);
}

/// An ejection while a real-time task computes leaves every count right.
#[test]
fn real_time_tasks_survive_an_ejection() {
    let fifo = TaskSpec { policy: SchedPolicy::Fifo(50), ..task("rt", 1, vec![Op::RunForever]) };
    let program = vec![sleep(MS), run(MS)];
    let late = TaskSpec { cpus: Some(cpus(1, 1)), ..task("late", 1, program) };
    let set = [Setting::initial("direct", "off"), Setting::at(MS / 2, "fault", "LEAVE")];
    let mut config = free_machine(2);
    config.check = true;
    let workload = workload(vec![fifo, late]);
    let mut machine = Machine::new(&config, &policy("probe"), &set, &workload).expect("it is made");
    machine.run_until(END_NS).expect("it runs");
    let RunResult { exit, .. } = machine.finish().expect("no rule is broken");
    assert_eq!(exit.kind, ExitKind::UnregisteredByBpf);
}
