//! `lat_ctx` of lmbench.

use fairground_analysis::ring::RingReport;
use fairground_workload::Op;

use super::{Run, find_op};

/// `"\n\"size=%dk ovr=%.2f\n"`, and `"%d %.2f\n"` where the time of a switch is positive.
pub(super) fn lat_ctx(run: &Run<'_>) -> Result<String, String> {
    let ring = RingReport::of(&run.outcome.trace)
        .ok_or("the token did not go round twice within the run")?;
    let parent = run.specs("lat_ctx").next();
    let bytes = parent.and_then(|parent| {
        find_op(&parent.program, &|op| match op {
            Op::Touch(bytes) => Some(*bytes),
            _ => None,
        })
    });
    // Here a pass goes through all pipes, there through one.
    let overhead_us = ring.overhead_ns as f64 / ring.members as f64 / 1e3;
    let head = format!("\n\"size={}k ovr={overhead_us:.2}\n", bytes.unwrap_or(0) / 1024);
    let switch_us = ring.switch_us();
    let line = (switch_us > 0.0).then(|| format!("{} {switch_us:.2}\n", ring.members));
    Ok(head + &line.unwrap_or_default())
}
