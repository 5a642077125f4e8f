//! A CPU's run queue, and until when the CPU is busy.

use fairground_bpf::{Memory, Trap};

use super::Slot;
use super::{CpuTime, Hrtimers};
use crate::cpuset::CpuMask;
use crate::dsq::Dsq;
use crate::layout::offsets;

/// One CPU (`struct rq` with its `struct scx_rq`), in whole cache lines. What each step touches comes first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Rq {
    /// The current task; `None`: the idle task.
    curr: Option<Slot>,
    /// `SCX_DSQ_LOCAL`.
    pub(crate) local: Dsq,
    /// Until when kernel work occupies the CPU; computing goes on from here, ns.
    busy_until_ns: u64,
    /// When the CPU's own event is due; `u64::MAX`: none.
    armed_ns: u64,
    /// Runnable tasks of this run queue, the running one included.
    nr_running: u32,
    /// `TIF_NEED_RESCHED` of the current task.
    pub(crate) need_resched: bool,
    /// The current task cannot be preempted: it holds a spin lock, or spins for one (`preempt_disable`).
    pub(crate) unpreempted: bool,
    /// `SCX_RQ_IN_BALANCE`: looking for the next task.
    pub(crate) in_balance: bool,
    /// `rq->scx.cpu_released`: the scheduler has lost the CPU to a higher class.
    pub(crate) released: bool,
    /// A signal's interrupt is on its way.
    pub(crate) signalled: bool,
    /// The CPU is to go offline: its stopper thread is the next to run.
    pub(crate) stop_requested: bool,
    /// Time for activating the tasks on its wake list, ns.
    pub(crate) wake_list_ns: u64,
    /// Its timers, and its timer interrupt.
    pub(crate) timers: Hrtimers,
    /// How long it has run tasks, and how long its idle task.
    pub(crate) time: CpuTime,
    /// Since when it is online, or offline, ns.
    pub(crate) online_since_ns: u64,
    /// Guest address of its `struct rq`.
    pub(crate) addr: u64,
    /// Guest address of its idle task.
    pub(crate) idle_addr: u64,
    /// The instant of the last scheduling pass, ns, and the passes without progress since.
    pass_time_ns: u64,
    vain_passes: u32,
    /// Where `cpumask_any_distribute` went last (`distribute_cpu_mask_prev`).
    distribute_prev: u32,
    /// `ddsp_deferred_locals`: tasks that go to the local queue of another CPU.
    deferred: Vec<Slot>,
}

impl Rq {
    /// Maximum scheduling passes of a CPU without progress at one instant.
    const VAIN_PASSES_MAX: u32 = 1_000;
    /// How long each further one takes, ns: so the watchdog detects such a CPU.
    pub(crate) const VAIN_PASS_NS: u64 = 1_000_000;

    /// An idle CPU, whose `struct rq` and idle task lie at these guest addresses.
    pub(crate) fn new(local: Dsq, addr: u64, idle_addr: u64) -> Rq {
        Rq {
            curr: None,
            local,
            busy_until_ns: 0,
            armed_ns: u64::MAX,
            nr_running: 0,
            need_resched: false,
            unpreempted: false,
            in_balance: false,
            released: false,
            signalled: false,
            stop_requested: false,
            wake_list_ns: 0,
            timers: Hrtimers::default(),
            time: CpuTime::default(),
            online_since_ns: 0,
            addr,
            idle_addr,
            pass_time_ns: 0,
            vain_passes: 0,
            distribute_prev: 0,
            deferred: Vec::new(),
        }
    }

    /// The current task; `None`: the idle task.
    #[inline]
    pub(crate) fn curr(&self) -> Option<Slot> {
        self.curr
    }

    /// Sets the current task, or the idle task. It can be preempted at first.
    #[inline]
    pub(crate) fn run(&mut self, next: Option<Slot>, now_ns: u64) {
        (self.curr, self.unpreempted) = (next, false);
        self.time.enter_idle(now_ns);
    }

