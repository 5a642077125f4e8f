//! What `top` shows: a line for each task.

use fairground_analysis::{Analysis, Options};
use fairground_trace::Trace;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// `top` brings its figures up to date every so often, ns; %CPU is over the last such time.
const REFRESH_NS: u64 = 3_000_000_000;

/// A table of tasks: runs and given figures side by side, each in the order of its own %CPU.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopTable {
    pub(crate) title: String,
    /// Names of runs and of given figures, in order.
    pub(crate) columns: Vec<String>,
}

/// A task: `[2572, 100, "1:03.61"]` in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TopLine {
    pub(crate) pid: u32,
    /// %CPU: of one CPU, over the last refresh, to the nearest whole number.
    pub(crate) percent: u64,
    /// TIME+: CPU time since the start, hundredths of a second.
    pub(crate) time_cs: u64,
}

impl TopLine {
    /// TIME+ as `top` writes it, minutes, seconds and hundredths.
    pub(crate) fn time(&self) -> String {
        let (minutes, rest) = (self.time_cs / 6_000, self.time_cs % 6_000);
        format!("{minutes}:{:02}.{:02}", rest / 100, rest % 100)
    }
}

fn parse_time(text: &str) -> Option<u64> {
    let (minutes, rest) = text.split_once(':')?;
    let (seconds, hundredths) = rest.split_once('.')?;
    let two = |s: &str| if s.len() == 2 { s.parse::<u64>().ok() } else { None };
    Some(minutes.parse::<u64>().ok()?.checked_mul(6_000)? + two(seconds)? * 100 + two(hundredths)?)
}

impl<'de> Deserialize<'de> for TopLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (pid, percent, time) = <(u32, u64, String)>::deserialize(deserializer)?;
        let time_cs = parse_time(&time).ok_or_else(|| {
            D::Error::custom(format!(
                "`{time}` is no TIME+: minutes, seconds, hundredths, as in `1:03.61`"
            ))
        })?;
        Ok(Self { pid, percent, time_cs })
    }
}

/// The tasks of a run as `top` would show them at its end, the largest %CPU first.
pub(crate) fn of_run(trace: &Trace, whole: &Analysis) -> Vec<TopLine> {
    let window = (whole.end_ns.saturating_sub(REFRESH_NS).max(whole.start_ns), whole.end_ns);
    let length_ns = (window.1 - window.0).max(1);
    let last = Analysis::of(trace, &Options { window: Some(window), ..Options::simulated() });
    let mut lines = Vec::new();
    for task in &whole.tasks {
        let recent_ns = last.task(task.task).map_or(0, |t| t.figures.run_ns);
        lines.push(TopLine {
            pid: task.pid,
            percent: (recent_ns * 100 + length_ns / 2) / length_ns,
            time_cs: task.figures.run_ns / 10_000_000,
        });
    }
    lines.sort_by_key(|line| (std::cmp::Reverse((line.percent, line.time_cs)), line.pid));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_as_top_does() {
        for (text, time_cs) in [("1:03.61", 6_361), ("0:00.05", 5), ("231:00.00", 1_386_000)] {
            assert_eq!(parse_time(text), Some(time_cs));
            assert_eq!(TopLine { pid: 1, percent: 0, time_cs }.time(), text);
        }
        for text in ["", "1", "1:3.61", "1:03", "1:03.6", "x:03.61", "99999999999999999999:00.00"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
