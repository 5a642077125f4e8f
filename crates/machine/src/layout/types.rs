//! The structures, as BTF.

use fairground_bpf::{Field, TargetTypes, TypeRef};

use super::arguments;
use super::offsets::{
    self, cgroup, list_head, rq, sched_entity, sched_info, scx_entity, signal, task, thread_info,
};
use crate::abi;
use crate::interface::constants::ENUMERATIONS;
use crate::interface::{KernelAbi, types::has};

/// The plain types that structures are made of.
pub(super) struct Basic {
    pub(super) boolean: TypeRef,
    pub(super) u8: TypeRef,
    pub(super) u16: TypeRef,
    pub(super) u32: TypeRef,
    pub(super) s32: TypeRef,
    pub(super) u64: TypeRef,
    pub(super) s64: TypeRef,
    pub(super) ulong: TypeRef,
    pub(super) ptr_char: TypeRef,
    pub(super) ptr_ulong: TypeRef,
    pub(super) comm: TypeRef,
}

impl Basic {
    fn new(t: &mut TargetTypes) -> Basic {
        let char = t.signed("char", 1);
        let u8 = t.unsigned("unsigned char", 1);
        let u16 = t.unsigned("unsigned short", 2);
        let u32 = t.unsigned("unsigned int", 4);
        let s32 = t.signed("int", 4);
        let ulong = t.unsigned("unsigned long", 8);
        let ullong = t.unsigned("unsigned long long", 8);
        let llong = t.signed("long long", 8);
        for (name, of) in [
            ("__u8", u8),
            ("__u16", u16),
            ("__u32", u32),
            ("__s32", s32),
            ("__u64", ullong),
            ("__s64", llong),
        ] {
            let long = t.typedef(name, of);
            t.typedef(&name[2..], long);
        }
        let pid = t.typedef("__kernel_pid_t", s32);
        t.typedef("pid_t", pid);
        Basic {
            boolean: t.boolean(),
            u8,
            u16,
            u32,
            s32,
            u64: ullong,
            s64: llong,
            ulong,
            ptr_char: t.pointer(char),
            ptr_ulong: t.pointer(ulong),
            comm: t.array(char, 16),
        }
    }
}

pub(super) fn at<'a>(name: &'a str, offset: u64, ty: TypeRef) -> Field<'a> {
    // Offsets of the layout are far below 2^32.
    Field::at(name, offset as u32, ty)
}

