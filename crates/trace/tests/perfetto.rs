//! What is written for Perfetto, read again by a decoder that knows only protobuf's wire format and the field numbers
//! of `perfetto_trace.proto`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use fairground_trace::{
    Counter, CounterOf, CounterUnit, Event, EventKind, TaskId, TaskInfo, TaskState, Trace, read,
    write_perfetto,
};
use flate2::read::MultiGzDecoder;
use proptest::prelude::*;

use crate::support::any_trace::traces;
use crate::support::wire::Message;

/// Numbers of fields of `FtraceEvent`.
const SWITCH: u32 = 4;
const WAKEUP: u32 = 17;
const WAKING: u32 = 20;
const WAKEUP_NEW: u32 = 114;
const NEWTASK: u32 = 235;
const EXIT: u32 = 238;
const FORK: u32 = 239;
const MIGRATE: u32 = 491;
const HRTIMER: u32 = 553;
const CGROUP: u32 = 67;

fn written(trace: &Trace, counters: &[Counter]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_perfetto(trace, counters, &mut bytes).unwrap();
    bytes
}

/// The packets of a file.
fn packets(bytes: &[u8]) -> Vec<Message<'_>> {
    Message(bytes).messages(1)
}

/// An event of the kernel: CPU, time, pid of the line, number of the event's field, the event.
type Kernel<'a> = (u64, u64, u64, u32, Message<'a>);

/// The kernel's events of each CPU in order.
fn kernel_events(bytes: &[u8]) -> Vec<Kernel<'_>> {
    let mut events = Vec::new();
    for bundle in packets(bytes).iter().flat_map(|packet| packet.messages(1)) {
        let cpu = bundle.number(1).unwrap();
        for event in bundle.messages(2) {
            let (number, said) = event.last_message().unwrap();
            let (time_ns, pid) = (event.number(1).unwrap(), event.number(2).unwrap());
            events.push((cpu, time_ns, pid, number, said));
        }
    }
    events
}

/// The events of a trace that Perfetto has, in words, per CPU and in order.
fn expected(trace: &Trace) -> BTreeMap<u64, Vec<String>> {
    let mut all: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let task = |id: TaskId| &trace.tasks()[id.index()];
    let named = |id: TaskId| format!("{:?} {}", task(id).comm, task(id).pid);
    let mut running = BTreeMap::new();
    for Event { time_ns, cpu, kind, .. } in trace.events() {
        let on = |id: TaskId| match id {
            TaskId::IDLE => format!("\"swapper/{cpu}\" {}", task(id).pid),
            _ => named(id),
        };
        let interrupted = running.get(&cpu).copied().unwrap_or(TaskId::IDLE);
        if let EventKind::Switch { next, .. } = kind {
            running.insert(cpu, next);
        }
        let said = match kind {
            EventKind::Switch { prev, prev_state, next } => {
                let bit = match prev_state {
                    TaskState::Runnable => 0,
                    TaskState::Sleeping => 1,
                    TaskState::Uninterruptible => 2,
                    TaskState::Stopped => 4,
                    TaskState::Traced => 8,
                    TaskState::Dead => 16,
                    TaskState::Zombie => 32,
                    TaskState::Parked => 512,
                    TaskState::Idle => 1026,
                    TaskState::Preempted => 2048,
                };
                format!("switch {} {bit} {}", on(prev), on(next))
            }
            EventKind::Waking { task: id, target_cpu, waker } => {
                // Perfetto has the task that the CPU runs, which an interrupt interrupts.
                let by = if waker.is_idle() { interrupted } else { waker };
                format!("waking {} {target_cpu} by {}", named(id), task(by).pid)
            }
            EventKind::Wakeup { task, target_cpu } => {
                format!("wakeup {} {target_cpu}", named(task))
            }
            EventKind::WakeupNew { task, target_cpu } => {
                format!("new {} {target_cpu}", named(task))
            }
            EventKind::Migrate { task, from_cpu, to_cpu } => {
                format!("migrate {} {from_cpu} {to_cpu}", named(task))
            }
            EventKind::Fork { parent, child } => format!("fork {} {}", named(parent), named(child)),
            EventKind::Exit { task } => format!("exit {}", named(task)),
            EventKind::Tick { .. } => "tick".to_owned(),
            EventKind::CgroupMove { task, to, .. } => {
                format!("cgroup {} {:?}", named(task), trace.cgroups()[to.index()].path)
            }
            _ => continue,
        };
        all.entry(cpu.into()).or_default().push(format!("{time_ns} {said}"));
    }
    all
}

