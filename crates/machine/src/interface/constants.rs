//! Enumerations and their constants, by the kernel's names.

use super::feature::Feature;
use super::release::KernelAbi;
use crate::abi::{self, deq, dsq, dsq_iter, enq, ent, kick, ops_flag, wake};

/// A constant and its bit pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    /// Its name, and since when there is one of this value.
    pub(crate) feature: Feature,
    /// Its value.
    pub(crate) value: u64,
}

impl Constant {
    const fn since(self, major: u8, minor: u8) -> Constant {
        Constant { feature: self.feature.since(major, minor), ..self }
    }

    const fn by(self, major: u8, minor: u8) -> Constant {
        Constant { feature: self.feature.by(major, minor), ..self }
    }

    const fn gone(self, major: u8, minor: u8) -> Constant {
        Constant { feature: self.feature.gone(major, minor), ..self }
    }

    const fn but(self, how: &'static str) -> Constant {
        Constant { feature: self.feature.but(how), ..self }
    }
}

const fn c(name: &'static str, value: u64) -> Constant {
    Constant { feature: Feature::new(name), value }
}

/// An enumeration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enumeration {
    /// The type's name.
    pub(crate) name: &'static str,
    /// Bytes of a value.
    pub(crate) bytes: u32,
    /// Its constants.
    pub(crate) constants: &'static [Constant],
}

impl Enumeration {
    /// The names and values that kernels of a release have.
    pub(crate) fn values(&self, abi: KernelAbi) -> Vec<(&'static str, i64)> {
        let there = self.constants.iter().filter(|constant| constant.feature.exists_in(abi));
        there.map(|constant| (constant.feature.name, constant.value as i64)).collect()
    }
}

/// Flags that only the kernel sets, and that no callback sees.
const INTERNAL: &str = "its value alone: the kernel sets it, and no callback sees it";
/// No run-queue flags are kept.
const NO_FLAGS: &str = "its value alone: `rq->scx.flags` is not kept";
/// No task is unable to migrate.
const ALL_MIGRATE: &str = "no effect: every task can migrate";

/// `enum scx_exit_kind`.
pub(crate) const EXIT_KIND: Enumeration = Enumeration {
    name: "scx_exit_kind",
    bytes: 4,
    constants: &[
        c("SCX_EXIT_NONE", 0),
        c("SCX_EXIT_DONE", 1),
        c("SCX_EXIT_UNREG", 64),
        c("SCX_EXIT_UNREG_BPF", 65),
        c("SCX_EXIT_UNREG_KERN", 66).but("its value alone: no CPU leaves or joins"),
        c("SCX_EXIT_SYSRQ", 67).but("its value alone: there is no keyboard"),
        c("SCX_EXIT_PARENT", 68).by(7, 1).but("its value alone: there are no sub-schedulers"),
        c("SCX_EXIT_ERROR", 1024),
        c("SCX_EXIT_ERROR_BPF", 1025),
        c("SCX_EXIT_ERROR_STALL", 1026),
    ],
};

/// `enum scx_cpu_preempt_reason`.
pub(crate) const PREEMPT_REASON: Enumeration = Enumeration {
    name: "scx_cpu_preempt_reason",
    bytes: 4,
    constants: &[
        c("SCX_CPU_PREEMPT_RT", 0),
        c("SCX_CPU_PREEMPT_DL", 1).but("its value alone: no deadline tasks"),
        c("SCX_CPU_PREEMPT_STOP", 2).but("its value alone: no stop tasks"),
        c("SCX_CPU_PREEMPT_UNKNOWN", 3),
    ],
};

