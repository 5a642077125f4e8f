//! Types and members that came after 6.12. What else the simulated kernel's types have is the same for every release.

use super::feature::Feature;
use super::release::KernelAbi;

const fn f(name: &'static str) -> Feature {
    Feature::new(name)
}

/// Structures, and members as `structure.member`.
pub(crate) const TYPES: &[Feature] = &[
    f("scx_event_stats").since(6, 15),
    f("scx_cgroup_init_args.bw_period_us").since(6, 17),
    f("scx_cgroup_init_args.bw_quota_us").since(6, 17),
    f("scx_cgroup_init_args.bw_burst_us").since(6, 17),
    f("scx_exit_info.flags").by(6, 18),
    f("scx_exit_info.exit_cpu").by(7, 2),
    f("scx_bpf_dsq_insert_vtime_args").since(6, 19),
    f("scx_bpf_select_cpu_and_args").since(6, 19),
    f("scx_cid_topo").since(7, 2),
    f("scx_cmask").since(7, 2),
    f("sched_ext_ops_cid").since(7, 2),
    f("sched_ext_entity.tid").since(7, 2),
];

/// Whether the types of a release have a structure, or a member of one (`structure.member`).
pub(crate) fn has(name: &str, abi: KernelAbi) -> bool {
    let known = TYPES.iter().find(|feature| feature.name == name);
    known.is_none_or(|feature| feature.exists_in(abi))
}
