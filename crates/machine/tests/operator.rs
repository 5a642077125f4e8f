//! Changes of tasks by an operator, while they run, wait and sleep.

use crate::support::{MS, free_machine, policy, run, sleep, task, workload};
use fairground_machine::{Machine, MachineConfig, RunResult, Setting};
use fairground_trace::{EventKind, TaskState};
use fairground_workload::{Op, Workload};

/// Four hogs, and a task that sleeps for 5 ms of 6.
fn mixed() -> Workload {
    let nap = vec![Op::Loop(None, vec![sleep(5 * MS), run(MS)])];
    workload(vec![task("hog", 4, vec![Op::RunForever]), task("nap", 1, nap)])
}

fn changed(cpus: u32, settings: &[Setting]) -> RunResult {
    let config = MachineConfig { check: true, ..free_machine(cpus) };
    let mut machine =
        Machine::new(&config, &policy("probe"), settings, &mixed()).expect("it loads");
    machine.run_until(100 * MS).expect("it runs");
    machine.finish().expect("it ends")
}

/// On which CPUs the tasks of a name were switched in from a time on.
fn cpus_since(result: &RunResult, name: &str, from_ns: u64) -> Vec<u32> {
    let mut cpus: Vec<u32> = result
        .trace
        .events()
        .filter_map(|event| match event.kind {
            EventKind::Switch { next, .. } if event.time_ns > from_ns => {
                (result.trace.tasks()[next.index()].comm.split('/').next() == Some(name))
                    .then_some(event.cpu)
            }
            _ => None,
        })
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The change finds tasks on each CPU, one that waits and one that sleeps; all obey, and again when it is undone.
#[test]
fn an_affinity_reaches_tasks_wherever_they_are() {
    for at_us in [10_000, 10_500, 12_345, 17_000] {
        let at_ns = at_us * 1_000;
        let settings =
            ["hog", "nap"].map(|name| Setting::at(at_ns, &format!("task.{name}.cpus"), "1"));
        let back = Setting::at(50 * MS, "task.hog.cpus", "0-3");
        let result = changed(4, &[&settings[..], &[back]].concat());
        assert!(!result.exit.kind.is_error(), "{}", result.exit);
        let upto =
            |event: &fairground_trace::Event| event.time_ns > at_ns && event.time_ns < 50 * MS;
        for event in result.trace.events().filter(upto) {
            if let EventKind::Switch { next, .. } = event.kind {
                assert!(next.is_idle() || event.cpu == 1, "{} on CPU {}", next.0, event.cpu);
            }
        }
        assert_eq!(cpus_since(&result, "nap", at_ns), [1]);
        assert!(!cpus_since(&result, "hog", 50 * MS).is_empty(), "they go on");
        let told = result.trace.events().filter(|e| matches!(e.kind, EventKind::Affinity { .. }));
        assert_eq!(told.count(), 9);
    }
}

#[test]
fn a_nice_value_and_a_policy_change_from_outside() {
    let settings = [
        Setting::at(10 * MS, "task.hog.nice", "7"),
        Setting::at(12 * MS, "task.nap.nice", "-3"),
        Setting::at(20 * MS, "task.hog.policy", "rr:5"),
        Setting::at(40 * MS, "task.hog.policy", "other"),
        Setting::at(41 * MS, "task.nap.policy", "fifo:9"),
    ];
    let result = changed(2, &settings);
    assert!(!result.exit.kind.is_error(), "{}", result.exit);
    let told: Vec<(u64, i64)> = result
        .trace
        .events()
        .filter_map(|event| match event.kind {
            EventKind::Nice { nice, .. } => Some((event.time_ns / MS, i64::from(nice))),
            EventKind::RtPrio { prio, .. } => {
                Some((event.time_ns / MS, 100 + i64::from(prio.prio())))
            }
            _ => None,
        })
        .collect();
    let times = |ms, value| vec![(ms, value); 4];
    let all = [times(10, 7), vec![(12, -3)], times(20, 194), times(40, 7), vec![(41, 190)]];
    assert_eq!(told, all.concat());
}

/// A task that ends before its change is left alone.
#[test]
fn the_dead_are_not_changed() {
    let load = workload(vec![task("short", 2, vec![run(MS)])]);
    let settings: Vec<Setting> = ["cpus", "nice", "policy"]
        .iter()
        .zip(["0", "5", "fifo:3"])
        .map(|(attribute, value)| Setting::at(10 * MS, &format!("task.short.{attribute}"), value))
        .collect();
    let config = free_machine(2);
    let mut machine = Machine::new(&config, &policy("probe"), &settings, &load).expect("it loads");
    machine.run_until(20 * MS).expect("it runs");
    let result = machine.finish().expect("it ends");
    let dead =
        |kind: &EventKind| matches!(kind, EventKind::Switch { prev_state: TaskState::Dead, .. });
    assert_eq!(result.trace.events().filter(|event| dead(&event.kind)).count(), 2);
    let changes = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::Nice { .. } | EventKind::Affinity { .. } | EventKind::RtPrio { .. }
        )
    };
    assert!(!result.trace.events().any(|event| changes(&event.kind)));
}

#[test]
fn what_cannot_be_changed_is_refused_with_a_remedy() {
    let refusal = |setting: Setting| {
        Machine::new(&free_machine(2), &policy("probe"), &[setting], &mixed())
            .expect_err("a wrong setting")
            .to_string()
    };
    for (name, value, expected) in [
        ("task.hog.cpus", "7", "none of these CPUs"),
        ("task.hog.cpus", "x", "`x` is not a CPU number"),
        ("task.hog.nice", "20", "from -20 to 19"),
        ("task.hog.policy", "fifo", "`fifo:50`"),
        ("task.hog.policy", "other:3", "no scheduling policy"),
        ("task.hgo.nice", "1", "did you mean `hog`?"),
        ("task.hog.priority", "1", "task.NAME.nice=5"),
    ] {
        let text = refusal(Setting::at(MS, name, value));
        assert!(text.contains(expected), "{name}={value}: {text}");
    }
    let text = refusal(Setting::initial("task.hog.nice", "1"));
    assert!(text.contains("--at 1s:task.hog.nice=1"), "{text}");
}
