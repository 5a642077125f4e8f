//! Which rows and columns of the tables are printed: `--metrics`, `--tasks`, `--all`.

use std::collections::BTreeSet;

use fairground_analysis::Analysis;
use fairground_analysis::metric::{
    GROUP, MACHINE, Metric, PLAYBACK_PROGRAM, RING_PROGRAM, SLICE_PROGRAM, Shown,
};
use fairground_report::{Document, Level, Table, Verdict};
use fairground_session::{Failure, did_you_mean};

use super::tasks::task_names;

/// The name of the machine's rows beside those of tasks.
pub(crate) const MACHINE_NAME: &str = "machine";
/// Names in the help of an error.
const NAMES_MAX: usize = 12;

/// The chosen metrics and tasks.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Keys; empty: the usual ones.
    metrics: BTreeSet<String>,
    /// Patterns of names; empty: all tasks and the machine.
    tasks: Vec<String>,
    all: bool,
}

impl Selection {
    /// The selection of a command line: every metric, those of these names, the rows of these patterns.
    ///
    /// # Errors
    /// No metric has this name.
    pub fn of(all: bool, names: &[String], tasks: &[String]) -> Result<Self, Failure> {
        let known = known_metrics();
        let mut metrics = BTreeSet::new();
        for name in names {
            metrics.extend(keys_of(name, &known).cloned());
            if keys_of(name, &known).next().is_none() {
                let failure = Failure::new(format_args!("--metrics {name}: no such metric"));
                return Err(match did_you_mean(name, known.iter().map(String::as_str)) {
                    Some(near) => failure.help(format_args!("did you mean `{near}`?")),
                    None => {
                        failure.help("docs/reference/metrics lists them; --all prints every one")
                    }
                });
            }
        }
        Ok(Self { metrics, tasks: tasks.to_vec(), all })
    }

    /// Whether every metric is asked for.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// Whether rows or columns are chosen: what is neither a metric nor a task is left out.
    pub fn is_narrow(&self) -> bool {
        !self.metrics.is_empty() || !self.tasks.is_empty()
    }

    /// Whether metrics are chosen by name.
    pub fn names_metrics(&self) -> bool {
        !self.metrics.is_empty()
    }

    /// Whether a metric is shown in tables that have those of `least` without a choice.
    pub fn has<T>(&self, metric: &Metric<T>, least: Shown) -> bool {
        self.has_key(&metric.key(), metric.shown, least)
    }

    /// The same of the metric with this key.
    pub fn has_key(&self, key: &str, shown: Shown, least: Shown) -> bool {
        match self.metrics.is_empty() {
            true => self.all || shown >= least,
            false => self.metrics.contains(key),
        }
    }

    /// Whether rows of this name are shown: a task, a group, a control group, or [`MACHINE_NAME`].
    pub fn has_task(&self, name: &str) -> bool {
        self.tasks.is_empty() || self.tasks.iter().any(|pattern| matches(pattern, name))
    }

    /// Whether the machine's own figures are shown.
    pub fn has_machine(&self) -> bool {
        self.has_task(MACHINE_NAME)
    }

    /// A table of the machine with the chosen columns, and those that name or explain a row; `None` where there are
    /// none.
    pub fn columns_of(&self, mut table: Table, kept: &[&str]) -> Option<Table> {
        let is_kept = |name: &str| kept.contains(&name);
        if self.names_metrics() {
            table.retain_columns(|name| {
                is_kept(name) || self.has_key(name, Shown::Usual, Shown::Usual)
            });
        }
        let has_figures = table.columns.iter().any(|column| !is_kept(&column.name));
        (self.has_machine() && has_figures).then_some(table)
    }

    /// The same selection without patterns that match no name in these runs, of all tasks where none is left. Each heads
    /// the result; then the exit code is that of a negative verdict, else 0.
    pub fn checked<'a>(
        &self,
        document: &mut Document,
        runs: impl IntoIterator<Item = &'a Analysis>,
    ) -> (Selection, u8) {
        let mut checked = self.clone();
        if self.tasks.is_empty() {
            return (checked, 0);
        }
        let mut names: BTreeSet<String> = runs.into_iter().flat_map(task_names).collect();
        names.insert(MACHINE_NAME.to_owned());
        checked.tasks.retain(|pattern| names.iter().any(|name| matches(pattern, name)));
        let mut listed: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
        if names.len() > NAMES_MAX {
            listed.push("…");
        }
        for pattern in self.tasks.iter().filter(|pattern| !checked.tasks.contains(pattern)) {
            document.add_verdict(Verdict {
                run: String::new(),
                level: Level::Failure,
                text: format!("--tasks {pattern}: no task is called so"),
                details: vec![format!("there are {}", listed.join(", "))],
            });
        }
        let is_whole = checked.tasks.len() == self.tasks.len();
        (checked, u8::from(!is_whole))
    }
}

/// The keys of all metrics.
fn known_metrics() -> BTreeSet<String> {
    fn keys<T>(list: &'static [Metric<T>]) -> impl Iterator<Item = String> {
        list.iter().map(Metric::key)
    }
    let programs = keys(SLICE_PROGRAM).chain(keys(RING_PROGRAM)).chain(keys(PLAYBACK_PROGRAM));
    keys(MACHINE).chain(keys(GROUP)).chain(programs).collect()
}

/// The keys that a name stands for: the one that it is, else those that match it, else all figures of the metric.
fn keys_of<'k>(name: &str, known: &'k BTreeSet<String>) -> impl Iterator<Item = &'k String> {
    let pattern = match known.contains(name) || name.contains('*') {
        true => name.to_owned(),
        false => format!("{name}.*"),
    };
    known.iter().filter(move |key| matches(&pattern, key))
}

/// Whether a pattern matches the whole of a name: `*` any characters, `?` one.
fn matches(pattern: &str, name: &str) -> bool {
    let mut chars = pattern.chars();
    match chars.next() {
        None => name.is_empty(),
        Some('*') => {
            let rest = chars.as_str();
            let starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            starts.into_iter().any(|at| matches(rest, &name[at..]))
        }
        Some(first) => {
            let mut others = name.chars();
            others.next().is_some_and(|c| first == '?' || c == first)
                && matches(chars.as_str(), others.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_glob_of_the_whole_name() {
        for (pattern, name, is_match) in [
            ("hog", "hog", true),
            ("hog", "hog/1", false),
            ("hog*", "hog/1", true),
            ("*/1", "hog/1", true),
            ("h?g", "hog", true),
            ("h?g", "hg", false),
            ("*", "", true),
            ("a*b*c", "a-bb-c", true),
            ("a*b*c", "a-c", false),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn a_metric_is_chosen_by_its_key_or_with_all_its_figures() {
        let known = known_metrics();
        let keys = |name| keys_of(name, &known).map(String::as_str).collect::<Vec<_>>();
        assert_eq!(keys("cpu_share"), ["cpu_share"]);
        assert_eq!(keys("cpu_share*"), ["cpu_share", "cpu_share.machine"]);
        assert_eq!(keys("lag"), ["lag.lead_max", "lag.max"]);
        assert!(keys("wake").is_empty() && keys("wakeup_latency.p9").is_empty());
    }
}
