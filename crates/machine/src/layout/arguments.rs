//! Types of what programs and the kernel pass to each other: arguments of callbacks and kernel functions, iterators,
//! and the table of callbacks.

use fairground_bpf::{TargetTypes, TypeRef};

use super::offsets::{cgroup_init_args, cmask, dump_ctx, exit_info, init_task_args};
use super::types::{Basic, at, structure, structure_in};
use crate::abi;
use crate::interface::constants::{EXIT_KIND, PREEMPT_REASON};
use crate::interface::{KernelAbi, events, has_member, types::has};
use crate::op::Op;

/// The cid form of the table of callbacks.
const CID_FORM: &str = "sched_ext_ops_cid";

/// Arguments of callbacks.
pub(super) fn of_callbacks(
    t: &mut TargetTypes,
    b: &Basic,
    (cgroup_ptr, task_ptr): (TypeRef, TypeRef),
    abi: KernelAbi,
) {
    let kind = t.enumeration(EXIT_KIND.name, EXIT_KIND.bytes, false, &EXIT_KIND.values(abi));
    structure_in(
        t,
        abi,
        "scx_exit_info",
        exit_info::SIZE,
        &[
            at("kind", exit_info::KIND, kind),
            at("exit_code", exit_info::EXIT_CODE, b.s64),
            at("reason", exit_info::REASON, b.ptr_char),
            at("bt", exit_info::BT, b.ptr_ulong),
            at("bt_len", exit_info::BT_LEN, b.u32),
            at("msg", exit_info::MSG, b.ptr_char),
            at("dump", exit_info::DUMP, b.ptr_char),
            at("flags", exit_info::FLAGS, b.u64),
            at("exit_cpu", exit_info::EXIT_CPU, b.s32),
        ],
    );
    structure(
        t,
        "scx_init_task_args",
        init_task_args::SIZE,
        &[
            at("fork", init_task_args::FORK, b.boolean),
            at("cgroup", init_task_args::CGROUP, cgroup_ptr),
        ],
    );
    structure(t, "scx_exit_task_args", 1, &[at("cancelled", 0, b.boolean)]);
    structure_in(
        t,
        abi,
        "scx_cgroup_init_args",
        cgroup_init_args::SIZE,
        &[
            at("weight", cgroup_init_args::WEIGHT, b.u32),
            at("bw_period_us", cgroup_init_args::BW_PERIOD_US, b.u64),
            at("bw_quota_us", cgroup_init_args::BW_QUOTA_US, b.u64),
            at("bw_burst_us", cgroup_init_args::BW_BURST_US, b.u64),
        ],
    );
    structure(t, "scx_cpu_acquire_args", 0, &[]);
    let reasons = PREEMPT_REASON.values(abi);
    let reason = t.enumeration(PREEMPT_REASON.name, PREEMPT_REASON.bytes, false, &reasons);
    structure(t, "scx_cpu_release_args", 16, &[at("reason", 0, reason), at("task", 8, task_ptr)]);
    structure(
        t,
        "scx_dump_ctx",
        dump_ctx::SIZE,
        &[
            at("kind", dump_ctx::KIND, kind),
            at("exit_code", dump_ctx::EXIT_CODE, b.s64),
            at("reason", dump_ctx::REASON, b.ptr_char),
            at("at_ns", dump_ctx::AT_NS, b.u64),
            at("at_jiffies", dump_ctx::AT_JIFFIES, b.u64),
        ],
    );
}

/// Arguments of kernel functions that have more than five (6.19), and types that programs share with the kernel.
pub(super) fn of_kfuncs(t: &mut TargetTypes, b: &Basic, abi: KernelAbi) {
    let words = ["dsq_id", "slice", "vtime", "enq_flags"].into_iter().zip(0..);
    let words: Vec<_> = words.map(|(name, word)| at(name, 8 * word, b.u64)).collect();
    structure_in(t, abi, "scx_bpf_dsq_insert_vtime_args", 32, &words);
    structure_in(
        t,
        abi,
        "scx_bpf_select_cpu_and_args",
        24,
        &[at("prev_cpu", 0, b.s32), at("wake_flags", 8, b.u64), at("flags", 16, b.u64)],
    );
    let counters: Vec<_> =
        events::of(abi).zip(0..).map(|(name, word)| at(name, 8 * word, b.s64)).collect();
    structure_in(t, abi, "scx_event_stats", 8 * counters.len() as u64, &counters);
    let members = ["core_cid", "core_idx", "llc_cid", "llc_idx", "node_cid", "node_idx"];
    let members: Vec<_> =
        members.into_iter().zip(0..).map(|(name, word)| at(name, 4 * word, b.s32)).collect();
    structure_in(t, abi, "scx_cid_topo", 24, &members);
    let atomic = structure(t, "", 4, &[at("counter", 0, b.s32)]);
    t.typedef("atomic_t", atomic);
    // The guard of RCU sections (`scoped_guard(rcu)`), a variable of the program's own.
    let lock = t.void_pointer();
    let guard = structure(t, "", 8, &[at("lock", 0, lock)]);
    t.typedef("class_rcu_t", guard);
}

/// Iterators of programs, and masks of CPUs by their topological numbers.
pub(super) fn iterators(t: &mut TargetTypes, b: &Basic, abi: KernelAbi) {
    for (name, words) in [
        ("bpf_iter_scx_dsq", 6),
        ("bpf_iter_num", 1),
        ("bpf_iter_css_task", 1),
        ("bpf_iter_bits", 2),
        ("bpf_iter_css", 3),
        ("bpf_iter_task", 3),
    ] {
        let opaque = t.array(b.u64, words);
        structure(t, name, 8 * u64::from(words), &[at("__opaque", 0, opaque)]);
    }
    let bits = t.array(b.u64, 0);
    structure_in(
        t,
        abi,
        "scx_cmask",
        cmask::BITS,
        &[
            at("base", cmask::BASE, b.u32),
            at("nr_cids", cmask::NR_CIDS, b.u32),
            at("alloc_words", cmask::ALLOC_WORDS, b.u32),
            at("bits", cmask::BITS, bits),
        ],
    );
}

/// The table of callbacks: programs ask whether a member exists.
pub(super) fn sched_ext_ops(t: &mut TargetTypes, b: &Basic, abi: KernelAbi) {
    let function = t.void_pointer();
    let char = t.signed("char", 1);
    let name = t.array(char, abi::OPS_NAME_LEN);
    let mut members: Vec<(&str, TypeRef)> = Op::names().map(|name| (name, function)).collect();
    members.extend([
        ("dispatch_max_batch", b.u32),
        ("flags", b.u64),
        ("timeout_ms", b.u32),
        ("exit_dump_len", b.u32),
        ("hotplug_seq", b.u64),
        ("sub_cgroup_id", b.u64),
        ("name", name),
    ]);
    members.retain(|(name, _)| has_member(name, abi));
    t.structure_in_order("sched_ext_ops", &members);
    if has(CID_FORM, abi) {
        let of_cids =
            |name| Op::ALL.iter().find(|op| op.name() == name).map(|op| op.cid_form_name());
        let members: Vec<_> =
            members.iter().map(|(name, ty)| (of_cids(*name).unwrap_or(name), *ty)).collect();
        t.structure_in_order(CID_FORM, &members);
    }
}
