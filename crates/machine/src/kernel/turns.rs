//! Virtual CPUs that execute in turns on one thread, as those of a QEMU whose clock counts instructions do.
//!
//! The clock goes on for all of them while one executes; so what cannot be interrupted, work of the kernel and short computations,
//! goes on one after the other, and a CPU that has to wait for its turn is charged the wait. A long computation gives its turn
//! away all the time and needs none here: the clock is what it is measured by.

use super::Kernel;
use crate::cpuset::CpuMask;
use crate::events::{CpuEvent, Slot as EventSlot};
use crate::kernel::{Slot, Stage, agenda};

/// The shortest turn, ns: QEMU's are shorter still when a timer is near, which shifts nothing that can be seen.
const TURN_NS_MIN: u64 = 1_000;
/// A step of the timer of a CPU, ns: sixteen of the 1 GHz that QEMU gives it.
const APIC_STEP_NS: u64 = 16;
/// An odd number by which times that are alike become unlike ones: 2^64 divided by the golden ratio.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;
/// How far ahead QEMU takes the next timer to be where none is set, ns.
const TIMELESS_NS: u64 = i32::MAX as u64;
/// What a long computation executes before it gives its turn away, ns (`GIVE_WAY_TURNS` of those tasks).
const COMPUTING_NS: u64 = 2_000;
/// Operations after which a task gives its turn away (`OPERATIONS_IN_TURN` of the tasks that run in a guest).
const OPERATIONS_IN_TURN: u8 = 4;

/// Who executes, and who waits for it.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Computations up to this long keep their turn to the end, ns. 0: every CPU executes by itself.
    pub(crate) kept_ns: u64,
    /// The CPU that executes. `None`: none has anything to do that needs a turn.
    pub(crate) holder: Option<u32>,
    /// CPUs below this number have had their turn in this round.
    after: u32,
    /// How long a turn of this round lasts, ns.
    budget_ns: u64,
    /// CPUs before whose turn that is reckoned anew.
    kicked: CpuMask,
    /// CPUs with something to do that needs a turn.
    pub(crate) waiting: CpuMask,
    /// CPUs in a long computation.
    computing: CpuMask,
    /// The one of them that a timer has stopped, and what it has left to execute before it gives its turn away, ns.
    stopped: Option<(u32, u64)>,
    /// The CPU that executes sets a timer that is the next of all, and loses its turn by that.
    pub(crate) cut: bool,
    /// By CPU: when its timer is due, ns, as QEMU has it. `u64::MAX`: it is not set, or has expired and has not been set again.
    timers_ns: Vec<u64>,
    /// The last turn was ended by force: those that compute have a little of the thread before the next one.
    forced: bool,
    /// By CPU: interrupts that it has not seen yet, in the order of their arrival.
    pub(crate) pending: Vec<Vec<EventSlot>>,
    /// The end of the turn is on the agenda.
    pub(crate) ends: bool,
}

/// Whether an event of a CPU is a timer of its own that expires, and not word from another CPU or the end of what it does.
pub(crate) fn is_timer(slot: EventSlot) -> bool {
    match slot {
        EventSlot::Cpu(_, event) => matches!(event, CpuEvent::Tick | CpuEvent::Timer),
        _ => true,
    }
}

/// A number as good as drawn, of a time.
fn scatter(time_ns: u64) -> u64 {
    time_ns.wrapping_mul(SCATTER) >> 32
}

impl Turns {
    pub(crate) fn new(cpus: u32, kept_ns: u64) -> Turns {
        let kept_ns = if cpus > 1 { kept_ns } else { 0 };
        let in_turns = if kept_ns > 0 { cpus as usize } else { 0 };
        let (pending, timers_ns) = (vec![Vec::new(); in_turns], vec![u64::MAX; in_turns]);
        let waiting = CpuMask::EMPTY;
        let computing = CpuMask::EMPTY;
        let (cut, forced, ends) = (false, false, false);
        Turns {
            kept_ns,
            holder: None,
            after: 0,
            budget_ns: 0,
            kicked: CpuMask::EMPTY,
            waiting,
            computing,
            stopped: None,
            cut,
            timers_ns,
            forced,
            pending,
            ends,
        }
    }

    /// Whether CPUs execute in turns at all.
    #[inline]
    pub(crate) fn on(&self) -> bool {
        self.kept_ns > 0
    }

    /// Whether a CPU has to wait before it may do something.
    #[inline]
    pub(crate) fn keeps_off(&self, cpu: u32) -> bool {
        self.on() && self.holder != Some(cpu)
    }

    /// Whether the CPU may take notice of an event at once: it has the turn, and no timer lets others come first.
    pub(crate) fn may_handle(&self, cpu: u32, slot: EventSlot) -> bool {
        self.holder == Some(cpu) && (self.waiting.is_empty() || !is_timer(slot))
    }

    /// A CPU's timer has expired.
    #[inline]
    pub(crate) fn expired(&mut self, cpu: u32) {
        if self.on() {
            self.timers_ns[cpu as usize] = u64::MAX;
        }
    }

