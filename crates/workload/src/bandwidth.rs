//! The limit of a control group's CPU time: `cpu.max` and `cpu.max.burst`.

use crate::limits::{BANDWIDTH_PERIOD_US, BANDWIDTH_QUOTA_MAX_US, BANDWIDTH_QUOTA_MIN_US};
use crate::units::{TextError, parse_time, time_text};

const HELP: &str = "write QUOTA/PERIOD, as in \"50ms/100ms\", or \"max\" for no limit";

/// How much CPU time a control group gets in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// Time on all CPUs together in a period, us; `None`: without a limit.
    pub quota_us: Option<u64>,
    /// The period, us.
    pub period_us: u64,
    /// Runtime left over from earlier periods, which may be used above the quota, us.
    pub burst_us: u64,
}

impl Bandwidth {
    /// Without a limit, with the kernel's usual period of 100 ms (`default_bw_period_us`).
    pub const NO_LIMIT: Bandwidth = Bandwidth { quota_us: None, period_us: 100_000, burst_us: 0 };

    /// Reads `QUOTA[/PERIOD[/BURST]]`. Each is a time with a unit, or a number of us as in the kernel's files; the
    /// quota may be `max`. Spaces separate, too: the text of `cpu.max` is read as it is.
    ///
    /// # Errors
    /// Another form, or values that the kernel does not take (`tg_set_bandwidth`).
    pub fn parse(text: &str) -> Result<Bandwidth, TextError> {
        let wrong = |message: String| TextError { message, help: HELP.to_owned() };
        let words = text.split(|c: char| c == '/' || c.is_whitespace());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        if words.is_empty() || words.len() > 3 {
            return Err(wrong(format!("`{text}` is no quota with a period")));
        }
        let quota_us = match words[0] {
            "max" => None,
            quota => Some(micros(quota)?),
        };
        let period_us = words.get(1).map_or(Ok(Self::NO_LIMIT.period_us), |one| micros(one))?;
        let burst_us = words.get(2).map_or(Ok(0), |one| micros(one))?;
        let found = Bandwidth { quota_us, period_us, burst_us };
        found.problem().map_or(Ok(found), |problem| Err(wrong(format!("`{text}`: {problem}"))))
    }

    /// Why the kernel does not take these values; `None`: it does.
    pub(crate) fn problem(&self) -> Option<String> {
        let quota_us = self.quota_us.unwrap_or(BANDWIDTH_QUOTA_MAX_US);
        let range = BANDWIDTH_PERIOD_US;
        if !range.contains(&self.period_us) {
            return Some("a period is from 1 ms to 1 s".to_owned());
        }
        if !(BANDWIDTH_QUOTA_MIN_US..=BANDWIDTH_QUOTA_MAX_US).contains(&quota_us) {
            return Some("a quota is at least 1 ms and at most BANDWIDTH_QUOTA_MAX_US".to_owned());
        }
        (self.burst_us > quota_us).then(|| "the burst is greater than the quota".to_owned())
    }

    /// Whether the group's time is limited.
    pub fn is_limited(&self) -> bool {
        self.quota_us.is_some()
    }
}

impl Default for Bandwidth {
    fn default() -> Self {
        Self::NO_LIMIT
    }
}

/// The text that [`Bandwidth::parse`] reads.
impl std::fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = |us: u64| time_text(us.saturating_mul(1_000));
        f.write_str(&self.quota_us.map_or("max".to_owned(), time))?;
        write!(f, "/{}", time(self.period_us))?;
        if self.burst_us > 0 { write!(f, "/{}", time(self.burst_us)) } else { Ok(()) }
    }
}

fn micros(text: &str) -> Result<u64, TextError> {
    if let Ok(us) = text.parse() {
        return Ok(us);
    }
    let ns = parse_time(text)?;
    if ns.is_multiple_of(1_000) {
        return Ok(ns / 1_000);
    }
    let message = format!("`{text}` is not a whole number of us");
    Err(TextError { message, help: "the kernel counts a group's quota in us".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_cpu_max_are_read() {
        let read = |text| Bandwidth::parse(text).map(|b| (b.quota_us, b.period_us, b.burst_us));
        assert_eq!(read("50ms/100ms"), Ok((Some(50_000), 100_000, 0)));
        assert_eq!(read("50000 100000"), read("50ms/100ms"), "the text of the kernel's file");
        assert_eq!(read("1.5ms"), Ok((Some(1_500), 100_000, 0)));
        assert_eq!(read("max"), Ok((None, 100_000, 0)));
        assert_eq!(read("20ms/50ms/10ms"), Ok((Some(20_000), 50_000, 10_000)));
        for text in ["20ms/50ms/10ms", "max/100ms", "3500us/7ms"] {
            let one = Bandwidth::parse(text).expect("valid");
            assert_eq!(Bandwidth::parse(&one.to_string()), Ok(one));
        }
    }

    #[test]
    fn what_the_kernel_refuses_is_refused() {
        for (text, problem) in [
            ("", "no quota"),
            ("1ms/2ms/3ms/4ms", "no quota"),
            ("fast", "not a length of time"),
            ("500us", "at least 1 ms"),
            ("10ms/2s", "from 1 ms to 1 s"),
            ("10ms/100ms/20ms", "burst"),
            ("1500001ns", "whole number of us"),
        ] {
            let message = Bandwidth::parse(text).expect_err(text).message;
            assert!(message.contains(problem), "{text}: {message}");
        }
    }
}
