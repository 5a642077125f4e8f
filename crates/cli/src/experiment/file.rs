//! The file format of an experiment, strict: an unknown key is an error with its line.

use std::fmt;

use fairground_session::{Failure, RunSpec, check_version};
use serde::Deserialize;

use super::agreement::{Agreement, Gap, Power, Rules, Tolerance};
use super::given::{Given, Range};
use super::locks::{self, Locks};
use super::sweep::{Matrix, Point, Published, Sweep};
use super::top::TopTable;
use super::words;

/// The target of a run that does not name another.
const SIMULATED: &str = "sim";

/// The only version of the format so far.
pub(crate) const EXPERIMENT_FORMAT: u32 = 1;

/// A whole experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Experiment {
    #[serde(rename = "format")]
    _format: u32,
    /// Its name, as `reproduce` takes it.
    pub(crate) name: String,
    /// One line.
    pub(crate) title: String,
    /// Where the published result stands.
    pub(crate) source: String,
    /// What was asked, and what to know before reading the figures.
    pub(crate) about: String,
    /// What holds for every run that does not say otherwise.
    #[serde(default)]
    defaults: Defaults,
    /// The runs.
    #[serde(default, rename = "run")]
    runs: Vec<RunEntry>,
    /// The points at which sweeps run.
    #[serde(default, rename = "point")]
    pub(crate) points: Vec<Point>,
    /// Runs at every point.
    #[serde(default, rename = "sweep")]
    sweeps: Vec<Sweep>,
    /// Figures from elsewhere at every point.
    #[serde(default, rename = "published")]
    published: Vec<Published>,
    /// Tables with a row for each point.
    #[serde(default, rename = "matrix")]
    pub(crate) matrices: Vec<Matrix>,
    /// Real kernels and simulations, held against each other.
    #[serde(default, rename = "agreement")]
    pub(crate) agreements: Vec<Agreement>,
    /// How far they may lie apart.
    #[serde(default, rename = "tolerance")]
    tolerances: Vec<Tolerance>,
    /// Proofs that the metrics move.
    #[serde(default, rename = "power")]
    powers: Vec<Power>,
    /// Known causes of differences.
    #[serde(default, rename = "gap")]
    pub(crate) gaps: Vec<Gap>,
    /// Figures from elsewhere: published, or of a real kernel.
    #[serde(default, rename = "given")]
    pub(crate) given: Vec<Given>,
    /// The tables to print.
    #[serde(default, rename = "table")]
    pub(crate) tables: Vec<Table>,
    /// Tables of tasks.
    #[serde(default, rename = "top")]
    pub(crate) tops: Vec<TopTable>,
    /// What must be so.
    #[serde(default, rename = "claim")]
    pub(crate) claims: Vec<Claim>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Defaults {
    locks: Option<Locks>,
    #[serde(flatten)]
    words: toml::Table,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RunEntry {
    pub(super) name: String,
    pub(super) locks: Option<Locks>,
    pub(super) against: Option<String>,
    #[serde(default)]
    reports: bool,
    #[serde(default)]
    user_time: UserTimeEntry,
    #[serde(flatten)]
    pub(super) words: toml::Table,
}

impl RunEntry {
    /// A run of a sweep.
    pub(super) fn new(
        name: String,
        locks: Option<Locks>,
        against: Option<String>,
        words: toml::Table,
    ) -> RunEntry {
        RunEntry { name, locks, against, reports: false, user_time: UserTimeEntry::Exact, words }
    }
}

/// How the kernel of that time counts the user time that a program is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UserTimeEntry {
    /// To the nanosecond.
    #[default]
    Exact,
    /// By sampling at ticks.
    Ticks,
}

/// One run, with the defaults of its experiment.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Its name in tables and claims.
    pub(crate) name: String,
    /// Whether every report of the run is listed.
    pub(crate) reports: bool,
    /// How user time is counted.
    pub(crate) user_time: UserTimeEntry,
    /// The run or given figures beside which its figures are shown as changes.
    pub(crate) against: Option<String>,
    /// What is run.
    pub(crate) spec: RunSpec,
}

