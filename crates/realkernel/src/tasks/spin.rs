//! Computes for a given CPU time: a loop of two instructions whose iterations per nanosecond have been measured.
//!
//! The loop does not read a clock, so that preemption does not shorten it: a number of iterations is a CPU time, as
//! long as the CPU runs at the measured speed. This does not hold if CPUs slow each other down: threads of one core,
//! and above all a virtual machine whose clock counts the instructions of all its CPUs. There, a computation checks
//! the task's CPU clock a few times and ends accordingly.

use nix::sys::resource::UsageWho;

use super::clock::{now_ns, own_cpu_ns, sleep_until};
use super::plan::CpuSet;
use super::usage::own_usage;
use crate::guest::slices;

/// Iterations of one measurement: about a millisecond.
const TRIAL_ITERATIONS: u64 = 1 << 20;
/// Number of measurements. The fastest one counts.
const TRIALS: usize = 12;
/// Fraction bits of a speed.
const FRACTION_BITS: u32 = 20;
/// Iterations of a part of the measurement while all CPUs are busy, at least.
const BUSY_ITERATIONS: u64 = 1 << 18;
/// The same, ns: a virtual CPU that takes turns with others may have one as long as a tick by their number.
const BUSY_NS: u64 = 4_000_000;
/// So many of these together are measured: one of them alone can be the whole turn of its virtual CPU.
const BUSY_TRIALS: u64 = 4;
/// Time until helpers run on their CPUs, ns.
const HELPERS_START_NS: u64 = 5_000_000;
/// Maximum number of CPUs kept busy: more do not change the result.
const HELPERS_MAX: u32 = 64;
/// CPUs slow each other down if a CPU beside busy ones is slower than this, percent of its speed alone.
const SLOWED_PERCENT: u64 = 90;
/// Shorter computations do not check the clock, ns.
const WATCHED_NS_MIN: u64 = 20_000;
/// Iterations after which a computation ends the slice of its virtual CPU: 2 µs at 8 ns per instruction.
const SLICE_ITERATIONS: u64 = 125;
/// Iterations of a part of an endless computation.
const FOREVER_ITERATIONS: u64 = 1 << 40;
/// Shorter computations do not end the slice of their virtual CPU: just under 200 µs at 8 ns per instruction.
const ONE_SLICE_ITERATIONS_MAX: u64 = 12_480;
/// The first part of a long computation with short slices is this fraction, since up to as many CPUs may share the
/// time.
const FIRST_PART: u64 = 8;
/// Maximum number of clock checks in a computation: each at least halves the rest.
const LOOKS_MAX: u32 = 64;

/// Executes the loop and knows its CPU time.
trait Cpu {
    /// Executes a number of iterations.
    fn spin(&mut self, iterations: u64);
    /// CPU time so far, ns.
    fn cpu_ns(&mut self) -> u64;
}

/// The CPU of this thread.
///
/// Querying a thread's CPU time from the kernel updates the scheduler's accounting of the thread: Linux since 6.6
/// (EEVDF) then preempts a thread whose slice has expired. Therefore, as long as the thread stays on its CPU, the
/// wall clock gives the time, and the kernel is queried only after a context switch.
#[derive(Default)]
struct Own {
    known: Option<Known>,
}

/// A CPU time that the kernel reported.
#[derive(Clone, Copy)]
struct Known {
    cpu_ns: u64,
    /// Time of the query, ns of the monotonic clock.
    at_ns: u64,
    /// Context switches of the thread until then.
    switches: u64,
}

impl Cpu for Own {
    fn spin(&mut self, iterations: u64) {
        spin(iterations);
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

/// The context switches of this thread. Not of the process: summing up a process (`thread_group_cputime`) updates the
/// accounting of each of its threads, as a query of the CPU time does.
fn own_switches() -> u64 {
    let [_, _, voluntary, involuntary] = own_usage(UsageWho::RUSAGE_THREAD);
    voluntary + involuntary
}

/// The speed of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speed {
    /// Iterations per nanosecond, times 2²⁰.
    rate_q20: u64,
    /// CPUs slow each other down, so computations check the clock.
    watched: bool,
    /// Computations end the slices of their virtual CPU early ([`crate::guest::slices`]).
    pub(super) short_slices: bool,
    /// By how much the median measurement exceeds the fastest, %.
    pub(super) spread_percent: u64,
    /// The time that a watched computation's first look takes before the time that it reports, and its last one after, ns.
    looks_ns: u64,
}

impl Speed {
    /// Measures the loop on the current CPU, alone and beside a helper on each of `cpus`.
    pub(super) fn measure(cpus: &[u32]) -> Self {
        let mut took_ns = [0; TRIALS];
        for took_ns in &mut took_ns {
            let start_ns = now_ns();
            spin(TRIAL_ITERATIONS);
            *took_ns = (now_ns() - start_ns).max(1);
        }
        let alone = Self::of(took_ns, slices::requested());
        let busy_q20 = busy_speed(cpus, alone.iterations(BUSY_NS).max(BUSY_ITERATIONS));
        Self { looks_ns: looks_ns(), watched: alone.slows_to(busy_q20), ..alone }
    }

