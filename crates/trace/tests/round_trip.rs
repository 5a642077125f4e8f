//! What is written as ftrace text and read back is the same trace.

use fairground_trace::{
    CallbackKind, CgroupId, Event, EventKind, Origin, OriginTarget, Precision, TaskId, TaskInfo,
    TaskState, Trace, read, write_ftrace, write_ftrace_with,
};
use proptest::prelude::*;

use crate::support::any_trace::traces;

fn text_of(trace: &Trace) -> Vec<u8> {
    let mut text = Vec::new();
    write_ftrace(trace, &mut text).unwrap();
    text
}

fn back(trace: &Trace) -> Trace {
    read("written", &text_of(trace)[..]).unwrap()
}

fn assert_same(ours: &Trace, read: &Trace) {
    assert_eq!(ours.tasks(), read.tasks());
    assert_eq!(ours.labels(), read.labels());
    assert_eq!(ours.origin, read.origin);
    for (a, b) in ours.events().zip(read.events()) {
        assert_eq!(a, b);
    }
    assert_eq!(ours.digest(), read.digest());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn written_and_read_is_the_same(trace in traces()) {
        let read = back(&trace);
        assert_same(&trace, &read);
        prop_assert_eq!((read.loss.unreadable, read.loss.skipped, read.loss.clock_jumps), (0, 0, 0));
    }

    #[test]
    fn microseconds_lose_three_digits_and_nothing_else(trace in traces()) {
        let mut text = Vec::new();
        write_ftrace_with(&trace, Precision::Micros, &mut text).unwrap();
        let read = read("written", &text[..]).unwrap();
        prop_assert_eq!(read.len(), trace.len());
        for (a, b) in trace.events().zip(read.events()) {
            prop_assert_eq!((a.time_ns / 1000 * 1000, a.cpu, a.kind), (b.time_ns, b.cpu, b.kind));
        }
    }

    #[test]
    fn a_digest_tells_traces_apart(trace in traces(), at in any::<prop::sample::Index>(), bit in 0..3_u32) {
        let mut other = Trace::new(trace.cpus);
        for info in &trace.tasks()[1..] {
            other.add_task(info.clone());
        }
        for info in trace.cgroups() {
            other.add_cgroup(info.clone());
        }
        for label in trace.labels() {
            other.intern(label);
        }
        (other.start_ns, other.end_ns) = (trace.start_ns, trace.end_ns);
        other.origin = trace.origin.clone();
        let changed = at.index(trace.len());
        let mut same = other.clone();
        for (i, event) in trace.events().enumerate() {
            same.push(event);
            let cpu = if i == changed { event.cpu ^ 1 << bit } else { event.cpu };
            other.push(Event { cpu, ..event });
        }
        prop_assert_eq!(&same, &trace);
        prop_assert_eq!(same.digest(), trace.digest());
        prop_assert_ne!(other.digest(), trace.digest());
    }
}

#[test]
fn pids_may_be_used_again() {
    let mut trace = Trace::new(1);
    let first = trace.add_task(TaskInfo { nice: Some(0), ..TaskInfo::new(7, "first") });
    let second = trace.add_task(TaskInfo { nice: Some(3), ..TaskInfo::new(7, "second") });
    let idle = TaskId::IDLE;
    let mut push = |time_ns, kind| trace.push(Event { time_ns, cpu: 0, insns: 0, kind });
    push(1, EventKind::Switch { prev: idle, prev_state: TaskState::Runnable, next: first });
    push(2, EventKind::Exit { task: first });
    push(3, EventKind::Switch { prev: first, prev_state: TaskState::Dead, next: idle });
    push(4, EventKind::WakeupNew { task: second, target_cpu: 0 });
    push(5, EventKind::Switch { prev: idle, prev_state: TaskState::Runnable, next: second });
    (trace.start_ns, trace.end_ns) = (1, 5);
    let read = back(&trace);
    assert_same(&trace, &read);
    assert_eq!(read.loss.pid_reuses, 1);
}

#[test]
fn a_window_is_found_by_bisection() {
    let mut trace = Trace::new(1);
    for time_ns in [1, 3, 3, 3, 8] {
        trace.push(Event { time_ns, cpu: 0, insns: 0, kind: EventKind::Lost { count: time_ns } });
    }
    assert_eq!(trace.window(3, 8), 1..4);
    assert_eq!(trace.window(4, 8), 4..4);
    assert_eq!(trace.window(8, 2), 4..4);
    assert_eq!(trace.window(0, 100), 0..5);
    let times: Vec<u64> = trace.events_in(2..99).map(|event| event.time_ns).collect();
    assert_eq!(times, [3, 3, 8]);
}

