//! A task as the simulated kernel keeps it. The fields that programs may access are in guest memory
//! ([`crate::layout`]); those of the core alone are here.

use fairground_bpf::{Memory, Trap};
use fairground_trace::{CallbackKind, TaskId, TaskState};

use super::{Again, Armed};
use crate::abi;
use crate::actors::ActorId;
use crate::cgroup::CgroupRef;
use crate::cpuset::CpuMask;
use crate::interface::KernelAbi;
use crate::interface::constants::constant;
use crate::layout::offsets::task as field;
use crate::real_time::RtEntity;

/// Owner of a task between enqueue and dispatch (`enum scx_ops_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpsState {
    /// The core.
    None,
    /// On its way to the scheduler: `ops.enqueue()` runs.
    Queueing,
    /// The scheduler.
    Queued,
    /// On its way back.
    Dispatching,
}

/// Next step of a task on its CPU, once kernel work there is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Ask what it does next.
    Advance,
    /// As `Advance`, inside a call, where no other task may take the CPU.
    InCall,
    /// Compute for so many ns; `u64::MAX`: for ever.
    Compute(u64),
    /// Leave the CPU in this state; with a time, to wake up then.
    Block(TaskState, Option<u64>),
    /// `sched_yield`.
    Yield,
    /// Exit.
    Exit,
}

/// The bits of `p->scx.flags` for each [`ScxState`].
pub(crate) type StateFlags = [u32; 4];

/// `SCX_TASK_NONE`, `_INIT`, `_READY`, `_ENABLED` of a release.
pub(crate) fn state_flags(abi: KernelAbi) -> StateFlags {
    ["NONE", "INIT", "READY", "ENABLED"]
        .map(|state| constant(&format!("SCX_TASK_{state}"), abi).unwrap_or(0) as u32)
}

/// The state of a task within sched_ext (`enum scx_task_state`); its number is an index of [`StateFlags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub(crate) enum ScxState {
    /// `ops.init_task()` was not called.
    None = 0,
    /// It succeeded; the fork can still fail.
    Init = 1,
    /// Ready to be switched to the class.
    Ready = 2,
    /// In the class.
    Enabled = 3,
}

/// The state of a task in the protocol of callbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before `runnable`, after `quiescent`.
    Off,
    /// After `runnable` or `stopping`.
    Runnable,
    /// After `running`.
    Running,
}

/// One task, in whole cache lines. Fields that every on-CPU interval uses come first; see [`Task::HOT_BYTES`].
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Task {
    /// Guest address of its `task_struct`.
    pub(crate) addr: u64,
    pub(crate) stage: Stage,
    /// Since when it is on the list that the watchdog checks, ns.
    pub(crate) runnable_at_ns: u64,
    /// Identifies each time that the scheduler owned it.
    pub(crate) qseq: u64,
    /// A direct dispatch that is not carried out yet: queue and flags.
    pub(crate) ddsp: Option<(u64, u64)>,
    /// When it last came onto a CPU or was last accounted, ns.
    pub(crate) exec_start_ns: u64,
    pub(crate) sum_exec_ns: u64,
    /// When it last left a CPU, for the cost of coming back; where: `ran_on`.
    pub(crate) left_at_ns: u64,
    /// The timer that ends its sleep, if high-resolution timers do that.
    pub(crate) timer: Option<Armed>,
    /// Voluntary switches, and involuntary ones: `nivcsw`.
    pub(crate) nvcsw: u64,
    /// Allowed CPUs; `None`: all.
    pub(crate) allowed: Option<Box<CpuMask>>,
    /// Its number in the trace.
    pub(crate) id: TaskId,
    /// Its program in user space.
    pub(crate) actor: ActorId,
    /// The CPU of its run queue.
    pub(crate) cpu: u32,
    pub(crate) ran_on: Option<u32>,
    /// The CPU to which the one that woke it has moved it.
    pub(crate) moved_to: Option<u32>,
    pub(crate) scx_state: ScxState,
    /// `p->__state`: its sleep state, or runnable.
    pub(crate) state: TaskState,
    /// The computation that it is in has begun together with the kernel work before it, and none of it is done yet.
    pub(crate) begins: bool,
    pub(crate) ops_state: OpsState,
    /// Its state after the last callback; for the check of the order of callbacks.
    pub(crate) phase: Phase,
    /// The last callback about it, for the report of a stall.
    pub(crate) last_call: Option<CallbackKind>,
    /// Its state in the real-time class.
    pub(crate) rt: RtEntity,
    /// On the run queue of its class (`SCX_TASK_QUEUED`).
    pub(crate) queued: bool,
    /// It is on the list that the watchdog checks.
    pub(crate) waiting: bool,
    pub(crate) reset_runnable_at: bool,
    pub(crate) deqd_for_sleep: bool,
    /// The scheduler has it, in its own structures or in a queue that it made (`SCX_TASK_IN_CUSTODY`); of a scheduler
    /// with `ops.dequeue()` only.
    pub(crate) in_custody: bool,
    /// Between two run queues (`TASK_ON_RQ_MIGRATING`).
    pub(crate) migrating: bool,
    pub(crate) exiting: bool,
    /// It has paid for blocking.
    pub(crate) blocks: bool,
    /// A signal came during its computation and is not handled yet.
    pub(crate) signalled: bool,
    /// `SCX_TASK_IMMED`: it is to run at once.
    pub(crate) immed: bool,
    /// Why it is enqueued again, while it is.
    pub(crate) again: Again,
    /// It was woken while it was about to sleep.
    pub(crate) woken: bool,
    pub(crate) nice: i8,
    pub(crate) nivcsw: u64,
    pub(crate) nr_migrations: u64,
    pub(crate) pid: u32,
    pub(crate) allowed_count: u32,
    /// `p->sched_task_group`.
    pub(crate) cgroup: CgroupRef,
    /// `p->scx.cgrp_moving_from`: on its way out of this cgroup.
    pub(crate) moving_from: Option<CgroupRef>,
}

