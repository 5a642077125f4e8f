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

/// A task that another CPU has woken.
#[derive(Debug)]
pub(crate) struct Woken {
    pub(crate) slot: Slot,
    pub(crate) enq_flags: u64,
    /// What was executed for it so far.
    pub(crate) executed: Meter,
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
    /// What the clock said when somebody was woken for this CPU, and no scheduling pass has come since, ns.
    pub(crate) woken_clock_ns: Option<u64>,
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
    /// Since when the CPU's own work stands still, where CPUs execute in turns and another one does; `None`: it does not.
    pub(crate) paused_ns: Option<u64>,
    /// When it went idle, or last set up its tick anew, ns.
    pub(crate) idle_entered_ns: u64,
    /// Tasks that another CPU woke for this one while it was idle, and that it has still to put into its queue.
    pub(crate) wake_list: Vec<Woken>,
    /// Tasks that another CPU woke for this one while it was idle, and put into its queue.
    pub(crate) woken_remotely: u32,
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
            woken_clock_ns: None,
            unpreempted: false,
            in_balance: false,
            nr_running: 0,
            run_start_ns: 0,
            timers: Hrtimers::default(),
            armed_ns: u64::MAX,
            paused_ns: None,
            idle_entered_ns: 0,
            wake_list: Vec::new(),
            woken_remotely: 0,
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

    /// The CPU's own work stood still for a while.
    pub(crate) fn shift(&mut self, since_ns: u64, now_ns: u64) {
        let stood_ns = now_ns - since_ns;
        self.run_start_ns += stood_ns;
        if self.timers.irqs_off_ns > since_ns {
            self.timers.irqs_off_ns += stood_ns;
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