/// The text itself, as other programs see it.
#[test]
fn the_text() {
    let mut trace = Trace::new(2);
    trace.origin = Origin {
        target: Some(OriginTarget::Simulated),
        scheduler: Some("eevdf@6.18".to_owned()),
        settings: vec![("base_slice_ns".to_owned(), "3ms".to_owned())],
        hz: Some(250),
        cost: vec![("tick_ns".to_owned(), 7)],
        topology: Some("100% of a\u{e4}".to_owned()),
        ..Origin::default()
    };
    let hog = trace.add_task(TaskInfo { nice: Some(5), ..TaskInfo::new(77, "hog=[a]\n") });
    let child = trace.add_task(TaskInfo {
        allowed_cpus: Some(vec![(0, 1), (4, 4)]),
        ..TaskInfo::new(78, "a child with a name longer than the kernel's")
    });
    let answers = trace.intern("100% of\nall|answers");
    let param = trace.intern("slice_ns=3000000");
    let printed = trace.intern("busiest 3: load 2048 [1024] = 50%\tfuzz: 32 ");
    let idle = TaskId::IDLE;
    let kinds = [
        EventKind::Switch { prev: idle, prev_state: TaskState::Runnable, next: hog },
        EventKind::Fork { parent: hog, child },
        EventKind::WakeupNew { task: child, target_cpu: 1 },
        EventKind::Tick { task: hog },
        EventKind::Callback { kind: CallbackKind::SelectCpu, task: child },
        EventKind::Waking { task: child, waker: hog, target_cpu: 0 },
        // By an interrupt of the hog.
        EventKind::Waking { task: child, waker: idle, target_cpu: 0 },
        EventKind::Wakeup { task: child, target_cpu: 1 },
        EventKind::Migrate { task: child, from_cpu: 1, to_cpu: 0 },
        EventKind::Nice { task: hog, nice: -3 },
        EventKind::Mark { task: hog, label: answers, value: u64::MAX },
        EventKind::Param { label: param },
        EventKind::Print { label: printed },
        EventKind::Lost { count: 9 },
        EventKind::Exit { task: hog },
        EventKind::Switch { prev: hog, prev_state: TaskState::Dead, next: child },
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        trace.push(Event { time_ns: 1_999_999_999 + i as u64, cpu: 0, insns: 0, kind });
    }
    (trace.start_ns, trace.end_ns) = (0, 3_000_000_000);
    assert_same(&trace, &back(&trace));
    insta::assert_snapshot!(String::from_utf8(text_of(&trace)).unwrap());
}

/// As a kernel records it: without the tree of cgroups in the header.
#[test]
fn a_kernels_moves_make_the_tree() {
    let text = "  sh-9 [000] ..... 1.000001: cgroup_attach_task: dst_root=1 dst_id=77 dst_level=2 \
                dst_path=/web/front pid=9 comm=sh\n\
                \x20 sh-9 [000] ..... 1.000002: cgroup_attach_task: dst_root=1 dst_id=1 \
                dst_level=0 dst_path=/ pid=9 comm=sh\n\
                \x20 sh-9 [000] ..... 1.000003: tracing_mark_write: fairground:cgroup_weight weight=300 \
                path=/web\n";
    let trace = read("kernel", text.as_bytes()).unwrap();
    let paths: Vec<&str> = trace.cgroups().iter().map(|cgroup| cgroup.path.as_str()).collect();
    assert_eq!(paths, ["/", "web", "web/front"]);
    assert_eq!(trace.cgroups()[2].parent, Some(CgroupId(1)));
    assert_eq!(trace.cgroups()[2].weight, None);
    let changes: Vec<EventKind> = trace.events().map(|event| event.kind).collect();
    let moves = [(0, 2), (2, 0)].map(|(from, to)| EventKind::CgroupMove {
        task: TaskId(1),
        from: CgroupId(from),
        to: CgroupId(to),
    });
    let weight = EventKind::CgroupWeight { cgroup: CgroupId(1), weight: 300 };
    assert_eq!(changes, [&moves[..], &[weight]].concat());
    assert_eq!(trace.loss.unreadable, 0);
}
