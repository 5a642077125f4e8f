//! Enumerations and their constants, by the kernel's names.

use fairground_bpf::TargetTypes;

use crate::abi::{self, deq, dsq, dsq_iter, enq, ent, kick, ops_flag, wake};

pub(crate) const EXIT_KIND: &[(&str, i64)] = &[
    ("SCX_EXIT_NONE", 0),
    ("SCX_EXIT_DONE", 1),
    ("SCX_EXIT_UNREG", 64),
    ("SCX_EXIT_UNREG_BPF", 65),
    ("SCX_EXIT_UNREG_KERN", 66),
    ("SCX_EXIT_SYSRQ", 67),
    ("SCX_EXIT_ERROR", 1024),
    ("SCX_EXIT_ERROR_BPF", 1025),
    ("SCX_EXIT_ERROR_STALL", 1026),
];

pub(crate) const PREEMPT_REASON: &[(&str, i64)] = &[
    ("SCX_CPU_PREEMPT_RT", 0),
    ("SCX_CPU_PREEMPT_DL", 1),
    ("SCX_CPU_PREEMPT_STOP", 2),
    ("SCX_CPU_PREEMPT_UNKNOWN", 3),
];

/// Constants as the bit patterns that BTF stores.
const fn c(name: &'static str, value: u64) -> (&'static str, i64) {
    (name, value as i64)
}

/// Name, bytes, constants.
type Enumeration = (&'static str, u32, &'static [(&'static str, i64)]);

const ENUMERATIONS: &[Enumeration] = &[
    (
        "scx_consts",
        4,
        &[
            c("SCX_DSP_DFL_MAX_BATCH", abi::DISPATCH_BATCH_DFL as u64),
            c("SCX_DSP_MAX_LOOPS", abi::DISPATCH_MAX_LOOPS as u64),
            c("SCX_EXIT_BT_LEN", 64),
            c("SCX_EXIT_MSG_LEN", abi::EXIT_MSG_LEN as u64),
            c("SCX_EXIT_DUMP_DFL_LEN", abi::EXIT_DUMP_DFL_LEN as u64),
            c("SCX_CPUPERF_ONE", abi::CPUPERF_ONE as u64),
        ],
    ),
    (
        "scx_public_consts",
        8,
        &[
            c("SCX_OPS_NAME_LEN", abi::OPS_NAME_LEN as u64),
            c("SCX_SLICE_DFL", abi::SLICE_DFL_NS),
            c("SCX_SLICE_INF", abi::SLICE_INF),
        ],
    ),
    (
        "scx_dsq_id_flags",
        8,
        &[
            c("SCX_DSQ_FLAG_BUILTIN", dsq::FLAG_BUILTIN),
            c("SCX_DSQ_FLAG_LOCAL_ON", dsq::FLAG_LOCAL_ON),
            c("SCX_DSQ_INVALID", dsq::INVALID),
            c("SCX_DSQ_GLOBAL", dsq::GLOBAL),
            c("SCX_DSQ_LOCAL", dsq::LOCAL),
            c("SCX_DSQ_LOCAL_ON", dsq::LOCAL_ON),
            c("SCX_DSQ_LOCAL_CPU_MASK", dsq::LOCAL_CPU_MASK),
        ],
    ),
    (
        "scx_enq_flags",
        8,
        &[
            c("SCX_ENQ_WAKEUP", enq::WAKEUP),
            c("SCX_ENQ_HEAD", enq::HEAD),
            c("SCX_ENQ_CPU_SELECTED", enq::CPU_SELECTED),
            c("SCX_ENQ_PREEMPT", enq::PREEMPT),
            c("SCX_ENQ_REENQ", enq::REENQ),
            c("SCX_ENQ_LAST", enq::LAST),
        ],
    ),
    (
        "scx_deq_flags",
        8,
        &[
            c("SCX_DEQ_SLEEP", deq::SLEEP),
            c("SCX_DEQ_CORE_SCHED_EXEC", deq::CORE_SCHED_EXEC),
            c("SCX_DEQ_SCHED_CHANGE", deq::SCHED_CHANGE),
        ],
    ),
    (
        "scx_wake_flags",
        4,
        &[
            c("SCX_WAKE_FORK", wake::FORK),
            c("SCX_WAKE_TTWU", wake::TTWU),
            c("SCX_WAKE_SYNC", wake::SYNC),
        ],
    ),
    ("scx_pick_idle_cpu_flags", 4, &[c("SCX_PICK_IDLE_CORE", abi::PICK_IDLE_CORE)]),
    (
        "scx_kick_flags",
        4,
        &[
            c("SCX_KICK_IDLE", kick::IDLE),
            c("SCX_KICK_PREEMPT", kick::PREEMPT),
            c("SCX_KICK_WAIT", kick::WAIT),
        ],
    ),
    (
        "scx_ops_flags",
        8,
        &[
            c("SCX_OPS_KEEP_BUILTIN_IDLE", ops_flag::KEEP_BUILTIN_IDLE),
            c("SCX_OPS_ENQ_LAST", ops_flag::ENQ_LAST),
            c("SCX_OPS_ENQ_EXITING", ops_flag::ENQ_EXITING),
            c("SCX_OPS_SWITCH_PARTIAL", ops_flag::SWITCH_PARTIAL),
            c("SCX_OPS_TID_TO_TASK", ops_flag::TID_TO_TASK),
        ],
    ),
    (
        "scx_ent_flags",
        4,
        &[
            c("SCX_TASK_QUEUED", ent::QUEUED as u64),
            c("SCX_TASK_RESET_RUNNABLE_AT", ent::RESET_RUNNABLE_AT as u64),
            c("SCX_TASK_DEQD_FOR_SLEEP", ent::DEQD_FOR_SLEEP as u64),
        ],
    ),
    ("scx_dsq_iter_flags", 4, &[c("SCX_DSQ_ITER_REV", dsq_iter::REV)]),
    (
        "scx_exit_code",
        8,
        &[
            c("SCX_ECODE_RSN_HOTPLUG", abi::ECODE_RSN_HOTPLUG),
            c("SCX_ECODE_ACT_RESTART", abi::ECODE_ACT_RESTART),
        ],
    ),
];

/// The value of a constant of this kernel.
pub(crate) fn constant(name: &str) -> Option<u64> {
    let all = ENUMERATIONS.iter().flat_map(|(_, _, values)| values.iter());
    let mut all = all.chain(EXIT_KIND).chain(PREEMPT_REASON);
    all.find(|(known, _)| *known == name).map(|(_, value)| *value as u64)
}

/// Adds every enumeration that no structure needs.
pub(crate) fn enumerations(types: &mut TargetTypes) {
    for (name, size, values) in ENUMERATIONS {
        types.enumeration(name, *size, false, values);
    }
}
