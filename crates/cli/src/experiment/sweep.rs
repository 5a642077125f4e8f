//! Sweeps: the same runs at several points, and matrices with a row for each point.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::entry::{RunEntry, UserTimeEntry};
use super::given::{Given, Range};
use super::locks::Locks;

/// One point of the sweeps: a workload with a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Point {
    /// As it stands in a matrix.
    pub(crate) name: String,
    /// As the command line takes it.
    pub(crate) workload: String,
    /// CPUs, where the point has its own number.
    pub(super) cpus: Option<u32>,
    /// Length, where the point has its own.
    duration: Option<String>,
    /// Metric that matrices without one of their own show.
    pub(crate) metric: Option<String>,
    /// Label of its row in such a matrix, with the unit of the metric; absent: as the point.
    pub(crate) label: Option<String>,
    /// Decimals of that metric.
    pub(crate) decimals: Option<u8>,
}

/// A run at every point, called `NAME POINT`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Sweep {
    pub(crate) name: String,
    /// The points at which it runs; absent: all.
    pub(crate) points: Option<Vec<String>>,
    /// At each point it runs once with each of them: lead-ins of simulated runs, holds of runs on a real kernel. Empty:
    /// as its words say.
    #[serde(default)]
    pub(super) starts: Vec<String>,
    /// Model of the workload's locks; with a list there is a sweep for each.
    pub(super) locks: Option<Locks>,
    /// The sweep to whose runs the changes are relative.
    pub(super) against: Option<String>,
    #[serde(flatten)]
    pub(super) words: toml::Table,
}

/// Figures from elsewhere for one metric, point by point.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    /// Its name as the column of a matrix.
    pub(crate) name: String,
    pub(super) source: String,
    metric: String,
    pub(crate) values: BTreeMap<String, Range>,
}

/// A table of one metric: points down, sweeps and published figures across.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Matrix {
    pub(crate) title: String,
    /// The metric's key; absent: that of each point.
    pub(crate) metric: Option<String>,
    /// Names of sweeps and of published figures.
    pub(crate) columns: Vec<String>,
    #[serde(default = "super::entry::two")]
    pub(crate) decimals: u8,
}

/// Name of a run or of a given figure at a point.
pub(crate) fn at_point(name: &str, point: &str) -> String {
    format!("{name} {point}")
}

impl Sweep {
    pub(crate) fn runs_at(&self, point: &str) -> bool {
        self.points.as_ref().is_none_or(|points| points.iter().any(|name| name == point))
    }

    /// Names of its runs at a point, one for each start; the first has the plain name.
    pub(crate) fn names_at(&self, point: &str) -> Vec<String> {
        let plain = at_point(&self.name, point);
        let others = self.starts.iter().skip(1).map(|start| format!("{plain}, start {start}"));
        std::iter::once(plain.clone()).chain(others).collect()
    }

    pub(super) fn on(&self) -> Option<&str> {
        self.words.get("on").and_then(toml::Value::as_str)
    }

    /// The first start that stands there twice.
    pub(super) fn double_start(&self) -> Option<&str> {
        let twice = |(nth, start): &(usize, &String)| self.starts[..*nth].contains(start);
        self.starts.iter().enumerate().find(twice).map(|(_, start)| start.as_str())
    }

    /// Its runs, simulated or on a real kernel.
    pub(super) fn runs(&self, points: &[Point], is_real: bool) -> Vec<RunEntry> {
        let run = |point: &Point, nth: usize, name: String| {
            let mut words = self.words.clone();
            let workload = toml::Value::String(point.workload.clone());
            words.insert("workload".to_owned(), workload);
            if let Some(cpus) = point.cpus {
                words.insert("cpus".to_owned(), toml::Value::Integer(cpus.into()));
            }
            if let Some(duration) = &point.duration {
                words.insert("duration".to_owned(), toml::Value::String(duration.clone()));
            }
            if let Some(start) = self.starts.get(nth) {
                let key = if is_real { "hold" } else { "lead_in" };
                words.insert(key.to_owned(), toml::Value::String(start.clone()));
            }
            let against = self.against.as_ref().map(|other| at_point(other, &point.name));
            let (locks, user_time) = (self.locks.clone(), UserTimeEntry::Exact);
            RunEntry { name, locks, against, reports: false, user_time, words }
        };
        let mut runs = Vec::new();
        for point in points.iter().filter(|point| self.runs_at(&point.name)) {
            let names = self.names_at(&point.name).into_iter().enumerate();
            runs.extend(names.map(|(nth, name)| run(point, nth, name)));
        }
        runs
    }
}

impl Published {
    /// Its figures, a column for each point, without their source: it is named once for all of them.
    pub(super) fn given(&self) -> Vec<Given> {
        let given = |(point, value): (&String, &Range)| Given {
            name: at_point(&self.name, point),
            source: String::new(),
            values: BTreeMap::from([(self.metric.clone(), *value)]),
            top: Vec::new(),
        };
        self.values.iter().map(given).collect()
    }
}
