//! The file format of an experiment, strict: an unknown key is an error with its line.

use std::fmt;

use fairground_session::{Failure, OptionGroup, RunSpec, check_version, did_you_mean};
use serde::{Deserialize, Deserializer};

use super::agreement::{Agreement, Gap, Power, Rules, Tolerance};
use super::entry::{RunEntry, UserTimeEntry};
use super::given::{Given, Range};
use super::locks::{Locks, each_model};
use super::sweep::{Matrix, Point, Published, Sweep};
use super::top::TopTable;
use super::words;

/// The target of a run that does not name another.
const SIMULATED: &str = "sim";

/// The only version of the format so far.
pub(crate) const EXPERIMENT_FORMAT: u32 = 1;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Experiment {
    #[serde(rename = "format")]
    _format: u32,
    /// Its name, as `reproduce` takes it.
    pub(crate) name: String,
    pub(crate) title: String,
    /// Where the published result stands.
    pub(crate) source: String,
    /// The question, and how to read the figures.
    pub(crate) about: String,
    /// Keys of every run that does not have its own.
    #[serde(default)]
    defaults: Defaults,
    #[serde(default, rename = "run")]
    pub(super) runs: Vec<RunEntry>,
    /// The points at which sweeps run.
    #[serde(default, rename = "point")]
    pub(crate) points: Vec<Point>,
    /// Runs at every point.
    #[serde(default, rename = "sweep")]
    pub(crate) sweeps: Vec<Sweep>,
    /// Figures from elsewhere at every point.
    #[serde(default, rename = "published")]
    published: Vec<Published>,
    /// Tables with a row for each point.
    #[serde(default, rename = "matrix")]
    pub(crate) matrices: Vec<Matrix>,
    /// Comparisons of real kernels with simulations.
    #[serde(default, rename = "agreement")]
    pub(crate) agreements: Vec<Agreement>,
    /// Tolerances of the comparisons.
    #[serde(default, rename = "tolerance")]
    tolerances: Vec<Tolerance>,
    /// Pairs of runs that show that a metric moves.
    #[serde(default, rename = "power")]
    powers: Vec<Power>,
    /// Known causes of differences.
    #[serde(default, rename = "gap")]
    pub(crate) gaps: Vec<Gap>,
    /// Figures from elsewhere: published, or of a real kernel.
    #[serde(default, rename = "given")]
    pub(crate) given: Vec<Given>,
    #[serde(default, rename = "table")]
    pub(crate) tables: Vec<Table>,
    #[serde(default, rename = "top")]
    pub(crate) tops: Vec<TopTable>,
    /// The claims.
    #[serde(default, rename = "claim")]
    pub(crate) claims: Vec<Claim>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Defaults {
    locks: Option<Locks>,
    #[serde(flatten)]
    words: toml::Table,
}

/// One run, with the defaults of its experiment.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) name: String,
    /// Whether every report of the run is listed.
    pub(crate) reports: bool,
    /// How user time is counted.
    pub(crate) user_time: UserTimeEntry,
    /// The run or given figures beside which its figures are shown as changes.
    pub(crate) against: Option<String>,
    /// The run's options.
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
    pub(crate) title: String,
    /// Names of runs and of given figures, in order.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) metric: String,
    /// Its label.
    pub(crate) label: String,
    #[serde(default = "super::entry::two")]
    pub(crate) decimals: u8,
}

/// Something that must be so: a metric of runs lies within bounds, absolute or relative to another column.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) say: String,
    /// The runs of which it must hold.
    #[serde(rename = "run", deserialize_with = "one_or_several")]
    pub(crate) runs: Vec<String>,
    pub(crate) metric: String,
    /// Bounds of the mean; relative ones when `of` is there.
    pub(crate) within: Range,
    /// The columns to whose means the bounds are a ratio: one for all runs, or one for each.
    #[serde(default, deserialize_with = "one_or_several")]
    pub(crate) of: Vec<String>,
    /// Why it does not hold, where that is known and explained: the claim is shown, and does not fail the experiment.
    pub(crate) known_gap: Option<String>,
}

/// A name, or a list of names.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::One(name) => vec![name],
        Names::Several(names) => names,
    })
}

/// Refuses the first name that is not among the known ones, with the one that is most like it, or all of them.
fn refuse_unknown<'n, K: Iterator<Item = &'n str>>(
    what: &str,
    used: impl IntoIterator<Item = &'n String>,
    known: impl Fn() -> K,
) -> Result<(), Failure> {
    let is_unknown = |name: &&String| !known().any(|known| known == name.as_str());
    let Some(name) = used.into_iter().find(is_unknown) else { return Ok(()) };
    let failure = Failure::new(format_args!("{what} `{name}`"));
    Err(match did_you_mean(name, known()) {
        Some(near) => failure.help(format_args!("did you mean `{near}`?")),
        None => {
            let all: Vec<_> = known().map(|known| format!("`{known}`")).collect();
            failure.help(format_args!("there are {}", all.join(", ")))
        }
    })
}

