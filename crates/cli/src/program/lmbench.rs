//! `lat_ctx` of lmbench, and the table of its summary.

use fairground_analysis::ring::RingReport;
use fairground_session::TargetReport;
use fairground_workload::Op;
use fairground_workload::library::LAT_CTX_MATRIX;

use super::{Run, find_op};

/// `"\n\"size=%dk ovr=%.2f\n"`, and `"%d %.2f\n"` where the time of a switch is positive.
pub(super) fn lat_ctx(run: &Run<'_>) -> Result<String, String> {
    let rings = LAT_CTX_MATRIX.map(|(members, size_kb)| {
        let ring = RingReport::of_matrix(&run.outcome.trace, members as u64, size_kb);
        ring.map(|ring| ring.switch_us())
    });
    if rings.iter().any(Option::is_some) {
        return Ok(summary(run, &rings));
    }
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

/// The head of the table.
const SUMMARY: &str = "
Context switching - times in microseconds - smaller is better
-------------------------------------------------------------------------
Host                 OS  2p/0K 2p/16K 2p/64K 8p/16K 8p/64K 16p/16K 16p/64K
                         ctxsw  ctxsw  ctxsw ctxsw  ctxsw   ctxsw   ctxsw
--------- ------------- ------ ------ ------ ------ ------ ------- -------
";
/// The widths of its columns of figures.
const WIDTHS: [usize; LAT_CTX_MATRIX.len()] = [6, 6, 6, 6, 6, 7, 7];

/// The table of `getsummary` with one line. Its host is the target, its system the scheduler.
fn summary(run: &Run<'_>, switches_us: &[Option<f64>]) -> String {
    let host = match run.outcome.report {
        TargetReport::Simulated { .. } => "sim",
        TargetReport::Real { .. } => "kernel",
    };
    let figures: String = switches_us
        .iter()
        .zip(WIDTHS)
        .map(|(us, width)| format!(" {}", figure(*us, width)))
        .collect();
    format!("{SUMMARY}{host:<9.9} {:>13.13}{figures}\n", run.outcome.label)
}

/// As `getsummary` writes a figure of `lat_ctx`, which has two decimals: as many digits as fit below 10, one decimal
/// above; blank where it is not positive, or there is none.
fn figure(us: Option<f64>, width: usize) -> String {
    let rounded = us.map_or(0.0, |us| (us * 100.0).round() / 100.0);
    match rounded {
        us if us <= 0.0 => " ".repeat(width),
        us if us < 10.0 => format!("{us:width$.0$}", width - 2),
        us => format!("{us:width$.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of the table in the announcement of RFS of 31 August 2007.
    #[test]
    fn figures_look_as_in_the_published_tables() {
        for (us, width, text) in [
            (0.95, 6, "0.9500"),
            (1.68, 7, "1.68000"),
            (18.1, 6, "  18.1"),
            (9.33, 7, "9.33000"),
            (9.996, 6, "  10.0"),
            (-0.2, 6, "      "),
            (0.001, 7, "       "),
        ] {
            assert_eq!(figure(Some(us), width), text, "{us}");
        }
        assert_eq!(figure(None, 6), "      ");
    }
}
