//! Faults in a trace and their evidence: ranked findings, each with its evidence and the command that shows
//! more.
//!
//! [`Diagnosis::of`] takes the figures of [`Analysis`] and collects what no metric keeps: which task cut whose
//! slice, which ran while a wake-up waited, where a task was queued and for how long. Then each [`Rule`] judges
//! both and yields nothing or one [`Finding`]. A rule is a pure function; its thresholds are named constants beside
//! it, and `docs/reference/diagnose.md` gives their reasons. All arithmetic is in integers, and the order is fixed: the
//! costliest finding first.
//!
//! Memory beyond that of the analysis: a few hundred bytes for each task, group and CPU, and at most [`PAIRS_MAX`]
//! pairs of groups twice, whatever the length of the trace; where the trace has waits for locks, also that of
//! [`crate::contention`], which grows with the number of switches, until the rule of locks has judged.

mod collector;
mod convoy;
mod cut_slices;
mod facts;
mod idle;
mod imbalance;
mod ping_pong;
mod queue;
mod scheduler;
mod tail;
mod two;
mod waiting;

pub use scheduler::Family;
pub use two::{ChangedFinding, Fate, compare_findings};

use crate::{Analysis, Options};
use facts::{Facts, TaskFacts};
use fairground_trace::{CgroupId, TaskId, Trace};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Pairs of groups (one cut the other, or ran while the other waited) that are kept; further ones are counted and
/// not kept.
pub const PAIRS_MAX: usize = 4096;

/// Names that a finding lists before it says "and so many more".
pub const LISTED_MAX: usize = 8;

/// The place of the recording's name in [`Finding::command`].
pub const RECORDING: &str = "TRACE";

/// A shorter trace shows nothing about how CPU time is shared: a balancer needs several passes. A choice, ns.
pub(crate) const SHARING_WINDOW_MIN_NS: u64 = 1_000_000_000;

/// A million: severities are in parts of it.
const PPM: u128 = 1_000_000;

/// A kind of fault that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Tasks that wake up cut the slices of others short, and the CPU does not go back to those.
    CutSlices,
    /// Tasks that always want to run get less than their share, because they are on the wrong CPU.
    Imbalance,
    /// A task is kept waiting although much CPU time is due to it.
    Starved,
    /// Most wake-ups are quick, and some are very slow.
    WakeupTail,
    /// A task goes to and fro between CPUs.
    PingPong,
    /// CPUs idle while tasks wait elsewhere.
    IdleWhileWaiting,
    /// Tasks queue at a lock, one behind the other.
    LockConvoy,
    /// A task keeps its CPU for long without a break, although others wait behind it.
    Hog,
}

impl Rule {
    /// Every rule, in the order of `docs/reference/diagnose.md`.
    pub const ALL: [Rule; 8] = [
        Rule::CutSlices,
        Rule::Imbalance,
        Rule::Starved,
        Rule::WakeupTail,
        Rule::PingPong,
        Rule::IdleWhileWaiting,
        Rule::LockConvoy,
        Rule::Hog,
    ];

    /// The name, which does not change.
    pub fn name(self) -> &'static str {
        match self {
            Rule::CutSlices => "cut-slices",
            Rule::Imbalance => "imbalance",
            Rule::Starved => "starved",
            Rule::WakeupTail => "wakeup-tail",
            Rule::PingPong => "ping-pong",
            Rule::IdleWhileWaiting => "idle-while-waiting",
            Rule::LockConvoy => "lock-convoy",
            Rule::Hog => "hog",
        }
    }

    fn look(self, case: &Case<'_>) -> RuleOutcome {
        match self {
            Rule::CutSlices => cut_slices::look(case),
            Rule::Imbalance => imbalance::look(case),
            Rule::Starved => waiting::starved(case),
            Rule::WakeupTail => tail::look(case),
            Rule::PingPong => ping_pong::look(case),
            Rule::IdleWhileWaiting => idle::look(case),
            Rule::LockConvoy => convoy::look(case),
            Rule::Hog => waiting::hog(case),
        }
    }
}

