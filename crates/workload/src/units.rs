//! Durations and lists of CPUs, and their texts; quoted strings.

use crate::diagnostic::suggestion;
use crate::limits::{CPU_MAX, TIME_MAX_NS};

/// A duration of an operation, ns: fixed, or drawn uniformly (inclusive) from the run's seeded generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duration {
    /// Constant, ns.
    Fixed(u64),
    /// Uniform in `low..=high`.
    Uniform {
        /// Smallest, ns.
        low: u64,
        /// Largest, ns.
        high: u64,
    },
}

impl Duration {
    /// The shortest and the longest value, ns.
    #[inline]
    pub fn bounds(self) -> (u64, u64) {
        match self {
            Duration::Fixed(ns) => (ns, ns),
            Duration::Uniform { low, high } => (low, high),
        }
    }
}

/// Inclusive ranges of CPU numbers, sorted, not overlapping.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CpuList(pub Vec<(u32, u32)>);

impl CpuList {
    /// One CPU.
    pub(crate) fn one(cpu: u32) -> Self {
        Self(vec![(cpu, cpu)])
    }

    /// The union of ranges in any order, each from its first CPU to its last.
    pub fn of(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(previous) if first <= previous.1 + 1 => previous.1 = previous.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }
}

/// Why a text is not a valid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl TextError {
    pub(crate) fn new(message: String, help: &str) -> Self {
        Self { message, help: help.to_owned() }
    }
}

/// The units of time and their length in ns, largest first.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
/// Longer ones, which are read and not written.
const LONG_UNITS: [(&str, u64); 2] = [("min", 60_000_000_000), ("h", 3_600_000_000_000)];
const TIME_HELP: &str =
    "write a number and a unit: ns, us, ms, s, min or h, as in \"100us\" or \"1.5ms\"";

/// `"100us"`, `"1.5ms"`: ns, exactly.
///
/// # Errors
/// A text without a unit, with digits below a ns, or above the longest time.
pub fn parse_time(text: &str) -> Result<u64, TextError> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim_start());
    if text.trim_start().starts_with('-') {
        return Err(TextError::new(
            format!("`{text}` is negative: a length of time cannot be"),
            TIME_HELP,
        ));
    }
    if number.is_empty() {
        return Err(TextError::new(format!("`{text}` is not a length of time"), TIME_HELP));
    }
    if unit.is_empty() {
        return Err(TextError::new(format!("`{text}` has no unit"), TIME_HELP));
    }
    let units = || UNITS.iter().chain(&LONG_UNITS);
    let Some(&(_, factor)) = units().find(|&&(name, _)| name == unit) else {
        let hint = suggestion(unit, units().map(|&(name, _)| name), "units");
        return Err(TextError { message: format!("`{unit}` is not a unit of time"), help: hint });
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(TextError::new(format!("`{number}` is not a number"), TIME_HELP));
    }
    let too_long = || {
        TextError::new(
            format!("`{text}` is longer than TIME_MAX_NS, 1000000 s"),
            "write a shorter time",
        )
    };
    let whole_ns = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(factor));
    let whole_ns = whole_ns.filter(|&ns| ns <= TIME_MAX_NS).ok_or_else(too_long)?;
    let ns = whole_ns + fraction_ns(text, fraction, factor)?;
    if ns > TIME_MAX_NS { Err(too_long()) } else { Ok(ns) }
}

/// The digits after the decimal point, in ns; more digits than ns are an error, not a rounding.
fn fraction_ns(text: &str, fraction: &str, factor: u64) -> Result<u64, TextError> {
    let mut place_ns = factor;
    let mut total_ns = 0;
    for digit in fraction.bytes().map(|b| u64::from(b - b'0')) {
        if digit > 0 && place_ns < 10 {
            return Err(TextError::new(
                format!("`{text}` is not a whole number of ns"),
                "write fewer digits: time is counted in whole ns",
            ));
        }
        place_ns /= 10;
        total_ns += digit * place_ns;
    }
    Ok(total_ns)
}