/// The same, from the file.
fn found(bytes: &[u8]) -> BTreeMap<u64, Vec<String>> {
    let mut all: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (cpu, time_ns, pid, number, said) in kernel_events(bytes) {
        let n = |field| said.number(field).unwrap() as u32;
        let t = |field| format!("{:?}", said.text(field));
        let text = match number {
            SWITCH => format!("switch {} {} {} {} {}", t(1), n(2), n(4), t(5), n(6)),
            WAKING => format!("waking {} {} {} by {pid}", t(1), n(2), n(5)),
            WAKEUP => format!("wakeup {} {} {}", t(1), n(2), n(5)),
            WAKEUP_NEW => format!("new {} {} {}", t(1), n(2), n(5)),
            MIGRATE => format!("migrate {} {} {} {}", t(1), n(2), n(4), n(5)),
            FORK => format!("fork {} {} {} {}", t(1), n(2), t(3), n(4)),
            EXIT => format!("exit {} {}", t(1), n(2)),
            HRTIMER => "tick".to_owned(),
            CGROUP => format!("cgroup {} {} {}", t(4), n(3), t(7)),
            NEWTASK => continue,
            other => panic!("field {other} of FtraceEvent"),
        };
        all.entry(cpu).or_default().push(format!("{time_ns} {text}"));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Every event that the kernel has a tracepoint for comes back with its time, CPU, tasks and operands.
    #[test]
    fn the_kernels_events_come_back(trace in traces()) {
        let bytes = written(&trace, &[]);
        prop_assert_eq!(found(&bytes), expected(&trace));
        let births: BTreeSet<_> = trace.events().filter_map(|e| match e.kind {
            EventKind::Fork { child: task, .. } | EventKind::WakeupNew { task, .. } => Some(task),
            _ => None,
        }).filter(|task| !task.is_idle()).collect();
        let new = kernel_events(&bytes).iter().filter(|event| event.3 == NEWTASK).count();
        prop_assert_eq!(new, births.len());
    }

    /// The others come back as values and instants on tracks that are described before they are used; lost events as a
    /// number.
    #[test]
    fn the_others_are_on_tracks(trace in traces()) {
        let bytes = written(&trace, &[]);
        let mut tracks = Vec::new();
        let (mut values, mut instants, mut lost, mut waits) = (Vec::new(), 0, 0, BTreeMap::new());
        for packet in packets(&bytes) {
            for track in packet.messages(60) {
                let parent = track.number(5);
                prop_assert!(parent.is_none_or(|parent| tracks.contains(&parent)));
                tracks.push(track.number(1).unwrap());
            }
            for event in packet.messages(11) {
                prop_assert!(tracks.contains(&event.number(11).unwrap()));
                match event.number(9) {
                    Some(4) => values.push((packet.number(8).unwrap(), event.number(30).unwrap())),
                    Some(3) => instants += 1,
                    // Begins and ends of waits for locks: on no track two begins without an end, or an end without a
                    // begin.
                    kind => {
                        let before = waits.insert(event.number(11), kind).unwrap_or(Some(2));
                        prop_assert_eq!((before, kind).min((kind, before)), (Some(1), Some(2)));
                    }
                }
            }
            for stats in packet.messages(34).iter().filter(|stats| stats.number(1) == Some(2)) {
                lost += stats.messages(2).iter().map(|cpu| cpu.number(3).unwrap()).sum::<u64>();
            }
        }
        let all = || trace.events();
        let marks: Vec<_> = all().filter_map(|e| match e.kind {
            EventKind::Mark { value, .. } => Some((e.time_ns, value)),
            _ => None,
        }).collect();
        prop_assert_eq!(values, marks);
        let others = all().filter(|e| matches!(e.kind, EventKind::Nice { .. }
            | EventKind::CallEnter { .. } | EventKind::CallExit { .. } | EventKind::RtPrio { .. } | EventKind::Callback { .. }
            | EventKind::Slice { .. } | EventKind::Affinity { .. } | EventKind::WakeSync { .. }
            | EventKind::Param { .. } | EventKind::Print { .. } | EventKind::Stack { .. }
            | EventKind::CgroupWeight { .. }) || preempts(&e.kind)).count();
        prop_assert_eq!(instants, others);
        let counts = all().map(|e| match e.kind { EventKind::Lost { count } => count, _ => 0 });
        prop_assert_eq!(lost, counts.sum::<u64>());
    }
}

/// Whether a task takes the CPU of another that is runnable.
fn preempts(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Switch { prev, prev_state: TaskState::Runnable | TaskState::Preempted, next }
        if !prev.is_idle() && !next.is_idle())
}

#[test]
fn a_preempted_task_has_an_instant_that_names_the_other() {
    let mut trace = Trace::new(1);
    let hog = trace.add_task(TaskInfo::new(7, "hog"));
    let other = trace.add_task(TaskInfo::new(8, "other"));
    for (time_ns, prev, prev_state, next) in [
        (1, TaskId::IDLE, TaskState::Runnable, hog),
        (5, hog, TaskState::Runnable, other),
        (9, other, TaskState::Sleeping, hog),
    ] {
        let kind = EventKind::Switch { prev, prev_state, next };
        trace.push(Event { time_ns, cpu: 0, insns: 0, kind });
    }
    let bytes = written(&trace, &[]);
    let packets = packets(&bytes);
    let thread = packets.iter().flat_map(|packet| packet.messages(60)).next().unwrap();
    assert_eq!(thread.messages(4)[0].number(1), Some(7));
    let instants: Vec<_> = packets
        .iter()
        .flat_map(|packet| packet.messages(11).into_iter().map(|event| (packet.number(8), event)))
        .collect();
    let [(time_ns, instant)] = instants[..] else { panic!("{} instants", instants.len()) };
    assert_eq!((time_ns, instant.number(11)), (Some(5), thread.number(1)));
    assert_eq!(instant.text(23), "preempted");
    let by = instant.messages(4)[0];
    assert_eq!((by.text(10), by.text(6)), ("by", "other 8"));
}

