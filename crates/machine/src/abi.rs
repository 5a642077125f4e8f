//! Numbers of the sched_ext interface, as `include/linux/sched/ext.h`, `kernel/sched/ext.c` and `kernel/sched/sched.h`
//! of Linux define them. [`crate::KernelAbi`] says which of them a release has.

/// `SCX_SLICE_DFL`: the slice of a task whose slice was not set, ns.
pub const SLICE_DFL_NS: u64 = 20_000_000;
/// `SCX_SLICE_BYPASS`: the slice while nothing goes to the scheduler, ns.
pub const SLICE_BYPASS_NS: u64 = 5_000_000;
/// `SCX_SLICE_INF`: a slice that never ends.
pub const SLICE_INF: u64 = u64::MAX;
/// `SCX_DSP_DFL_MAX_BATCH`: slots of the dispatch buffer if the scheduler sets none.
pub const DISPATCH_BATCH_DFL: u32 = 32;
/// The largest accepted `dispatch_max_batch`. The kernel's limit is that of its per-CPU allocator.
pub const DISPATCH_BATCH_MAX: u32 = 4096;
/// `SCX_REENQ_LOCAL_MAX_REPEAT`: rounds in which tasks come back to a queue that is enqueued again.
pub const REENQ_MAX_REPEAT: u32 = 256;
/// `SCX_DSP_MAX_LOOPS`: rounds of `ops.dispatch()` within one scheduling pass.
pub const DISPATCH_MAX_LOOPS: u32 = 32;
/// The address that programs get for the per-CPU variable `runqueues`.
pub(crate) const RUNQUEUES_SYMBOL: u64 = PREEMPT_COUNT_SYMBOL + 0x1000;
/// The address that programs get for the per-CPU variable `cpufreq_cpu_data`.
pub(crate) const CPUFREQ_SYMBOL: u64 = PREEMPT_COUNT_SYMBOL + 0x2000;
/// The address that programs get for the per-CPU variable `__preempt_count`: above all guest memory.
pub const PREEMPT_COUNT_SYMBOL: u64 = 0xffff_ffff_8200_0000;
/// `HARDIRQ_OFFSET` (`include/linux/preempt.h`): what one hardware interrupt adds to `preempt_count`.
pub const HARDIRQ_OFFSET: u32 = 0x1_0000;
/// `SCX_WATCHDOG_MAX_TIMEOUT`: the longest time that a runnable task may wait, ns.
pub const WATCHDOG_MAX_NS: u64 = 30_000_000_000;
/// `SCX_EXIT_MSG_LEN`: bytes of an exit message, with its final NUL.
pub const EXIT_MSG_LEN: usize = 1024;
/// `SCX_EXIT_DUMP_DFL_LEN`.
pub const EXIT_DUMP_DFL_LEN: u32 = 32_768;
/// `SCX_CPUPERF_ONE`: the performance of the fastest CPU.
pub const CPUPERF_ONE: u32 = 1024;
/// `SCX_OPS_NAME_LEN`.
pub const OPS_NAME_LEN: u32 = 128;
/// Capacity of a `struct cpumask`, CPUs.
pub const MAX_CPUS: u32 = 1024;

/// Identifiers of dispatch queues (`enum scx_dsq_id_flags`).
pub mod dsq {
    /// Built-in queues have this bit.
    pub const FLAG_BUILTIN: u64 = 1 << 63;
    /// With [`FLAG_BUILTIN`]: the local queue of the CPU in the low half.
    pub const FLAG_LOCAL_ON: u64 = 1 << 62;
    /// No queue.
    pub const INVALID: u64 = FLAG_BUILTIN;
    /// The global queue (of the task's NUMA node).
    pub const GLOBAL: u64 = FLAG_BUILTIN | 1;
    /// The local queue of the CPU at hand.
    pub const LOCAL: u64 = FLAG_BUILTIN | 2;
    /// The queue of a CPU while nothing goes to the scheduler.
    pub const BYPASS: u64 = FLAG_BUILTIN | 3;
    /// The local queue of a named CPU.
    pub const LOCAL_ON: u64 = FLAG_BUILTIN | FLAG_LOCAL_ON;
    /// The bits of the CPU's number.
    pub const LOCAL_CPU_MASK: u64 = 0xffff_ffff;
}

