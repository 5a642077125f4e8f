//! Computing for a given CPU time: a loop of two instructions, of which it is known how many turns a nanosecond has.
//!
//! A task that is taken off the CPU loses nothing, for the loop reads no clock: so many turns are so much CPU time,
//! as long as the CPU runs at the speed at which it was measured. Where CPUs slow each other down — threads of one
//! core, and above all a virtual machine whose time counts the instructions of all its CPUs — that does not hold:
//! there a computation looks at the task's own CPU clock now and then, a few times in all, and ends when that says
//! so.

use super::clock::{now_ns, own_cpu_ns, sleep_until};
use super::usage::own_usage;
use crate::guest::turns;

/// Turns of one measurement: near a millisecond on today's machines.
const TRIAL_TURNS: u64 = 1 << 20;
/// Measurements; the fastest one was disturbed least.
const TRIALS: usize = 12;
/// Binary digits behind the point of a speed.
const FRACTION_BITS: u32 = 20;
/// Turns of a measurement while all CPUs are busy.
const BUSY_TURNS: u64 = 1 << 18;
/// Measurements while all CPUs are busy.
const BUSY_TRIALS: usize = 4;
/// How long helpers are given to be on their CPUs, ns.
const HELPERS_START_NS: u64 = 5_000_000;
/// CPUs that are kept busy at most: more do not change the answer.
const HELPERS_MAX: u32 = 64;
/// A CPU beside busy ones that is slower than this is slowed down by them, per cent of its speed alone.
const SLOWED_PERCENT: u64 = 90;
/// Computations shorter than this are never watched: a look at the clock takes a part of it, ns.
const WATCHED_NS_MIN: u64 = 20_000;
/// Turns after which a computation gives way, where it does: 2 µs at 8 ns an instruction.
const GIVE_WAY_TURNS: u64 = 125;
/// Turns of the endless loop between two looks at nothing: it only has to be long.
const FOREVER_TURNS: u64 = 1 << 40;
/// Computations shorter than this keep their turn where the CPUs run in turns: a few timers' distance, ns.
const ONE_TURN_NS_MAX: u64 = 200_000;
/// What of a long one is tried first there: the CPUs may be so many.
const FIRST_PART: u64 = 8;
/// Looks at the clock in one computation at most: each at least halves what is left.
const LOOKS_MAX: u32 = 64;

/// What turns the loop, and knows how long that took.
trait Cpu {
    /// Computes for so many turns.
    fn spin(&mut self, turns: u64);
    /// CPU time so far, ns.
    fn cpu_ns(&mut self) -> u64;
}

/// The CPU that this thread is on.
///
/// Asking the kernel for a thread's CPU time is no mere look: it brings the scheduler's account of the thread up to
/// date, and Linux since 6.6 (EEVDF) preempts a thread whose slice turns out to be over then, between two ticks. So
/// as long as the thread keeps its CPU the clock on the wall tells the time, and the kernel is asked only when it was
/// off the CPU meanwhile.
#[derive(Default)]
struct Own {
    known: Option<Known>,
}

/// What the kernel said of the thread's CPU time.
#[derive(Clone, Copy)]
struct Known {
    cpu_ns: u64,
    /// When, ns of the monotonic clock.
    at_ns: u64,
    /// How often the thread had left the CPU until then.
    switches: u64,
}

impl Cpu for Own {
    fn spin(&mut self, turns: u64) {
        spin(turns);
    }

    fn cpu_ns(&mut self) -> u64 {
        let (asked_ns, switches) = (now_ns(), own_switches());
        match self.known {
            Some(known) if known.switches == switches => known.cpu_ns + (asked_ns - known.at_ns),
            _ => {
                let cpu_ns = own_cpu_ns();
                self.known = Some(Known { cpu_ns, at_ns: now_ns(), switches });
                cpu_ns
            }
        }
    }
}

/// How often this thread has left the CPU so far. Of the thread and not of the process: summing a process up
/// (`thread_group_cputime`) brings the account of each of its threads up to date, as asking for CPU time does.
fn own_switches() -> u64 {
    let [_, _, voluntary, involuntary] = own_usage(libc::RUSAGE_THREAD);
    voluntary + involuntary
}

/// How fast the loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speed {
    /// Turns a nanosecond, times 2²⁰.
    turns_q20: u64,
    /// CPUs slow each other down: computations are watched.
    watched: bool,
    /// The CPUs run in turns, and a computation gives its turn away now and then ([`crate::guest::turns`]).
    pub(super) gives_way: bool,
    /// How much longer half of the measurements took than the fastest at least, %.
    pub(super) spread_percent: u64,
}

