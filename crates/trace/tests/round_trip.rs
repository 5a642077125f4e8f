//! What is written as ftrace text and read back is the same trace.

use fairground_trace::{
    CallbackKind, CgroupId, CgroupInfo, Event, EventKind, Label, LockFlags, Precision, TaskId,
    TaskInfo, TaskState, Trace, read, write_ftrace, write_ftrace_with,
};
use proptest::prelude::*;

const STATES: [TaskState; 6] = [
    TaskState::Runnable,
    TaskState::Sleeping,
    TaskState::Uninterruptible,
    TaskState::Stopped,
    TaskState::Dead,
    TaskState::Parked,
];

/// Paths and parents.
const CGROUPS: [(&str, Option<u32>); 4] =
    [("/", None), ("web", Some(0)), ("web/front end", Some(1)), ("batch", Some(0))];

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
    for (a, b) in ours.events().zip(read.events()) {
        assert_eq!(a, b);
    }
    assert_eq!(ours.digest(), read.digest());
}

fn kind(tasks: u32, labels: u32, cpus: u32) -> impl Strategy<Value = EventKind> {
    let task = move || (0..tasks).prop_map(TaskId);
    // Only tasks other than the idle one have a nice value that could change.
    let real = (1..tasks).prop_map(TaskId);
    let label = move || (0..labels).prop_map(Label);
    let cpu = move || 0..cpus;
    prop_oneof![
        (task(), proptest::sample::select(&STATES[..]), task())
            .prop_map(|(prev, prev_state, next)| EventKind::Switch { prev, prev_state, next }),
        (task(), task(), cpu()).prop_map(|(task, waker, target_cpu)| EventKind::Waking {
            task,
            waker,
            target_cpu
        }),
        (task(), cpu()).prop_map(|(task, target_cpu)| EventKind::Wakeup { task, target_cpu }),
        (task(), cpu()).prop_map(|(task, target_cpu)| EventKind::WakeupNew { task, target_cpu }),
        (task(), cpu(), cpu()).prop_map(|(task, from_cpu, to_cpu)| EventKind::Migrate {
            task,
            from_cpu,
            to_cpu
        }),
        (task(), task()).prop_map(|(parent, child)| EventKind::Fork { parent, child }),
        task().prop_map(|task| EventKind::Exit { task }),
        (real, -20..=19_i8).prop_map(|(task, nice)| EventKind::Nice { task, nice }),
        task().prop_map(|task| EventKind::Tick { task }),
        (proptest::sample::select(&CallbackKind::ALL[..]), task())
            .prop_map(|(kind, task)| EventKind::Callback { kind, task }),
        (task(), label(), any::<u64>()).prop_map(|(task, label, value)| EventKind::Mark {
            task,
            label,
            value
        }),
        label().prop_map(|label| EventKind::Param { label }),
        (task(), label(), 0..64_u8, task()).prop_map(|(task, lock, flags, holder)| {
            EventKind::ContentionBegin { task, lock, flags: LockFlags(flags), holder }
        }),
        (task(), label()).prop_map(|(task, lock)| EventKind::ContentionEnd { task, lock }),
        // Where the task comes from is put in when its place is known.
        (1..tasks, 0..CGROUPS.len() as u32).prop_map(|(task, to)| EventKind::CgroupMove {
            task: TaskId(task),
            from: CgroupId::ROOT,
            to: CgroupId(to)
        }),
        (0..CGROUPS.len() as u32, 1..=10_000_u32).prop_map(|(cgroup, weight)| {
            EventKind::CgroupWeight { cgroup: CgroupId(cgroup), weight }
        }),
        label().prop_map(|label| EventKind::Print { label }),
        task().prop_map(move |task| EventKind::Stack { task, label: Label(labels) }),
        (0..1000_u64).prop_map(|count| EventKind::Lost { count }),
    ]
}