/// A figure of the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A duration, ns.
    Ns(u64),
    /// A number of things.
    Count(u64),
    /// Parts per million.
    Ppm(u64),
    /// A number of things a second, in thousandths.
    MilliPerSecond(u64),
    /// Words.
    Text(String),
}

/// One line of the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The meaning of the figure.
    pub what: String,
    /// The figure.
    pub fact: Fact,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which rule found it.
    pub rule: Rule,
    /// One sentence: the task and what is wrong.
    pub title: String,
    /// Time lost, or given to the wrong task, in millionths of the CPU time of all CPUs in the window;
    /// `docs/reference/diagnose.md` defines for each rule which time. Findings are ranked by it.
    pub severity_ppm: u64,
    /// The tasks that suffer or do it, by number; all of them.
    pub tasks: Vec<TaskId>,
    /// The CPUs where it happens; empty where the rule does not name any.
    pub cpus: Vec<u32>,
    /// The figures.
    pub evidence: Vec<Evidence>,
    /// The meaning of the figures and their limits.
    pub meaning: String,
    /// Settings that help, under the scheduler that the recording was made under; empty where nothing depends on
    /// the scheduler.
    pub advice: String,
    /// The arguments of the command that shows more, with [`RECORDING`] for the recording's name.
    pub command: String,
}

impl Finding {
    fn new(rule: Rule, title: String) -> Self {
        Self {
            rule,
            title,
            severity_ppm: 0,
            tasks: Vec::new(),
            cpus: Vec::new(),
            evidence: Vec::new(),
            meaning: String::new(),
            advice: String::new(),
            command: String::new(),
        }
    }

    fn add(&mut self, what: impl Into<String>, fact: Fact) {
        self.evidence.push(Evidence { what: what.into(), fact });
    }
}

/// The verdict of a rule.
#[derive(Clone, Debug)]
enum RuleOutcome {
    Nothing,
    Found(Finding),
    /// The trace lacks what the rule needs: why.
    NotJudged(&'static str),
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// The findings, the costliest first.
    pub findings: Vec<Finding>,
    /// The rules that could not judge this trace, and why.
    pub not_judged: Vec<(Rule, &'static str)>,
    /// The scheduler that the recording was made under; empty where the recording does not say.
    pub scheduler: String,
    /// Cuts and slow wake-ups that were not counted, because there were more pairs of groups than [`PAIRS_MAX`].
    pub not_counted: u64,
}

/// The input of the rules.
struct Case<'a> {
    trace: &'a Trace,
    analysis: &'a Analysis,
    facts: &'a Facts,
}

impl Diagnosis {
    /// Diagnoses a whole trace. The same trace gives the same findings to the last digit.
    pub fn of(trace: &Trace) -> Self {
        Self::with(trace, &Analysis::of(trace, &Options::default()))
    }

    /// The same with an analysis of the whole trace that is there already.
    pub fn with(trace: &Trace, analysis: &Analysis) -> Self {
        let facts = collector::collect(trace, analysis);
        let case = Case { trace, analysis, facts: &facts };
        let family = Family::of(&trace.origin);
        let mut diagnosis = Self {
            scheduler: scheduler::describe(&trace.origin),
            not_counted: facts.dropped_pairs,
            ..Self::default()
        };
        for rule in Rule::ALL {
            let verdict = match analysis.machine.lacks_switches {
                true => RuleOutcome::NotJudged("the recording has no sched_switch"),
                false => rule.look(&case),
            };
            match verdict {
                RuleOutcome::Nothing => {}
                RuleOutcome::Found(mut finding) => {
                    case.add_cgroups(&mut finding);
                    finding.advice = family.advice(rule).unwrap_or_default();
                    diagnosis.findings.push(finding);
                }
                RuleOutcome::NotJudged(why) => diagnosis.not_judged.push((rule, why)),
            }
        }
        diagnosis.findings.sort_by_key(|finding| (u64::MAX - finding.severity_ppm, finding.rule));
        diagnosis
    }
}

impl Case<'_> {
    /// A time in millionths of the CPU time of all CPUs.
    fn share_ppm(&self, time_ns: u128) -> u64 {
        let all_ns = u128::from(self.analysis.window_ns()) * u128::from(self.trace.cpus);
        ratio_ppm(time_ns, all_ns)
    }