    /// Whether the thread has anything else to do than what the CPU does that executes.
    pub(crate) fn others_want_it(&self) -> bool {
        !self.waiting.is_empty() || !self.computing.is_empty()
    }

    /// The CPUs whose turns come up to one of this CPU, with it, round and round by numbers.
    fn upto(&self, cpu: u32) -> CpuMask {
        let (before, upto) = (CpuMask::first_n(self.after), CpuMask::first_n(cpu + 1));
        match cpu >= self.after {
            true => upto.and_not(&before),
            false => upto.or(&CpuMask::first_n(u32::MAX).and_not(&before)),
        }
    }

    /// What the long computations on the CPUs that were `passed` take before the turn of a CPU, ns.
    fn before_ns(&mut self, cpu: u32, passed: &CpuMask) -> u64 {
        let computing = self.computing.and(passed);
        let each_ns = COMPUTING_NS.min(self.budget_ns);
        let all_ns = u64::from(computing.count()) * each_ns;
        match self.stopped.take_if(|(stopped, _)| *stopped == cpu || computing.test(*stopped)) {
            Some((stopped, left_ns)) if stopped != cpu => all_ns - each_ns + left_ns.min(each_ns),
            _ => all_ns,
        }
    }

    /// The CPU whose turn is next: round and round by numbers.
    pub(crate) fn next(&self) -> Option<u32> {
        let after = self.waiting.and_not(&CpuMask::first_n(self.after));
        after.first().or_else(|| self.waiting.first())
    }
}

impl Kernel {
    /// Its own work stands still: the CPU has lost its turn.
    pub(crate) fn pause(&mut self, cpu: u32) {
        self.settle(cpu);
        self.arm_cpu(cpu, u64::MAX);
        self.cpus[cpu as usize].paused_ns = Some(self.now_ns);
        self.turns.waiting.set(cpu);
    }

    /// Its own work goes on.
    pub(crate) fn unpause(&mut self, cpu: u32) {
        let now = self.now_ns;
        let rq = &mut self.cpus[cpu as usize];
        if let Some(since_ns) = rq.paused_ns.take() {
            rq.shift(since_ns, now);
        }
    }

    /// Gives a CPU the turn.
    pub(crate) fn take_turn(&mut self, cpu: u32) {
        let passed = self.turns.upto(cpu);
        self.reckon_budget(cpu, &passed);
        self.turns.holder = Some(cpu);
        self.turns.waiting.clear(cpu);
        self.turns.computing.clear(cpu);
        self.unpause(cpu);
        let forced = std::mem::take(&mut self.turns.forced);
        let others_ns = if forced { self.turns.before_ns(cpu, &passed) } else { 0 };
        self.settle(cpu);
        self.charge_irqs_off(cpu, others_ns);
        self.turns.after = cpu + 1;
        self.turns.cut = false;
        if self.turns.others_want_it() {
            self.arm_turn(others_ns + self.turns.budget_ns);
        }
    }

    /// The next turn is one of this CPU, behind those that were `passed`. All turns of a round are of the same length, but QEMU leaves the
    /// round after each of them once when a timer has expired or has become the next of all.
    fn reckon_budget(&mut self, cpu: u32, passed: &CpuMask) {
        if cpu < self.turns.after || !self.turns.kicked.and(passed).is_empty() {
            self.turns.budget_ns = self.turn_ns();
            self.turns.kicked = self.turns.kicked.and_not(passed);
        }
    }

    /// The CPU computes from now on, and for long.
    pub(crate) fn computes(&mut self, cpu: u32) {
        self.turns.computing.set(cpu);
    }

    /// How long a turn lasts: a share of the time to the next timer that is set, as QEMU divides it among the CPUs.
    pub(crate) fn turn_ns(&self) -> u64 {
        let now = self.now_ns;
        let next_ns = self.turns.timers_ns.iter().copied().filter(|due_ns| *due_ns > now).min();
        let left_ns = next_ns.map_or(TIMELESS_NS, |due_ns| (due_ns - now).min(TIMELESS_NS));
        (left_ns / u64::from(self.nr_cpus())).max(TURN_NS_MIN)
    }

    /// Puts the end of the turn on the agenda, in so many ns.
    pub(crate) fn arm_turn(&mut self, in_ns: u64) {
        self.turns.ends = true;
        self.events.arm(EventSlot::Machine(agenda::TURN), self.now_ns + in_ns);
    }

    /// The CPU has nothing to do any more that needs a turn.
    pub(crate) fn release_turn(&mut self, cpu: u32) {
        if self.turns.holder != Some(cpu) {
            return;
        }
        self.turns.holder = None;
        self.turns.cut = false;
        if std::mem::take(&mut self.turns.ends) {
            self.events.cancel(EventSlot::Machine(agenda::TURN));
        }
    }

    /// The turn is taken from the CPU that has it.
    pub(crate) fn end_turn(&mut self) {
        if let Some(cpu) = self.turns.holder {
            self.release_turn(cpu);
            self.pause(cpu);
            self.turns.forced = true;
        }
    }

