//! Turns of CPUs that share the threads of an emulator (QEMU's round-robin of virtual CPUs, `tcg-accel-ops-rr.c`).
//!
//! A CPU at work (kernel work, or a short computation) has its turn
//!
//! * until it idles or begins a long computation,
//! * until it programs the machine's next timer interrupt (`qemu_timer_notify_cb` asks for a new deadline),
//! * until the timer of another CPU is due,
//! * until its task pauses, as the tasks of a workload do after a few operations,
//! * and for its share at the latest: the time until the next timer interrupt by the number of CPUs, as it was when the
//!   round began (`icount_percpu_budget`).
//!
//! A round goes over the CPUs in their order. Meanwhile what happens on other CPUs waits, and their own work stands
//! still, while the clock goes on. Long computations have short turns in between, and need nothing but time.

use super::{Kernel, Rq, Slot, Stage, agenda};
use crate::CostModel;
use crate::events::{CpuEvent, EventHandle};

/// The shortest turn, instructions: that of a round just before a timer interrupt.
const TURN_INSNS_MIN: u64 = 125;
/// A task of a workload pauses before each operation of this number, on real kernels too.
pub(crate) const PAUSE_OPS: u16 = 4;
/// The longest computation without a pause, and the last part of a longer one, instructions.
const PIECE_INSNS: u64 = 25_000;
/// How often a longer computation pauses, instructions of its own.
const SLICE_INSNS: u64 = 250;
/// How long a longer computation looks at its clock before it begins, instructions.
const LOOK_INSNS: u64 = 2_000;

/// Which CPUs have a thread, and what waits for one.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Threads; 0: each CPU has its own.
    threads: usize,
    /// What an instruction takes, ns.
    instruction_ns: u64,
    cpus: Vec<CpuTurn>,
    /// What each CPU gets in the round under way, ns.
    share_ns: u64,
}

/// A CPU's part in the turns.
#[derive(Debug, Default)]
struct CpuTurn {
    has_turn: bool,
    /// When its turn began, ns: at that instant it is at work, whatever it does first.
    began_ns: u64,
    /// It has programmed the next timer interrupt: its turn ends at the end of the step under way.
    programs: bool,
    /// Its task pauses: its turn ends at the end of the step under way.
    pauses: bool,
    /// Its next turn is for a share as of then, not as of the round's begin.
    is_kicked: bool,
    /// Its turn ends at that time, ns.
    budget_ns: u64,
    /// Its work stands still since that time, ns.
    stopped_ns: Option<u64>,
    /// Events that wait for its turn, with the times that they were due at, ns.
    waiting: Vec<(EventHandle, u64)>,
}

impl CpuTurn {
    fn waits(&self) -> bool {
        self.stopped_ns.is_some() || !self.waiting.is_empty()
    }
}

impl Turns {
    /// The turns of a machine of so many CPUs.
    pub(crate) fn new(cost: &CostModel, cpus: u32) -> Turns {
        let threads = usize::try_from(cost.emulator_threads).unwrap_or(usize::MAX);
        if threads == 0 || threads >= cpus as usize {
            return Turns::default();
        }
        Turns {
            threads,
            instruction_ns: cost.instruction_ns,
            cpus: (0..cpus).map(|_| CpuTurn::default()).collect(),
            ..Turns::default()
        }
    }

    /// Whether CPUs share threads.
    #[inline]
    pub(crate) fn are_taken(&self) -> bool {
        self.threads != 0
    }

    /// What so many instructions take, ns.
    fn ns(&self, insns: u64) -> u64 {
        insns * self.instruction_ns
    }

    fn is_full(&self) -> bool {
        self.cpus.iter().filter(|cpu| cpu.has_turn).count() >= self.threads
    }

    fn any_waits(&self) -> bool {
        self.cpus.iter().any(CpuTurn::waits)
    }

    /// The task of a CPU pauses.
    pub(crate) fn pause(&mut self, cpu: u32) {
        self.cpus[cpu as usize].pauses = true;
    }

