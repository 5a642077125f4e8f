//! A CPU's run queue and what the CPU is busy with.

use super::Hrtimers;
use super::task::Slot;
use crate::dsq::Dsq;

/// Instructions of the scheduler's program, and the divisions among them: its counts at the start of a path, or what it executed on one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    pub(crate) insns: u64,
    pub(crate) divisions: u64,
}

impl Meter {
    /// Without what was executed up to an earlier point, or on an earlier part of the path.
    pub(crate) fn less(self, earlier: Meter) -> Meter {
        Meter { insns: self.insns - earlier.insns, divisions: self.divisions - earlier.divisions }
    }
}

/// One CPU (`struct rq` with its `struct scx_rq`).
#[derive(Debug)]
pub(crate) struct Rq {
    /// What runs; `None`: the idle task.
    pub(crate) curr: Option<Slot>,
    /// `SCX_DSQ_LOCAL`.
    pub(crate) local: Dsq,
    /// `TIF_NEED_RESCHED` of what runs.
    pub(crate) need_resched: bool,
    /// What runs cannot be preempted: it has a spin lock, or spins for one (`preempt_disable`).
    pub(crate) unpreempted: bool,
    /// `SCX_RQ_IN_BALANCE`: looking for the next task.
    pub(crate) in_balance: bool,
    /// Runnable tasks of this run queue, the running one included.
    pub(crate) nr_running: u32,
    /// Until when kernel work occupies the CPU; computing goes on from here, ns.
    pub(crate) run_start_ns: u64,
    /// Its timers, and its timer interrupt.
    pub(crate) timers: Hrtimers,
    /// When the CPU's own event is due; `u64::MAX`: none.
    pub(crate) armed_ns: u64,
    /// A signal's interrupt is on its way.
    pub(crate) signalled: bool,
    /// `ddsp_deferred_locals`: tasks that go to the local queue of another CPU.
    pub(crate) deferred: Vec<Slot>,
    /// Where `cpumask_any_distribute` went last (`distribute_cpu_mask_prev`).
    pub(crate) distribute_prev: u32,
    /// The instant of the last pass, and the passes that led nowhere since.
    pub(crate) pass_time_ns: u64,
    pub(crate) passes_now: u32,
    /// Guest address of its `struct rq`.
    pub(crate) addr: u64,
    /// Guest address of its idle task.
    pub(crate) idle_addr: u64,
    /// CPU time of tasks here, and of the idle task up to `idle_since_ns`, ns.
    pub(crate) exec_ns: u64,
    pub(crate) idle_ns: u64,
    pub(crate) idle_since_ns: u64,
}

impl Rq {
    pub(crate) fn new(local: Dsq, addr: u64, idle_addr: u64) -> Rq {
        Rq {
            curr: None,
            local,
            need_resched: false,
            unpreempted: false,
            in_balance: false,
            nr_running: 0,
            run_start_ns: 0,
            timers: Hrtimers::default(),
            armed_ns: u64::MAX,
            signalled: false,
            deferred: Vec::new(),
            distribute_prev: 0,
            pass_time_ns: 0,
            passes_now: 0,
            addr,
            idle_addr,
            exec_ns: 0,
            idle_ns: 0,
            idle_since_ns: 0,
        }
    }

    /// What runs is to make room, and may.
    #[inline]
    pub(crate) fn makes_room(&self) -> bool {
        self.need_resched && !self.unpreempted
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.curr.is_none()
    }
}
