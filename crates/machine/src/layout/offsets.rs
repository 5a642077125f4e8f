//! Byte offsets of the fields that the machine itself accesses in guest memory. [`super::types`] gives programs the
//! same numbers through BTF; a test compares the two.

/// Bytes from one `task_struct` to the next.
pub(crate) const TASK_STRIDE: u64 = 512;
/// The fields of a task that wake-up, run and sleep access are in this many bytes from its start.
pub(crate) const TASK_HOT_BYTES: u64 = task::FLAGS;
const _: () = assert!(task::SIGNAL_STRUCT + signal::SIZE <= TASK_STRIDE);
/// Three cache lines.
const _: () = assert!(TASK_HOT_BYTES <= 3 * 64);

/// `struct task_struct`. The fields that every on-CPU interval uses are in the first three cache lines: with many
/// tasks, each line is a cache miss.
pub(crate) mod task {
    use super::{sched_entity, scx_entity, thread_info};

    pub(crate) const SCX: u64 = 0;
    pub(crate) const STATE: u64 = SCX + scx_entity::SIZE;
    pub(crate) const STATIC_PRIO: u64 = STATE + 4;
    pub(crate) const ON_CPU: u64 = 56;
    pub(crate) const ON_RQ: u64 = 60;
    pub(crate) const SE: u64 = 64;
    pub(crate) const CPUS_PTR: u64 = SE + sched_entity::SIZE;
    pub(crate) const NR_CPUS_ALLOWED: u64 = 136;
    pub(crate) const MIGRATION_DISABLED: u64 = 140;
    pub(crate) const WAKE_CPU: u64 = 144;
    pub(crate) const RECENT_USED_CPU: u64 = 148;
    pub(crate) const POLICY: u64 = 152;
    pub(crate) const PID: u64 = 156;
    pub(crate) const NVCSW: u64 = 160;
    pub(crate) const NIVCSW: u64 = 168;
    pub(crate) const THREAD_INFO: u64 = 176;
    pub(crate) const THREAD_INFO_CPU: u64 = THREAD_INFO + thread_info::CPU;
    pub(crate) const SCHED_TASK_GROUP: u64 = THREAD_INFO + thread_info::SIZE;
    pub(crate) const FLAGS: u64 = 192;
    pub(crate) const PRIO: u64 = 196;
    pub(crate) const NORMAL_PRIO: u64 = 200;
    pub(crate) const TGID: u64 = 204;
    pub(crate) const REAL_PARENT: u64 = 208;
    pub(crate) const PARENT: u64 = 216;
    pub(crate) const GROUP_LEADER: u64 = 224;
    pub(crate) const START_TIME: u64 = 232;
    pub(crate) const COMM: u64 = 240;
    pub(crate) const CPUS_MASK: u64 = 256;
    pub(crate) const CGROUPS: u64 = CPUS_MASK + super::CPUMASK_SIZE;
    /// 0: the kernel's own work is no task's time.
    pub(crate) const STIME: u64 = CGROUPS + 8;
    pub(crate) const MM: u64 = CGROUPS + 16;
    /// NULL: no task has a policy of its own for its memory.
    pub(crate) const MEMPOLICY: u64 = CGROUPS + 24;
    pub(crate) const SCHED_INFO: u64 = CGROUPS + 32;
    pub(crate) const SIGNAL: u64 = SCHED_INFO + super::sched_info::SIZE;
    pub(crate) const THREAD_NODE: u64 = SIGNAL + 8;
    pub(crate) const START_BOOTTIME: u64 = THREAD_NODE + super::list_head::SIZE;
    pub(crate) const RT_PRIORITY: u64 = START_BOOTTIME + 8;
    /// 0, as for a task that lives.
    pub(crate) const EXIT_STATE: u64 = RT_PRIORITY + 4;
    /// 0: no task is traced.
    pub(crate) const PTRACE: u64 = EXIT_STATE + 4;
    pub(crate) const EXIT_CODE: u64 = PTRACE + 4;
    pub(crate) const SIZE: u64 = EXIT_CODE + 4;
    /// The `signal_struct` lies behind the task: each task is a process of its own.
    pub(crate) const SIGNAL_STRUCT: u64 = SIZE;

