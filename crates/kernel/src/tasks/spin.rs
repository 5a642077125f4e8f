//! Computing for a given CPU time: a loop of two instructions, of which it is known how many turns a nanosecond has.
//!
//! A task that is taken off the CPU loses nothing, for the loop reads no clock: so many turns are so much CPU time, as long as
//! the CPU runs at the speed at which it was measured.

use super::clock::now_ns;

/// Turns of one measurement: near a millisecond on today's machines.
const TRIAL_TURNS: u64 = 1 << 21;
/// Measurements; the fastest one was disturbed least.
const TRIALS: usize = 12;
/// Binary digits behind the point of [`Speed`].
const FRACTION_BITS: u32 = 20;

/// How fast the loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speed {
    /// Turns a nanosecond, times 2²⁰.
    turns_q20: u64,
    /// How much longer half of the measurements took than the fastest at least, %.
    pub(super) spread_percent: u64,
}

impl Speed {
    /// Measures the loop on the CPU that this process is on.
    pub(super) fn measure() -> Self {
        let mut took_ns = [0; TRIALS];
        for took_ns in &mut took_ns {
            let start_ns = now_ns();
            spin(TRIAL_TURNS);
            *took_ns = (now_ns() - start_ns).max(1);
        }
        took_ns.sort_unstable();
        let (fastest_ns, middle_ns) = (took_ns[0], took_ns[TRIALS / 2]);
        Self {
            turns_q20: ((TRIAL_TURNS << FRACTION_BITS) / fastest_ns).max(1),
            spread_percent: (middle_ns - fastest_ns) * 100 / fastest_ns,
        }
    }

    /// Turns that take so long.
    pub(super) fn turns(self, ns: u64) -> u64 {
        let turns = (u128::from(ns) * u128::from(self.turns_q20)) >> FRACTION_BITS;
        u64::try_from(turns).unwrap_or(u64::MAX)
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

    #[test]
    fn the_loop_takes_at_least_as_long_as_asked_for() {
        let speed = Speed::measure();
        let start_ns = now_ns();
        spin(speed.turns(5_000_000));
        // The fastest measurement counts, so that no run is shorter, but for the clock's own cost and a CPU that sped up since.
        assert!(now_ns() - start_ns > 4_000_000, "{speed:?}");
    }

    #[test]
    fn turns_are_proportional_to_time() {
        let speed = Speed { turns_q20: 3 << FRACTION_BITS, spread_percent: 0 };
        assert_eq!((speed.turns(0), speed.turns(7), speed.turns(1_000_000)), (0, 21, 3_000_000));
        assert_eq!(speed.turns(u64::MAX), u64::MAX);
    }
}
