//! The result of following a recording.

use fairground_analysis::Irregularities;

use super::follower::Follower;
use super::tally::Decision;
use super::{DecidedBy, Followed};

impl Follower<'_> {
    /// The decisions that were not compared, and why.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.timeline.has_wakings {
            notes.push(
                "not compared: placements and preemptions at wake-ups: the recording has no \
                 sched_waking, which says when they were decided"
                    .to_owned(),
            );
        } else if !self.timeline.has_wakeups {
            notes.push(
                "not compared: placements: the recording has no sched_wakeup, which has their results"
                    .to_owned(),
            );
        }
        if !self.timeline.has_ticks {
            notes.push(
                "not compared: preemptions at ticks: the recording does not say when CPUs tick; the \
                 scheduler was told of ticks at multiples of 1/HZ"
                    .to_owned(),
            );
        }
        let outside = self.of_class.iter().skip(1).filter(|of_class| !**of_class).count();
        if outside > 0 {
            notes.push(format!(
                "tasks of other classes, without a nice value: {outside}; the scheduler does not have \
                 a CPU while one of them runs"
            ));
        }
        notes
    }

    /// The events that a recording of the same machine would need to decide more; `None`: this one has them.
    fn remedy(&self, is_simulated: bool) -> Option<&'static str> {
        match (self.resolution.is_exact(), is_simulated) {
            (true, _) => None,
            (false, true) => {
                Some("record it with --callbacks, which show when each decision was made")
            }
            (false, false) => {
                Some("record sched_stat_runtime (`fairground record`, --calls, perf sched record)")
            }
        }
    }

    pub(super) fn finish(
        mut self,
        label: String,
        until_ns: u64,
        irregularities: Irregularities,
        callbacks: Vec<(Decision, DecidedBy)>,
        is_simulated: bool,
    ) -> Followed {
        self.judge_open();
        let agreement = Decision::ALL.map(|decision| (decision, self.tally.agreement(decision)));
        Followed {
            label,
            agreement: agreement.to_vec(),
            kinds: self.tally.kinds(),
            first: self.tally.first().cloned(),
            reaction_ns: self.timeline.reaction_ns,
            clock_ns: self.knowledge.clock_ns,
            error_ns: self.resolution.error_ns,
            remedy: self.remedy(is_simulated),
            callbacks,
            notes: self.notes(),
            exit: self.driven.exit().cloned(),
            until_ns,
            irregularities,
        }
    }
}
