//! Decisions that were compared, and how they differ.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use fairground_trace::TaskId;

/// A kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Which task a CPU runs next.
    Pick,
    /// Whether a wake-up makes the running task leave.
    PreemptAtWakeup,
    /// Whether a tick makes the running task leave.
    PreemptAtTick,
    /// For which CPU a woken task is queued.
    PlaceWoken,
    /// For which CPU a new task is queued.
    PlaceNew,
    /// Which task goes to another CPU's queue, beyond wake-ups and picks.
    Move,
}

impl Decision {
    /// Every kind.
    pub const ALL: [Decision; 6] = [
        Decision::Pick,
        Decision::PreemptAtWakeup,
        Decision::PreemptAtTick,
        Decision::PlaceWoken,
        Decision::PlaceNew,
        Decision::Move,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Pick => "pick",
            Decision::PreemptAtWakeup => "preempt at wake-up",
            Decision::PreemptAtTick => "preempt at tick",
            Decision::PlaceWoken => "place woken task",
            Decision::PlaceNew => "place new task",
            Decision::Move => "move",
        }
    }
}

/// The outcome of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This task; [`TaskId::IDLE`]: none.
    Task(TaskId),
    /// This CPU.
    Cpu(u32),
    /// The running task leaves.
    Preempt,
    /// The running task stays.
    Stay,
}

/// How two decisions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Pick: both run a task, and not the same one.
    OtherTask,
    /// Pick: the scheduler runs a task where the recording goes idle.
    RunsInsteadOfIdle,
    /// Pick: the scheduler goes idle where the recording runs a task.
    IdleInsteadOfRun,
    /// Pick: the scheduler lets the running task go on where the recording switches.
    KeepsRunning,
    /// Preempt: only the scheduler does.
    OnlySchedulerPreempts,
    /// Preempt: only the recording does.
    OnlyRecordingPreempts,
    /// Place: the recording chose the CPU on which the task ran last.
    RecordingStays,
    /// Place: the scheduler chose the CPU on which the task ran last.
    SchedulerStays,
    /// Place: both chose another CPU, and not the same.
    OtherCpu,
    /// Move: only the scheduler moves the task.
    OnlySchedulerMoves,
    /// Move: only the recording moves the task there.
    OnlyRecordingMoves,
}

impl Kind {
    /// The difference in words.
    pub fn text(self) -> &'static str {
        match self {
            Kind::OtherTask => "another task runs",
            Kind::RunsInsteadOfIdle => "the scheduler runs a task, the recording goes idle",
            Kind::IdleInsteadOfRun => "the scheduler goes idle, the recording runs a task",
            Kind::KeepsRunning => "the scheduler keeps the running task, the recording switches",
            Kind::OnlySchedulerPreempts => "the scheduler preempts, the recording does not",
            Kind::OnlyRecordingPreempts => "the recording preempts, the scheduler does not",
            Kind::RecordingStays => "the recording stays on the last CPU, the scheduler leaves it",
            Kind::SchedulerStays => "the scheduler stays on the last CPU, the recording leaves it",
            Kind::OtherCpu => "another CPU",
            Kind::OnlySchedulerMoves => "only the scheduler moves the task",
            Kind::OnlyRecordingMoves => "only the recording moves the task there",
        }
    }
}

/// How many decisions of a kind were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The same.
    pub same: u64,
    /// Placements that are the recorded ones only if the waker was about to sleep (`WF_SYNC`), which no event says.
    pub with_sync: u64,
    /// Those that differ within the error of the recording.
    pub ties: u64,
    /// Different.
    pub different: u64,
}

impl Agreement {
    /// All that were compared.
    pub fn total(&self) -> u64 {
        self.decided() + self.with_sync + self.ties
    }

    /// Those about which the recording says enough: the same and the different ones.
    pub fn decided(&self) -> u64 {
        self.same + self.different
    }
}

impl AddAssign<&Agreement> for Agreement {
    fn add_assign(&mut self, other: &Agreement) {
        self.same += other.same;
        self.with_sync += other.with_sync;
        self.ties += other.ties;
        self.different += other.different;
    }
}

/// A decision that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// When, ns.
    pub time_ns: u64,
    /// The CPU that decided.
    pub cpu: u32,
    /// Its kind.
    pub decision: Decision,
    /// How it differs.
    pub kind: Kind,
    /// The task that it is about, or that runs; [`TaskId::IDLE`]: none.
    pub task: TaskId,
    /// The recording's decision.
    pub recorded: Choice,
    /// The scheduler's.
    pub scheduler: Choice,
    /// The candidates as the scheduler kept them then: the recorded one first. Only of the first difference of its
    /// kind.
    pub candidates: Vec<CandidateState>,
}

/// A task as a scheduler keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateState {
    /// The task.
    pub task: TaskId,
    /// Numbers with their names: the slice that is left, ns, and those that the scheduler keeps for the task.
    pub numbers: Vec<(String, i64)>,
}

/// Differences of one kind.
#[derive(Clone, Debug)]
pub struct Differences {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Difference,
}

/// Counts of compared decisions.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    agreements: BTreeMap<Decision, Agreement>,
    kinds: BTreeMap<(Decision, Kind), Differences>,
    first: Option<(Decision, Kind)>,
}

impl Tally {
    pub(super) fn agree(&mut self, decision: Decision) {
        self.agreements.entry(decision).or_default().same += 1;
    }

    pub(super) fn agree_with_sync(&mut self, decision: Decision) {
        self.agreements.entry(decision).or_default().with_sync += 1;
    }

    pub(super) fn tie(&mut self, decision: Decision) {
        self.agreements.entry(decision).or_default().ties += 1;
    }

    /// Whether no difference of a kind was counted yet.
    pub(super) fn is_new(&self, decision: Decision, kind: Kind) -> bool {
        !self.kinds.contains_key(&(decision, kind))
    }

    /// Counts a difference.
    pub(super) fn differ(&mut self, difference: Difference) {
        self.agreements.entry(difference.decision).or_default().different += 1;
        let key = (difference.decision, difference.kind);
        self.first.get_or_insert(key);
        let kind =
            self.kinds.entry(key).or_insert_with(|| Differences { count: 0, first: difference });
        kind.count += 1;
    }

    pub(super) fn agreement(&self, decision: Decision) -> Agreement {
        self.agreements.get(&decision).copied().unwrap_or_default()
    }

    pub(super) fn first(&self) -> Option<&Difference> {
        self.kinds.get(&self.first?).map(|kind| &kind.first)
    }

    /// The kinds of differences, the most frequent first.
    pub(super) fn kinds(&self) -> Vec<Differences> {
        let mut kinds: Vec<_> = self.kinds.values().cloned().collect();
        kinds.sort_by_key(|kind| (std::cmp::Reverse(kind.count), kind.first.time_ns));
        kinds
    }
}