/// Three cache lines.
const _: () = assert!(Task::HOT_BYTES <= 3 * 64);

impl Task {
    /// The fields that every on-CPU interval uses are in this many bytes from its start.
    pub(crate) const HOT_BYTES: usize = std::mem::offset_of!(Task, nivcsw);

    /// Whether it may run on a CPU.
    #[inline]
    pub(crate) fn allows(&self, cpu: u32) -> bool {
        self.allowed.as_ref().is_none_or(|set| set.test(cpu))
    }

    /// Whether it is a task that runs and sleeps: the scheduler has accepted it, and it has not ended.
    pub(crate) fn is_scheduled(&self) -> bool {
        match self.rt.is_rt() {
            true => self.scx_state >= ScxState::Ready,
            false => self.scx_state == ScxState::Enabled,
        }
    }

    /// Whether it has called for sleep and has not left the CPU yet.
    pub(crate) fn about_to_sleep(&self) -> bool {
        matches!(self.stage, Stage::Block(..))
    }

    #[inline]
    pub(crate) fn slice(&self, mem: &Memory) -> Result<u64, Trap> {
        mem.load_u64(self.addr + field::SLICE)
    }

    #[inline]
    pub(crate) fn set_slice(&self, mem: &Memory, slice_ns: u64) -> Result<(), Trap> {
        mem.store_u64(self.addr + field::SLICE, slice_ns)
    }

    #[inline]
    pub(crate) fn vtime(&self, mem: &Memory) -> Result<u64, Trap> {
        mem.load_u64(self.addr + field::DSQ_VTIME)
    }

    #[inline]
    pub(crate) fn set_vtime(&self, mem: &Memory, vtime: u64) -> Result<(), Trap> {
        mem.store_u64(self.addr + field::DSQ_VTIME, vtime)
    }

    /// Writes `PF_EXITING` into `p->flags`.
    pub(crate) fn publish_exiting(&self, mem: &Memory) -> Result<(), Trap> {
        const PF_EXITING: u32 = 4;
        mem.store_u32(self.addr + field::FLAGS, PF_EXITING)
    }

    /// `set_load_weight` and `reweight_task_scx`: writes the weights that follow from its nice value.
    pub(crate) fn publish_nice(&self, mem: &Memory) -> Result<(), Trap> {
        let static_prio = (120 + i32::from(self.nice)) as u32;
        let prio = match self.rt.is_rt() {
            true => 99 - u32::from(self.rt.priority()),
            false => static_prio,
        };
        let weight = abi::nice_weight(self.nice);
        mem.store_u32(self.addr + field::STATIC_PRIO, static_prio)?;
        for at in [field::PRIO, field::NORMAL_PRIO] {
            mem.store_u32(self.addr + at, prio)?;
        }
        mem.store_u64(self.addr + field::LOAD_WEIGHT, u64::from(weight))?;
        mem.store_u32(self.addr + field::LOAD_INV_WEIGHT, abi::inverse_weight(weight))?;
        mem.store_u32(self.addr + field::SCX_WEIGHT, self.weight())
    }

    /// `__setscheduler_params`: writes `p->policy` and the priorities that follow from it.
    pub(crate) fn publish_policy(&self, mem: &Memory) -> Result<(), Trap> {
        mem.store_u32(self.addr + field::POLICY, self.rt.policy_number())?;
        mem.store_u32(self.addr + field::RT_PRIORITY, self.rt.priority().into())?;
        self.publish_nice(mem)
    }

    /// `p->scx.weight`: what its nice value means on the cgroup scale.
    pub(crate) fn weight(&self) -> u32 {
        abi::cgroup_weight(abi::nice_weight(self.nice))
    }

    /// Writes `p->scx.flags`.
    #[inline]
    pub(crate) fn publish_flags(&self, mem: &Memory, states: &StateFlags) -> Result<(), Trap> {
        let mut flags = states[self.scx_state as usize];
        if self.queued {
            flags |= abi::ent::QUEUED;
        }
        if self.reset_runnable_at {
            flags |= abi::ent::RESET_RUNNABLE_AT;
        }
        if self.deqd_for_sleep {
            flags |= abi::ent::DEQD_FOR_SLEEP;
        }
        if self.immed {
            flags |= abi::ent::IMMED;
        }
        flags |= self.again.bits();
        mem.store_u32(self.addr + field::SCX_FLAGS, flags)
    }
}
