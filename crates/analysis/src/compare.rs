//! Several runs side by side.

use crate::metric::{self, Unit, Value};
use crate::{Analysis, Figures};
use std::collections::BTreeSet;

/// Metrics as rows, runs as columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The names of the runs.
    pub columns: Vec<String>,
    /// First the machine's metrics, then those of each group and of each control group below the root that any run has.
    pub rows: Vec<ComparisonRow>,
}

/// One metric in all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow {
    /// The group, or `cgroup PATH` for a control group; `None` for a metric of the machine.
    pub group: Option<String>,
    /// The metric's name (the definition page).
    pub metric: &'static str,
    /// Which figure of it; may be empty.
    pub figure: &'static str,
    /// The unit of the values.
    pub unit: Unit,
    /// The values by column; `None` is "not measured" or, for a group, "not in this run".
    pub values: Vec<Option<Value>>,
}

impl ComparisonRow {
    /// `name` or `name.figure`.
    pub fn key(&self) -> String {
        if self.figure.is_empty() {
            self.metric.to_owned()
        } else {
            format!("{}.{}", self.metric, self.figure)
        }
    }

    /// The change of a column against the first one in %. `None` where either is not measured or the first is zero.
    pub fn change_percent(&self, column: usize) -> Option<f64> {
        let base = self.values.first().copied().flatten()?.as_f64();
        let value = self.values.get(column).copied().flatten()?.as_f64();
        crate::figures::percent(value - base, base.abs())
    }
}

/// Every metric of one group.
fn group_rows<'f>(
    name: String,
    figures: &'f [Option<&Figures>],
) -> impl Iterator<Item = ComparisonRow> + use<'f> {
    metric::GROUP.iter().map(move |metric| ComparisonRow {
        group: Some(name.clone()),
        metric: metric.name,
        figure: metric.figure,
        unit: metric.unit,
        values: figures.iter().map(|f| f.and_then(metric.read)).collect(),
    })
}

/// The control groups below the root that any run has.
fn cgroup_paths<'r>(runs: &[(&str, &'r Analysis)]) -> Vec<&'r str> {
    let mut known = BTreeSet::new();
    let all = runs.iter().flat_map(|(_, analysis)| analysis.cgroups.iter().skip(1));
    all.map(|cgroup| cgroup.path.as_str()).filter(|path| known.insert(*path)).collect()
}

/// Sets runs side by side. Control groups come last. Groups stand in the order in which the runs show them first.
pub fn compare(runs: &[(&str, &Analysis)]) -> Comparison {
    let mut rows: Vec<ComparisonRow> = metric::MACHINE
        .iter()
        .map(|metric| ComparisonRow {
            group: None,
            metric: metric.name,
            figure: metric.figure,
            unit: metric.unit,
            values: runs.iter().map(|(_, analysis)| (metric.read)(&analysis.machine)).collect(),
        })
        .collect();
    let mut names: Vec<&str> = Vec::new();
    let mut known = BTreeSet::new();
    for group in runs.iter().flat_map(|(_, analysis)| &analysis.groups) {
        if known.insert(group.name.as_str()) {
            names.push(&group.name);
        }
    }
    for name in names {
        let figures: Vec<Option<&Figures>> = runs
            .iter()
            .map(|(_, analysis)| analysis.group(name).map(|group| &group.figures))
            .collect();
        rows.extend(group_rows(name.to_owned(), &figures));
    }
    for path in cgroup_paths(runs) {
        let figures: Vec<Option<&Figures>> = runs
            .iter()
            .map(|(_, analysis)| analysis.cgroup(path).map(|cgroup| &cgroup.figures))
            .collect();
        rows.extend(group_rows(format!("cgroup {path}"), &figures));
    }
    Comparison { columns: runs.iter().map(|(name, _)| (*name).to_owned()).collect(), rows }
}