impl Experiment {
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
        experiment.sweeps =
            each_model(experiment.sweeps, |s| (&mut s.name, &mut s.locks, &mut s.against));
        experiment.runs =
            each_model(experiment.runs, |r| (&mut r.name, &mut r.locks, &mut r.against));
        let swept = experiment
            .sweeps
            .iter()
            .flat_map(|sweep| sweep.runs(&experiment.points, experiment.is_real(sweep.on())));
        let (runs, given): (Vec<_>, Vec<_>) =
            (swept.collect(), experiment.published.iter().flat_map(Published::given).collect());
        experiment.runs.extend(runs);
        experiment.given.extend(given);
        experiment.check(file)?;
        Ok(experiment)
    }

    /// Whether runs with this target, or that of the defaults, are on a real kernel.
    pub(super) fn is_real(&self, on: Option<&str>) -> bool {
        let default = self.defaults.words.get("on").and_then(toml::Value::as_str);
        on.or(default).is_some_and(|on| on != SIMULATED)
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

    /// Tolerances and gaps by which a simulation agrees with a real kernel.
    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules {
            tolerances: &self.tolerances,
            powers: &self.powers,
            gaps: &self.gaps,
            sweeps: &self.sweeps,
            cpus: self
                .defaults
                .words
                .get("cpus")
                .and_then(toml::Value::as_integer)
                .map_or(1, |n| n as u32),
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
        // On a real kernel a run may have what the simulated runs beside it have.
        let is_simulated = spec.target.on == [SIMULATED];
        let keeps = |name: &str| is_simulated && entry.words.contains_key(name);
        let spec = spec.for_its_targets(keeps).map_err(|failure| of_run(&failure))?;
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

    /// Every name that a table, a claim or an agreement uses must exist.
    fn check(&self, file: &str) -> Result<(), Failure> {
        self.check_matrices(file)?;
        let tops = self.tops.iter().flat_map(|t| t.columns.iter());
        let columns = self.tables.iter().flat_map(|t| t.columns.iter()).chain(tops);
        self.check_claims(file)?;
        let claims = self.claims.iter().flat_map(|c| c.of.iter().chain(&c.runs));
        let others = self.runs.iter().filter_map(|run| run.against.as_ref());
        let ends = self.powers.iter().flat_map(|p| [&p.low, &p.high]);
        let used = columns.chain(claims).chain(ends).chain(others);
        refuse_unknown(&format!("{file}: no run or given figures"), used, || {
            let given = self.given.iter().map(|given| given.name.as_str());
            self.runs.iter().map(|run| run.name.as_str()).chain(given)
        })?;
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

    /// A claim is about runs, and is relative to as many columns as it has runs, to one, or to none.
    fn check_claims(&self, file: &str) -> Result<(), Failure> {
        let is_odd =
            |c: &&Claim| c.runs.is_empty() || (c.of.len() > 1 && c.of.len() != c.runs.len());
        let Some(claim) = self.claims.iter().find(is_odd) else { return Ok(()) };
        Err(Failure::new(format_args!(
            "{file}: the claim `{}` has {} in `run` and {} in `of`",
            claim.say,
            claim.runs.len(),
            claim.of.len()
        ))
        .help("name at least one run, and one column in `of` for all of them or one for each"))
    }

    fn sweep_names(&self) -> impl Iterator<Item = &str> {
        self.sweeps.iter().map(|sweep| sweep.name.as_str())
    }

    fn refuse_unknown_points<'n>(
        &'n self,
        file: &str,
        used: impl Iterator<Item = &'n String>,
    ) -> Result<(), Failure> {
        let points = || self.points.iter().map(|point| point.name.as_str());
        refuse_unknown(&format!("{file}: no point"), used, points)
    }

    /// Every column of a matrix is a sweep or published, and every published figure belongs to a point.
    fn check_matrices(&self, file: &str) -> Result<(), Failure> {
        if let Some(matrix) = self.matrices.iter().find(|matrix| matrix.metric.is_none())
            && let Some(point) =
                self.points.iter().find(|p| p.metric.is_none() && self.has_at(matrix, &p.name))
        {
            let (title, point) = (&matrix.title, &point.name);
            return Err(Failure::new(format_args!(
                "{file}: neither the matrix `{title}` nor the point `{point}` has a `metric`"
            )));
        }
        let columns = self.matrices.iter().flat_map(|matrix| &matrix.columns);
        refuse_unknown(&format!("{file}: no sweep or published figures"), columns, || {
            self.sweep_names().chain(self.published.iter().map(|given| given.name.as_str()))
        })?;
        self.refuse_unknown_points(file, self.published.iter().flat_map(|p| p.values.keys()))
    }

    /// Both sides of an agreement are sweeps, and a metric that moves has a tolerance.
    fn check_agreements(&self, file: &str) -> Result<(), Failure> {
        let sides = self
            .agreements
            .iter()
            .flat_map(|a| [&a.real, &a.simulated].into_iter().chain(&a.control));
        refuse_unknown(&format!("{file}: no sweep"), sides, || self.sweep_names())?;
        let swept = self.sweeps.iter().flat_map(|s| s.points.iter().flatten());
        let left_out = self.agreements.iter().flat_map(|a| a.without.keys());
        self.refuse_unknown_points(file, left_out.chain(swept))?;
        let metrics = || self.tolerances.iter().map(|tolerance| tolerance.metric.as_str());
        let moving = self.powers.iter().map(|power| &power.metric);
        refuse_unknown(&format!("{file}: no tolerance for"), moving, metrics)
    }
}