impl Run {
    /// Whether it runs in the simulated machine.
    pub(crate) fn is_simulated(&self) -> bool {
        self.spec.target.on == [SIMULATED]
    }

    /// The target, as the file names it.
    pub(crate) fn on(&self) -> String {
        self.spec.target.on.join(",")
    }
}

/// A table: metrics down, runs and given figures across.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// Its title.
    pub(crate) title: String,
    /// Names of runs and of given figures, in order.
    pub(crate) columns: Vec<String>,
    /// Metrics.
    pub(crate) rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// The metric's key.
    pub(crate) metric: String,
    /// What the reader calls it.
    pub(crate) label: String,
    /// Decimals.
    #[serde(default = "two")]
    pub(crate) decimals: u8,
}

pub(super) fn two() -> u8 {
    2
}

/// Something that must be so: a metric of a run lies within bounds, absolute or relative to another column.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// In words.
    pub(crate) say: String,
    /// The run.
    pub(crate) run: String,
    /// The metric's key.
    pub(crate) metric: String,
    /// Bounds of the mean; relative ones when `of` is there.
    pub(crate) within: Range,
    /// The column to whose mean the bounds are a ratio.
    pub(crate) of: Option<String>,
    /// Why it does not hold, where that is known and explained: the claim is shown, and does not fail the experiment.
    pub(crate) known_gap: Option<String>,
}

/// The known name that is most like a wrong one, or all of them.
fn near_or_all<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    match fairground_session::did_you_mean(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            format!("there are {}", known.map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", "))
        }
    }
}

