//! The speed at which a simulated run is shown.

use std::fmt;
use std::time::Duration;

/// Simulated time per second of wall time: a power of two of seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speed(i32);

impl Speed {
    /// About 1 µs a second: single events are visible.
    const MIN: i32 = -20;
    /// About a quarter of an hour a second: as fast as the machine that simulates.
    const MAX: i32 = 10;

    /// A speed of 2^`doublings` times wall time, within the limits.
    pub fn new(doublings: i32) -> Speed {
        Speed(doublings.clamp(Self::MIN, Self::MAX))
    }

    /// Twice as fast, up to the limit.
    #[must_use]
    pub fn faster(self) -> Speed {
        Speed::new(self.0 + 1)
    }

    /// Half as fast, down to the limit.
    #[must_use]
    pub fn slower(self) -> Speed {
        Speed::new(self.0 - 1)
    }

    /// Simulated time that passes in `elapsed`, ns, rounded down.
    pub fn simulated_ns(self, elapsed: Duration) -> u64 {
        let ns = elapsed.as_nanos();
        let simulated = if self.0 < 0 { ns >> self.0.unsigned_abs() } else { ns << self.0 };
        u64::try_from(simulated).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let factor = 1_u32 << self.0.unsigned_abs();
        if self.0 < 0 { write!(f, "1/{factor}") } else { write!(f, "×{factor}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_by_the_speed() {
        let second = Duration::from_secs(1);
        assert_eq!(Speed::default().simulated_ns(second), 1_000_000_000);
        assert_eq!(Speed::default().faster().simulated_ns(second), 2_000_000_000);
        assert_eq!(Speed::new(-2).simulated_ns(second), 250_000_000);
        let slowest = (0..100).fold(Speed::default(), |speed, _| speed.slower());
        assert!((900..1_100).contains(&slowest.simulated_ns(second)), "about 1 µs");
        let fastest = (0..100).fold(Speed::default(), |speed, _| speed.faster());
        assert_eq!(fastest.simulated_ns(second), 1_024_000_000_000);
        assert_eq!(
            (slowest.to_string(), fastest.to_string()),
            ("1/1048576".into(), "×1024".into())
        );
    }
}
