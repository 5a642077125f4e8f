//! `perf bench sched pipe`, and `dd`.

use std::fmt::Write as _;

use fairground_workload::Op;

use super::text::{g, human, seconds};
use super::{Mark, NO_ROUND, Run, find_op, vmstat};

/// What the mark of a number of round trips ends with.
const TRIPS: &str = " round trips";

/// The lines of each pair.
pub(super) fn perf_pipe(run: &Run<'_>) -> Result<String, String> {
    let marks = run.marks_where(|label| label.ends_with(TRIPS));
    let per_mark = run.specs("ping").find_map(|ping| {
        find_op(&ping.program, &|op| match op {
            Op::Loop(times, _) => *times,
            _ => None,
        })
    });
    let per_mark = per_mark.unwrap_or(1);
    let mut tasks: Vec<_> = marks.iter().map(|mark| mark.task).collect();
    tasks.sort_by_key(|task| task.0);
    tasks.dedup();
    let mut lines = String::new();
    for task in tasks {
        let own: Vec<&Mark> = marks.iter().filter(|mark| mark.task == task).collect();
        let Some(last) = own.last() else { continue };
        let trips = own.len() as u64 * per_mark;
        let us = (last.time_ns - run.start_ns()) / 1_000;
        let _ = write!(
            lines,
            "# Running 'sched/pipe' benchmark:\n\
             # Executed {trips} pipe operations between two processes\n\n \
             {:>14}: {}.{:03} [sec]\n\n \
             {:14.6} usecs/op\n \
             {:14} ops/sec\n",
            "Total time",
            us / 1_000_000,
            us / 1_000 % 1_000,
            us as f64 / trips as f64,
            (trips as f64 / (us as f64 / 1e6)) as u64
        );
    }
    if lines.is_empty() { Err(NO_ROUND.to_owned()) } else { Ok(lines) }
}

/// What dd prints when it ends, here at its last mark, and a line of `vmstat 1` for each whole second.
pub(super) fn dd(run: &Run<'_>) -> Result<String, String> {
    let dd = run.specs("dd").next().ok_or("there is no dd")?;
    let (mut records_in, mut records_out, mut bytes) = (0, 0, 0);
    let marks: Vec<Mark> = run
        .marks_where(|label| label.ends_with(" writes") || label.ends_with(" blocks"))
        .into_iter()
        .filter(|mark| run.name(mark.task).starts_with("dd"))
        .collect();
    let last = marks.last().ok_or(NO_ROUND)?;
    count(&dd.program, marks.len() as u64, &mut |op, times| match op {
        Op::PipeRead(..) => records_in += times,
        Op::PipeWrite(_, size) => {
            records_out += times;
            bytes += size * times;
        }
        _ => {}
    });
    // Where it reads from /dev/zero, it reads as much at a time as it writes.
    if records_in == 0 {
        records_in = records_out;
    }
    let s = seconds(last.time_ns - run.start_ns());
    let dd = format!(
        "{records_in}+0 records in\n{records_out}+0 records out\n\
         {bytes} bytes ({}) copied, {} seconds, {}/s\n",
        human(bytes as f64),
        g(s),
        human(bytes as f64 / s)
    );
    Ok(dd + &vmstat::lines(run))
}

/// Calls `each` with the operations of an endless loop that has gone round so often, and with how often each was done.
fn count(program: &[Op], rounds: u64, each: &mut impl FnMut(&Op, u64)) {
    for op in program {
        match op {
            Op::Loop(None, body) => count(body, rounds, each),
            Op::Loop(Some(times), body) => count(body, rounds * times, each),
            _ => each(op, rounds),
        }
    }
}