/// A pid means for Perfetto the task that has it at the time of a packet. So a task that is born in the trace is not in
/// the process tree at its start, and its track is described when it is first used.
#[test]
fn a_task_begins_where_it_is_born() {
    let mut trace = Trace::new(1);
    let old = trace.add_task(TaskInfo::new(7, "old"));
    let [forked, woken] =
        [(8, "forked"), (9, "woken")].map(|(pid, comm)| trace.add_task(TaskInfo::new(pid, comm)));
    let label = trace.intern("done");
    for (time_ns, kind) in [
        (1, EventKind::Switch { prev: TaskId::IDLE, prev_state: TaskState::Runnable, next: old }),
        (2, EventKind::Fork { parent: old, child: forked }),
        (2, EventKind::WakeupNew { task: forked, target_cpu: 0 }),
        (3, EventKind::WakeupNew { task: woken, target_cpu: 0 }),
        (4, EventKind::Mark { task: forked, label, value: 1 }),
    ] {
        trace.push(Event { time_ns, cpu: 0, insns: 0, kind });
    }
    let mut lag = Counter::new(CounterOf::Task(woken), "lag", CounterUnit::Ns);
    lag.set(5, 1);
    let bytes = written(&trace, &[lag]);
    let packets = packets(&bytes);
    let tree: Vec<_> =
        packets.iter().flat_map(|packet| packet.messages(2)).flat_map(|t| t.messages(1)).collect();
    assert_eq!(tree.iter().map(|process| process.number(1)).collect::<Vec<_>>(), [Some(7)]);
    let born: Vec<_> = kernel_events(&bytes)
        .into_iter()
        .filter(|event| event.3 == NEWTASK)
        .map(|(_, time_ns, parent, _, new)| (time_ns, parent, new.number(1).unwrap()))
        .collect();
    assert_eq!(born, [(2, 7, 8), (3, 0, 9)]);
    let described: Vec<_> = packets
        .iter()
        .flat_map(|packet| packet.messages(60).into_iter().map(|_| packet.number(8)))
        .collect();
    assert_eq!(described, [Some(4), Some(4), Some(5), Some(5)]);
}

#[test]
fn a_real_recording_comes_back() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../experiments/recordings/mixed-2cpu-whole.perf-sched.txt.gz");
    let input = BufReader::new(MultiGzDecoder::new(File::open(file).unwrap()));
    let trace = read("recording", input).unwrap();
    let bytes = written(&trace, &[]);
    assert!(trace.len() > 12_000);
    assert_eq!(found(&bytes), expected(&trace));
}

#[test]
fn counters_stand_below_their_tasks() {
    let mut trace = Trace::new(2);
    let task = trace.add_task(TaskInfo::new(7, "hog"));
    let kind = EventKind::Exit { task };
    trace.push(Event { time_ns: 5, cpu: 1, insns: 0, kind });
    let mut lag = Counter::new(CounterOf::Task(task), "lag", CounterUnit::Ns);
    lag.set(3, -40);
    let mut queue = Counter::new(CounterOf::Cpu(1), "queue", CounterUnit::Count);
    queue.set(4, 2);
    let bytes = written(&trace, &[lag, queue]);
    let packets = packets(&bytes);
    let tracks: Vec<_> = packets.iter().flat_map(|packet| packet.messages(60)).collect();
    let names: Vec<_> = tracks.iter().map(|track| track.text(2)).collect();
    assert_eq!(names, ["", "lag", "CPU 1 queue"]);
    let thread = tracks[0].messages(4)[0];
    assert_eq!((thread.number(1), thread.number(2)), (Some(7), Some(7)));
    assert_eq!((tracks[1].number(5), tracks[2].number(5)), (tracks[0].number(1), None));
    assert_eq!(tracks[1].messages(8)[0].number(3), Some(1));
    let values = packets.iter().flat_map(|packet| {
        let time_ns = packet.number(8);
        packet.messages(11).into_iter().map(move |event| {
            (time_ns.unwrap(), event.number(11), event.number(30).unwrap() as i64)
        })
    });
    let values: Vec<_> = values.collect();
    assert_eq!(values, [(3, tracks[1].number(1), -40), (4, tracks[2].number(1), 2)]);
    // The first packet of the sequence begins it anew.
    assert_eq!(packets.iter().filter(|packet| packet.number(13) == Some(1)).count(), 1);
    assert_eq!(packets[0].number(13), Some(1));
    assert!(packets.iter().all(|packet| packet.number(10) == Some(1)));
}
