//! From words to a run: the words mean the same in every front end, and a watcher may end it.

use std::cell::Cell;

use fairground_machine::Setting;
use fairground_session::{
    CHUNK_NS, LocksChoice, MachineSpec, NamedChoice, Plan, RunSpec, Scheduler, TargetSpec,
    TimersChoice, TopologySpec, Unwatched, Watch, find_workload,
};
use fairground_trace::{Event, EventKind, read, write_ftrace};

/// Ends the run after so many steps.
struct Impatient {
    steps: Cell<u64>,
    last: u64,
}

impl Watch for Impatient {
    fn name(&self, label: &str) {
        assert_eq!(label, "cfs@6.1");
    }

    fn advance(&self, steps: u64) {
        self.steps.set(self.steps.get() + steps);
    }

    fn goes_on(&self) -> bool {
        self.steps.get() < self.last
    }
}

#[test]
fn who_watches_counts_the_steps_and_may_end_the_run() {
    let workload = find_workload("hogs:1").expect("a workload of the library");
    let scheduler = Scheduler::load("cfs@6.1", None, Default::default()).expect("a scheduler");
    let run = RunSpec::default().resolve(&workload, false).expect("the usual machine");
    let machine = run.machine;
    let plan = || Plan::new(&scheduler, &workload, machine.clone(), 4 * CHUNK_NS);

    let patient = Impatient { steps: Cell::new(0), last: u64::MAX };
    let outcome = plan().run(&patient).expect("it runs to its end");
    assert_eq!(patient.steps.get(), 4);
    let unwatched = plan().run(&Unwatched).expect("it runs to its end");
    assert_eq!(outcome.trace.digest(), unwatched.trace.digest());

    let impatient = Impatient { steps: Cell::new(0), last: 2 };
    let partial = plan().run(&impatient).expect("it is ended");
    assert_eq!(partial.partial_ns, Some(2 * CHUNK_NS));
    assert_eq!((impatient.steps.get(), outcome.partial_ns), (2, None));
}

#[test]
fn without_its_events_a_run_has_the_same_figures_and_any_length() {
    // Forks, ends, and a lead-in.
    for (words, lead_in) in [("forkstorm:2", None), ("hackbench:1", Some("20ms".to_owned()))] {
        let workload = find_workload(words).expect("a workload of the library");
        let scheduler = Scheduler::load("cfs", None, Default::default()).expect("a scheduler");
        let run = |keep_events, max_events| {
            let machine =
                MachineSpec { max_events, lead_in: lead_in.clone(), ..Default::default() };
            let spec = RunSpec { machine, ..RunSpec::default() };
            let machine = spec.resolve(&workload, false).expect("a machine").machine;
            let plan = Plan::new(&scheduler, &workload, machine, CHUNK_NS + 1_234_567);
            Plan { keep_events, ..plan }.run(&Unwatched)
        };
        let kept = run(true, None).expect("it runs");
        let streamed = run(false, None).expect("it runs");
        assert_eq!(streamed.analysis, kept.analysis, "{words}");
        assert!(streamed.trace.is_empty() && kept.trace.len() > 1_000, "{}", kept.trace.len());
        // The limit is looked at between steps of the machine: the last one may go beyond it.
        run(true, Some(kept.trace.len() / 2)).expect_err("its trace is full");
        let most = Some(kept.trace.len() - 1);
        assert_eq!(run(false, most).expect("it runs").analysis, kept.analysis, "{words}");
    }
}

/// Its words, read back from the text of its trace, mean the same machine and scheduler.
#[test]
fn a_recording_says_what_made_it() {
    let workload = find_workload("hogs:3").expect("a workload of the library");
    let machine = MachineSpec {
        topology: Some(TopologySpec::Word("1x2x2".to_owned())),
        hz: Some(1000),
        timers: TimersChoice::Jiffies,
        costs: Some("linux-6.1".to_owned()),
        cost: vec!["tick_ns=7".to_owned(), "wakeup_ns=9".to_owned()],
        ..MachineSpec::default()
    };
    let spec = RunSpec { machine, ..RunSpec::default() };
    let machine = spec.resolve(&workload, false).expect("a machine").machine;
    let scheduler = Scheduler::load("cfs@6.1", None, Default::default()).expect("a scheduler");
    let mut plan = Plan::new(&scheduler, &workload, machine.clone(), CHUNK_NS);
    plan.settings = vec![
        Setting::initial("sched_latency_ns", "12ms"),
        Setting::at(1_000_000, "sched_latency_ns", "6ms"),
    ];
    let run = plan.run(&Unwatched).expect("it runs to its end");
    let mut text = Vec::new();
    write_ftrace(&run.trace, &mut text).expect("memory takes it");
    let origin = read("run", &text[..]).expect("a recording").origin;
    assert_eq!(origin, run.trace.origin);
    assert!(origin.is_simulated());
    assert_eq!(origin.scheduler.as_deref(), Some("cfs@6.1"));
    assert_eq!(origin.settings, [("sched_latency_ns".to_owned(), "12ms".to_owned())]);
    let again = MachineSpec {
        topology: origin.topology.map(TopologySpec::Word),
        hz: origin.hz,
        timers: TimersChoice::parse(&origin.timers.expect("timers")).expect("a choice"),
        costs: origin.costs,
        cost: origin.cost.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        ..MachineSpec::default()
    };
    let spec = RunSpec { machine: again, ..RunSpec::default() };
    let again = spec.resolve(&workload, false).expect("a machine").machine;
    assert_eq!(format!("{again:?}"), format!("{machine:?}"));
}

