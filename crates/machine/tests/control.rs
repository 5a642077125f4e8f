//! A machine that is observed, and whose settings are changed, runs as one that is left alone.

use crate::support::{MS, run, sleep, task, workload};
use fairground_machine::{Engine, Machine, MachineConfig, MachineError, Policy, Setting};
use fairground_trace::{EventKind, Trace};
use fairground_workload::{Op, Workload};

fn rfs() -> Policy {
    let built = fairground_policies::get("rfs").expect("rfs is built in");
    let object = fairground_bpf::Object::parse("rfs", built.object).expect("an object");
    Policy::load(&object, Engine::Jit).expect("a scheduler")
}

fn hogs_and_sleepers() -> Workload {
    let sleeper = vec![Op::Loop(None, vec![run(MS / 3), sleep(2 * MS)])];
    workload(vec![task("hog", 3, vec![Op::RunForever]), task("sleeper", 2, sleeper)])
}

fn machine(settings: &[Setting]) -> Machine {
    let workload = hogs_and_sleepers();
    Machine::new(&MachineConfig::new(2), &rfs(), settings, &workload).expect("a machine")
}

fn finished(machine: Machine) -> Trace {
    machine.finish().expect("no fault").trace
}

const CHANGED_AT_NS: u64 = 200 * MS;

#[test]
fn a_change_on_the_way_is_a_setting_with_that_time() {
    let mut live = machine(&[]);
    live.run_until(CHANGED_AT_NS).expect("it runs");
    assert_eq!(live.change("bonus_ns", "0").expect("a tunable"), CHANGED_AT_NS + 1);
    live.run_until(500 * MS).expect("it runs");
    let mut planned = machine(&[Setting::at(CHANGED_AT_NS + 1, "bonus_ns", "0")]);
    planned.run_until(500 * MS).expect("it runs");
    let mut untouched = machine(&[]);
    untouched.run_until(500 * MS).expect("it runs");
    let (live, planned) = (finished(live), finished(planned));
    assert_eq!(live.digest(), planned.digest());
    assert_ne!(live.digest(), finished(untouched).digest(), "the change changes something");
    let at = live.events().find_map(|event| match event.kind {
        EventKind::Param { label } if event.time_ns > 0 => {
            Some((event.time_ns, live.label(label).to_owned()))
        }
        _ => None,
    });
    assert_eq!(at, Some((CHANGED_AT_NS + 1, "bonus_ns=0".to_owned())));
}

#[test]
fn steps_from_event_to_event_change_nothing() {
    let mut steps = machine(&[]);
    let mut pieces = 0;
    while let Some(next_ns) = steps.next_ns().filter(|next_ns| *next_ns <= 100 * MS) {
        assert!(next_ns >= steps.now_ns());
        steps.run_until(next_ns).expect("it runs");
        assert_eq!(steps.now_ns(), next_ns);
        pieces += 1;
    }
    steps.run_until(100 * MS).expect("it runs");
    assert!(pieces > 100, "{pieces}");
    let mut whole = machine(&[]);
    whole.run_until(100 * MS).expect("it runs");
    assert_eq!(finished(steps).digest(), finished(whole).digest());
}

#[test]
fn what_cannot_be_changed_is_refused_and_changes_nothing() {
    let mut live = machine(&[]);
    live.run_until(50 * MS).expect("it runs");
    for (name, value) in [("bonus_nss", "1"), ("bonus_ns", "many")] {
        let error = live.change(name, value).expect_err("a refusal");
        assert!(matches!(error, MachineError::Setting(_)), "{error}");
    }
    assert_eq!(live.now_ns(), 50 * MS);
    live.run_until(100 * MS).expect("it runs");
    let mut untouched = machine(&[]);
    untouched.run_until(100 * MS).expect("it runs");
    assert_eq!(finished(live).digest(), finished(untouched).digest());
}

#[test]
fn forgotten_events_are_gone_and_the_run_goes_on() {
    let mut whole = machine(&[]);
    whole.run_until(100 * MS).expect("it runs");
    let mut live = machine(&[]);
    live.run_until(40 * MS).expect("it runs");
    let first = live.trace().len();
    live.forget_events();
    live.run_until(100 * MS).expect("it runs");
    let (live, whole) = (finished(live), finished(whole));
    assert_eq!(first + live.len(), whole.len());
    assert!(live.events().eq(whole.events().skip(first)));
}
