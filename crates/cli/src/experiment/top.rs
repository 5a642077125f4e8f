//! Tables of tasks as `top` shows them: lines that were printed, and those of a run.

use fairground_analysis::{Analysis, Figures, Options};
use fairground_trace::Trace;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// `top` updates its figures every so often, ns; %CPU is over the last such time.
const REFRESH_NS: u64 = 3_000_000_000;
/// The least priority number of a task of the fair classes, less its nice value: what `top` shows as PR.
const PR_AT_NICE_0: i64 = 20;
/// Priorities of the real-time classes: those of the fair ones follow.
const RT_LEVELS: i64 = 100;
/// A real-time priority from here on is `RT`.
const LEAST_SHOWN: i64 = -100;

/// A task, in the columns of [`TOP_COLUMNS`]. What a run does not know is `-`: the user, the sizes in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopLine([String; 12]);

/// The columns of `top` (procps 3.2), and whether each is aligned to the left.
pub(crate) const TOP_COLUMNS: [(&str, bool); 12] = [
    ("PID", false),
    ("USER", true),
    ("PR", false),
    ("NI", false),
    ("VIRT", false),
    ("RES", false),
    ("SHR", false),
    ("S", true),
    ("%CPU", false),
    ("%MEM", false),
    ("TIME+", false),
    ("COMMAND", true),
];

/// A table of tasks for each of its columns: runs and given figures, each in the order of its own %CPU.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopTable {
    pub(crate) title: String,
    /// Names of runs and of given figures, in order.
    pub(crate) columns: Vec<String>,
}

/// Reads lines as `top` printed them; the head is left out.
pub(super) fn lines<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<TopLine>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !TopLine::is_head(line));
    let parse = |line: &str| {
        TopLine::parse(line).ok_or_else(|| {
            D::Error::custom(format!(
                "`{line}` is no line of top: PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND"
            ))
        })
    };
    lines.map(parse).collect()
}

impl TopLine {
    /// A line as it was printed.
    pub(crate) fn parse(line: &str) -> Option<TopLine> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let line = TopLine(words.try_into().ok()?);
        let [pid, _, _, _, _, _, _, _, percent, _, time, _] = &line.0;
        let is_line = pid.parse::<u32>().is_ok() && percent.parse::<f64>().is_ok() && is_time(time);
        is_line.then_some(line)
    }

    /// Whether a line is the head of the table.
    pub(crate) fn is_head(line: &str) -> bool {
        line.split_whitespace().eq(TOP_COLUMNS.iter().map(|(name, _)| *name))
    }

    /// The text of each column.
    pub(crate) fn cells(&self) -> &[String; 12] {
        &self.0
    }
}

/// Whether a text is a TIME+: minutes, seconds and hundredths.
fn is_time(text: &str) -> bool {
    let Some((minutes, rest)) = text.split_once(':') else { return false };
    let Some((seconds, hundredths)) = rest.split_once('.') else { return false };
    let two = |s: &str| s.len() == 2 && s.parse::<u8>().is_ok();
    minutes.parse::<u32>().is_ok() && two(seconds) && two(hundredths)
}

/// TIME+ of a CPU time.
fn time(ns: u64) -> String {
    let cs = ns / 10_000_000;
    format!("{}:{:02}.{:02}", cs / 6_000, cs / 100 % 60, cs % 100)
}

/// The tasks of a run as `top` would show them at its end, the largest %CPU first.
pub(crate) fn top_of(trace: &Trace, whole: &Analysis) -> Vec<TopLine> {
    let window = (whole.end_ns.saturating_sub(REFRESH_NS).max(whole.start_ns), whole.end_ns);
    let length_ns = (window.1 - window.0).max(1);
    let last = Analysis::of(trace, &Options { window: Some(window), ..Options::simulated() });
    let mut lines = Vec::new();
    for task in &whole.tasks {
        let recent_ns = last.task(task.task).map_or(0, |t| t.figures.run_ns);
        let percent = (recent_ns * 100 + length_ns / 2) / length_ns;
        let info = trace.tasks().get(task.task.index());
        let nice = info.and_then(|info| info.nice).map(i64::from);
        let known = |value: Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
        let priority = match info.and_then(|info| info.rt_prio) {
            Some(prio) => Some(i64::from(prio.prio()) - RT_LEVELS),
            None => nice.map(|nice| PR_AT_NICE_0 + nice),
        };
        let priority = match priority {
            Some(..=LEAST_SHOWN) => "RT".to_owned(),
            priority => known(priority),
        };
        let command = task.name.split('/').next().unwrap_or(&task.name);
        let no = || "-".to_owned();
        let line = TopLine([
            task.pid.to_string(),
            no(),
            priority,
            known(nice),
            no(),
            no(),
            no(),
            state(last.task(task.task).map(|task| &task.figures), length_ns).to_owned(),
            percent.to_string(),
            no(),
            time(task.figures.run_ns),
            command.to_owned(),
        ]);
        lines.push((percent, task.figures.run_ns, task.pid, line));
    }
    lines.sort_by_key(|(percent, run_ns, pid, _)| (std::cmp::Reverse((*percent, *run_ns)), *pid));
    lines.into_iter().map(|(.., line)| line).collect()
}

/// The state of a task at the end, where the figures of the last ns tell it: `R` is running or runnable all the time.
fn state(recent: Option<&Figures>, length_ns: u64) -> &'static str {
    match recent.map(|figures| figures.run_ns + figures.wait_ns) {
        Some(0) => "S",
        Some(ns) if ns >= length_ns => "R",
        _ => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_top() {
        for (ns, text) in [
            (63_610_000_000, "1:03.61"),
            (50_000_000, "0:00.05"),
            (13_860_000_000_000, "231:00.00"),
        ] {
            assert_eq!(time(ns), text);
            assert!(is_time(text), "{text}");
        }
        for text in ["", "1", "1:3.61", "1:03", "1:03.6", "x:03.61", "99999999999999999999:00.00"] {
            assert!(!is_time(text), "{text}");
        }
    }

    #[test]
    fn a_line_of_the_mail_is_read() {
        let line = "7084 mingo 20 0 1576 248 196 R 67 0.0 0:50.13 loop";
        let parsed = TopLine::parse(line).expect("a line");
        assert_eq!((parsed.cells()[8].as_str(), parsed.cells()[10].as_str()), ("67", "0:50.13"));
        assert!(TopLine::is_head("PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND"));
        for wrong in ["", "7084 mingo 20", "x mingo 20 0 1576 248 196 R 67 0.0 0:50.13 loop"] {
            assert_eq!(TopLine::parse(wrong), None, "{wrong}");
        }
    }
}