/// `enum scx_ops_flags`.
pub(crate) const OPS_FLAGS: Enumeration = Enumeration {
    name: "scx_ops_flags",
    bytes: 8,
    constants: &[
        c("SCX_OPS_KEEP_BUILTIN_IDLE", ops_flag::KEEP_BUILTIN_IDLE),
        c("SCX_OPS_ENQ_LAST", ops_flag::ENQ_LAST),
        c("SCX_OPS_ENQ_EXITING", ops_flag::ENQ_EXITING),
        c("SCX_OPS_SWITCH_PARTIAL", ops_flag::SWITCH_PARTIAL)
            .but("no effect: every task but the real-time ones is the scheduler's"),
        c("SCX_OPS_ENQ_MIGRATION_DISABLED", ops_flag::ENQ_MIGRATION_DISABLED)
            .since(6, 14)
            .but(ALL_MIGRATE),
        c("SCX_OPS_ALLOW_QUEUED_WAKEUP", ops_flag::ALLOW_QUEUED_WAKEUP)
            .since(6, 15)
            .but("no effect: a wake-up always calls select_cpu()"),
        c("SCX_OPS_BUILTIN_IDLE_PER_NODE", ops_flag::BUILTIN_IDLE_PER_NODE)
            .since(6, 15)
            .but("a mask for each node; the default choice of a CPU is the same"),
        c("SCX_OPS_ALWAYS_ENQ_IMMED", ops_flag::ALWAYS_ENQ_IMMED).since(7, 1),
        c("SCX_OPS_TID_TO_TASK", ops_flag::TID_TO_TASK).since(7, 2),
        c("SCX_OPS_HAS_CGROUP_WEIGHT", ops_flag::HAS_CGROUP_WEIGHT)
            .gone(7, 2)
            .but("no effect: cgroups are always the scheduler's"),
    ],
};

const CONSTS: Enumeration = Enumeration {
    name: "scx_consts",
    bytes: 4,
    constants: &[
        c("SCX_DSP_DFL_MAX_BATCH", abi::DISPATCH_BATCH_DFL as u64),
        c("SCX_DSP_MAX_LOOPS", abi::DISPATCH_MAX_LOOPS as u64),
        c("SCX_EXIT_BT_LEN", 64),
        c("SCX_EXIT_MSG_LEN", abi::EXIT_MSG_LEN as u64),
        c("SCX_EXIT_DUMP_DFL_LEN", abi::EXIT_DUMP_DFL_LEN as u64),
        c("SCX_CPUPERF_ONE", abi::CPUPERF_ONE as u64),
    ],
};

const PUBLIC_CONSTS: Enumeration = Enumeration {
    name: "scx_public_consts",
    bytes: 8,
    constants: &[
        c("SCX_OPS_NAME_LEN", abi::OPS_NAME_LEN as u64),
        c("SCX_SLICE_DFL", abi::SLICE_DFL_NS),
        c("SCX_SLICE_BYPASS", abi::SLICE_BYPASS_NS).but("its value alone: nothing is bypassed"),
        c("SCX_SLICE_INF", abi::SLICE_INF),
    ],
};

const DSQ_IDS: Enumeration = Enumeration {
    name: "scx_dsq_id_flags",
    bytes: 8,
    constants: &[
        c("SCX_DSQ_FLAG_BUILTIN", dsq::FLAG_BUILTIN),
        c("SCX_DSQ_FLAG_LOCAL_ON", dsq::FLAG_LOCAL_ON),
        c("SCX_DSQ_INVALID", dsq::INVALID),
        c("SCX_DSQ_GLOBAL", dsq::GLOBAL),
        c("SCX_DSQ_LOCAL", dsq::LOCAL),
        c("SCX_DSQ_BYPASS", dsq::BYPASS).by(7, 1).but("its value alone: nothing is bypassed"),
        c("SCX_DSQ_LOCAL_ON", dsq::LOCAL_ON),
        c("SCX_DSQ_LOCAL_CPU_MASK", dsq::LOCAL_CPU_MASK),
    ],
};

