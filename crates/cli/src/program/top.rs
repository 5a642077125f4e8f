//! What `top` shows: a line for each task.

use fairground_analysis::{Analysis, Options};
use fairground_trace::{EventKind, TaskState, Trace};

use super::Run;

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

/// A column of `top`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// Its head.
    pub(crate) name: &'static str,
    width: usize,
    /// Whether it is aligned to the left.
    pub(crate) is_left: bool,
}

const fn right(name: &'static str, width: usize) -> Column {
    Column { name, width, is_left: false }
}

const fn left(name: &'static str, width: usize) -> Column {
    Column { name, width, is_left: true }
}

/// The columns of `top` (procps 3.2).
pub(crate) const TOP_COLUMNS: [Column; 12] = [
    right("PID", 5),
    left("USER", 8),
    right("PR", 3),
    right("NI", 3),
    right("VIRT", 5),
    right("RES", 4),
    right("SHR", 4),
    left("S", 1),
    right("%CPU", 4),
    right("%MEM", 4),
    right("TIME+", 9),
    left("COMMAND", 1),
];

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
        line.split_whitespace().eq(TOP_COLUMNS.iter().map(|column| column.name))
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
    let states = states(trace);
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
            states[task.task.index()].to_owned(),
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

/// The state of each task at the end, a letter: `R` is running or runnable.
fn states(trace: &Trace) -> Vec<&'static str> {
    let mut states = vec!["-"; trace.tasks().len()];
    let mut set = |task: fairground_trace::TaskId, state: TaskState| {
        if let Some(known) = states.get_mut(task.index()) {
            *known = &state.text()[..1];
        }
    };
    for event in trace.events() {
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                set(prev, prev_state);
                set(next, TaskState::Runnable);
            }
            EventKind::Waking { task, .. }
            | EventKind::Wakeup { task, .. }
            | EventKind::WakeupNew { task, .. } => set(task, TaskState::Runnable),
            _ => {}
        }
    }
    states
}

/// The table as `top` prints it.
pub(super) fn of_run(run: &Run<'_>) -> Result<String, String> {
    if run.outcome.analysis.irregularities.no_switches || !run.outcome.is_recorded() {
        return Err("no switch was recorded, so no CPU time is known".to_owned());
    }
    let mut text = row(&TOP_COLUMNS.map(|column| column.name));
    for line in top_of(&run.outcome.trace, &run.outcome.analysis) {
        text += &row(&line.cells().each_ref().map(String::as_str));
    }
    Ok(text)
}

fn row(cells: &[&str; 12]) -> String {
    let cells = TOP_COLUMNS.iter().zip(cells).map(|(column, text)| {
        let width = column.width;
        if column.is_left { format!("{text:<width$}") } else { format!("{text:>width$}") }
    });
    let line = cells.collect::<Vec<_>>().join(" ");
    format!("{}\n", line.trim_end())
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
    fn a_line_of_the_mail_is_printed_as_top_does() {
        let line = "7084 mingo 20 0 1576 248 196 R 67 0.0 0:50.13 loop";
        let parsed = TopLine::parse(line).expect("a line");
        assert_eq!(
            row(&parsed.cells().each_ref().map(String::as_str)),
            " 7084 mingo     20   0  1576  248  196 R   67  0.0   0:50.13 loop\n"
        );
        assert!(TopLine::is_head("PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND"));
        for wrong in ["", "7084 mingo 20", "x mingo 20 0 1576 248 196 R 67 0.0 0:50.13 loop"] {
            assert_eq!(TopLine::parse(wrong), None, "{wrong}");
        }
    }
}