/// Recording calls changes nothing else. A task blocks in a call only, and is in one at a time.
#[test]
fn calls_are_recorded_at_no_cost() {
    let words = [
        "pipe:2",
        "hackbench:1",
        "sleepers:4",
        "volano:1",
        "massive_intr:3",
        "yieldpair:2",
        "forkstorm:2",
        "aim7:2",
        "dbench:2",
        "schbench:2",
        "netperf-stream:1",
    ];
    let scheduler = Scheduler::load("eevdf", None, Default::default()).expect("a scheduler");
    for word in words {
        let workload = find_workload(word).expect("a workload of the library");
        let run = |calls| {
            let target = TargetSpec { calls, ..TargetSpec::default() };
            let machine = MachineSpec { cpus: Some(2), ..MachineSpec::default() };
            let spec = RunSpec { machine, target, ..RunSpec::default() };
            let machine = spec.resolve(&workload, false).expect("a machine").machine;
            let plan = Plan::new(&scheduler, &workload, machine, CHUNK_NS);
            plan.run(&Unwatched).expect("it runs to its end").trace
        };
        let (without, with) = (run(false), run(true));
        let is_call = |event: &Event| {
            matches!(event.kind, EventKind::CallEnter { .. } | EventKind::CallExit { .. })
        };
        let others: Vec<_> = with.events().filter(|event| !is_call(event)).collect();
        assert_eq!(others.len(), without.len(), "{word}");
        for (ours, expected) in others.iter().zip(without.events()) {
            assert_eq!(*ours, expected, "{word}");
        }
        let calls = with.events().filter(is_call).count();
        assert!(calls > 2 && !without.events().any(|event| is_call(&event)), "{word}: {calls}");
        let mut inside = vec![false; with.tasks().len()];
        for event in with.events() {
            match event.kind {
                EventKind::CallEnter { task, .. } => {
                    assert!(
                        !std::mem::replace(&mut inside[task.index()], true),
                        "{word}: {event:?}"
                    );
                }
                EventKind::CallExit { task, .. } => {
                    assert!(std::mem::take(&mut inside[task.index()]), "{word}: {event:?}");
                }
                EventKind::Switch { prev, prev_state, .. }
                    if !prev.is_idle() && !prev_state.is_runnable() && !prev_state.is_dead() =>
                {
                    assert!(inside[prev.index()], "{word}: {event:?}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_run_too_long_for_its_trace_says_how_long_a_one_fits() {
    let workload = find_workload("hogs:2").expect("a workload of the library");
    let scheduler = Scheduler::load("cfs@6.1", None, Default::default()).expect("a scheduler");
    let spec =
        MachineSpec { cpus: Some(1), lead_in: Some("20ms".to_owned()), ..MachineSpec::default() };
    let run = |max_events, duration_ns| {
        let machine = MachineSpec { max_events: Some(max_events), ..spec.clone() };
        let spec = RunSpec { machine, ..RunSpec::default() };
        let machine = spec.resolve(&workload, false).expect("a machine").machine;
        Plan::new(&scheduler, &workload, machine, duration_ns).run(&Unwatched)
    };
    for max_events in 20..60 {
        let failure = run(max_events, 10_000_000_000).expect_err("two hogs switch").to_string();
        let events = failure.strip_prefix("cfs@6.1: the trace is full: ");
        let (events, _) =
            events.and_then(|s| s.split_once(" events (0 MB) after ")).expect("how many");
        let events: usize = events.parse().expect("a number");
        // What happens in one step of the machine is recorded as a whole.
        assert!((max_events..max_events + 4).contains(&events), "{failure}");
        let more = format!("`--max-events {}` allows twice as many", 2 * events);
        assert!(failure.ends_with(&more), "{failure}");
        let Some((_, help)) = failure.split_once("`--duration ") else { continue };
        let (fits_ms, _) = help.split_once("ms` fits; ").expect("a length");
        let fits_ms: u64 = fits_ms.parse().expect("a number");
        assert!(run(max_events, fits_ms * 1_000_000).is_ok(), "{failure}");
        assert!(run(max_events, (fits_ms + 1) * 1_000_000).is_err(), "{failure}");
    }
    assert!(run(59, 10_000_000_000).expect_err("as above").to_string().contains("--duration"));
}

#[test]
fn locks_have_words() {
    for model in fairground_workload::LockModel::ALL {
        assert_eq!(LocksChoice::parse(model.word()).map(Into::into), Ok(model));
    }
    let failure = LocksChoice::parse("rt2006").expect_err("no such word");
    assert_eq!(failure, "there is no `rt2006`; did you mean `rt-2006`?: `spin`, `rt`, `rt-2006`");
}