/// A structure with the members that kernels of a release have, if they have the structure.
pub(super) fn structure_in(
    t: &mut TargetTypes,
    abi: KernelAbi,
    name: &str,
    size: u64,
    fields: &[Field<'_>],
) -> TypeRef {
    if !has(name, abi) {
        return t.declare(name);
    }
    let there = fields.iter().filter(|field| has(&format!("{name}.{}", field.name()), abi));
    let there: Vec<Field<'_>> = there.cloned().collect();
    structure(t, name, size, &there)
}

pub(super) fn structure(
    t: &mut TargetTypes,
    name: &str,
    size: u64,
    fields: &[Field<'_>],
) -> TypeRef {
    t.structure(name, size as u32, fields)
}

/// Every type that a program may relocate against in kernels of a release.
pub(crate) fn kernel_types(abi: KernelAbi) -> TargetTypes {
    let mut t = TargetTypes::new();
    let b = Basic::new(&mut t);
    let cpumask = cpumask(&mut t, &b);
    let task_decl = t.declare("task_struct");
    let task_ptr = t.pointer(task_decl);
    let groups = cgroups(&mut t, &b);
    task_struct(&mut t, &b, (task_ptr, cpumask), &groups, abi);
    structure(
        &mut t,
        "rq",
        rq::SIZE,
        &[
            at("cpu", rq::CPU, b.s32),
            at("nr_running", rq::NR_RUNNING, b.u32),
            at("curr", rq::CURR, task_ptr),
            at("idle", rq::IDLE, task_ptr),
            at("nr_switches", rq::NR_SWITCHES, b.u64),
            at("clock_task", rq::CLOCK_TASK, b.u64),
            at("clock_pelt", rq::CLOCK_PELT, b.u64),
            at("lost_idle_time", rq::LOST_IDLE_TIME, b.ulong),
            at("clock", rq::CLOCK, b.u64),
        ],
    );
    arguments::of_callbacks(&mut t, &b, (groups.cgroup_ptr, task_ptr), abi);
    arguments::of_kfuncs(&mut t, &b, abi);
    arguments::iterators(&mut t, &b, abi);
    arguments::sched_ext_ops(&mut t, &b, abi);
    for enumeration in ENUMERATIONS {
        let values = enumeration.values(abi);
        if !values.is_empty() {
            t.enumeration(enumeration.name, enumeration.bytes, false, &values);
        }
    }
    t
}

/// The type `cpumask_t`.
fn cpumask(t: &mut TargetTypes, b: &Basic) -> TypeRef {
    let bits = t.array(b.ulong, abi::MAX_CPUS / 64);
    let cpumask = structure(t, "cpumask", offsets::CPUMASK_SIZE, &[at("bits", 0, bits)]);
    let cpumask_t = t.typedef("cpumask_t", cpumask);
    structure(t, "bpf_cpumask", offsets::CPUMASK_SIZE, &[at("cpumask", 0, cpumask_t)]);
    cpumask_t
}

/// The types that lead from a task to its cgroup.
struct CgroupTypes {
    cgroup_ptr: TypeRef,
    task_group_ptr: TypeRef,
    css_set_ptr: TypeRef,
}

fn cgroups(t: &mut TargetTypes, b: &Basic) -> CgroupTypes {
    let kn_decl = t.declare("kernfs_node");
    let kn_ptr = t.pointer(kn_decl);
    structure(
        t,
        "kernfs_node",
        cgroup::KN_SIZE,
        &[
            at("id", cgroup::KN_ID, b.u64),
            at("parent", cgroup::KN_PARENT, kn_ptr),
            at("name", cgroup::KN_NAME, b.ptr_char),
        ],
    );
    let cgroup_decl = t.declare("cgroup");
    let cgroup_ptr = t.pointer(cgroup_decl);
    let css_decl = t.declare("cgroup_subsys_state");
    let css_ptr = t.pointer(css_decl);
    let css = structure(
        t,
        "cgroup_subsys_state",
        cgroup::CSS_SIZE,
        &[at("cgroup", cgroup::CSS_CGROUP, cgroup_ptr), at("parent", cgroup::CSS_PARENT, css_ptr)],
    );
    let ancestors = t.array(cgroup_ptr, cgroup::LEVELS as u32);
    structure(
        t,
        "cgroup",
        cgroup::SIZE,
        &[
            at("self", 0, css),
            at("level", cgroup::LEVEL, b.s32),
            at("kn", cgroup::KN, kn_ptr),
            at("ancestors", cgroup::ANCESTORS, ancestors),
            at("dom_cgrp", cgroup::DOM_CGRP, cgroup_ptr),
        ],
    );
    let group_decl = t.declare("task_group");
    let task_group_ptr = t.pointer(group_decl);
    structure(
        t,
        "task_group",
        cgroup::TG_SIZE,
        &[
            at("css", cgroup::TG_CGROUP, css),
            at("parent", cgroup::TG_PARENT, task_group_ptr),
            at("scx_weight", cgroup::TG_WEIGHT, b.u32),
        ],
    );
    let css_set = structure(
        t,
        "css_set",
        cgroup::CSS_SET_SIZE,
        &[at("dfl_cgrp", cgroup::DFL_CGRP, cgroup_ptr)],
    );
    CgroupTypes { cgroup_ptr, task_group_ptr, css_set_ptr: t.pointer(css_set) }
}

/// `struct sched_entity`.
fn entity(t: &mut TargetTypes, b: &Basic) -> TypeRef {
    let load =
        structure(t, "load_weight", 16, &[at("weight", 0, b.ulong), at("inv_weight", 8, b.u32)]);
    structure(
        t,
        "sched_entity",
        sched_entity::SIZE,
        &[
            at("load", sched_entity::LOAD, load),
            at("exec_start", sched_entity::EXEC_START, b.u64),
            at("sum_exec_runtime", sched_entity::SUM_EXEC_RUNTIME, b.u64),
            at("prev_sum_exec_runtime", sched_entity::PREV_SUM_EXEC_RUNTIME, b.u64),
            at("nr_migrations", sched_entity::NR_MIGRATIONS, b.u64),
            at("slice", sched_entity::SLICE, b.u64),
            at("custom_slice", sched_entity::CUSTOM_SLICE, b.u8),
        ],
    )
}

/// `struct sched_ext_entity`.
fn scx_entity(t: &mut TargetTypes, b: &Basic, abi: KernelAbi) -> TypeRef {
    structure_in(
        t,
        abi,
        "sched_ext_entity",
        scx_entity::SIZE,
        &[
            at("slice", scx_entity::SLICE, b.u64),
            at("dsq_vtime", scx_entity::DSQ_VTIME, b.u64),
            at("weight", scx_entity::WEIGHT, b.u32),
            at("flags", scx_entity::FLAGS, b.u32),
            at("disallow", scx_entity::DISALLOW, b.boolean),
            at("selected_cpu", scx_entity::SELECTED_CPU, b.s32),
            at("tid", scx_entity::TID, b.u64),
            at("runnable_at", scx_entity::RUNNABLE_AT, b.ulong),
        ],
    )
}

fn task_struct(
    t: &mut TargetTypes,
    b: &Basic,
    (task_ptr, cpumask): (TypeRef, TypeRef),
    groups: &CgroupTypes,
    abi: KernelAbi,
) {
    let cpumask_ptr = t.pointer(cpumask);
    let se = entity(t, b);
    let scx = scx_entity(t, b, abi);
    let sched_info = structure(
        t,
        "sched_info",
        sched_info::SIZE,
        &[at("pcount", sched_info::PCOUNT, b.ulong), at("run_delay", sched_info::RUN_DELAY, b.u64)],
    );
    let list_head = list_head(t);
    let thread_head = at("thread_head", signal::THREAD_HEAD, list_head);
    let signal = structure(t, "signal_struct", signal::SIZE, &[thread_head]);
    let signal_ptr = t.pointer(signal);
    let mm = t.declare("mm_struct");
    let mm_ptr = t.pointer(mm);
    let mempolicy_ptr = mempolicy(t, b);
    let thread_info =
        structure(t, "thread_info", thread_info::SIZE, &[at("cpu", thread_info::CPU, b.u32)]);
    structure(
        t,
        "task_struct",
        task::SIZE,
        &[
            at("scx", task::SCX, scx),
            at("se", task::SE, se),
            at("__state", task::STATE, b.u32),
            at("flags", task::FLAGS, b.u32),
            at("on_cpu", task::ON_CPU, b.s32),
            at("on_rq", task::ON_RQ, b.s32),
            at("prio", task::PRIO, b.s32),
            at("static_prio", task::STATIC_PRIO, b.s32),
            at("normal_prio", task::NORMAL_PRIO, b.s32),
            at("policy", task::POLICY, b.u32),
            at("cpus_ptr", task::CPUS_PTR, cpumask_ptr),
            at("nr_cpus_allowed", task::NR_CPUS_ALLOWED, b.s32),
            at("migration_disabled", task::MIGRATION_DISABLED, b.u16),
            at("wake_cpu", task::WAKE_CPU, b.s32),
            at("recent_used_cpu", task::RECENT_USED_CPU, b.s32),
            at("pid", task::PID, b.s32),
            at("tgid", task::TGID, b.s32),
            at("real_parent", task::REAL_PARENT, task_ptr),
            at("parent", task::PARENT, task_ptr),
            at("group_leader", task::GROUP_LEADER, task_ptr),
            at("nvcsw", task::NVCSW, b.ulong),
            at("nivcsw", task::NIVCSW, b.ulong),
            at("start_time", task::START_TIME, b.u64),
            at("comm", task::COMM, b.comm),
            at("thread_info", task::THREAD_INFO, thread_info),
            at("sched_task_group", task::SCHED_TASK_GROUP, groups.task_group_ptr),
            at("cpus_mask", task::CPUS_MASK, cpumask),
            at("cgroups", task::CGROUPS, groups.css_set_ptr),
            // All of a task's time is its own program's, and is known at every moment.
            at("utime", task::SUM_EXEC, b.u64),
            at("stime", task::STIME, b.u64),
            at("mm", task::MM, mm_ptr),
            at("mempolicy", task::MEMPOLICY, mempolicy_ptr),
            at("sched_info", task::SCHED_INFO, sched_info),
            at("signal", task::SIGNAL, signal_ptr),
            at("thread_node", task::THREAD_NODE, list_head),
            at("start_boottime", task::START_BOOTTIME, b.u64),
            at("rt_priority", task::RT_PRIORITY, b.u32),
            at("exit_state", task::EXIT_STATE, b.s32),
            at("ptrace", task::PTRACE, b.u32),
            at("exit_code", task::EXIT_CODE, b.s32),
        ],
    );
}

/// `struct list_head`.
fn list_head(t: &mut TargetTypes) -> TypeRef {
    let declared = t.declare("list_head");
    let pointer = t.pointer(declared);
    let fields = [at("next", list_head::NEXT, pointer), at("prev", list_head::PREV, pointer)];
    structure(t, "list_head", list_head::SIZE, &fields)
}

/// `struct mempolicy *`; no task has one.
fn mempolicy(t: &mut TargetTypes, b: &Basic) -> TypeRef {
    let bits = t.array(b.ulong, 1);
    let nodes = structure(t, "nodemask", 8, &[at("bits", 0, bits)]);
    let nodes = t.typedef("nodemask_t", nodes);
    let fields = [at("mode", 0, b.u16), at("nodes", 8, nodes), at("home_node", 16, b.s32)];
    let policy = structure(t, "mempolicy", 24, &fields);
    t.pointer(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn btf_and_offsets_agree() {
        let types = kernel_types(KernelAbi::NEWEST);
        let offset = |path| types.offset_of("task_struct", path).expect("the member exists").0;
        assert_eq!(u64::from(offset("scx.slice")), task::SLICE);
        assert_eq!(u64::from(offset("scx.dsq_vtime")), task::DSQ_VTIME);
        assert_eq!(u64::from(offset("scx.weight")), task::SCX_WEIGHT);
        assert_eq!(u64::from(offset("se.sum_exec_runtime")), task::SUM_EXEC);
        assert_eq!(u64::from(offset("se.load.weight")), task::LOAD_WEIGHT);
        assert_eq!(u64::from(offset("se.load.inv_weight")), task::LOAD_INV_WEIGHT);
        assert_eq!(u64::from(offset("cpus_ptr")), task::CPUS_PTR);
        assert_eq!(u64::from(offset("thread_info.cpu")), task::THREAD_INFO_CPU);
        assert_eq!(types.offset_of("rq", "curr"), Some((rq::CURR as u32, 8)));
        assert_eq!(types.size_of("task_struct"), Some(task::SIZE as u32));
    }

    #[test]
    fn a_cgroups_block_has_room_for_its_parts() {
        let types = kernel_types(KernelAbi::NEWEST);
        let offset = |structure, path| types.offset_of(structure, path).map(|(offset, _)| offset);
        assert_eq!(offset("cgroup", "self.parent"), Some(cgroup::CSS_PARENT as u32));
        assert_eq!(offset("cgroup", "ancestors"), Some(cgroup::ANCESTORS as u32));
        assert_eq!(offset("task_group", "css.cgroup"), Some(cgroup::TG_CGROUP as u32));
        let parts = [
            (0, cgroup::SIZE),
            (cgroup::KNODE, cgroup::KN_SIZE),
            (cgroup::TG, cgroup::TG_SIZE),
            (cgroup::CSS_SET, cgroup::CSS_SET_SIZE),
            (cgroup::NAME, cgroup::NAME_BYTES),
            (cgroup::STRIDE, 0),
        ];
        for pair in parts.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
        }
        for (name, size) in [("cgroup", cgroup::SIZE), ("task_group", cgroup::TG_SIZE)] {
            assert_eq!(types.size_of(name), Some(size as u32));
        }
    }

    /// Members that published schedulers read on some path, of structures that the kernels' headers from 6.12 to 7.2
    /// have: an object finds them under each release.
    #[test]
    fn what_published_schedulers_read_is_there() {
        let read = [
            ("cgroup", "ancestors dom_cgrp kn level self"),
            ("css_set", "dfl_cgrp"),
            ("kernfs_node", "id name"),
            ("rq", "clock clock_pelt clock_task cpu curr idle nr_running"),
            ("sched_entity", "load slice sum_exec_runtime"),
            ("sched_ext_entity", "disallow dsq_vtime flags selected_cpu slice weight"),
            ("task_group", "css scx_weight"),
            (
                "task_struct",
                "cgroups comm cpus_mask cpus_ptr exit_code exit_state flags group_leader mempolicy \
                 migration_disabled mm normal_prio nr_cpus_allowed nvcsw on_cpu on_rq parent pid \
                 policy prio ptrace real_parent recent_used_cpu rt_priority scx se signal \
                 start_boottime start_time static_prio stime tgid thread_info utime wake_cpu",
            ),
        ];
        for abi in KernelAbi::ALL {
            let types = kernel_types(abi);
            for (structure, members) in read {
                for member in members.split_whitespace() {
                    let there = types.offset_of(structure, member).is_some();
                    assert!(there, "{structure}.{member} in {abi}");
                }
            }
        }
    }

    /// No two members of the hand-made layouts overlap, and every one lies inside.
    #[test]
    fn members_do_not_overlap() {
        let types = kernel_types(KernelAbi::NEWEST);
        let members = [
            "scx",
            "se",
            "__state",
            "flags",
            "on_cpu",
            "on_rq",
            "prio",
            "static_prio",
            "normal_prio",
            "policy",
            "cpus_ptr",
            "nr_cpus_allowed",
            "migration_disabled",
            "wake_cpu",
            "recent_used_cpu",
            "pid",
            "tgid",
            "real_parent",
            "parent",
            "group_leader",
            "nvcsw",
            "nivcsw",
            "start_time",
            "comm",
            "thread_info",
            "sched_task_group",
            "cpus_mask",
            "cgroups",
            "stime",
            "mm",
            "mempolicy",
            "sched_info",
            "signal",
            "thread_node",
            "start_boottime",
            "rt_priority",
            "exit_state",
            "ptrace",
            "exit_code",
        ];
        let mut ranges: Vec<(u32, u32, &str)> = members
            .iter()
            .map(|m| {
                let (offset, size) = types.offset_of("task_struct", m).expect("the member exists");
                (offset, offset + size, *m)
            })
            .collect();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{} overlaps {}", pair[0].2, pair[1].2);
        }
        let last = ranges.last().expect("there are members");
        assert!(u64::from(last.1) <= task::SIZE);
    }
}