    /// All leave their turns, and get shares as of their next.
    fn kick(&mut self) {
        for turn in &mut self.cpus {
            turn.is_kicked = true;
        }
    }

    /// The CPU that waits and comes next after another one, round.
    fn next_after(&self, cpu: u32) -> Option<u32> {
        let cpus = self.cpus.len() as u32;
        (1..=cpus).map(|ahead| (cpu + ahead) % cpus).find(|next| {
            let next = &self.cpus[*next as usize];
            next.waits() && !next.has_turn
        })
    }
}

impl Kernel {
    /// An event of a CPU is due: whether it happens now. If not, it happens in the CPU's next turn.
    #[inline]
    pub(crate) fn takes_turn(&mut self, event: EventHandle) -> bool {
        let EventHandle::Cpu(cpu, _) = event else { return true };
        !self.turns.are_taken() || self.is_in_turn(cpu) || self.begins_turn(cpu, event)
    }

    /// Whether a CPU has a turn, at work or at the end of some work.
    fn is_in_turn(&self, cpu: u32) -> bool {
        self.turns.cpus[cpu as usize].has_turn
            && (self.work_ends_ns(cpu).is_some()
                || self.cpus[cpu as usize].busy_until_ns() == self.clock.now_ns())
    }

    #[inline(never)]
    fn begins_turn(&mut self, cpu: u32, event: EventHandle) -> bool {
        let now = self.clock.now_ns();
        let cpus = 0..self.turns.cpus.len() as u32;
        for other in cpus.clone() {
            self.turns.cpus[other as usize].has_turn = self.is_in_turn(other);
        }
        // Those that are in the last part of a long computation.
        for other in cpus.filter(|other| *other != cpu) {
            let turn = &self.turns.cpus[other as usize];
            let is_free = !turn.has_turn && !turn.waits() && !self.turns.is_full();
            if is_free && self.work_ends_ns(other).is_some() {
                self.begin_turn(other);
                self.turns.cpus[other as usize].began_ns = now.saturating_sub(1);
            }
        }
        self.give_turns(cpu);
        if !self.turns.is_full() && !self.turns.cpus[cpu as usize].waits() {
            self.turns.share_ns = self.share_ns();
            self.begin_turn(cpu);
            return true;
        }
        let waiting = &mut self.turns.cpus[cpu as usize].waiting;
        if !waiting.iter().any(|(other, _)| *other == event) {
            waiting.push((event, now));
        }
        if matches!(event, EventHandle::Cpu(_, CpuEvent::Timer | CpuEvent::Server)) {
            self.interrupt_turns();
        }
        if self.turns.any_waits() {
            self.note_wait();
        }
        false
    }

    /// The timer of a CPU that has no turn is due: turns that began before end, and the CPUs after come next.
    fn interrupt_turns(&mut self) {
        let now = self.clock.now_ns();
        for cpu in 0..self.turns.cpus.len() as u32 {
            let turn = &self.turns.cpus[cpu as usize];
            if turn.has_turn && turn.began_ns < now {
                self.turns.kick();
                self.end_turn(cpu);
            }
        }
    }

    fn begin_turn(&mut self, cpu: u32) {
        let now = self.clock.now_ns();
        if std::mem::take(&mut self.turns.cpus[cpu as usize].is_kicked) {
            self.turns.share_ns = self.share_ns();
        }
        let budget_ns = now.saturating_add(self.turns.share_ns);
        let turn = &mut self.turns.cpus[cpu as usize];
        (turn.has_turn, turn.began_ns, turn.budget_ns) = (true, now, budget_ns);
        (turn.programs, turn.pauses) = (false, false);
    }

    /// A CPU's part of the time from now until the next timer interrupt, ns.
    fn share_ns(&self) -> u64 {
        let now = self.clock.now_ns();
        let next_ns = self.cpus.iter().filter_map(|rq| self.interrupt_ns(rq)).min();
        let share_ns = next_ns.map(|next_ns| (next_ns - now) / self.cpus.len() as u64);
        share_ns.map_or(u64::MAX, |share_ns| share_ns.max(self.turns.ns(TURN_INSNS_MIN)))
    }