    /// `lapic_next_event`: the timer of the CPU that executes is set for a time, ns. One that is the next of all costs it its turn. The timer
    /// counts in steps, and goes off one after the last (`apic_next_timer` in QEMU). So which of two for the same tick comes first hangs on the
    /// nanosecond at which each was set, which is nobody's to know here: it is made of that by scattering.
    pub(crate) fn program_apic(&mut self, cpu: u32, at_ns: u64) {
        let now = self.now_ns;
        let late_ns = scatter(now + u64::from(cpu)) % APIC_STEP_NS;
        let due_ns = at_ns.max(now).saturating_add(1 + late_ns);
        let timers = &mut self.turns.timers_ns;
        timers[cpu as usize] = u64::MAX;
        self.turns.cut = timers.iter().all(|other| due_ns < *other || *other <= now);
        timers[cpu as usize] = due_ns;
    }

    /// A sleep begins on a CPU that ends at a time, ns: a timer that is due earlier is set for it.
    pub(crate) fn sets_earlier(&mut self, cpu: u32, at_ns: u64) {
        if at_ns < self.turns.timers_ns[cpu as usize] {
            self.program_apic(cpu, at_ns);
        }
    }

    /// The CPU that executes has set a timer that is the next of all (`cut`): true, when it loses its turn by that. One that has nothing left but
    /// a long computation needs none.
    pub(crate) fn loses_turn(&mut self, cpu: u32) -> bool {
        if !std::mem::take(&mut self.turns.cut) {
            return false;
        }
        self.reckon_anew();
        let loses = self.turns.others_want_it() && self.needs_turn(cpu);
        if loses {
            self.end_turn();
        }
        loses
    }

    /// Whether a CPU has anything to do at the moment that needs a turn.
    fn needs_turn(&self, cpu: u32) -> bool {
        let rq = &self.cpus[cpu as usize];
        if rq.makes_room() || rq.run_start_ns > self.now_ns {
            return true;
        }
        match rq.curr.map(|slot| self.task(slot).stage) {
            Some(Stage::Compute(left_ns)) => left_ns <= self.turns.kept_ns,
            Some(_) => true,
            None => false,
        }
    }

    /// What of a switch on a CPU comes when its timer has been set again, ns.
    pub(crate) fn left_of_switch_ns(&self, cpu: u32) -> u64 {
        let late = self.cpus[cpu as usize].timers.set_late;
        if late { self.cost.timer_set_ns.min(self.cost.context_switch_ns) } else { 0 }
    }

    /// A timer has expired: that is looked for at the beginning of a round only, so a new one begins.
    pub(crate) fn begin_round(&mut self) {
        if self.turns.holder.is_none() {
            self.stop_computing();
        }
        self.end_turn();
        self.turns.after = 0;
        self.reckon_anew();
    }

    /// A timer expires while nobody needs the turn: it stops one of those that compute, somewhere in what they execute between two turns. Which,
    /// and where, is made of the time by scattering.
    fn stop_computing(&mut self) {
        let computing = self.turns.computing.count();
        let scattered = scatter(self.now_ns);
        let stopped =
            self.turns.computing.iter().nth((scattered % u64::from(computing.max(1))) as usize);
        if let Some(cpu) = stopped {
            self.turns.stopped = Some((cpu, (scattered >> 8) % COMPUTING_NS));
            self.turns.forced = true;
        }
    }

    /// Turns are reckoned anew (`qemu_timer_notify_cb`).
    pub(crate) fn reckon_anew(&mut self) {
        self.turns.kicked = self.all_cpus;
    }

    /// A task begins an operation; after a few it lets others come first, once the kernel's work for the last one is done.
    pub(crate) fn count_operation(&mut self, slot: Slot) {
        if self.turns.on() {
            let task = self.task_mut(slot);
            task.operations = (task.operations + 1) % OPERATIONS_IN_TURN;
            task.gives_way |= task.operations == 0;
        }
    }

    /// Until when a CPU keeps its turn if it goes on like this, and when something is due there: it computes for `left_ns`, if
    /// at all, once the kernel's work is done at `start_ns`.
    pub(crate) fn turn_until(&self, start_ns: u64, left_ns: Option<u64>) -> (u64, u64) {
        match left_ns {
            None => (start_ns, u64::MAX),
            Some(left_ns) if left_ns <= self.turns.kept_ns => {
                let at = start_ns.saturating_add(left_ns);
                (at, at)
            }
            Some(u64::MAX) => (start_ns, u64::MAX),
            Some(left_ns) => (start_ns, start_ns.saturating_add(left_ns - self.turns.kept_ns)),
        }
    }

    /// The CPU that an event is for; `None`: it is for the machine as a whole.
    pub(crate) fn cpu_of(&self, slot: EventSlot) -> Option<u32> {
        match slot {
            EventSlot::Cpu(cpu, _) => Some(cpu),
            EventSlot::Task(number) => Some(self.task(Slot(number)).cpu),
            EventSlot::Timer(number) => self.timers.cpu_of(number),
            EventSlot::Machine(agenda::LAUNCH) => Some(0),
            EventSlot::Machine(_) => None,
        }
    }
}
