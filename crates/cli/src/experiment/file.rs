//! The file format of an experiment, strict: an unknown key is an error with its line.

use std::collections::BTreeMap;

use fairground_realkernel::job::HOLD_NS_MAX;
use fairground_session::{Failure, check_version};
use fairground_workload::LockModel;
use serde::Deserialize;

use super::agreement::{Agreement, Gap, Power, Rules, Tolerance};
use super::given::{Given, Range};
use super::locks::{self, Locks};
use super::sweep::{Matrix, Point, Published, Sweep};
use super::top::TopTable;
use crate::args::TimersArg;

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
    defaults: Settings,
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
#[serde(deny_unknown_fields)]
struct Settings {
    on: Option<String>,
    append: Option<Vec<String>>,
    record: Option<bool>,
    workload: Option<String>,
    locks: Option<Locks>,
    sched: Option<String>,
    cpus: Option<u32>,
    topology: Option<toml::Value>,
    hz: Option<u32>,
    timers: Option<TimersArg>,
    seed: Option<u64>,
    costs: Option<String>,
    #[serde(default)]
    cost: BTreeMap<String, u64>,
    duration: Option<String>,
    lead_in: Option<String>,
    hold: Option<String>,
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    #[serde(default)]
    at: Vec<String>,
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
    settings: toml::Table,
}

impl RunEntry {
    /// A run of a sweep.
    pub(super) fn new(
        name: String,
        locks: Option<Locks>,
        against: Option<String>,
        settings: toml::Table,
    ) -> RunEntry {
        RunEntry { name, locks, against, reports: false, user_time: UserTimeEntry::Exact, settings }
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

/// One run, fully defaulted.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Its name in tables and claims.
    pub(crate) name: String,
    /// Whether every report of the run is listed.
    pub(crate) reports: bool,
    /// How user time is counted.
    pub(crate) user_time: UserTimeEntry,
    /// The target, as the command line takes it.
    pub(crate) on: String,
    /// Boot parameters of a virtual machine's kernel.
    pub(crate) append: Vec<String>,
    /// Whether a real kernel records its events; without, only what the tasks say is measured, and nothing disturbs.
    pub(crate) record: bool,
    /// The workload, as the command line takes it.
    pub(crate) workload: String,
    /// What the workload's locks are, where that is stated.
    pub(crate) locks: Option<LockModel>,
    /// The run or given figures beside which its figures are told as changes.
    pub(crate) against: Option<String>,
    /// The scheduler, as the command line takes it.
    pub(crate) sched: String,
    /// CPUs, where no topology is stated.
    pub(crate) cpus: Option<u32>,
    /// The topology: a text as the command line takes it, or a table as in a topology file.
    pub(crate) topology: Option<toml::Value>,
    /// Ticks a second.
    pub(crate) hz: u32,
    /// What ends a sleep.
    pub(crate) timers: TimersArg,
    /// Seed.
    pub(crate) seed: u64,
    /// Preset of costs.
    pub(crate) costs: String,
    /// Costs that differ from the preset.
    pub(crate) cost: Vec<String>,
    /// Length.
    pub(crate) duration: Option<String>,
    /// How long the tasks of a simulated run exist and sleep before it starts.
    pub(crate) lead_in: Option<String>,
    /// How much later the tasks of a run on a real kernel are let go, ns: where in a tick it starts.
    pub(crate) hold_ns: u64,
    /// `name=value` before the run.
    pub(crate) set: Vec<String>,
    /// `time:name=value` during the run.
    pub(crate) at: Vec<String>,
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
        experiment.sweeps = locks::sweeps(experiment.sweeps);
        experiment.runs = locks::runs(experiment.runs);
        let is_real = |on: Option<&str>| {
            on.or(experiment.defaults.on.as_deref()).is_some_and(|on| on != SIMULATED)
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
        let own: Settings = entry.settings.clone().try_into().map_err(|e: toml::de::Error| {
            Failure::new(format_args!("{}: run `{}`: {}", self.name, entry.name, e.message()))
        })?;
        let base = &self.defaults;
        let missing = |key: &str| {
            Failure::new(format_args!("{}: run `{}` has no `{key}`", self.name, entry.name))
                .help("state it in the run or in [defaults]")
        };
        // The run's own statement counts, in whichever of the two ways it is made.
        let (cpus, topology) = match (own.cpus, own.topology) {
            (None, None) => (base.cpus, base.topology.clone()),
            own => own,
        };
        if topology.is_none() && cpus.is_none() {
            return Err(missing("cpus"));
        }
        if topology.is_some() && cpus.is_some() {
            return Err(Failure::new(format_args!(
                "{}: run `{}` has both `cpus` and `topology`",
                self.name, entry.name
            ))
            .help("state one of the two"));
        }
        let mut set = base.set.clone();
        set.extend(own.set);
        let mut cost = base.cost.clone();
        cost.extend(own.cost);
        let on = own.on.or(base.on.clone()).unwrap_or_else(|| SIMULATED.to_owned());
        let hold_ns = match own.hold.or(base.hold.clone()) {
            Some(text) => self.hold_ns(&entry.name, &on, &text)?,
            None => 0,
        };
        Ok(Run {
            name: entry.name.clone(),
            reports: entry.reports,
            user_time: entry.user_time,
            on,
            hold_ns,
            append: own.append.or(base.append.clone()).unwrap_or_default(),
            record: own.record.or(base.record).unwrap_or(true),
            workload: own.workload.or(base.workload.clone()).ok_or_else(|| missing("workload"))?,
            locks: entry.locks.as_ref().or(base.locks.as_ref()).and_then(Locks::one),
            against: entry.against.clone(),
            sched: own.sched.or(base.sched.clone()).ok_or_else(|| missing("sched"))?,
            cpus,
            topology,
            hz: own.hz.or(base.hz).ok_or_else(|| missing("hz"))?,
            timers: own.timers.or(base.timers).unwrap_or_default(),
            seed: own.seed.or(base.seed).unwrap_or(1),
            costs: own.costs.or(base.costs.clone()).ok_or_else(|| missing("costs"))?,
            cost: cost.into_iter().map(|(name, value)| format!("{name}={value}")).collect(),
            duration: own.duration.or(base.duration.clone()),
            lead_in: own.lead_in.or(base.lead_in.clone()),
            set: set.into_iter().map(|(name, value)| format!("{name}={}", plain(&value))).collect(),
            at: if own.at.is_empty() { base.at.clone() } else { own.at },
        })
    }

    /// How much later a run's tasks are let go, which only a real kernel needs to be told.
    fn hold_ns(&self, run: &str, on: &str, text: &str) -> Result<u64, Failure> {
        let wrong =
            |why: String| Failure::new(format_args!("{}: run `{run}`: hold: {why}", self.name));
        if on == SIMULATED {
            let why = format!("`{text}`, and the run is simulated");
            return Err(wrong(why).help("where in a tick a simulated run starts is its `lead_in`"));
        }
        let hold_ns = fairground_workload::parse_time(text)
            .map_err(|error| wrong(error.message).help(error.help))?;
        if hold_ns > HOLD_NS_MAX {
            let why = format!("`{text}` is longer than {} ms", HOLD_NS_MAX / 1_000_000);
            return Err(wrong(why).help("it says where in a tick the run starts"));
        }
        Ok(hold_ns)
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

/// A TOML value as the command line writes it.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Boolean(on) => (if *on { "on" } else { "off" }).to_owned(),
        other => other.to_string(),
    }
}