    /// The tasks of which a figure is not 0, the largest first.
    fn ranked(&self, figure: impl Fn(&TaskFacts) -> u64) -> Vec<TaskId> {
        let facts = &self.facts.tasks;
        let mut tasks: Vec<usize> = (1..facts.len()).filter(|at| figure(&facts[*at]) > 0).collect();
        tasks.sort_by_key(|at| Reverse(figure(&facts[*at])));
        tasks.into_iter().map(|at| TaskId(at as u32)).collect()
    }

    /// So many in the window, a second.
    fn rate(&self, count: u64) -> Fact {
        let window_ns = u128::from(self.analysis.window_ns()).max(1);
        let milli = u128::from(count) * 1_000_000_000_000 / window_ns;
        Fact::MilliPerSecond(u64::try_from(milli).unwrap_or(u64::MAX))
    }

    /// Names the control groups of tasks that wait for no reason that the events show: a limit (`cpu.max`) of theirs
    /// looks alike, and no event tells of it.
    fn add_cgroups(&self, finding: &mut Finding) {
        if !matches!(finding.rule, Rule::Starved | Rule::IdleWhileWaiting) {
            return;
        }
        let cgroup = |task: &TaskId| self.analysis.task(*task)?.cgroup;
        let groups: BTreeSet<CgroupId> = finding.tasks.iter().filter_map(cgroup).collect();
        // The root has no limit.
        let groups: Vec<String> = groups
            .iter()
            .filter(|group| group.index() > 0)
            .filter_map(|group| Some(format!("/{}", self.trace.cgroups().get(group.index())?.path)))
            .collect();
        if !groups.is_empty() {
            finding.add("their control groups", Fact::Text(listed(groups.into_iter())));
            finding.meaning +=
                " A limit of a control group (cpu.max) that is used up looks like this, too.";
        }
    }

    /// Tasks blocked, and no event shows when they woke up.
    fn lacks_wakeups(&self) -> bool {
        !self.facts.has_wakeups && self.analysis.machine.voluntary_switches > 0
    }

    fn group_name(&self, group: usize) -> &str {
        self.analysis.groups.get(group).map_or("?", |group| &group.name)
    }

    fn tasks_of(&self, group: usize) -> Vec<TaskId> {
        let tasks = self.analysis.tasks.iter().filter(|task| task.group == group);
        tasks.map(|task| task.task).collect()
    }

    /// Names of tasks, the first [`LISTED_MAX`], with their pids where a name is not unique.
    fn names(&self, tasks: &[TaskId]) -> String {
        let all = self.trace.tasks();
        let name = |task: &TaskId| {
            let Some(info) = all.get(task.index()) else { return String::new() };
            let alike = all.iter().filter(|other| other.comm == info.comm).take(2).count();
            if alike > 1 { format!("{}[{}]", info.comm, info.pid) } else { info.comm.clone() }
        };
        listed(tasks.iter().map(name))
    }
}

/// `part` in millionths of `whole`; 0 of nothing.
fn ratio_ppm(part: u128, whole: u128) -> u64 {
    let ppm = part.saturating_mul(PPM).checked_div(whole).unwrap_or(0);
    u64::try_from(ppm).unwrap_or(u64::MAX)
}

/// `a, b, c and 5 more`.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED_MAX);
    let shown: Vec<String> = names.take(LISTED_MAX).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn cpu_list(cpus: &[u32]) -> String {
    listed(cpus.iter().map(u32::to_string))
}
