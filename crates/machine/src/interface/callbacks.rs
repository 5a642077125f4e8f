//! The members of `struct sched_ext_ops` and of its cid form.

use super::feature::Feature;

const fn f(name: &'static str) -> Feature {
    Feature::new(name)
}

/// Members for a scheduler below another one.
const NO_SUB: &str = "never called: there are no sub-schedulers";

/// The callbacks, in the order of the kernel's structure.
pub(crate) const CALLBACKS: &[Feature] = &[
    f("select_cpu"),
    f("enqueue"),
    f("dequeue"),
    f("dispatch"),
    f("tick"),
    f("runnable"),
    f("running"),
    f("stopping"),
    f("quiescent"),
    f("yield"),
    f("core_sched_before").absent("never called: there is no core scheduling"),
    f("set_weight"),
    f("set_cpumask"),
    f("update_idle"),
    f("init_task"),
    f("exit_task"),
    f("enable"),
    f("disable"),
    f("dump"),
    f("dump_cpu"),
    f("dump_task"),
    f("cgroup_init").but("all cgroups exist before the scheduler is loaded"),
    f("cgroup_exit").but("when the scheduler leaves; no cgroup leaves before"),
    f("cgroup_prep_move"),
    f("cgroup_move"),
    f("cgroup_cancel_move"),
    f("cgroup_set_weight"),
    f("cgroup_set_bandwidth").since(6, 17),
    f("cgroup_set_idle").since(6, 19),
    f("sub_attach").since(7, 1).absent(NO_SUB),
    f("sub_detach").since(7, 1).absent(NO_SUB),
    f("cpu_online"),
    f("cpu_offline"),
    f("init"),
    f("exit"),
    f("cpu_acquire"),
    f("cpu_release").but("for real-time tasks; other classes do not preempt"),
];

/// The callbacks that the cid form (`struct sched_ext_ops_cid`) calls by another name, and that name.
pub(crate) const CID_NAMES: [(&str, Feature); 5] = [
    ("select_cpu", f("select_cid").since(7, 2)),
    ("set_cpumask", f("set_cmask").since(7, 2)),
    ("dump_cpu", f("dump_cid").since(7, 2)),
    ("cpu_online", f("cid_online").since(7, 2)),
    ("cpu_offline", f("cid_offline").since(7, 2)),
];

/// The data members.
pub(crate) const DATA: &[Feature] = &[
    f("dispatch_max_batch").but("up to 4096"),
    f("flags"),
    f("timeout_ms"),
    f("exit_dump_len").but("up to 4 MiB"),
    f("hotplug_seq")
        .but("compared when the scheduler is loaded; one for each CPU has come at the boot"),
    f("sub_cgroup_id").since(7, 1).absent("not read: there are no sub-schedulers"),
    f("name"),
];
