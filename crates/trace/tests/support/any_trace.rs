//! Traces of every kind of event, for laws that hold of all of them.

use fairground_trace::{
    Call, CallbackKind, CgroupId, CgroupInfo, Event, EventKind, Label, LockFlags, Origin,
    OriginTarget, Policy, RtPrio, TaskId, TaskInfo, TaskState, Trace,
};
use proptest::prelude::*;

/// Paths and parents.
const CGROUPS: [(&str, Option<u32>); 4] =
    [("/", None), ("web", Some(0)), ("web/front end", Some(1)), ("batch", Some(0))];

fn rt_prio() -> impl Strategy<Value = RtPrio> {
    (-1..=98).prop_map(|prio| RtPrio::new(prio).expect("within the range"))
}

fn kind(tasks: u32, labels: u32, cpus: u32) -> impl Strategy<Value = EventKind> {
    let task = move || (0..tasks).prop_map(TaskId);
    // Only tasks other than the idle one have a nice value that could change.
    let real = move || (1..tasks).prop_map(TaskId);
    let label = move || (0..labels).prop_map(Label);
    let cpu = move || 0..cpus;
    prop_oneof![
        (task(), proptest::sample::select(&TaskState::ALL[..]), task())
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
        (real(), -20..=19_i8).prop_map(|(task, nice)| EventKind::Nice { task, nice }),
        (real(), rt_prio()).prop_map(|(task, prio)| EventKind::RtPrio { task, prio }),
        (task(), any::<u64>()).prop_map(|(task, slice_ns)| EventKind::Slice { task, slice_ns }),
        (task(), label()).prop_map(|(task, cpus)| EventKind::Affinity { task, cpus }),
        task().prop_map(|task| EventKind::Tick { task }),
        task().prop_map(|task| EventKind::WakeSync { task }),
        (task(), any::<u64>())
            .prop_map(|(task, runtime_ns)| EventKind::Charge { task, runtime_ns }),
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
        // The origin of the task is filled in when its cgroup is known.
        (1..tasks, 0..CGROUPS.len() as u32).prop_map(|(task, to)| EventKind::CgroupMove {
            task: TaskId(task),
            from: CgroupId::ROOT,
            to: CgroupId(to)
        }),
        (0..CGROUPS.len() as u32, 1..=10_000_u32).prop_map(|(cgroup, weight)| {
            EventKind::CgroupWeight { cgroup: CgroupId(cgroup), weight }
        }),
        label().prop_map(|label| EventKind::Print { label }),
        (task(), proptest::sample::select(&Call::ALL[..]), any::<u64>())
            .prop_map(|(task, call, object)| EventKind::CallEnter { task, call, object }),
        (task(), any::<i64>()).prop_map(|(task, result)| EventKind::CallExit { task, result }),
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
        rt_prio in proptest::option::of(rt_prio()),
        policy in proptest::option::of(proptest::sample::select(&Policy::ALL[..])),
        slice_ns in proptest::option::of(any::<u64>()),
    ) -> TaskInfo {
        let nice = nice.filter(|_| rt_prio.is_none());
        TaskInfo { nice, rt_prio, policy, slice_ns, allowed_cpus: allowed, ..TaskInfo::new(0, &comm) }
    }
}

prop_compose! {
    fn origins()(
        target in proptest::option::of(
            proptest::sample::select(&[OriginTarget::Simulated, OriginTarget::Kernel][..]),
        ),
        texts in prop::collection::vec(proptest::option::of("[!-~ä][ -~ä]{0,20}"), 5),
        settings in prop::collection::vec(("[a-z_]{1,9}", "[ -~]{0,9}"), 0..3),
        tunables in prop::collection::vec(("[a-z_]{1,9}", "[ -~]{0,9}"), 0..3),
        features in prop::collection::vec("[A-Z_]{1,9}", 0..3),
        hz in proptest::option::of(1..=10_000_u32),
        command_pid in proptest::option::of(any::<u32>()),
        cost in prop::collection::vec(("[a-z_]{1,9}", any::<u64>()), 0..3),
    ) -> Origin {
        let [scheduler, kernel, timers, costs, topology] =
            <[_; 5]>::try_from(texts).expect("five texts");
        Origin {
            target,
            scheduler,
            settings,
            kernel,
            hz,
            features,
            tunables,
            timers,
            costs,
            cost,
            topology,
            command_pid,
        }
    }
}

prop_compose! {
    pub(crate) fn traces()(
        infos in prop::collection::vec(task_info(), 1..8),
        labels in prop::collection::hash_set(any::<String>(), 1..5),
        cpus in 1..70_u32,
        origin in origins(),
    )(
        events in prop::collection::vec(
            (0..5_000_000_000_u64, 0..cpus, kind(infos.len() as u32 + 1, labels.len() as u32, cpus)),
            1..60,
        ),
        infos in Just(infos),
        labels in Just(labels),
        cpus in Just(cpus),
        origin in Just(origin),
        before_ns in 0..10_u64,
    ) -> Trace {
        let mut trace = Trace::new(cpus);
        trace.origin = origin;
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