/// `enum scx_enq_flags`, with the core's own `ENQUEUE_*` in the low half.
pub mod enq {
    /// The task wakes up.
    pub const WAKEUP: u64 = 0x01;
    /// An attribute change puts the task back.
    pub const RESTORE: u64 = 0x02;
    /// The task changes its cgroup (`ENQUEUE_MOVE`).
    pub const MOVE: u64 = 0x04;
    /// The clock is up to date (`ENQUEUE_NOCLOCK`).
    pub const NOCLOCK: u64 = 0x08;
    /// Put it at the head of the queue.
    pub const HEAD: u64 = 0x10;
    /// The task comes from another CPU (`ENQUEUE_MIGRATED`).
    pub const MIGRATED: u64 = 0x40;
    /// A new task (`ENQUEUE_INITIAL`).
    pub const INITIAL: u64 = 0x80;
    /// `SCX_ENQ_CPU_SELECTED`: `ops.select_cpu()` was called.
    pub const CPU_SELECTED: u64 = 0x400;
    /// Preempt the current task of the target CPU.
    pub const PREEMPT: u64 = 1 << 32;
    /// The task runs at once, or goes to the scheduler again (7.1).
    pub const IMMED: u64 = 1 << 33;
    /// The task was taken off a local queue again.
    pub const REENQ: u64 = 1 << 40;
    /// The CPU has nothing else to run.
    pub const LAST: u64 = 1 << 41;
    /// Bits that programs may not set.
    pub const INTERNAL_MASK: u64 = 0xff << 56;
    /// Internal: ordered by vtime.
    pub const DSQ_PRIQ: u64 = 1 << 57;
}

/// `enum scx_deq_flags`.
pub mod deq {
    /// The task goes to sleep.
    pub const SLEEP: u64 = 0x01;
    /// An attribute is about to change.
    pub const SAVE: u64 = 0x02;
    /// The task changes its cgroup (`DEQUEUE_MOVE`).
    pub const MOVE: u64 = 0x04;
    /// The clock is up to date (`DEQUEUE_NOCLOCK`).
    pub const NOCLOCK: u64 = 0x08;
    /// A state that no ordinary wake-up ends (`TASK_DEAD`).
    pub const SPECIAL: u64 = 0x10;
    /// The scheduler did not dispatch the task that runs now.
    pub const CORE_SCHED_EXEC: u64 = 1 << 32;
    /// An attribute changes: the task neither sleeps nor runs (7.1).
    pub const SCHED_CHANGE: u64 = 1 << 33;
}

/// `enum scx_wake_flags`.
pub mod wake {
    /// A new task.
    pub const FORK: u64 = 0x04;
    /// An ordinary wake-up.
    pub const TTWU: u64 = 0x08;
    /// The waker is about to sleep.
    pub const SYNC: u64 = 0x10;
}

/// `enum scx_kick_flags`.
pub mod kick {
    /// Only if idle.
    pub const IDLE: u64 = 1;
    /// End the slice of the current task there.
    pub const PREEMPT: u64 = 2;
    /// Wait until the CPU has rescheduled.
    pub const WAIT: u64 = 4;
}

/// `enum scx_ops_flags`.
pub mod ops_flag {
    /// Keep the built-in idle tracking beside `ops.update_idle()`.
    pub const KEEP_BUILTIN_IDLE: u64 = 1;
    /// Pass the last runnable task of a CPU to `ops.enqueue()`.
    pub const ENQ_LAST: u64 = 2;
    /// Pass exiting tasks to `ops.enqueue()`.
    pub const ENQ_EXITING: u64 = 4;
    /// Only tasks of policy SCHED_EXT.
    pub const SWITCH_PARTIAL: u64 = 8;
    /// Pass tasks that cannot migrate to `ops.enqueue()` (6.14).
    pub const ENQ_MIGRATION_DISABLED: u64 = 1 << 4;
    /// A wake-up may skip `ops.select_cpu()` (6.15).
    pub const ALLOW_QUEUED_WAKEUP: u64 = 1 << 5;
    /// A mask of idle CPUs for each NUMA node (6.15).
    pub const BUILTIN_IDLE_PER_NODE: u64 = 1 << 6;
    /// Every insertion into a local queue is with [`super::enq::IMMED`] (7.1).
    pub const ALWAYS_ENQ_IMMED: u64 = 1 << 7;
    /// Control of `cpu.weight`; without effect, and gone with 7.2.
    pub const HAS_CGROUP_WEIGHT: u64 = 1 << 16;
    /// Tasks can be looked up by `p->scx.tid` (7.2).
    pub const TID_TO_TASK: u64 = 1 << 8;
}

