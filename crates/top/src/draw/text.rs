//! Numbers as the narrow columns of a terminal show them.

use fairground_analysis::TaskActivity;

/// A value that is not measured.
pub(crate) fn unknown() -> String {
    "-".to_owned()
}

/// One decimal.
pub(crate) fn percent(value: Option<f64>) -> String {
    value.map_or_else(unknown, |value| format!("{value:.1}"))
}

/// A duration, three or four digits and a unit.
pub(crate) fn time(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", digits(value / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", digits(value / 1e6)),
        _ => format!("{} s", digits(value / 1e9)),
    }
}

/// A signed duration.
pub(crate) fn signed_time(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", time(ns.unsigned_abs()))
}

/// Three digits, or all of those before the point.
fn digits(value: f64) -> String {
    let decimals = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A point in time, to the nanosecond.
pub(crate) fn clock(ns: u64) -> String {
    format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// The state of a task, as the letter of `ps` where there is one.
pub(crate) fn letter(doing: TaskActivity) -> &'static str {
    match doing {
        TaskActivity::Unknown => "?",
        TaskActivity::Absent => "X",
        TaskActivity::Asleep => "S",
        TaskActivity::Waking => "w",
        TaskActivity::Waiting(_) => "W",
        TaskActivity::Running(_) => "R",
    }
}

/// A foreign text without characters that would move the cursor or turn the direction of writing.
pub(crate) fn plain(text: &str) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if c.is_control() || turns(c) { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let shown = [0, 999, 1_000, 9_994, 9_996, 123_456, 4_000_000, 99_960_000, 59_000_000_000];
        let texts = shown.map(time);
        assert_eq!(
            texts,
            [
                "0 ns", "999 ns", "1.00 µs", "9.99 µs", "10.0 µs", "123 µs", "4.00 ms", "100 ms",
                "59.0 s"
            ]
        );
        assert_eq!((signed_time(-1_500), signed_time(7)), ("-1.50 µs".into(), "7 ns".into()));
        assert_eq!(clock(1_000_000_005), "1.000000005 s");
        assert_eq!(plain("a\u{1b}[2Jb\u{202e}"), "a?[2Jb?");
    }
}