impl Speed {
    /// Measures the loop on the CPU that this process is on, alone and beside a helper on each of the CPUs.
    pub(super) fn measure(cpus: &[u32]) -> Self {
        let mut took_ns = [0; TRIALS];
        for took_ns in &mut took_ns {
            let start_ns = now_ns();
            spin(TRIAL_TURNS);
            *took_ns = (now_ns() - start_ns).max(1);
        }
        Self::of(took_ns, busy_speed(cpus), turns::asked())
    }

    /// Of what the measurements took, and of the speed beside busy CPUs.
    fn of(mut took_ns: [u64; TRIALS], busy_q20: Option<u64>, gives_way: bool) -> Self {
        took_ns.sort_unstable();
        let (fastest_ns, middle_ns) = (took_ns[0], took_ns[TRIALS / 2]);
        let turns_q20 = ((TRIAL_TURNS << FRACTION_BITS) / fastest_ns).max(1);
        Self {
            turns_q20,
            watched: busy_q20.is_some_and(|busy| busy < turns_q20 * SLOWED_PERCENT / 100),
            gives_way,
            spread_percent: (middle_ns - fastest_ns) * 100 / fastest_ns,
        }
    }

    /// Turns that take so long.
    fn turns(self, ns: u64) -> u64 {
        let turns = (u128::from(ns) * u128::from(self.turns_q20)) >> FRACTION_BITS;
        u64::try_from(turns).unwrap_or(u64::MAX)
    }

    /// Computes until it is stopped.
    pub(super) fn compute_for_ever(self) -> ! {
        loop {
            self.spin(FOREVER_TURNS, &mut Own::default());
        }
    }

    /// A long computation.
    fn spin(self, mut turns: u64, cpu: &mut impl Cpu) {
        while self.gives_way && turns > GIVE_WAY_TURNS {
            cpu.spin(GIVE_WAY_TURNS);
            std::hint::spin_loop();
            turns -= GIVE_WAY_TURNS;
        }
        cpu.spin(turns);
    }

    /// Computes for so much CPU time.
    pub(super) fn compute(self, ns: u64) {
        if self.watched && ns >= self.watched_ns_min() {
            self.compute_watched(ns, &mut Own::default());
        } else {
            spin(self.turns(ns));
        }
    }

    /// Where the CPUs run in turns, a short computation keeps its turn to the end, at full speed.
    fn watched_ns_min(self) -> u64 {
        if self.gives_way { ONE_TURN_NS_MAX } else { WATCHED_NS_MIN }
    }

    /// Each part is half of what is left, at the speed of the part before: it ends in time even on a CPU that is half
    /// as fast meanwhile. One that gives way starts with a small part, since it may be slower by the number of CPUs,
    /// and ends with one that keeps its turn.
    fn compute_watched(mut self, ns: u64, cpu: &mut impl Cpu) {
        let alone = self;
        let mut then_ns = cpu.cpu_ns();
        let end_ns = then_ns.saturating_add(ns);
        if self.gives_way {
            self.turns_q20 = (self.turns_q20 / FIRST_PART).max(1);
        }
        for _ in 0..LOOKS_MAX {
            let left_ns = end_ns.saturating_sub(then_ns);
            if left_ns < self.watched_ns_min() {
                let last = if self.gives_way { alone } else { self };
                return cpu.spin(last.turns(left_ns));
            }
            let turns = self.turns(left_ns / 2).max(1);
            self.spin(turns, cpu);
            let cpu_ns = cpu.cpu_ns();
            let took_ns = u128::from(cpu_ns.saturating_sub(then_ns).max(1));
            let speed = (u128::from(turns) << FRACTION_BITS) / took_ns;
            self.turns_q20 = u64::try_from(speed).unwrap_or(u64::MAX).max(1);
            then_ns = cpu_ns;
        }
    }
}

/// The loop's speed in its own CPU time while every CPU computes; `None` where that cannot be tried.
fn busy_speed(cpus: &[u32]) -> Option<u64> {
    let helpers: Vec<libc::pid_t> =
        cpus.iter().take(HELPERS_MAX as usize).filter_map(|cpu| helper(*cpu)).collect();
    sleep_until(now_ns() + HELPERS_START_NS);
    let trials = (0..BUSY_TRIALS).map(|_| {
        let start_ns = own_cpu_ns();
        spin(BUSY_TURNS);
        (BUSY_TURNS << FRACTION_BITS) / (own_cpu_ns() - start_ns).max(1)
    });
    let fastest = trials.max();
    for pid in &helpers {
        // SAFETY: our own child, which nobody has waited for.
        unsafe {
            libc::kill(*pid, libc::SIGKILL);
            libc::waitpid(*pid, std::ptr::null_mut(), 0);
        }
    }
    (!helpers.is_empty()).then_some(fastest).flatten()
}