impl Experiment {
    /// Reads a file's text.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, Failure> {
        check_version(file, text, EXPERIMENT_FORMAT)?;
        let mut experiment: Self = toml::from_str(text).map_err(|e| {
            Failure::new(format_args!("{file}: {}", e.to_string().trim_end()))
                .help("docs/reference/experiments.md lists the keys of an experiment")
        })?;
        if experiment.defaults.locks.as_ref().is_some_and(|locks| locks.one().is_none()) {
            return Err(Failure::new(format_args!(
                "{file}: `locks` in [defaults] is one, not several"
            ))
            .help("a list stands in a run or a sweep, and makes one for each"));
        }
        experiment.check_words(file, text)?;
        experiment.sweeps = locks::sweeps(experiment.sweeps);
        experiment.runs = locks::runs(experiment.runs);
        let is_real = |on: Option<&str>| {
            let default = experiment.defaults.words.get("on").and_then(toml::Value::as_str);
            on.or(default).is_some_and(|on| on != SIMULATED)
        };
        let swept = experiment
            .sweeps
            .iter()
            .flat_map(|sweep| sweep.runs(&experiment.points, is_real(sweep.on())));
        let (runs, given): (Vec<_>, Vec<_>) =
            (swept.collect(), experiment.published.iter().flat_map(Published::given).collect());
        experiment.runs.extend(runs);
        experiment.given.extend(given);
        experiment.check(file)?;
        Ok(experiment)
    }

    /// Where the given and the published figures stand: name and source.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let given = self.given.iter().map(|g| (g.name.as_str(), g.source.as_str()));
        let published = self.published.iter().map(|p| (p.name.as_str(), p.source.as_str()));
        published.chain(given.filter(|(_, source)| !source.is_empty()))
    }

    /// Whether a column of a matrix has something at a point.
    pub(crate) fn has_at(&self, matrix: &Matrix, point: &str) -> bool {
        let is_column = |name: &String| matrix.columns.contains(name);
        let mut sweeps = self.sweeps.iter().filter(|sweep| is_column(&sweep.name));
        let mut published = self.published.iter().filter(|given| is_column(&given.name));
        sweeps.any(|sweep| sweep.runs_at(point))
            || published.any(|given| given.values.contains_key(point))
    }

    /// What decides whether a simulation agrees with a real kernel.
    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules {
            tolerances: &self.tolerances,
            powers: &self.powers,
            gaps: &self.gaps,
            sweeps: &self.sweeps,
        }
    }

    /// Whether a table counts what the schedulers print, so that the lines themselves need not be shown.
    pub(crate) fn counts_prints(&self) -> bool {
        self.tables.iter().flat_map(|t| &t.rows).any(|row| row.metric.starts_with("printed"))
    }

    /// The runs, with the defaults filled in.
    pub(crate) fn runs(&self) -> Result<Vec<Run>, Failure> {
        self.runs.iter().map(|entry| self.run(entry)).collect()
    }

    fn run(&self, entry: &RunEntry) -> Result<Run, Failure> {
        let of_run = |what: &dyn fmt::Display| {
            Failure::new(format_args!("{}: run `{}`: {what}", self.name, entry.name))
        };
        let words = words::merged(&self.defaults.words, &entry.words);
        for key in ["workload", "sched", "hz", "costs"] {
            if !words.contains_key(key) {
                return Err(Failure::new(format_args!(
                    "{}: run `{}` has no `{key}`",
                    self.name, entry.name
                ))
                .help("state it in the run or in [defaults]"));
            }
        }
        let is_one = words.contains_key("cpus") != words.contains_key("topology");
        if !is_one {
            let which = if words.contains_key("cpus") { "both" } else { "neither" };
            return Err(of_run(&format_args!("it has {which} of `cpus` and `topology`"))
                .help("state one of the two, in the run or in [defaults]"));
        }
        let locks = entry.locks.as_ref().or(self.defaults.locks.as_ref()).and_then(Locks::one);
        let mut spec = RunSpec::from_words(&words)
            .map_err(|wrong| of_run(&wrong).help_if(wrong.help.clone()))?;
        spec.locks.locks = locks;
        spec.hold_ns().map_err(|failure| of_run(&failure))?;
        Ok(Run {
            name: entry.name.clone(),
            reports: entry.reports,
            user_time: entry.user_time,
            against: entry.against.clone(),
            spec,
        })
    }

    /// Every key of a run and every value is one that a spec takes.
    fn check_words(&self, file: &str, text: &str) -> Result<(), Failure> {
        let own = |section| move |(index, words)| (section, index, words);
        let defaults = std::iter::once(("defaults", 0, &self.defaults.words));
        let runs = self.runs.iter().map(|run| &run.words).enumerate().map(own("run"));
        let sweeps = self.sweeps.iter().map(|sweep| &sweep.words).enumerate().map(own("sweep"));
        for (section, index, table) in defaults.chain(runs).chain(sweeps) {
            RunSpec::check_words(&words::of_table(table)).map_err(|wrong| {
                let place = words::line(text, section, index, &wrong.name);
                let place = place.map(|line| format!(":{line}")).unwrap_or_default();
                let failure = Failure::new(format_args!("{file}{place}: [{section}] {wrong}"));
                failure.help(match &wrong.help {
                    Some(help) => format!("{help}; docs/reference/experiments.md explains them"),
                    None => {
                        "docs/reference/experiments.md lists the keys of an experiment".to_owned()
                    }
                })
            })?;
        }
        Ok(())
    }

    /// Every column of a matrix is a sweep or published, and every published figure belongs to a point.
    fn check_matrices(&self, file: &str) -> Result<(), Failure> {
        let names = || {
            let published = self.published.iter().map(|p| p.name.as_str());
            self.sweeps.iter().map(|s| s.name.as_str()).chain(published)
        };
        let columns = self.matrices.iter().flat_map(|m| &m.columns);
        let unknown = columns.filter(|name| !names().any(|known| known == name.as_str()));
        let points = self.published.iter().flat_map(|p| p.values.keys());
        let nowhere = points.filter(|name| !self.points.iter().any(|p| p.name == **name));
        let bare = |m: &&Matrix| m.metric.is_none();
        if let Some(matrix) = self.matrices.iter().find(bare)
            && let Some(point) =
                self.points.iter().find(|p| p.metric.is_none() && self.has_at(matrix, &p.name))
        {
            let (title, point) = (&matrix.title, &point.name);
            return Err(Failure::new(format_args!(
                "{file}: neither the matrix `{title}` nor the point `{point}` has a `metric`"
            )));
        }
        if let Some(name) = unknown.into_iter().next() {
            return Err(Failure::new(format_args!(
                "{file}: no sweep or published figures `{name}`"
            ))
            .help(near_or_all(name, names())));
        }
        if let Some(name) = nowhere.into_iter().next() {
            let points = self.points.iter().map(|p| p.name.as_str());
            return Err(Failure::new(format_args!("{file}: no point `{name}`"))
                .help(near_or_all(name, points)));
        }
        Ok(())
    }

    /// Every name that a table or a claim uses must exist.
    fn check(&self, file: &str) -> Result<(), Failure> {
        let known = |name: &str| {
            self.runs.iter().any(|r| r.name == name) || self.given.iter().any(|g| g.name == name)
        };
        self.check_matrices(file)?;
        let tops = self.tops.iter().flat_map(|t| t.columns.iter());
        let columns = self.tables.iter().flat_map(|t| t.columns.iter()).chain(tops);
        let claims = self.claims.iter().flat_map(|c| c.of.iter().chain([&c.run]));
        let others = self.runs.iter().filter_map(|run| run.against.as_ref());
        let ends = self.powers.iter().flat_map(|p| [&p.low, &p.high]);
        for name in columns.chain(claims).chain(ends).chain(others) {
            if !known(name) {
                let names = self.runs.iter().map(|r| r.name.as_str());
                let names = names.chain(self.given.iter().map(|g| g.name.as_str()));
                return Err(Failure::new(format_args!("{file}: no run or given figures `{name}`"))
                    .help(near_or_all(name, names)));
            }
        }
        if let Some((sweep, start)) =
            self.sweeps.iter().find_map(|sweep| Some((&sweep.name, sweep.double_start()?)))
        {
            return Err(Failure::new(format_args!(
                "{file}: sweep `{sweep}` has the start `{start}` twice"
            )));
        }
        self.check_agreements(file)?;
        self.runs().map(drop)
    }

    /// Both sides of an agreement are sweeps, and a metric that moves has a tolerance.
    fn check_agreements(&self, file: &str) -> Result<(), Failure> {
        let sweeps = || self.sweeps.iter().map(|s| s.name.as_str());
        let sides = self
            .agreements
            .iter()
            .flat_map(|a| [&a.real, &a.simulated].into_iter().chain(&a.control));
        if let Some(name) = sides.into_iter().find(|name| !sweeps().any(|s| s == name.as_str())) {
            return Err(Failure::new(format_args!("{file}: no sweep `{name}`"))
                .help(near_or_all(name, sweeps())));
        }
        let points = || self.points.iter().map(|p| p.name.as_str());
        let swept = self.sweeps.iter().flat_map(|s| s.points.iter().flatten());
        let left_out = self.agreements.iter().flat_map(|a| a.without.keys()).chain(swept);
        if let Some(name) = left_out.into_iter().find(|name| !points().any(|p| p == name.as_str()))
        {
            return Err(Failure::new(format_args!("{file}: no point `{name}`"))
                .help(near_or_all(name, points())));
        }
        let metrics = || self.tolerances.iter().map(|t| t.metric.as_str());
        if let Some(power) = self.powers.iter().find(|p| !metrics().any(|m| m == p.metric)) {
            return Err(Failure::new(format_args!("{file}: no tolerance for `{}`", power.metric))
                .help(near_or_all(&power.metric, metrics())));
        }
        Ok(())
    }
}