const ENQ_FLAGS: Enumeration = Enumeration {
    name: "scx_enq_flags",
    bytes: 8,
    constants: &[
        c("SCX_ENQ_WAKEUP", enq::WAKEUP),
        c("SCX_ENQ_HEAD", enq::HEAD),
        c("SCX_ENQ_CPU_SELECTED", enq::CPU_SELECTED),
        c("SCX_ENQ_PREEMPT", enq::PREEMPT),
        c("SCX_ENQ_IMMED", enq::IMMED).since(7, 1),
        c("SCX_ENQ_REENQ", enq::REENQ),
        c("SCX_ENQ_LAST", enq::LAST),
        c("__SCX_ENQ_INTERNAL_MASK", enq::INTERNAL_MASK),
        c("SCX_ENQ_CLEAR_OPSS", 1 << 56).but(INTERNAL),
        c("SCX_ENQ_DSQ_PRIQ", enq::DSQ_PRIQ).but(INTERNAL),
    ],
};

const DEQ_FLAGS: Enumeration = Enumeration {
    name: "scx_deq_flags",
    bytes: 8,
    constants: &[
        c("SCX_DEQ_SLEEP", deq::SLEEP),
        c("SCX_DEQ_CORE_SCHED_EXEC", deq::CORE_SCHED_EXEC)
            .but("its value alone: no core scheduling"),
        c("SCX_DEQ_SCHED_CHANGE", deq::SCHED_CHANGE).since(7, 1),
    ],
};

const WAKE_FLAGS: Enumeration = Enumeration {
    name: "scx_wake_flags",
    bytes: 4,
    constants: &[
        c("SCX_WAKE_FORK", wake::FORK),
        c("SCX_WAKE_TTWU", wake::TTWU),
        c("SCX_WAKE_SYNC", wake::SYNC),
    ],
};

const PICK_FLAGS: Enumeration = Enumeration {
    name: "scx_pick_idle_cpu_flags",
    bytes: 4,
    constants: &[
        c("SCX_PICK_IDLE_CORE", abi::PICK_IDLE_CORE),
        c("SCX_PICK_IDLE_IN_NODE", abi::PICK_IDLE_IN_NODE).since(6, 15),
    ],
};

const KICK_FLAGS: Enumeration = Enumeration {
    name: "scx_kick_flags",
    bytes: 4,
    constants: &[
        c("SCX_KICK_IDLE", kick::IDLE),
        c("SCX_KICK_PREEMPT", kick::PREEMPT),
        c("SCX_KICK_WAIT", kick::WAIT),
    ],
};

/// The place of a task's state in its flags.
const fn state(number: u64) -> u64 {
    number << ent::STATE_SHIFT
}

/// The place of the reason of an enqueue.
const fn reason(number: u64) -> u64 {
    number << ent::REENQ_REASON_SHIFT
}

const ENT_FLAGS: Enumeration = Enumeration {
    name: "scx_ent_flags",
    bytes: 4,
    constants: &[
        c("SCX_TASK_QUEUED", ent::QUEUED as u64),
        c("SCX_TASK_IN_CUSTODY", 1 << 1).by(7, 1).but("its value alone: the flag is not kept"),
        c("SCX_TASK_RESET_RUNNABLE_AT", ent::RESET_RUNNABLE_AT as u64),
        c("SCX_TASK_DEQD_FOR_SLEEP", ent::DEQD_FOR_SLEEP as u64),
        c("SCX_TASK_IMMED", ent::IMMED as u64).since(7, 1),
        c("SCX_TASK_REENQ_REASON_SHIFT", ent::REENQ_REASON_SHIFT as u64).by(7, 1),
        c("SCX_TASK_REENQ_REASON_BITS", 2).by(7, 1),
        c("SCX_TASK_REENQ_REASON_MASK", reason(3)).by(7, 1),
        c("SCX_TASK_REENQ_NONE", reason(0)).by(7, 1),
        c("SCX_TASK_REENQ_KFUNC", reason(1)).by(7, 1),
        c("SCX_TASK_REENQ_IMMED", reason(2)).by(7, 2),
        c("SCX_TASK_REENQ_PREEMPTED", reason(3)).by(7, 2),
        c("SCX_TASK_STATE_SHIFT", ent::STATE_SHIFT as u64),
        c("SCX_TASK_STATE_BITS", 2).gone(7, 2),
        c("SCX_TASK_STATE_BITS", 3).since(7, 2),
        c("SCX_TASK_STATE_MASK", state(3)).gone(7, 2),
        c("SCX_TASK_STATE_MASK", state(7)).since(7, 2),
        c("SCX_TASK_NONE", state(0)),
        c("SCX_TASK_INIT_BEGIN", state(1)).since(7, 2),
        c("SCX_TASK_INIT", state(1)).gone(7, 2),
        c("SCX_TASK_INIT", state(2)).since(7, 2),
        c("SCX_TASK_READY", state(2)).gone(7, 2),
        c("SCX_TASK_READY", state(3)).since(7, 2),
        c("SCX_TASK_ENABLED", state(3)).gone(7, 2),
        c("SCX_TASK_ENABLED", state(4)).since(7, 2),
        c("SCX_TASK_DEAD", state(5)).since(7, 2),
        c("SCX_TASK_CURSOR", 1 << 31).but(INTERNAL),
    ],
};

