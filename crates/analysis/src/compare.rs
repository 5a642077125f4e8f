//! Several runs side by side.

use crate::metric::{self, MetricValue, Shown, Unit};
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
    /// In which tables it stands where none is chosen by name.
    pub shown: Shown,
    /// The values by column; `None` is "not measured" or, for a group, "not in this run".
    pub values: Vec<Option<MetricValue>>,
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
}

/// What a control group is called beside groups of tasks.
pub fn cgroup_name(path: &str) -> String {
    format!("cgroup {path}")
}

/// Every metric of one group.
fn group_rows<'r>(
    name: String,
    runs: &[(&str, &'r Analysis)],
    of: impl Fn(&'r Analysis) -> Option<&'r Figures>,
) -> impl Iterator<Item = ComparisonRow> {
    let figures: Vec<Option<&Figures>> = runs.iter().map(|(_, analysis)| of(analysis)).collect();
    metric::GROUP.iter().map(move |metric| ComparisonRow {
        group: Some(name.clone()),
        metric: metric.name,
        figure: metric.figure,
        unit: metric.unit,
        shown: metric.shown,
        values: figures.iter().map(|f| f.and_then(metric.read)).collect(),
    })
}

/// Each name once, in the order in which they come first.
fn unique<'n>(names: impl Iterator<Item = &'n str>) -> impl Iterator<Item = &'n str> {
    let mut known = BTreeSet::new();
    names.filter(move |name| known.insert(*name))
}

/// Sets runs side by side. Control groups come last. Groups stand in the order in which the runs show them first.
pub fn compare<'r>(runs: &[(&str, &'r Analysis)]) -> Comparison {
    let mut rows: Vec<ComparisonRow> = metric::MACHINE
        .iter()
        .map(|metric| ComparisonRow {
            group: None,
            metric: metric.name,
            figure: metric.figure,
            unit: metric.unit,
            shown: metric.shown,
            values: runs.iter().map(|(_, analysis)| (metric.read)(&analysis.machine)).collect(),
        })
        .collect();
    let groups = runs.iter().flat_map(|(_, analysis)| &analysis.groups);
    for name in unique(groups.map(|group| group.name.as_str())) {
        let of = |analysis: &'r Analysis| analysis.group(name).map(|group| &group.figures);
        rows.extend(group_rows(name.to_owned(), runs, of));
    }
    let cgroups = runs.iter().flat_map(|(_, analysis)| analysis.cgroups.iter().skip(1));
    for path in unique(cgroups.map(|cgroup| cgroup.path.as_str())) {
        let of = |analysis: &'r Analysis| analysis.cgroup(path).map(|cgroup| &cgroup.figures);
        rows.extend(group_rows(cgroup_name(path), runs, of));
    }
    Comparison { columns: runs.iter().map(|(name, _)| (*name).to_owned()).collect(), rows }
}