    pub(crate) const SLICE: u64 = SCX + scx_entity::SLICE;
    pub(crate) const DSQ_VTIME: u64 = SCX + scx_entity::DSQ_VTIME;
    pub(crate) const SCX_WEIGHT: u64 = SCX + scx_entity::WEIGHT;
    pub(crate) const SCX_FLAGS: u64 = SCX + scx_entity::FLAGS;
    pub(crate) const SCX_TID: u64 = SCX + scx_entity::TID;
    pub(crate) const RUNNABLE_AT: u64 = SCX + scx_entity::RUNNABLE_AT;
    pub(crate) const SELECTED_CPU: u64 = SCX + scx_entity::SELECTED_CPU;
    pub(crate) const SCX_DISALLOW: u64 = SCX + scx_entity::DISALLOW;
    pub(crate) const SUM_EXEC: u64 = SE + sched_entity::SUM_EXEC_RUNTIME;
    pub(crate) const EXEC_START: u64 = SE + sched_entity::EXEC_START;
    pub(crate) const PREV_SUM_EXEC: u64 = SE + sched_entity::PREV_SUM_EXEC_RUNTIME;
    pub(crate) const NR_MIGRATIONS: u64 = SE + sched_entity::NR_MIGRATIONS;
    pub(crate) const CUSTOM_SLICE_NS: u64 = SE + sched_entity::SLICE;
    pub(crate) const CUSTOM_SLICE: u64 = SE + sched_entity::CUSTOM_SLICE;
    pub(crate) const LOAD_WEIGHT: u64 = SE + sched_entity::LOAD;
    pub(crate) const LOAD_INV_WEIGHT: u64 = SE + sched_entity::LOAD + 8;
}

/// `struct sched_ext_entity`.
pub(crate) mod scx_entity {
    pub(crate) const SLICE: u64 = 0;
    pub(crate) const DSQ_VTIME: u64 = 8;
    pub(crate) const WEIGHT: u64 = 16;
    pub(crate) const FLAGS: u64 = 20;
    pub(crate) const DISALLOW: u64 = 24;
    pub(crate) const SELECTED_CPU: u64 = 28;
    pub(crate) const TID: u64 = 32;
    pub(crate) const RUNNABLE_AT: u64 = 40;
    pub(crate) const SIZE: u64 = 48;
}

/// `struct sched_info`, kept where the scheduler's object names it.
pub(crate) mod sched_info {
    pub(crate) const PCOUNT: u64 = 0;
    pub(crate) const RUN_DELAY: u64 = 8;
    pub(crate) const SIZE: u64 = 16;
}

/// `struct list_head`.
pub(crate) mod list_head {
    pub(crate) const NEXT: u64 = 0;
    pub(crate) const PREV: u64 = 8;
    pub(crate) const SIZE: u64 = 16;
}

/// `struct signal_struct`.
pub(crate) mod signal {
    pub(crate) const THREAD_HEAD: u64 = 0;
    pub(crate) const SIZE: u64 = super::list_head::SIZE;
}

/// `struct thread_info`.
pub(crate) mod thread_info {
    pub(crate) const CPU: u64 = 0;
    pub(crate) const SIZE: u64 = 8;
}

/// `struct sched_entity`.
pub(crate) mod sched_entity {
    pub(crate) const LOAD: u64 = 0;
    pub(crate) const EXEC_START: u64 = 16;
    pub(crate) const SUM_EXEC_RUNTIME: u64 = 24;
    pub(crate) const PREV_SUM_EXEC_RUNTIME: u64 = 32;
    pub(crate) const NR_MIGRATIONS: u64 = 40;
    pub(crate) const SLICE: u64 = 48;
    pub(crate) const CUSTOM_SLICE: u64 = 56;
    pub(crate) const SIZE: u64 = 64;
}

/// `struct rq`.
pub(crate) mod rq {
    pub(crate) const CPU: u64 = 0;
    pub(crate) const NR_RUNNING: u64 = 4;
    pub(crate) const CURR: u64 = 8;
    pub(crate) const IDLE: u64 = 16;
    pub(crate) const NR_SWITCHES: u64 = 24;
    pub(crate) const CLOCK_TASK: u64 = 32;
    pub(crate) const CLOCK_PELT: u64 = 40;
    /// 0: an idle CPU's clock of its load does not stand still here.
    pub(crate) const LOST_IDLE_TIME: u64 = 48;
    pub(crate) const CLOCK: u64 = 56;
    pub(crate) const SIZE: u64 = 64;
}

