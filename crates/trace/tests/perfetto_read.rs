//! Traces of Perfetto are read: our own, and what Android, systing and `traced` write.

use std::collections::BTreeSet;
use std::io::Write;

use fairground_trace::{EventKind, TaskId, Trace, read, read_machine, write_perfetto};
use proptest::prelude::*;

use crate::support::any_trace::traces;
use crate::support::proto::{Proto, bundle, file};
use crate::support::recording;
use crate::support::samples::{android, event, events, switch};
use crate::support::words;

fn written(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_perfetto(trace, &[], &mut bytes).unwrap();
    bytes
}

fn trace(bytes: &[u8]) -> Trace {
    read("sample.pftrace", bytes).expect("a trace of Perfetto")
}

/// What the kernel has events for comes back: a real recording is the same, event for event.
#[test]
fn our_own_export_is_the_same_recording() {
    let ours = recording("mixed-2cpu-whole.perf-sched.txt.gz");
    let back = trace(&written(&ours));
    // Perfetto has no event for what the kernel charges.
    let wanted: Vec<_> = words(&ours).into_iter().filter(|line| !line.contains("Charge")).collect();
    let found = words(&back);
    for (found, wanted) in found.iter().zip(&wanted) {
        assert_eq!(found, wanted);
    }
    assert_eq!((back.cpus, found.len()), (ours.cpus, wanted.len()));
    let skipped = back.loss.skipped;
    assert_eq!(back.loss, fairground_trace::Loss { skipped, ..Default::default() });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No event is unreadable, and lost events are counted.
    #[test]
    fn any_trace_that_is_written_is_read(ours in traces()) {
        let kernels = ours.events().filter(|event| matches!(
            event.kind,
            EventKind::Switch { .. } | EventKind::Waking { .. } | EventKind::Wakeup { .. }
                | EventKind::WakeupNew { .. } | EventKind::Migrate { .. } | EventKind::Exit { .. }
        ));
        if kernels.count() > 0 {
            let back = trace(&written(&ours));
            let count = |trace: &Trace, of: fn(&EventKind) -> bool| {
                trace.events().filter(|event| of(&event.kind)).count()
            };
            // A task that is new without a fork is written as one of the idle task.
            let tasks = |of: fn(EventKind) -> Option<TaskId>| {
                let named = ours.events().filter_map(|event| of(event.kind));
                named.filter(|task| !task.is_idle()).collect::<BTreeSet<_>>()
            };
            let forked = tasks(|kind| match kind { EventKind::Fork { child, .. } => Some(child), _ => None });
            let new = tasks(|kind| match kind { EventKind::WakeupNew { task, .. } => Some(task), _ => None });
            let forks = count(&ours, |kind| matches!(kind, EventKind::Fork { .. }));
            prop_assert_eq!(
                count(&back, |kind| matches!(kind, EventKind::Fork { .. })),
                forks + new.difference(&forked).count()
            );
            let all: [fn(&EventKind) -> bool; 5] = [
                |kind| matches!(kind, EventKind::Switch { .. }),
                |kind| matches!(kind, EventKind::Waking { .. }),
                |kind| matches!(kind, EventKind::Wakeup { .. }),
                |kind| matches!(kind, EventKind::Tick { .. }),
                |kind| matches!(kind, EventKind::CgroupMove { .. }),
            ];
            for of in all {
                // Without requests to wake, the reader adds one for each task that is queued.
                let wanted = count(&ours, of);
                prop_assert!(count(&back, of) == wanted || wanted == 0);
            }
            prop_assert_eq!(back.loss.unreadable, 0, "{:?}", back.loss.first);
            let lost: u64 = ours.events().map(|event| match event.kind {
                EventKind::Lost { count } => count,
                _ => 0,
            }).sum();
            prop_assert!(back.loss.lost_events >= lost);
        }
    }

    /// Damage anywhere is counted or refused.
    #[test]
    fn damage_is_no_panic(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = android();
        let (at, end) = (at.index(bytes.len()), end.index(bytes.len()));
        bytes[at] = byte;
        for bytes in [&bytes[..], &bytes[..end]] {
            if let Err(error) = read("damaged", bytes) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn columns_of_switches_name_the_next_task_alone() {
    let trace = trace(&android());
    assert_eq!(
        words(&trace),
        [
            // What the CPU ran before its first switch is not in the columns.
            "1000 0 swapper:0 S -> app:11",
            "2000 0 app:11 wakes audio:12 on 1",
            "2500 1 swapper:0 R -> swapper:0",
            "3000 0 app:11 S -> audio:12",
            // In an interrupt.
            "4000 0 swapper:0 wakes app:11 on 0",
            "5000 0 audio:12 R+ -> app:11",
            "6000 1 swapper:0 R -> late:13",
            "7000 0 app:11 P -> swapper:0",
        ]
    );
    assert_eq!((trace.cpus, trace.loss.clone()), (2, fairground_trace::Loss::default()));
    assert_eq!(trace.origin.kernel.as_deref(), Some("5.10.43-android12"));
    assert_eq!(trace.tasks()[1].nice, Some(0));
    assert_eq!(trace.tasks()[2].rt_prio.map(|prio| prio.prio()), Some(97));
}

#[test]
fn lost_bundles_and_lost_events_are_gaps() {
    let (idle, app) = ((0, "swapper/0"), (7, "app"));
    let first = events(0, &[switch(1_000, idle, 0, app)]);
    let flagged = events(0, &[switch(5_000, app, 1, idle)]).number(3, 1);
    // The bundle before this one is not in the file.
    let skipped = events(0, &[switch(9_000, idle, 0, app)]).number(10, 8_000);
    let dropped = bundle(events(0, &[switch(12_000, app, 1, idle)])).number(42, 1);
    let stats = |phase: u64, overrun: u64| {
        let cpu = Proto::default().number(1, 0).number(3, overrun);
        Proto::default().bytes(34, Proto::default().number(1, phase).bytes(2, cpu))
    };
    let first = bundle(first).number(42, 1);
    let bytes =
        file(&[stats(1, 100), first, bundle(flagged), bundle(skipped), dropped, stats(2, 110)]);
    let trace = trace(&bytes);
    assert_eq!(
        words(&trace),
        [
            "1000 0 swapper:0 R -> app:7",
            "1000 0 lost 1",
            "5000 0 app:7 S -> swapper:0",
            "5000 0 lost 1",
            "9000 0 swapper:0 R -> app:7",
            "9000 0 lost 1",
            "12000 0 app:7 S -> swapper:0",
        ]
    );
    assert_eq!(trace.loss.lost_events, 10);
}

#[test]
fn new_tasks_with_one_event_or_with_two() {
    let (idle, app) = ((0, "swapper/0"), (7, "app"));
    let child = |pid: u64| Proto::default().number(1, pid).bytes(2, "app").number(3, 0);
    let fork =
        |pid: u64| Proto::default().bytes(1, "app").number(2, 7).bytes(3, "app").number(4, pid);
    let all = [
        switch(1_000, idle, 0, app),
        event(2_000, 7, 235, child(8)),
        event(2_001, 7, 239, fork(8)),
        event(3_000, 7, 235, child(9)),
        event(4_000, 7, 239, fork(10)),
    ];
    let trace = trace(&file(&[bundle(events(0, &all))]));
    let forks = words(&trace).split_off(1);
    assert_eq!(
        forks,
        ["2000 0 app:7 forks app:8", "3000 0 app:7 forks app:9", "4000 0 app:7 forks app:10"]
    );
    assert_eq!((trace.loss.pid_reuses, trace.loss.skipped), (0, 1));
}

/// An event without the pid of the task that it happened in.
#[test]
fn a_parent_that_is_not_named_is_the_task_that_ran() {
    let child = Proto::default().number(1, 8).bytes(2, "app").number(3, 0);
    let unnamed = Proto::default().number(1, 2_000).bytes(235, child);
    let all = [switch(1_000, (0, "swapper/0"), 0, (7, "app")), unnamed];
    let trace = trace(&file(&[bundle(events(0, &all))]));
    assert_eq!(words(&trace).split_off(1), ["2000 0 app:7 forks app:8"]);
}

#[test]
fn another_clock_is_moved_to_that_of_the_trace() {
    let of = |clock: u64| {
        let all = events(0, &[switch(1_000, (0, "swapper/0"), 0, (7, "app"))]);
        let all = all.number(5, clock).number(6, 3_000).number(7, 50_000);
        file(&[bundle(all)])
    };
    assert_eq!(words(&trace(&of(3))), ["48000 0 swapper:0 R -> app:7"]);
    let said = read("unknown", &of(1)[..]).expect_err("a clock without time").to_string();
    assert!(said.contains("a clock that may not count nanoseconds"), "{said}");
}

#[test]
fn of_several_machines_the_first_is_read() {
    let of = |machine: u64, name: &str| {
        let all = events(0, &[switch(1_000, (0, "swapper/0"), 0, (7, name))]);
        bundle(all).number(98, machine)
    };
    let both = file(&[of(0, "host"), of(5, "guest"), of(0, "host")]);
    let trace = trace(&both);
    assert_eq!(trace.events().count(), 2);
    assert_eq!((trace.tasks().len(), trace.loss.skipped), (2, 1));
    let first = trace.loss.first.unwrap_or_default();
    assert!(first.contains("several machines, 0, 5: only those of machine 0"), "{first}");
    for (machine, name, events) in [("0", "host", 2), ("5", "guest", 1)] {
        let trace = read_machine("both", &both[..], Some(machine)).expect("it is there");
        assert_eq!((trace.events().count(), trace.loss.first.clone()), (events, None));
        assert!(trace.tasks().iter().any(|task| task.comm == name), "{name}");
    }
    for machine in ["7", "guest"] {
        let said = read_machine("both", &both[..], Some(machine)).expect_err("there is none");
        assert!(said.to_string().contains("it has 0, 5"), "{said}");
    }
}

#[test]
fn compressed_packets_and_a_file_in_gzip() {
    let plain = android();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(&plain).unwrap();
    let packed = file(&[Proto::default().bytes(50, zlib.finish().unwrap())]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&packed).unwrap();
    assert_eq!(words(&trace(&gzip.finish().unwrap())), words(&trace(&plain)));
    let damaged = file(&[Proto::default().bytes(50, "no zlib"), Proto(plain)]);
    let said = read("damaged", &damaged[..]).expect_err("no event").to_string();
    assert!(said.contains("damaged compressed packets"), "{said}");
}

#[test]
fn a_file_that_is_cut_off_keeps_its_whole_packets() {
    let bytes = android();
    let whole = trace(&bytes);
    let cut = trace(&bytes[..bytes.len() - 10]);
    assert!(cut.loss.truncated && !whole.loss.truncated);
    assert_eq!(words(&cut), words(&whole));
    assert!(cut.loss.first.unwrap_or_default().contains("a packet is cut off"));
}

/// An empty line before a text is no packet.
#[test]
fn a_text_behind_an_empty_line_is_a_text() {
    let text = "\n          <idle>-0     [000] d..2. 1.000001: sched_switch: prev_comm=swapper/0 prev_pid=0 \
                prev_prio=120 prev_state=R ==> next_comm=cat next_pid=7 next_prio=120\n";
    assert_eq!(trace(text.as_bytes()).len(), 1);
}
