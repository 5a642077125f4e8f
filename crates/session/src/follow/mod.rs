//! A scheduler follows a recording: at each recorded event it is told what happened and asked for its decision, which
//! is compared with the recorded one; then the machine goes on from what was recorded.
//!
//! Decisions are therefore compared one by one, on the recorded timeline. [`fairground_machine::Driven`] carries out
//! what was recorded; [`Timeline`] says what the recording decided where no event does.

mod begin;
mod changes;
mod deferred;
mod follower;
mod judge;
mod kept;
mod knowledge;
mod moves;
mod order;
mod outcome;
mod passes;
mod prepare;
mod reads;
mod resolution;
mod tally;
mod timeline;
mod vanished;
mod yields;

use fairground_analysis::Irregularities;
use fairground_analysis::states::States;
use fairground_bpf::SourceLine;
use fairground_machine::{Driven, Exit, MachineConfig, Setting};
use fairground_trace::{CallbackKind, Trace};

use crate::failure::Failure;
use crate::input::Scheduler;
use crate::simulate::{CHUNK_NS, Watch};
use follower::Follower;
use knowledge::Knowledge;
pub use prepare::Follow;
use resolution::Resolution;
pub use tally::{Agreement, CandidateState, Choice, Decision, Difference, Differences, Kind};
use timeline::Timeline;

/// A recording, and the scheduler that follows it.
#[derive(Debug)]
pub struct FollowPlan<'a> {
    /// The recording.
    pub trace: &'a Trace,
    /// The scheduler.
    pub scheduler: &'a Scheduler,
    /// Tunables beyond the parameter set.
    pub settings: Vec<Setting>,
    /// The machine; its costs do not count.
    pub machine: MachineConfig,
}

/// The decisions of a scheduler on a recorded timeline.
#[derive(Debug)]
pub struct Followed {
    /// The scheduler's name.
    pub label: String,
    /// Decisions by kind.
    pub agreement: Vec<(Decision, Agreement)>,
    /// The kinds of differences, the most frequent first.
    pub kinds: Vec<Differences>,
    /// The first difference.
    pub first: Option<Difference>,
    /// How soon CPUs of the recording switch after they are asked to, ns, at most.
    pub reaction_ns: u64,
    /// The resolution of the recording's clock, ns: what differs by less is a tie.
    pub clock_ns: u64,
    /// How long before its stamp a decision was made, ns, at most; 0: the recording shows when.
    pub error_ns: u64,
    /// The events to record for more decisions to be decided; `None` if the recording decides all.
    pub remedy: Option<&'static str>,
    /// The function of the scheduler that decides, and where it stands, by the kind of decision.
    pub callbacks: Vec<(Decision, DecidedBy)>,
    /// The decisions that were not compared, and why.
    pub notes: Vec<String>,
    /// How the scheduler's time in charge ended, if it did before the recording.
    pub exit: Option<Exit>,
    /// Up to when the recording was followed, ns.
    pub until_ns: u64,
    /// The contradictions in the recording.
    pub irregularities: Irregularities,
}

/// The callback that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedBy {
    /// Its function in the object.
    pub function: String,
    /// The place in the source where it begins, if the object says so.
    pub line: Option<SourceLine>,
}

/// The callbacks that decide, by the kind of decision; none where the core decides by its own rules.
fn deciding(scheduler: &Scheduler) -> Vec<(Decision, DecidedBy)> {
    let of = |decision: Decision| {
        let kinds: &[CallbackKind] = match decision {
            Decision::Pick => &[CallbackKind::Dispatch],
            Decision::PreemptAtWakeup => &[CallbackKind::Enqueue, CallbackKind::SelectCpu],
            Decision::PreemptAtTick => &[CallbackKind::Tick],
            Decision::PlaceWoken | Decision::PlaceNew => &[CallbackKind::SelectCpu],
            Decision::Move => &[CallbackKind::Dispatch],
        };
        let function = kinds.iter().find_map(|kind| scheduler.policy.callback(*kind))?;
        let line = scheduler.object.object.source_line(function, 0).cloned();
        Some((decision, DecidedBy { function: function.to_owned(), line }))
    };
    Decision::ALL.into_iter().filter_map(of).collect()
}

impl FollowPlan<'_> {
    /// Follows the whole recording, or until the scheduler is ejected or the run is not wanted any more.
    ///
    /// # Errors
    /// If the recording has no switches, or the scheduler or a setting cannot be used in this machine.
    pub fn run(self, watch: &dyn Watch) -> Result<Followed, Failure> {
        let label = self.scheduler.object.label.clone();
        watch.name(&label);
        let tick_ns = self.machine.tick_ns();
        let timeline = Timeline::of(self.trace, tick_ns);
        if !timeline.has_switches {
            return Err(Failure::new("the recording has no `sched_switch`: no decision is in it")
                .help("record the events sched_switch, sched_waking, sched_wakeup, sched_wakeup_new, \
                       sched_migrate_task, sched_process_fork and sched_process_exit; `fairground record` does"));
        }
        let mut settings = self.scheduler.object.settings.clone();
        settings.extend(self.settings);
        let failed = |error: &dyn std::fmt::Display| Failure::new(format_args!("{label}: {error}"));
        let driven = Driven::new(
            &self.machine,
            &self.scheduler.policy,
            &settings,
            self.trace,
            timeline.stamp_late_ns,
        )
        .map_err(|error| failed(&error))?;
        let mut states = States::of(self.trace, false);
        let topology = &self.machine.topology;
        let object = &self.scheduler.object.object;
        let knowledge = Knowledge::new(object, topology, self.trace);
        let is_simulated = self.trace.origin.is_simulated();
        let error_ns = match timeline.has_charges || (is_simulated && timeline.shows_passes()) {
            true => 0,
            false => timeline.reaction_ns.max(knowledge.clock_ns),
        };
        let resolution = Resolution::new(self.trace, error_ns);
        let mut follower =
            Follower::new(driven, &timeline, self.trace, knowledge, resolution, tick_ns);
        follower.begin(self.trace).map_err(|error| failed(&error))?;
        let mut chunk = 0;
        for (index, event) in self.trace.events().enumerate() {
            follower.index = index;
            states.take(self.trace, &event, &mut follower);
            if let Some(error) = follower.failure.take() {
                return Err(failed(&error));
            }
            let at = event.time_ns.saturating_sub(self.trace.start_ns) / CHUNK_NS;
            if at > chunk {
                watch.advance(at - chunk);
                chunk = at;
            }
            if follower.is_over() || !watch.goes_on() {
                break;
            }
        }
        let until_ns = states.now_ns();
        let irregularities = states.irregularities().clone();
        let callbacks = deciding(self.scheduler);
        Ok(follower.finish(label, until_ns, irregularities, callbacks, is_simulated))
    }
}
