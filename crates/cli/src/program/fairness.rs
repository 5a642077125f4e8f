//! `slice`, `massive_intr` and `hackbench`.

use std::fmt::Write as _;

use fairground_analysis::slice_report::{SliceReports, UserTime};
use fairground_workload::{Op, Program};

use super::{NO_ROUND, Run, find_op};

/// `"%6.1f "` for each worker's answer, then `" avg slice: %5.2f utime: %f"`.
pub(super) fn slice(run: &Run<'_>) -> Result<String, String> {
    let reports = SliceReports::of(&run.outcome.trace, UserTime::Exact);
    let mut lines = String::new();
    for report in &reports.reports {
        for answer in &report.answers {
            let _ = write!(lines, "{:6.1} ", answer.slice_ms());
        }
        let _ = writeln!(lines, " {}", report.line().unwrap_or_default());
    }
    if lines.is_empty() {
        Err("no report was complete within the run".to_owned())
    } else {
        Ok(lines)
    }
}

/// `"%06d\t%08d\n"`: the pid of each process and its count.
pub(super) fn massive_intr(run: &Run<'_>) -> Result<String, String> {
    let mut lines = String::new();
    let tasks = run.outcome.analysis.tasks.iter();
    for task in tasks.filter(|task| task.name.starts_with("worker")) {
        let _ = writeln!(lines, "{:06}\t{:08}", task.pid, task.figures.marks);
    }
    if lines.is_empty() { Err("no process was started".to_owned()) } else { Ok(lines) }
}

/// The head of a run, and a `Time:` for each round.
pub(super) fn hackbench(run: &Run<'_>) -> Result<String, String> {
    let (starts, ends) = (run.marks("hackbench start"), run.marks("hackbench round"));
    if ends.is_empty() {
        return Err(NO_ROUND.to_owned());
    }
    let groups = run.specs("sender/").count();
    let sender = run.specs("sender/").next();
    let fds = sender.map_or(0, |sender| sender.count);
    let none = Program::new();
    let program = sender.map_or(&none, |sender| &sender.program);
    let loops = find_op(program, &|op| match op {
        Op::Loop(times, _) => *times,
        _ => None,
    });
    let bytes = find_op(program, &|op| match op {
        Op::PipeWrite(_, bytes) => Some(*bytes),
        _ => None,
    });
    let tasks = groups as u64 * 2 * u64::from(fds);
    let mut lines = format!(
        "Running in process mode with {groups} groups using {} file descriptors each (== {tasks} tasks)\n\
         Each sender will pass {} messages of {} bytes\n",
        2 * fds,
        loops.unwrap_or(0),
        bytes.unwrap_or(0)
    );
    for (start, end) in starts.iter().zip(&ends) {
        let ms = (end.time_ns - start.time_ns) / 1_000_000;
        let _ = writeln!(lines, "Time: {}.{:03}", ms / 1_000, ms % 1_000);
    }
    Ok(lines)
}
