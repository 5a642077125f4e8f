//! Turns of CPUs that share the threads of an emulator (QEMU's round-robin of virtual CPUs, `tcg-accel-ops-rr.c`).
//!
//! A CPU at work (kernel work, or a short computation) has its turn
//!
//! * until it idles or begins a long computation,
//! * until it programs the machine's next timer interrupt (`qemu_timer_notify_cb` asks for a new deadline),
//! * until the first end of a piece of work after a quantum,
//! * and for its part of the time until the next timer interrupt at the latest.
//!
//! Meanwhile what happens on other CPUs waits, and their own work stands still, while the clock goes on. Long
//! computations leave turns of their own out: theirs are short, and all that they need is time.

use super::{Kernel, Rq, Slot, Stage, agenda};
use crate::CostModel;
use crate::events::{CpuEvent, EventHandle};

/// The shortest turn, ns: that of a round just before a timer interrupt.
const TURN_NS_MIN: u64 = 1_000;

/// Which CPUs have a thread, and what waits for one.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Threads; 0: each CPU has its own.
    threads: usize,
    cpus: Vec<CpuTurn>,
}

/// A CPU's part in the turns.
#[derive(Debug, Default)]
struct CpuTurn {
    has_turn: bool,
    /// When its turn began, ns: at that instant it is at work, whatever it does first.
    began_ns: u64,
    /// Its turn ends at the end of the step under way.
    yields: bool,
    /// Its turn ends at the first end of a piece of work from this time on, ns.
    pause_ns: u64,
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
        Turns { threads, cpus: (0..cpus).map(|_| CpuTurn::default()).collect() }
    }

    /// Whether CPUs share threads.
    #[inline]
    pub(crate) fn are_taken(&self) -> bool {
        self.threads != 0
    }

    fn is_full(&self) -> bool {
        self.cpus.iter().filter(|cpu| cpu.has_turn).count() >= self.threads
    }

    fn any_waits(&self) -> bool {
        self.cpus.iter().any(CpuTurn::waits)
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
        let has_turn = |turns: &Turns| turns.cpus[cpu as usize].has_turn;
        !self.turns.are_taken()
            || (has_turn(&self.turns) && self.work_ends_ns(cpu).is_some())
            || self.begins_turn(cpu, event)
    }

    #[inline(never)]
    fn begins_turn(&mut self, cpu: u32, event: EventHandle) -> bool {
        let now = self.clock.now_ns();
        let cpus = 0..self.turns.cpus.len() as u32;
        for other in cpus.clone() {
            let at_work = self.work_ends_ns(other).is_some();
            self.turns.cpus[other as usize].has_turn &= at_work;
        }
        // Those that are in the last part of a long computation.
        for other in cpus.filter(|other| *other != cpu) {
            let turn = &self.turns.cpus[other as usize];
            let is_free = !turn.has_turn && !turn.waits() && !self.turns.is_full();
            if is_free && self.work_ends_ns(other).is_some() {
                self.begin_turn(other);
            }
        }
        self.give_turns(cpu);
        if !self.turns.is_full() && !self.turns.cpus[cpu as usize].waits() {
            self.begin_turn(cpu);
            return true;
        }
        let waiting = &mut self.turns.cpus[cpu as usize].waiting;
        if !waiting.iter().any(|(other, _)| *other == event) {
            waiting.push((event, now));
        }
        self.note_wait();
        false
    }

    fn begin_turn(&mut self, cpu: u32) {
        let (now, budget_ns) = (self.clock.now_ns(), self.budget_ns());
        let turn = &mut self.turns.cpus[cpu as usize];
        (turn.has_turn, turn.began_ns, turn.yields) = (true, now, false);
        turn.budget_ns = budget_ns;
        turn.pause_ns = now.saturating_add(self.cost.emulator_turn_ns);
    }

    /// When a turn that begins now ends at the latest, ns: each CPU gets a part of the time until the next timer
    /// interrupt (`icount_percpu_budget`).
    fn budget_ns(&self) -> u64 {
        let now = self.clock.now_ns();
        let next_ns = self.cpus.iter().filter_map(|rq| self.interrupt_ns(rq)).min();
        let part_ns = next_ns.map(|next_ns| (next_ns - now) / self.cpus.len() as u64);
        part_ns.map_or(u64::MAX, |part_ns| now + part_ns.max(TURN_NS_MIN))
    }

    /// Some CPU waits: those that have a turn end it at the next end of a quantum, and an event comes when work ends
    /// without one.
    fn note_wait(&mut self) {
        let (now, quantum_ns) = (self.clock.now_ns(), self.cost.emulator_turn_ns.max(1));
        let (mut ends_ns, budget_ns) = (u64::MAX, self.budget_ns());
        for cpu in 0..self.turns.cpus.len() as u32 {
            let turn = &mut self.turns.cpus[cpu as usize];
            if !turn.has_turn {
                continue;
            }
            if turn.pause_ns <= now {
                turn.pause_ns += ((now - turn.pause_ns) / quantum_ns + 1) * quantum_ns;
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
                left_ns.saturating_sub(now.saturating_sub(busy_ns)) <= self.cost.emulator_piece_ns
            }
        };
        let turn = &self.turns.cpus[cpu as usize];
        if is_own_event {
            return Some(u64::MAX);
        }
        let begins = turn.has_turn && turn.began_ns == now;
        (begins || busy_ns > now).then_some(busy_ns.max(now + 1))
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
            self.turns.cpus[cpu as usize].yields |= is_next;
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
    pub(crate) fn turns_end(&mut self, step: EventHandle) {
        for cpu in 0..self.turns.cpus.len() as u32 {
            if self.turns.cpus[cpu as usize].has_turn {
                self.look_at_turn(cpu, matches!(step, EventHandle::Cpu(own, _) if own == cpu));
            }
        }
    }

    fn look_at_turn(&mut self, cpu: u32, ends_piece: bool) {
        let now = self.clock.now_ns();
        let turn = &mut self.turns.cpus[cpu as usize];
        let yields = std::mem::take(&mut turn.yields)
            || turn.budget_ns <= now
            || (ends_piece && turn.pause_ns <= now);
        if !self.turns.any_waits() {
            return;
        }
        let at_work = self.work_ends_ns(cpu).is_some();
        if at_work && !yields {
            return self.note_wait();
        }
        let turn = &mut self.turns.cpus[cpu as usize];
        turn.has_turn = false;
        turn.stopped_ns = at_work.then_some(now);
        self.give_turns(cpu);
        if self.turns.any_waits() {
            self.note_wait();
        }
    }

    /// Those that wait take the threads that are free, beginning with the CPU after this one.
    fn give_turns(&mut self, cpu: u32) {
        while !self.turns.is_full()
            && let Some(next) = self.turns.next_after(cpu)
        {
            self.begin_turn(next);
            self.resume(next);
        }
    }

    /// A CPU goes on where it stopped, with what has waited.
    fn resume(&mut self, cpu: u32) {
        let now = self.clock.now_ns();
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