    /// Some CPU waits: those that have a turn end it at the next end of a quantum, and an event comes when work ends
    /// without one.
    fn note_wait(&mut self) {
        let now = self.clock.now_ns();
        let (mut ends_ns, budget_ns) = (u64::MAX, now.saturating_add(self.share_ns()));
        for cpu in 0..self.turns.cpus.len() as u32 {
            let turn = &mut self.turns.cpus[cpu as usize];
            if !turn.has_turn {
                continue;
            }
            if turn.budget_ns <= now {
                turn.budget_ns = budget_ns;
            }
            let budget_ns = turn.budget_ns;
            ends_ns = ends_ns.min(budget_ns).min(self.work_ends_ns(cpu).unwrap_or(now + 1));
        }
        if ends_ns != u64::MAX {
            self.plan(agenda::TURN, Some(ends_ns));
        }
    }

    /// When the work of a CPU that is at work ends at the earliest, ns: `u64::MAX` where that is an event of the CPU.
    /// `None`: it is idle, or computes for long.
    fn work_ends_ns(&self, cpu: u32) -> Option<u64> {
        let rq = &self.cpus[cpu as usize];
        let (now, busy_ns) = (self.clock.now_ns(), rq.busy_until_ns());
        let computes = rq.curr().and_then(|slot| self.computes_ns(slot));
        let is_own_event = match (rq.curr(), computes) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(_), Some(left_ns)) => {
                left_ns.saturating_sub(now.saturating_sub(busy_ns)) <= self.turns.ns(PIECE_INSNS)
            }
        };
        let turn = &self.turns.cpus[cpu as usize];
        if is_own_event {
            return Some(u64::MAX);
        }
        let begins = turn.has_turn && turn.began_ns == now;
        (begins || busy_ns > now).then_some(busy_ns.max(now + 1))
    }

    /// A task begins a computation. Where CPUs take turns, a long one looks at its CPU clock first, as it does on real
    /// kernels, and that is work. What is left of the computation, ns.
    pub(crate) fn looks_first(&mut self, cpu: u32, ns: u64) -> u64 {
        if !self.turns.are_taken() || ns <= self.turns.ns(PIECE_INSNS) {
            return ns;
        }
        let look_ns = self.turns.ns(LOOK_INSNS);
        self.charge(cpu, look_ns);
        ns - look_ns
    }

    /// What was left of a task's computation when its kernel work ended, ns; `None`: it does something else next.
    fn computes_ns(&self, slot: Slot) -> Option<u64> {
        match self.task(slot).stage {
            Stage::Compute(left_ns) => Some(left_ns),
            _ => None,
        }
    }

    /// A CPU programs its timer interrupt for a time, or for its next tick if that is earlier: if no other CPU's comes
    /// before, its turn ends.
    #[inline]
    pub(crate) fn programs_timer(&mut self, cpu: u32, at_ns: u64) {
        if self.turns.are_taken() && self.turns.cpus[cpu as usize].has_turn {
            let at_ns = at_ns.min(self.clock.following_tick_ns());
            let is_next = self.cpus.iter().enumerate().all(|(other, rq)| {
                other == cpu as usize || self.interrupt_ns(rq).is_none_or(|next_ns| at_ns < next_ns)
            });
            self.turns.cpus[cpu as usize].programs |= is_next;
        }
    }

    /// A task of a CPU begins a sleep until a time: the timer interrupt is programmed if that is before the next one.
    #[inline]
    pub(crate) fn begins_sleep(&mut self, cpu: u32, at_ns: u64) {
        if self.turns.are_taken()
            && self.interrupt_ns(&self.cpus[cpu as usize]).is_none_or(|next_ns| at_ns < next_ns)
        {
            self.programs_timer(cpu, at_ns);
        }
    }

    /// When the timer interrupt of a CPU is to come, ns; `None`: it has none, or has not handled the last.
    fn interrupt_ns(&self, rq: &Rq) -> Option<u64> {
        let now = self.clock.now_ns();
        let (sleep_ns, tick_ns) = (rq.timers.next_ns(), self.clock.following_tick_ns());
        let next_ns = if rq.is_idle() { sleep_ns } else { sleep_ns.min(tick_ns) };
        (next_ns > now && next_ns != u64::MAX).then_some(next_ns)
    }

    /// A step is done: turns may end.
    #[inline]
    pub(crate) fn turns_end(&mut self) {
        for cpu in 0..self.turns.cpus.len() as u32 {
            if self.turns.cpus[cpu as usize].has_turn {
                self.look_at_turn(cpu);
            }
        }
    }

    fn look_at_turn(&mut self, cpu: u32) {
        let now = self.clock.now_ns();
        let turn = &mut self.turns.cpus[cpu as usize];
        let programs = std::mem::take(&mut turn.programs);
        let ends = std::mem::take(&mut turn.pauses) || programs || turn.budget_ns <= now;
        let is_at_work = self.work_ends_ns(cpu).is_some();
        let others_are_next =
            self.turns.any_waits() || (ends && is_at_work && self.slices_ns(cpu, cpu) > 0);
        if !others_are_next {
            return;
        }
        if is_at_work && !ends {
            return self.note_wait();
        }
        if programs {
            self.turns.kick();
        }
        self.end_turn(cpu);
        if self.turns.any_waits() {
            self.note_wait();
        }
    }

    /// A CPU's turn ends, and those that wait are next.
    fn end_turn(&mut self, cpu: u32) {
        let stopped_ns = self.work_ends_ns(cpu).map(|_| self.clock.now_ns());
        let turn = &mut self.turns.cpus[cpu as usize];
        (turn.has_turn, turn.stopped_ns) = (false, stopped_ns);
        self.give_turns(cpu);
    }

    /// Those that wait take the threads that are free, beginning with the CPU after this one.
    fn give_turns(&mut self, cpu: u32) {
        while !self.turns.is_full()
            && let Some(next) = self.turns.next_after(cpu)
        {
            if next <= cpu {
                self.turns.share_ns = self.share_ns();
            }
            let slices_ns = self.slices_ns(cpu, next);
            self.begin_turn(next);
            self.resume(next, slices_ns);
        }
    }

    /// How long the turns of the long computations are that come between the turns of two CPUs, ns.
    fn slices_ns(&self, cpu: u32, next: u32) -> u64 {
        let cpus = self.turns.cpus.len() as u32;
        let between = (1..cpus).map(|ahead| (cpu + ahead) % cpus).take_while(|cpu| *cpu != next);
        let computes = |cpu: &u32| {
            !self.cpus[*cpu as usize].is_idle()
                && !self.turns.cpus[*cpu as usize].waits()
                && self.work_ends_ns(*cpu).is_none()
        };
        self.turns.ns(SLICE_INSNS) * between.filter(computes).count() as u64
    }

    /// A CPU goes on where it stopped, with what has waited, after the turns of long computations.
    fn resume(&mut self, cpu: u32, slices_ns: u64) {
        let now = self.clock.now_ns() + slices_ns;
        let turn = &mut self.turns.cpus[cpu as usize];
        let stood_ns = turn.stopped_ns.take().map_or(0, |since_ns| now - since_ns);
        let waiting = std::mem::take(&mut turn.waiting);
        let rq = &mut self.cpus[cpu as usize];
        rq.stand(stood_ns);
        rq.timers.stand(stood_ns);
        let burst = EventHandle::Cpu(cpu, CpuEvent::Burst);
        let mut burst_ns = self.events.armed(burst).map(|at_ns| at_ns.saturating_add(stood_ns));
        for (event, due_ns) in waiting {
            if event == burst {
                burst_ns = Some(due_ns + stood_ns);
            } else {
                self.events.arm(event, now);
            }
        }
        if let Some(at_ns) = burst_ns {
            self.cpus[cpu as usize].note_armed(u64::MAX);
            self.arm_cpu(cpu, at_ns.max(now));
        }
    }
}