/// The label behind the others.
const STACK: &str = "ret_from_fork;[unknown];poll.constprop.0;__schedule";

prop_compose! {
    fn task_info()(
        comm in prop_oneof!["[a-z/:0-9-]{1,15}", "[ -~]{0,20}", any::<String>()],
        nice in proptest::option::of(-20..=19_i8),
        allowed in proptest::option::of(prop::collection::vec((0..9_u32, 0..9_u32), 0..3)),
    ) -> TaskInfo {
        TaskInfo { nice, allowed_cpus: allowed, ..TaskInfo::new(0, &comm) }
    }
}

prop_compose! {
    fn traces()(
        infos in prop::collection::vec(task_info(), 1..8),
        labels in prop::collection::hash_set(any::<String>(), 1..5),
        cpus in 1..70_u32,
    )(
        events in prop::collection::vec(
            (0..5_000_000_000_u64, 0..cpus, kind(infos.len() as u32 + 1, labels.len() as u32, cpus)),
            1..60,
        ),
        infos in Just(infos),
        labels in Just(labels),
        cpus in Just(cpus),
        before_ns in 0..10_u64,
    ) -> Trace {
        let mut trace = Trace::new(cpus);
        for (i, info) in infos.into_iter().enumerate() {
            let cgroup = (i % 3 > 0).then_some(CgroupId(i as u32 % CGROUPS.len() as u32));
            trace.add_task(TaskInfo { pid: 1000 - i as u32, cgroup, ..info });
        }
        for (path, parent) in CGROUPS {
            let weight = parent.map(|parent| 7 + parent);
            let parent = parent.map(CgroupId);
            trace.add_cgroup(CgroupInfo { path: path.to_owned(), parent, weight });
        }
        let mut places: Vec<_> = trace.tasks().iter().map(|task| task.cgroup).collect();
        for label in labels {
            trace.intern(&label);
        }
        trace.intern(STACK);
        trace.start_ns = 1_000_000_000 - before_ns;
        let mut time_ns = 1_000_000_000;
        for (i, (step_ns, cpu, kind)) in events.into_iter().enumerate() {
            // Equal stamps among the rest.
            time_ns += if i % 3 == 0 { 0 } else { step_ns };
            let kind = match kind {
                EventKind::CgroupMove { task, to, .. } => {
                    let from = places[task.index()].replace(to).unwrap_or(CgroupId::ROOT);
                    EventKind::CgroupMove { task, from, to }
                }
                kind => kind,
            };
            trace.push(Event { time_ns, cpu, insns: 0, kind });
        }
        trace.end_ns = time_ns + before_ns;
        trace
    }
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

/// What a kernel records: nobody has told the tree before.
#[test]
fn a_kernels_moves_make_the_tree() {
    let text = "  sh-9 [000] ..... 1.000001: cgroup_attach_task: dst_root=1 dst_id=77 dst_level=2 dst_path=/web/front pid=9 comm=sh\n\
                \x20 sh-9 [000] ..... 1.000002: cgroup_attach_task: dst_root=1 dst_id=1 dst_level=0 dst_path=/ pid=9 comm=sh\n";
    let trace = read("kernel", text.as_bytes()).unwrap();
    let paths: Vec<&str> = trace.cgroups().iter().map(|cgroup| cgroup.path.as_str()).collect();
    assert_eq!(paths, ["/", "web", "web/front"]);
    assert_eq!(trace.cgroups()[2].parent, Some(CgroupId(1)));
    assert_eq!(trace.cgroups()[2].weight, None);
    let moves: Vec<EventKind> = trace.events().map(|event| event.kind).collect();
    let sh = TaskId(1);
    let expected = [(0, 2), (2, 0)].map(|(from, to)| EventKind::CgroupMove {
        task: sh,
        from: CgroupId(from),
        to: CgroupId(to),
    });
    assert_eq!(moves, expected);
    assert_eq!(trace.loss.unreadable, 0);
}