/// The exact text of a time, with at most three digits after the decimal point.
pub(crate) fn time_text(ns: u64) -> String {
    if ns == 0 {
        return "0s".to_owned();
    }
    let unit = UNITS.iter().find(|&&(_, factor)| ns >= factor && ns.is_multiple_of(factor));
    let &(exact_name, exact_factor) = unit.unwrap_or(&UNITS[3]);
    let exact = format!("{}{exact_name}", ns / exact_factor);
    let &(name, factor) = UNITS.iter().find(|&&(_, factor)| ns >= factor).unwrap_or(&UNITS[3]);
    let digits = format!("{:0width$}", ns % factor, width = factor.ilog10() as usize);
    let fraction = digits.trim_end_matches('0');
    if fraction.is_empty() || fraction.len() > 3 {
        return exact;
    }
    format!("{}.{fraction}{name}", ns / factor)
}

/// `"100us"` or `"100us..200us"`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, TextError> {
    let Some((low_text, high_text)) = text.split_once("..") else {
        return parse_time(text).map(Duration::Fixed);
    };
    let (low, high) = (parse_time(low_text.trim())?, parse_time(high_text.trim())?);
    if low > high {
        return Err(TextError::new(
            format!("`{text}` ends before it starts"),
            "write the shorter time first, as in \"100us..200us\"",
        ));
    }
    Ok(if low == high { Duration::Fixed(low) } else { Duration::Uniform { low, high } })
}

/// The text that [`parse_duration`] reads.
pub(crate) fn duration_text(duration: Duration) -> String {
    match duration {
        Duration::Fixed(ns) => time_text(ns),
        Duration::Uniform { low, high } => format!("{}..{}", time_text(low), time_text(high)),
    }
}

/// `"0-3,8"`: sorted and merged.
///
/// # Errors
/// A text that is no list of CPU numbers and ranges, or a number above `CPU_MAX`.
pub fn parse_cpus(text: &str) -> Result<CpuList, TextError> {
    const HELP: &str = "write CPU numbers and ranges, as in \"0-3,8\"";
    let number = |part: &str| match part.trim().parse::<u32>() {
        Ok(cpu) if cpu > CPU_MAX => {
            Err(TextError::new(format!("CPU {cpu} is above CPU_MAX, {CPU_MAX}"), HELP))
        }
        Ok(cpu) if part.trim().bytes().all(|b| b.is_ascii_digit()) => Ok(cpu),
        _ => Err(TextError::new(format!("`{}` is not a CPU number", part.trim()), HELP)),
    };
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(TextError::new(
                format!("the range `{}` ends before it starts", part.trim()),
                HELP,
            ));
        }
        ranges.push((first, last));
    }
    Ok(CpuList::of(ranges))
}

/// The text that [`parse_cpus`] reads.
pub(crate) fn cpus_text(cpus: &CpuList) -> String {
    let ranges = cpus.0.iter().map(|&(first, last)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    });
    ranges.collect::<Vec<_>>().join(",")
}

/// A text in double quotes: a basic string of TOML, and of JSON unless there is a control character above U+001F in it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                // The format writes control characters as four hexadecimal digits.
                quoted.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        for (text, ns) in
            [("0s", 0), ("1ns", 1), ("1.5ms", 1_500_000), ("0.001us", 1), ("12.345us", 12_345)]
                .into_iter()
                .chain([("2min", 120_000_000_000), ("0.5h", 1_800_000_000_000)])
        {
            assert_eq!(parse_time(text), Ok(ns), "{text}");
        }
        for text in ["", "1", "us", "-1us", "1.us", ".5us", "0.5ns", "1.0001us", "1m", "2000000s"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert_eq!(parse_time("1.000us"), Ok(1_000));
        assert_eq!(
            parse_time("99999999999999999999s").map_err(|e| e.help),
            Err("write a shorter time".to_owned())
        );
    }

    #[test]
    fn the_text_of_a_time_is_short() {
        for (ns, text) in [
            (1_500_000, "1.5ms"),
            (400_000, "400us"),
            (12_345, "12.345us"),
            (1_000_000_001, "1000000001ns"),
        ] {
            assert_eq!(time_text(ns), text);
        }
    }

    #[test]
    fn cpu_lists_are_normalised() {
        assert_eq!(parse_cpus("8, 0-3,2-4").map(|c| cpus_text(&c)), Ok("0-4,8".to_owned()));
        for text in ["", "a", "3-1", "1-", "-1", "9000", "+1"] {
            assert!(parse_cpus(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_time_survives_its_text(ns in 0..=TIME_MAX_NS) {
            proptest::prop_assert_eq!(parse_time(&time_text(ns)), Ok(ns));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}") {
            let _ = parse_duration(&text);
            let _ = parse_cpus(&text);
        }
    }
}