    /// Whether the idle task runs.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.curr.is_none()
    }

    /// Until when kernel work occupies the CPU, ns; may have passed.
    #[inline]
    pub(crate) fn busy_until_ns(&self) -> u64 {
        self.busy_until_ns
    }

    /// Kernel work occupies the CPU for so long, from now or from the end of what occupies it already.
    #[inline]
    pub(crate) fn occupy(&mut self, now_ns: u64, ns: u64) {
        self.busy_until_ns = self.busy_until_ns.max(now_ns).saturating_add(ns);
    }

    /// How long it has computed since it was asked last, ns.
    #[inline]
    pub(crate) fn take_computed(&mut self, now_ns: u64) -> u64 {
        let computed_ns = now_ns.saturating_sub(self.busy_until_ns);
        self.busy_until_ns = self.busy_until_ns.max(now_ns);
        computed_ns
    }

    /// When the CPU's own event is due, ns; `u64::MAX`: it is not armed.
    #[inline]
    pub(crate) fn armed_ns(&self) -> u64 {
        self.armed_ns
    }

    /// Notes when the CPU's own event is due. False: it is as it was.
    #[inline]
    pub(crate) fn note_armed(&mut self, at_ns: u64) -> bool {
        std::mem::replace(&mut self.armed_ns, at_ns) != at_ns
    }

    /// The current task must leave, and can be preempted.
    #[inline]
    pub(crate) fn makes_room(&self) -> bool {
        self.need_resched && !self.unpreempted
    }

    /// Runnable tasks of this run queue, the running one included.
    #[inline]
    pub(crate) fn nr_running(&self) -> u32 {
        self.nr_running
    }

    /// A task joins the run queue (`add_nr_running`).
    #[inline]
    pub(crate) fn add_running(&mut self, mem: &Memory) -> Result<(), Trap> {
        self.nr_running += 1;
        mem.store_u32(self.addr + offsets::rq::NR_RUNNING, self.nr_running)
    }

    /// A task leaves the run queue (`sub_nr_running`).
    #[inline]
    pub(crate) fn sub_running(&mut self, mem: &Memory) -> Result<(), Trap> {
        self.nr_running -= 1;
        mem.store_u32(self.addr + offsets::rq::NR_RUNNING, self.nr_running)
    }

    /// Counts one task too many, for tests of the checker.
    #[cfg(test)]
    pub(crate) fn miscount(&mut self) {
        self.nr_running += 1;
    }

    /// A task goes to the local queue of another CPU once this run queue is unlocked.
    pub(crate) fn defer(&mut self, slot: Slot) {
        self.deferred.push(slot);
    }

    /// Forgets a task that was deferred.
    pub(crate) fn forget_deferred(&mut self, slot: Slot) {
        self.deferred.retain(|other| *other != slot);
    }

    /// Whether a task was deferred.
    #[inline]
    pub(crate) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Takes the first task that was deferred.
    #[inline]
    pub(crate) fn next_deferred(&mut self) -> Option<Slot> {
        if self.deferred.is_empty() { None } else { Some(self.deferred.remove(0)) }
    }

    /// `cpumask_any_distribute`: the next CPU of a mask after the one that this CPU got last.
    pub(crate) fn distribute(&mut self, mask: &CpuMask) -> Option<u32> {
        let start = self.distribute_prev + 1;
        let next = mask.iter().find(|cpu| *cpu >= start).or_else(|| mask.first())?;
        self.distribute_prev = next;
        Some(next)
    }

    /// Counts a scheduling pass. True: too many of them made no progress, at one instant or, where the CPU `rests`,
    /// repeatedly from the idle task to the idle task.
    pub(crate) fn count_pass(&mut self, now_ns: u64, rests: bool) -> bool {
        let since_ns = now_ns.saturating_sub(self.pass_time_ns);
        self.pass_time_ns = now_ns;
        if since_ns > 0 && !(rests && since_ns <= Rq::VAIN_PASS_NS) {
            self.vain_passes = 0;
            return false;
        }
        self.vain_passes += 1;
        self.vain_passes > Rq::VAIN_PASSES_MAX
    }
}