/// `struct scx_exit_info`.
pub(crate) mod exit_info {
    pub(crate) const KIND: u64 = 0;
    pub(crate) const EXIT_CODE: u64 = 8;
    pub(crate) const REASON: u64 = 16;
    pub(crate) const BT: u64 = 24;
    pub(crate) const BT_LEN: u64 = 32;
    pub(crate) const MSG: u64 = 40;
    pub(crate) const DUMP: u64 = 48;
    pub(crate) const EXIT_CPU: u64 = 56;
    pub(crate) const FLAGS: u64 = 64;
    pub(crate) const SIZE: u64 = 72;
}

/// `struct scx_dump_ctx`.
pub(crate) mod dump_ctx {
    pub(crate) const KIND: u64 = 0;
    pub(crate) const EXIT_CODE: u64 = 8;
    pub(crate) const REASON: u64 = 16;
    pub(crate) const AT_NS: u64 = 24;
    pub(crate) const AT_JIFFIES: u64 = 32;
    pub(crate) const SIZE: u64 = 40;
}

/// `struct scx_init_task_args`.
pub(crate) mod init_task_args {
    pub(crate) const FORK: u64 = 0;
    pub(crate) const CGROUP: u64 = 8;
    pub(crate) const SIZE: u64 = 16;
}

/// `struct cgroup`, with what belongs to it behind it in one block: its `kernfs_node`, name, `task_group` and
/// `css_set`.
pub(crate) mod cgroup {
    /// `self`, a `struct cgroup_subsys_state`: its cgroup, and the one above.
    pub(crate) const CSS_CGROUP: u64 = 0;
    pub(crate) const CSS_PARENT: u64 = 8;
    pub(crate) const CSS_SIZE: u64 = 16;
    pub(crate) const LEVEL: u64 = 16;
    pub(crate) const KN: u64 = 24;
    pub(crate) const ANCESTORS: u64 = 32;
    /// Cgroups on the way from the root to the deepest, both included.
    pub(crate) const LEVELS: u64 = fairground_workload::limits::CGROUP_DEPTH_MAX as u64 + 1;
    /// The cgroup itself: none is threaded.
    pub(crate) const DOM_CGRP: u64 = ANCESTORS + 8 * LEVELS;
    pub(crate) const SIZE: u64 = DOM_CGRP + 8;

    pub(crate) const KNODE: u64 = 192;
    pub(crate) const KN_ID: u64 = 0;
    pub(crate) const KN_PARENT: u64 = 8;
    pub(crate) const KN_NAME: u64 = 16;
    pub(crate) const KN_SIZE: u64 = 24;

    pub(crate) const TG: u64 = 224;
    /// `css`, a `struct cgroup_subsys_state`.
    pub(crate) const TG_CGROUP: u64 = 0;
    pub(crate) const TG_PARENT: u64 = 16;
    pub(crate) const TG_WEIGHT: u64 = 24;
    pub(crate) const TG_SIZE: u64 = 32;

    pub(crate) const CSS_SET: u64 = 256;
    pub(crate) const DFL_CGRP: u64 = 0;
    pub(crate) const CSS_SET_SIZE: u64 = 8;

    pub(crate) const NAME: u64 = 264;
    /// A name has at most 64 characters of up to 4 bytes.
    pub(crate) const NAME_BYTES: u64 = 257;
    /// Bytes from one block to the next.
    pub(crate) const STRIDE: u64 = 576;
}

/// `struct scx_cmask`.
pub(crate) mod cmask {
    pub(crate) const BASE: u64 = 0;
    pub(crate) const NR_CIDS: u64 = 4;
    pub(crate) const ALLOC_WORDS: u64 = 8;
    pub(crate) const BITS: u64 = 16;
}

/// `struct scx_cgroup_init_args`.
pub(crate) mod cgroup_init_args {
    pub(crate) const WEIGHT: u64 = 0;
    pub(crate) const BW_PERIOD_US: u64 = 8;
    pub(crate) const BW_QUOTA_US: u64 = 16;
    pub(crate) const BW_BURST_US: u64 = 24;
    pub(crate) const SIZE: u64 = 32;
}

/// Bytes of a `struct cpumask`.
pub(crate) const CPUMASK_SIZE: u64 = crate::abi::MAX_CPUS as u64 / 8;