const RQ_FLAGS: Enumeration = Enumeration {
    name: "scx_rq_flags",
    bytes: 4,
    constants: &[
        c("SCX_RQ_ONLINE", 1).but(NO_FLAGS),
        c("SCX_RQ_CAN_STOP_TICK", 1 << 1).but(NO_FLAGS),
        c("SCX_RQ_CLK_VALID", 1 << 5).since(6, 14).but(NO_FLAGS),
        c("SCX_RQ_IN_WAKEUP", 1 << 16).but(NO_FLAGS),
        c("SCX_RQ_IN_BALANCE", 1 << 17).but(NO_FLAGS),
    ],
};

const EXIT_CODES: Enumeration = Enumeration {
    name: "scx_exit_code",
    bytes: 8,
    constants: &[
        c("SCX_ECODE_RSN_HOTPLUG", abi::ECODE_RSN_HOTPLUG),
        c("SCX_ECODE_RSN_CGROUP_OFFLINE", 2 << 32)
            .by(7, 1)
            .but("its value alone: no cgroup leaves"),
        c("SCX_ECODE_ACT_RESTART", abi::ECODE_ACT_RESTART),
    ],
};

const EXIT_FLAGS: Enumeration = Enumeration {
    name: "scx_exit_flags",
    bytes: 4,
    constants: &[c("SCX_EFLAG_INITIALIZED", 1).by(6, 18)],
};

const REENQ_FLAGS: Enumeration = Enumeration {
    name: "scx_reenq_flags",
    bytes: 8,
    constants: &[c("SCX_REENQ_ANY", 1).since(7, 1)],
};

const DSQ_ITER_FLAGS: Enumeration = Enumeration {
    name: "scx_dsq_iter_flags",
    bytes: 4,
    constants: &[c("SCX_DSQ_ITER_REV", dsq_iter::REV)],
};

/// Every enumeration.
pub(crate) const ENUMERATIONS: [Enumeration; 17] = [
    OPS_FLAGS,
    ENQ_FLAGS,
    DEQ_FLAGS,
    WAKE_FLAGS,
    PICK_FLAGS,
    KICK_FLAGS,
    REENQ_FLAGS,
    DSQ_ITER_FLAGS,
    DSQ_IDS,
    ENT_FLAGS,
    RQ_FLAGS,
    PUBLIC_CONSTS,
    CONSTS,
    EXIT_KIND,
    EXIT_CODES,
    EXIT_FLAGS,
    PREEMPT_REASON,
];

/// The value of a constant in kernels of a release.
pub(crate) fn constant(name: &str, abi: KernelAbi) -> Option<u64> {
    let all = ENUMERATIONS.iter().flat_map(|enumeration| enumeration.constants);
    let mut found = all.filter(|constant| constant.feature.name == name);
    found.find(|constant| constant.feature.exists_in(abi)).map(|constant| constant.value)
}
