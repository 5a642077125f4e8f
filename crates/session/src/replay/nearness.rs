//! How near a replay under the recording's own scheduler comes to the recording.

use fairground_analysis::metric::Unit;
use fairground_analysis::{Analysis, ComparisonRow, compare};

/// Counts up to this one are too small for a ratio.
const COUNT_MIN: f64 = 50.0;
/// Latencies that differ by no more than this are equal, ns.
const LATENCY_NS_MIN: f64 = 1_000.0;
/// How far counts and shares may be off, %: near, and fair.
const COUNTS_PERCENT: [f64; 2] = [5.0, 10.0];
/// The same of latencies.
const LATENCIES_PERCENT: [f64; 2] = [15.0, 25.0];

/// A class of how near one comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Near {
    /// Counts and shares within 5 %, latencies within 15 %.
    Near,
    /// Counts and shares within 10 %, latencies within 25 %.
    Fair,
    /// Further off.
    Poor,
}

impl Near {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Near::Near => "near",
            Near::Fair => "fair",
            Near::Poor => "poor",
        }
    }

    /// How far counts and shares, and latencies, of this class may be off at most, %; `None`: any distance.
    pub fn limits_percent(self) -> Option<[f64; 2]> {
        let class = self as usize;
        Some([*COUNTS_PERCENT.get(class)?, *LATENCIES_PERCENT.get(class)?])
    }
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Closeness {
    /// The metric; of shares, with the group that is off most.
    pub what: String,
    /// How far the replay is off: % of the recorded value, of a share percentage points. `None`: not measured, or too
    /// few for a ratio.
    pub off_percent: Option<f64>,
    /// Its class.
    pub near: Option<Near>,
}

/// Compares a replay with its recording: switches, latencies, and the shares of groups of tasks.
pub fn nearness(recorded: &Analysis, replayed: &Analysis) -> Vec<Closeness> {
    let rows = compare(&[("recorded", recorded), ("replayed", replayed)]).rows;
    let machine = |key: &str| rows.iter().find(|row| row.group.is_none() && row.key() == key);
    let mut all: Vec<Closeness> = ["switches", "voluntary_switches", "involuntary_switches"]
        .into_iter()
        .chain(["wakeup_latency.p50", "wakeup_latency.p99"])
        .filter_map(machine)
        .map(of_machine)
        .collect();
    all.extend(share(&rows));
    all
}

/// The worst class of all.
pub fn worst(all: &[Closeness]) -> Option<Near> {
    all.iter().filter_map(|one| one.near).max()
}

fn class(off_percent: f64, [near, fair]: [f64; 2]) -> Near {
    match off_percent.abs() {
        off if off <= near => Near::Near,
        off if off <= fair => Near::Fair,
        _ => Near::Poor,
    }
}

fn of_machine(row: &ComparisonRow) -> Closeness {
    let [recorded, replayed] = [0, 1].map(|n| row.values[n].map(|value| value.as_f64()));
    let is_time = row.unit != Unit::Count;
    let limits = if is_time { LATENCIES_PERCENT } else { COUNTS_PERCENT };
    // Latencies are measured in ns or us.
    let floor = match row.unit {
        Unit::Us => LATENCY_NS_MIN / 1e3,
        Unit::Ms => LATENCY_NS_MIN / 1e6,
        Unit::Ns => LATENCY_NS_MIN,
        _ => COUNT_MIN,
    };
    let off = recorded.zip(replayed).and_then(|(recorded, replayed)| {
        if (replayed - recorded).abs() <= floor && is_time {
            return Some(0.0);
        }
        let few = recorded <= 0.0 || !is_time && recorded.max(replayed) < floor;
        (!few).then(|| 100.0 * (replayed - recorded) / recorded)
    });
    Closeness { what: row.key(), off_percent: off, near: off.map(|off| class(off, limits)) }
}

/// The group whose share of the CPU time is off most.
fn share(rows: &[ComparisonRow]) -> Option<Closeness> {
    let shares = rows.iter().filter(|row| row.key() == "cpu_share");
    let off = shares.filter_map(|row| {
        let group = row.group.as_deref()?;
        let [recorded, replayed] = [0, 1].map(|n| row.values[n].map_or(0.0, |v| v.as_f64()));
        Some((replayed - recorded, group))
    });
    let (off, group) = off.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
    Some(Closeness {
        what: format!("cpu_share of {group}"),
        off_percent: Some(off),
        near: Some(class(off, COUNTS_PERCENT)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_reaches_as_far_as_its_limits() {
        for near in [Near::Near, Near::Fair] {
            for limits in [COUNTS_PERCENT, LATENCIES_PERCENT] {
                let limit = limits[near as usize];
                assert_eq!((class(limit, limits), class(-limit, limits)), (near, near));
                assert!(class(limit + 0.1, limits) > near);
            }
        }
        assert_eq!(Near::Fair.limits_percent(), Some([10.0, 25.0]));
        assert_eq!(Near::Poor.limits_percent(), None);
    }
}
