//! What is written for Chrome's trace viewer is JSON, and its slices are what the CPUs ran.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use fairground_trace::{
    Counter, CounterOf, CounterUnit, Event, EventKind, TaskId, TaskInfo, TaskState, Trace, read,
    write_chrome,
};
use flate2::read::MultiGzDecoder;
use proptest::prelude::*;
use serde_json::Value;

use crate::support::any_trace::traces;

fn written(trace: &Trace, counters: &[Counter]) -> Vec<Value> {
    let mut text = Vec::new();
    write_chrome(trace, counters, &mut text).unwrap();
    let mut whole: Value = serde_json::from_slice(&text).unwrap();
    match whole["traceEvents"].take() {
        Value::Array(events) => events,
        other => panic!("{other}"),
    }
}

fn of<'a>(events: &'a [Value], phase: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["ph"] == phase)
}

/// Nanoseconds, from µs with three digits.
fn ns(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1000.0).round() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the names are, it is JSON, and every event but wake-ups, switches, charges and losses leaves exactly
    /// one entry.
    #[test]
    fn any_trace_is_json(trace in traces()) {
        let events = written(&trace, &[]);
        let count = |wanted: fn(&EventKind) -> bool| trace.events().filter(|e| wanted(&e.kind)).count();
        let marks = count(|kind| matches!(kind, EventKind::Mark { .. }));
        prop_assert_eq!(of(&events, "C").count(), marks);
        let wakings = count(|kind| matches!(kind, EventKind::Waking { .. }));
        prop_assert_eq!(of(&events, "s").count(), wakings);
        let no_instant = count(|kind| matches!(kind, EventKind::Switch { .. } | EventKind::Wakeup { .. }
            | EventKind::WakeupNew { .. } | EventKind::Charge { .. } | EventKind::ContentionBegin { .. } | EventKind::ContentionEnd { .. }));
        prop_assert_eq!(of(&events, "i").count(), trace.len() - marks - wakings - no_instant);
        let threads = trace.tasks().len() - 1 + trace.cpus as usize;
        prop_assert_eq!(of(&events, "M").count(), threads + 2);
    }
}

/// The time that each task ran is the sum of its slices, on its own track and on those of the CPUs.
#[test]
fn slices_of_a_real_recording() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../experiments/recordings/mixed-2cpu-whole.perf-sched.txt.gz");
    let input = BufReader::new(MultiGzDecoder::new(File::open(file).unwrap()));
    let trace = read("recording", input).unwrap();
    let mut ran: BTreeMap<u64, u64> = BTreeMap::new();
    let mut since: BTreeMap<u32, (TaskId, u64)> = BTreeMap::new();
    for Event { time_ns, cpu, kind, .. } in trace.events() {
        let EventKind::Switch { next, .. } = kind else { continue };
        if let Some((task, from_ns)) = since.insert(cpu, (next, time_ns)) {
            *ran.entry(task.0.into()).or_default() += time_ns - from_ns;
        }
    }
    for (task, from_ns) in since.values() {
        *ran.entry(task.0.into()).or_default() += trace.end_ns - from_ns;
    }
    ran.remove(&0);
    let events = written(&trace, &[]);
    let mut of_tasks: BTreeMap<u64, u64> = BTreeMap::new();
    let mut of_cpus = 0;
    for slice in of(&events, "X") {
        match slice["pid"].as_u64() {
            Some(1) => of_cpus += ns(&slice["dur"]),
            _ => *of_tasks.entry(slice["tid"].as_u64().unwrap()).or_default() += ns(&slice["dur"]),
        }
    }
    assert_eq!(of_cpus, of_tasks.values().sum::<u64>());
    assert_eq!(of_tasks, ran);
}

#[test]
fn an_arrow_leads_from_the_waker_to_the_slice() {
    let mut trace = Trace::new(1);
    let waker = trace.add_task(TaskInfo::new(7, "wa\"ker\\\n"));
    let woken = trace.add_task(TaskInfo::new(8, "woken"));
    let mut push = |time_ns, kind| trace.push(Event { time_ns, cpu: 0, insns: 0, kind });
    let switch = |prev, next| EventKind::Switch { prev, prev_state: TaskState::Sleeping, next };
    push(1_000, switch(TaskId::IDLE, waker));
    push(2_000, EventKind::Waking { task: woken, waker, target_cpu: 0 });
    push(3_001, switch(waker, woken));
    trace.end_ns = 4_000;
    let mut queue = Counter::new(CounterOf::Cpu(0), "queue", CounterUnit::Count);
    queue.set(2_000, 1);
    let events = written(&trace, &[queue]);
    let (from, to) = (of(&events, "s").next().unwrap(), of(&events, "f").next().unwrap());
    assert_eq!((&from["tid"], ns(&from["ts"])), (&Value::from(1), 2_000));
    assert_eq!((&to["tid"], ns(&to["ts"])), (&Value::from(2), 3_001));
    assert_eq!(from["id"], to["id"]);
    let slices: Vec<_> = of(&events, "X").map(|x| (ns(&x["ts"]), ns(&x["dur"]))).collect();
    assert_eq!(slices, [(1_000, 2_001), (1_000, 2_001), (3_001, 999), (3_001, 999)]);
    assert_eq!(of(&events, "X").next().unwrap()["name"], "wa\"ker\\\n");
    let value = of(&events, "C").next().unwrap();
    assert_eq!((&value["name"], &value["args"]["value"]), (&"CPU 0 queue".into(), &1.into()));
}