    /// From the measurements, and the speed beside busy CPUs.
    fn of(mut took_ns: [u64; TRIALS], short_slices: bool) -> Self {
        took_ns.sort_unstable();
        let (fastest_ns, middle_ns) = (took_ns[0], took_ns[TRIALS / 2]);
        let rate_q20 = ((TRIAL_ITERATIONS << FRACTION_BITS) / fastest_ns).max(1);
        Self {
            rate_q20,
            watched: false,
            short_slices,
            spread_percent: (middle_ns - fastest_ns) * 100 / fastest_ns,
            looks_ns: 0,
        }
    }

    /// Whether a speed beside busy CPUs is that of CPUs which slow each other down.
    fn slows_to(self, busy_q20: Option<u64>) -> bool {
        busy_q20.is_some_and(|busy| busy < self.rate_q20 * SLOWED_PERCENT / 100)
    }

    /// The iterations that take `ns`.
    fn iterations(self, ns: u64) -> u64 {
        let iterations = (u128::from(ns) * u128::from(self.rate_q20)) >> FRACTION_BITS;
        u64::try_from(iterations).unwrap_or(u64::MAX)
    }

    /// The time of that many iterations, ns.
    fn ns(self, iterations: u64) -> u64 {
        let ns = (u128::from(iterations) << FRACTION_BITS) / u128::from(self.rate_q20.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Computes until the process is killed.
    pub(super) fn compute_forever(self) -> ! {
        loop {
            self.spin(FOREVER_ITERATIONS, &mut Own::default());
        }
    }

    /// Executes a long computation.
    fn spin(self, mut iterations: u64, cpu: &mut impl Cpu) {
        while self.short_slices && iterations > SLICE_ITERATIONS {
            cpu.spin(SLICE_ITERATIONS);
            std::hint::spin_loop();
            iterations -= SLICE_ITERATIONS;
        }
        cpu.spin(iterations);
    }

    /// Computes for a CPU time of `ns`.
    pub(super) fn compute(self, ns: u64) {
        if self.watched && ns >= self.watched_ns_min() {
            self.compute_watched(ns, &mut Own::default());
        } else {
            spin(self.iterations(ns));
        }
    }

    /// Computations below this length do not check the clock. With short slices, they also run within one slice.
    fn watched_ns_min(self) -> u64 {
        match self.short_slices {
            true => self.ns(ONE_SLICE_ITERATIONS_MAX),
            false => WATCHED_NS_MIN,
        }
    }

    /// Each part is half of the rest, at the speed of the previous part, so that the computation ends in time even if
    /// the CPU becomes half as fast. With short slices, the first part is small, since the CPU may be slower by the
    /// number of CPUs, and the last part runs within one slice.
    fn compute_watched(mut self, ns: u64, cpu: &mut impl Cpu) {
        let alone = self;
        let mut then_ns = cpu.cpu_ns();
        let end_ns = then_ns.saturating_add(ns.saturating_sub(self.looks_ns));
        if self.short_slices {
            self.rate_q20 = (self.rate_q20 / FIRST_PART).max(1);
        }
        for _ in 0..LOOKS_MAX {
            let left_ns = end_ns.saturating_sub(then_ns);
            if left_ns < alone.watched_ns_min() {
                let last = if self.short_slices { alone } else { self };
                return cpu.spin(last.iterations(left_ns));
            }
            let iterations = self.iterations(left_ns / 2).max(1);
            self.spin(iterations, cpu);
            let cpu_ns = cpu.cpu_ns();
            let took_ns = u128::from(cpu_ns.saturating_sub(then_ns).max(1));
            let speed = (u128::from(iterations) << FRACTION_BITS) / took_ns;
            self.rate_q20 = u64::try_from(speed).unwrap_or(u64::MAX).max(1);
            then_ns = cpu_ns;
        }
    }
}

/// [`Speed::looks_ns`] of this machine: the shortest of some measurements.
fn looks_ns() -> u64 {
    let trials = (0..TRIALS).map(|_| {
        let (start_ns, mut own) = (now_ns(), Own::default());
        own.cpu_ns();
        let before_ns = own.known.map_or(0, |known| known.at_ns - start_ns);
        let asked_ns = now_ns();
        own.cpu_ns();
        before_ns + now_ns() - asked_ns
    });
    trials.min().unwrap_or(0)
}

/// The loop's mean speed in CPU time while every CPU computes, over [`BUSY_TRIALS`] times so many iterations; `None` if
/// no helper can be started.
fn busy_speed(cpus: &[u32], iterations: u64) -> Option<u64> {
    let helpers: Vec<libc::pid_t> =
        cpus.iter().take(HELPERS_MAX as usize).filter_map(|cpu| helper(*cpu)).collect();
    sleep_until(now_ns() + HELPERS_START_NS);
    let start_ns = own_cpu_ns();
    (0..BUSY_TRIALS).for_each(|_| spin(iterations));
    let took_ns = (own_cpu_ns() - start_ns).max(1);
    let speed = (u128::from(iterations * BUSY_TRIALS) << FRACTION_BITS) / u128::from(took_ns);
    for pid in &helpers {
        // SAFETY: our own child, which has not been reaped.
        unsafe {
            libc::kill(*pid, libc::SIGKILL);
            libc::waitpid(*pid, std::ptr::null_mut(), 0);
        }
    }
    (!helpers.is_empty()).then_some(u64::try_from(speed).unwrap_or(u64::MAX))
}

/// A process that computes on a CPU until it is killed.
fn helper(cpu: u32) -> Option<libc::pid_t> {
    // SAFETY: the child only makes calls that are allowed after a fork.
    unsafe {
        let parent = libc::getpid();
        let pid = libc::fork();
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            CpuSet::new(&[(cpu, cpu)]).apply();
            while libc::getppid() == parent {
                spin(BUSY_ITERATIONS);
            }
            libc::_exit(0);
        }
        (pid > 0).then_some(pid)
    }
}

/// Executes `iterations` iterations of the loop.
#[inline(never)]
pub(super) fn spin(iterations: u64) {
    if iterations == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the loop changes one register and the flags.
    unsafe {
        std::arch::asm!(
            ".p2align 5",
            "2:",
            "sub {iterations}, 1",
            "jne 2b",
            iterations = inout(reg) iterations => _,
            options(nomem, nostack)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for iteration in 0..iterations {
        std::hint::black_box(iteration);
    }
}

/// Reads a word of each cache line of the memory.
pub(super) fn touch(memory: *const u8, bytes: u64) {
    const LINE: usize = 64;
    for offset in (0..bytes as usize).step_by(LINE) {
        // SAFETY: the caller's memory has that many bytes.
        unsafe { memory.add(offset).read_volatile() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated CPU whose speed changes once.
    struct Changing {
        /// Loop iterations per ns, times 2²⁰: at first, and from `change_ns` on.
        speeds_q20: [u64; 2],
        change_ns: u64,
        /// CPU time so far, ns times 2²⁰, so that short iterations lose nothing.
        time_q20: u128,
        looks: u32,
    }

    impl Cpu for Changing {
        fn spin(&mut self, iterations: u64) {
            let mut rate_q20 = u128::from(iterations) << FRACTION_BITS;
            let [first, then] = self.speeds_q20.map(u128::from);
            let change_q20 = u128::from(self.change_ns) << FRACTION_BITS;
            let until_change = (change_q20.saturating_sub(self.time_q20) * first) >> FRACTION_BITS;
            let before = rate_q20.min(until_change);
            rate_q20 -= before;
            self.time_q20 += (before << FRACTION_BITS) / first;
            self.time_q20 += (rate_q20 << FRACTION_BITS) / then;
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

    /// An iteration takes a third of a nanosecond.
    const EXACT_Q20: u64 = 3 << FRACTION_BITS;

    fn watched(rate_q20: u64, short_slices: bool) -> Speed {
        Speed { rate_q20, watched: true, short_slices, spread_percent: 0, looks_ns: 0 }
    }

    #[test]
    fn a_watched_computation_takes_its_time_however_wrong_the_speed_is() {
        for rate_q20 in [1, EXACT_Q20 / 8, EXACT_Q20, EXACT_Q20 * 3 / 2, EXACT_Q20 * 2] {
            let took_ns = computed_5_ms(watched(rate_q20, false), [EXACT_Q20; 2], 0);
            assert!((4_999_990..=5_000_001).contains(&took_ns), "{took_ns} ns of {rate_q20}");
        }
        let took_ns = computed_5_ms(watched(EXACT_Q20, true), [EXACT_Q20; 2], 0);
        assert!((4_999_990..=5_000_001).contains(&took_ns), "{took_ns} ns, short slices");
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

    /// The part of its looks that it does not see counts as its time.
    #[test]
    fn a_watched_computation_contains_its_looks() {
        let speed = Speed { looks_ns: 19_000, ..watched(EXACT_Q20, false) };
        let took_ns = computed_5_ms(speed, [EXACT_Q20; 2], 0);
        assert!((4_980_990..=4_981_001).contains(&took_ns), "{took_ns} ns");
    }

    /// A CPU that is slower by the number of CPUs, as one that takes iterations with seven others is.
    #[test]
    fn a_computation_that_short_slices_ends_in_time_on_an_eighth_of_a_cpu() {
        let speed = watched(EXACT_Q20, true);
        let took_ns = computed_5_ms(speed, [EXACT_Q20 / 8; 2], 0);
        // The last part, which keeps its slice, is as long as it would be on a CPU alone.
        assert!(
            (5_000_000..5_000_000 + 8 * speed.watched_ns_min()).contains(&took_ns),
            "{took_ns} ns"
        );
    }

    #[test]
    fn the_fastest_measurement_counts_and_a_slower_busy_cpu_makes_it_watched() {
        let mut took_ns = [1 << 20; TRIALS];
        took_ns[3] = 1 << 19;
        let exact = 2 << FRACTION_BITS;
        let alone = Speed::of(took_ns, false);
        assert_eq!(alone, Speed { watched: false, spread_percent: 100, ..watched(exact, false) });
        assert_eq!([None, Some(exact * 9 / 10)].map(|busy| alone.slows_to(busy)), [false; 2]);
        assert!(alone.slows_to(Some(exact * 8 / 10)));
    }

    /// The fastest measurement counts, so that no run is shorter, but for the clock's own cost and a CPU that speeds
    /// up between the two: when a neighbour on its core goes away. That is so for few of many.
    #[test]
    fn the_loop_takes_at_least_as_long_as_asked_for() {
        let mut took_ns = [0; 21].map(|_: u64| {
            let speed = Speed::measure(&[]);
            let start_ns = now_ns();
            spin(speed.iterations(5_000_000));
            now_ns() - start_ns
        });
        took_ns.sort_unstable();
        assert!(took_ns[took_ns.len() / 2] > 4_000_000, "{took_ns:?}");
    }

    /// The CPU time is monotonic, at most the wall time, and excludes sleeps.
    #[test]
    fn a_thread_knows_its_cpu_time() {
        let mut own = Own::default();
        let start_ns = now_ns();
        let first_ns = own.cpu_ns();
        own.spin(TRIAL_ITERATIONS);
        let second_ns = own.cpu_ns();
        let passed_ns = now_ns() - start_ns;
        assert!((first_ns..=first_ns + passed_ns).contains(&second_ns), "{first_ns} {second_ns}");
        let asleep_ns = 50_000_000;
        let start_ns = now_ns();
        sleep_until(start_ns + asleep_ns);
        let third_ns = own.cpu_ns();
        let awake_ns = now_ns() - start_ns - asleep_ns;
        assert!((second_ns..=second_ns + awake_ns + 1_000_000).contains(&third_ns), "{third_ns}");
        assert_eq!(own.known.map(|known| known.cpu_ns), Some(third_ns), "the kernel was requested");
    }

    /// On the machine's own CPU: reading its clock ends it, all but the last part, so that it is never shorter by
    /// more. It may be longer: the machine may stall.
    #[test]
    fn a_watched_computation_on_the_machine_is_not_cut_short() {
        let exact = Speed::measure(&[]).rate_q20;
        for (rate_q20, short_slices) in
            [(exact / 8, false), (exact, false), (exact * 3 / 2, false), (exact, true)]
        {
            let speed = watched(rate_q20.max(1), short_slices);
            let start_ns = own_cpu_ns();
            speed.compute(5_000_000);
            let took_ns = own_cpu_ns() - start_ns;
            assert!(took_ns >= 4_800_000, "{took_ns} ns at {speed:?}");
        }
    }

    #[test]
    fn iterations_are_proportional_to_time() {
        let speed = Speed { watched: false, ..watched(3 << FRACTION_BITS, true) };
        assert_eq!(
            (speed.iterations(0), speed.iterations(7), speed.iterations(1_000_000)),
            (0, 21, 3_000_000)
        );
        assert_eq!(speed.iterations(u64::MAX), u64::MAX);
    }
}