/// A process that computes on a CPU until it is killed.
fn helper(cpu: u32) -> Option<libc::pid_t> {
    // SAFETY: the child only makes calls that are allowed after a fork.
    unsafe {
        let parent = libc::getpid();
        let pid = libc::fork();
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            let mut set = std::mem::zeroed::<libc::cpu_set_t>();
            if cpu < libc::CPU_SETSIZE as u32 {
                libc::CPU_SET(cpu as usize, &mut set);
                libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
            }
            while libc::getppid() == parent {
                spin(BUSY_TURNS);
            }
            libc::_exit(0);
        }
        (pid > 0).then_some(pid)
    }
}

/// Computes for so many turns.
#[inline(never)]
pub(super) fn spin(turns: u64) {
    if turns == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the loop changes one register and the flags.
    unsafe {
        std::arch::asm!(
            ".p2align 5",
            "2:",
            "sub {turns}, 1",
            "jne 2b",
            turns = inout(reg) turns => _,
            options(nomem, nostack)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
}

/// Reads memory once through, a word of each cache line.
pub(super) fn touch(memory: *const u8, bytes: u64) {
    const LINE: usize = 64;
    for offset in (0..bytes as usize).step_by(LINE) {
        // SAFETY: the caller's memory holds so many bytes.
        unsafe { memory.add(offset).read_volatile() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CPU of the test's own, whose speed changes once.
    struct Changing {
        /// Turns a nanosecond, times 2²⁰: at first, and from `change_ns` on.
        speeds_q20: [u64; 2],
        change_ns: u64,
        /// CPU time so far, ns times 2²⁰, so that short turns lose nothing.
        time_q20: u128,
        looks: u32,
    }

    impl Cpu for Changing {
        fn spin(&mut self, turns: u64) {
            let mut turns_q20 = u128::from(turns) << FRACTION_BITS;
            let [first, then] = self.speeds_q20.map(u128::from);
            let change_q20 = u128::from(self.change_ns) << FRACTION_BITS;
            let until_change = (change_q20.saturating_sub(self.time_q20) * first) >> FRACTION_BITS;
            let before = turns_q20.min(until_change);
            turns_q20 -= before;
            self.time_q20 += (before << FRACTION_BITS) / first;
            self.time_q20 += (turns_q20 << FRACTION_BITS) / then;
        }

        fn cpu_ns(&mut self) -> u64 {
            self.looks += 1;
            (self.time_q20 >> FRACTION_BITS) as u64
        }
    }

    /// Computes for 5 ms, with an idea of the speed; what it took, ns.
    fn computed_5_ms(assumed: Speed, speeds_q20: [u64; 2], change_ns: u64) -> u64 {
        let mut cpu = Changing { speeds_q20, change_ns, time_q20: 0, looks: 0 };
        assumed.compute_watched(5_000_000, &mut cpu);
        assert!(cpu.looks <= LOOKS_MAX);
        cpu.cpu_ns()
    }

    /// A turn takes a third of a nanosecond.
    const EXACT_Q20: u64 = 3 << FRACTION_BITS;

    fn watched(turns_q20: u64, gives_way: bool) -> Speed {
        Speed { turns_q20, watched: true, gives_way, spread_percent: 0 }
    }

    #[test]
    fn a_watched_computation_takes_its_time_however_wrong_the_speed_is() {
        for turns_q20 in [1, EXACT_Q20 / 8, EXACT_Q20, EXACT_Q20 * 3 / 2, EXACT_Q20 * 2] {
            let took_ns = computed_5_ms(watched(turns_q20, false), [EXACT_Q20; 2], 0);
            assert!((4_999_990..=5_000_001).contains(&took_ns), "{took_ns} ns of {turns_q20}");
        }
        let took_ns = computed_5_ms(watched(EXACT_Q20, true), [EXACT_Q20; 2], 0);
        assert!((4_999_990..=5_000_001).contains(&took_ns), "{took_ns} ns, giving way");
    }

    /// Only what is left at the last look, and not a watched part's length, can be wrong then.
    #[test]
    fn a_watched_computation_ends_in_time_on_a_cpu_that_changes_its_speed() {
        for change_ns in (0..=5_000_000).step_by(9_973) {
            for then in [EXACT_Q20 / 2, EXACT_Q20 * 2] {
                let took_ns =
                    computed_5_ms(watched(EXACT_Q20, false), [EXACT_Q20, then], change_ns);
                let off_ns = took_ns.abs_diff(5_000_000);
                assert!(off_ns <= WATCHED_NS_MIN + 1, "{took_ns} ns, changed at {change_ns}");
            }
        }
    }

    /// A CPU that is slower by the number of CPUs, as one that takes turns with seven others is.
    #[test]
    fn a_computation_that_gives_way_ends_in_time_on_an_eighth_of_a_cpu() {
        let took_ns = computed_5_ms(watched(EXACT_Q20, true), [EXACT_Q20 / 8; 2], 0);
        // The last part, which keeps its turn, is as long as it would be on a CPU alone.
        assert!((5_000_000..5_000_000 + 8 * ONE_TURN_NS_MAX).contains(&took_ns), "{took_ns} ns");
    }

    #[test]
    fn the_fastest_measurement_counts_and_a_slower_busy_cpu_makes_it_watched() {
        let mut took_ns = [1 << 20; TRIALS];
        took_ns[3] = 1 << 19;
        let exact = 2 << FRACTION_BITS;
        let speed = |busy_q20| Speed::of(took_ns, busy_q20, false);
        let alone =
            Speed { turns_q20: exact, watched: false, gives_way: false, spread_percent: 100 };
        assert_eq!((speed(None), speed(Some(exact * 9 / 10))), (alone, alone));
        assert_eq!(speed(Some(exact * 8 / 10)), Speed { watched: true, ..alone });
    }

    /// The fastest measurement counts, so that no run is shorter, but for the clock's own cost and a CPU that speeds
    /// up between the two: when a neighbour on its core goes away. That is so for few of many.
    #[test]
    fn the_loop_takes_at_least_as_long_as_asked_for() {
        let mut took_ns = [0; 21].map(|_: u64| {
            let speed = Speed::measure(&[]);
            let start_ns = now_ns();
            spin(speed.turns(5_000_000));
            now_ns() - start_ns
        });
        took_ns.sort_unstable();
        assert!(took_ns[took_ns.len() / 2] > 4_000_000, "{took_ns:?}");
    }

    /// What it says of its CPU time never goes back, is never more than has passed, and leaves out a sleep.
    #[test]
    fn a_thread_knows_its_cpu_time() {
        let mut own = Own::default();
        let start_ns = now_ns();
        let first_ns = own.cpu_ns();
        own.spin(TRIAL_TURNS);
        let second_ns = own.cpu_ns();
        let passed_ns = now_ns() - start_ns;
        assert!((first_ns..=first_ns + passed_ns).contains(&second_ns), "{first_ns} {second_ns}");
        let asleep_ns = 50_000_000;
        let start_ns = now_ns();
        sleep_until(start_ns + asleep_ns);
        let third_ns = own.cpu_ns();
        let awake_ns = now_ns() - start_ns - asleep_ns;
        assert!((second_ns..=second_ns + awake_ns + 1_000_000).contains(&third_ns), "{third_ns}");
        assert_eq!(own.known.map(|known| known.cpu_ns), Some(third_ns), "the kernel was asked");
    }

    /// On the machine's own CPU: the looks at its clock end it, all but the last part, so that it is never shorter by
    /// more. It may be longer: the machine may stall.
    #[test]
    fn a_watched_computation_on_the_machine_is_not_cut_short() {
        let exact = Speed::measure(&[]).turns_q20;
        for (turns_q20, gives_way) in
            [(exact / 8, false), (exact, false), (exact * 3 / 2, false), (exact, true)]
        {
            let speed = watched(turns_q20.max(1), gives_way);
            let start_ns = own_cpu_ns();
            speed.compute(5_000_000);
            let took_ns = own_cpu_ns() - start_ns;
            assert!(took_ns >= 4_800_000, "{took_ns} ns at {speed:?}");
        }
    }

    #[test]
    fn turns_are_proportional_to_time() {
        let speed = Speed {
            turns_q20: 3 << FRACTION_BITS,
            watched: false,
            gives_way: true,
            spread_percent: 0,
        };
        assert_eq!((speed.turns(0), speed.turns(7), speed.turns(1_000_000)), (0, 21, 3_000_000));
        assert_eq!(speed.turns(u64::MAX), u64::MAX);
    }
}