/// `enum scx_pick_idle_cpu_flags`: a CPU whose whole core is idle.
pub const PICK_IDLE_CORE: u64 = 1;
/// `SCX_PICK_IDLE_IN_NODE`: no CPU of another node (6.15).
pub const PICK_IDLE_IN_NODE: u64 = 2;

/// `enum scx_ent_flags` and the task's state within sched_ext.
pub mod ent {
    /// On the run queue of the class.
    pub const QUEUED: u32 = 1;
    /// The watchdog's time stamp starts anew at the next enqueue.
    pub const RESET_RUNNABLE_AT: u32 = 1 << 2;
    /// The last dequeue was for sleep.
    pub const DEQD_FOR_SLEEP: u32 = 1 << 3;
    /// In a local queue to run at once (7.1).
    pub const IMMED: u32 = 1 << 5;
    /// The position of the reason why it is enqueued again (7.1).
    pub const REENQ_REASON_SHIFT: u32 = 12;
    /// The position of `enum scx_task_state`.
    pub const STATE_SHIFT: u32 = 8;
}

/// `DSQ` iterator flags (`enum scx_dsq_iter_flags`).
pub mod dsq_iter {
    /// From the tail to the head.
    pub const REV: u64 = 1 << 16;
}

/// Errors as negative numbers.
pub mod errno {
    /// No such entry.
    pub const ENOENT: i64 = -2;
    /// No memory.
    pub const ENOMEM: i64 = -12;
    /// No access.
    pub const EACCES: i64 = -13;
    /// Busy.
    pub const EBUSY: i64 = -16;
    /// Exists.
    pub const EEXIST: i64 = -17;
    /// Invalid argument.
    pub const EINVAL: i64 = -22;
    /// Not supported.
    pub const EOPNOTSUPP: i64 = -95;
}

/// `SCX_ECODE_RSN_HOTPLUG`.
pub const ECODE_RSN_HOTPLUG: u64 = 1 << 32;
/// `SCX_ECODE_ACT_RESTART`.
pub const ECODE_ACT_RESTART: u64 = 1 << 48;

/// `sched_prio_to_weight`: the weight of a nice value, nice −20 first (`kernel/sched/core.c`: each step is a tenth of
/// the CPU, a factor near 1.25, around 1024 at nice 0).
pub const NICE_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// The reciprocals 2^32 / weight (`sched_prio_to_wmult`).
pub fn inverse_weight(weight: u32) -> u32 {
    ((1u64 << 32) / u64::from(weight.max(2))) as u32
}

/// The load weight of a nice value; values outside −20…19 count as the nearest.
pub fn nice_weight(nice: i8) -> u32 {
    NICE_WEIGHT[(nice.clamp(-20, 19) + 20) as usize]
}

/// `sched_weight_to_cgroup`: a load weight on the cgroup scale, 1…10000 with 100 at nice 0.
pub fn cgroup_weight(load_weight: u32) -> u32 {
    ((u64::from(load_weight) * 100 + 512) / 1024).clamp(1, 10_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_the_kernels() {
        assert_eq!(nice_weight(0), 1024);
        assert_eq!(nice_weight(-20), 88_761);
        assert_eq!(nice_weight(19), 15);
        assert_eq!(cgroup_weight(nice_weight(0)), 100);
        assert_eq!(cgroup_weight(nice_weight(-20)), 8668);
        assert_eq!(cgroup_weight(nice_weight(19)), 1);
        assert_eq!(inverse_weight(1024), 4_194_304);
        assert_eq!(inverse_weight(15), 286_331_153);
    }
}
