//! Notes on a replay: its contents, and the facts that its recording lacks.

use std::fmt;

use crate::units::time_text;

/// Counts of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayNotes {
    /// Tasks in the workload.
    pub tasks: u64,
    /// Switches that were read.
    pub switches: u64,
    /// CPU time of all bursts, ns: with `charged_ns`, the run time that the recording shows.
    pub run_ns: u64,
    /// CPU time that was taken out of the bursts, since the machine charges it anew, ns.
    pub charged_ns: u64,
    /// Tasks of the deadline class, which are of the real-time class in the replay.
    pub deadlines: u64,
    /// Tasks whose control group a workload cannot have; they are in the root.
    pub unplaced_cgroups: u64,
    /// Waits that another task ended.
    pub messages: u64,
    /// Waits that became sleeps: an interrupt, the idle task or something outside the recording ended them.
    pub sleeps: u64,
    /// Forks by a recorded parent.
    pub forks: u64,
    /// Tasks that were seen to exit.
    pub exits: u64,
    /// Tasks that were named, but neither ran nor were woken: they are left out.
    pub unseen_tasks: u64,
    /// Tasks that were blocked when the recording ended; they sleep until then.
    pub blocked_at_end: u64,
    /// Wake-ups of tasks that were runnable already, without effect.
    pub needless_wakes: u64,
    /// Tasks that ran again although no event had woken them; they sleep until then. Events are missing.
    pub missing_wakes: u64,
    /// Wake-ups by a task that did not run as far as the recording shows; they became sleeps.
    pub wakers_not_running: u64,
    /// Switches that contradict the ones before them; the run time that they would end is not known. Events are
    /// missing.
    pub unmatched_switches: u64,
    /// Forks whose parent did not run, or whose child was known already; the child starts at that time.
    pub unplaced_forks: u64,
    /// Events that lay before their predecessors; they count as simultaneous with them.
    pub clock_jumps: u64,
    /// Events that the recorder lost, as it says.
    pub lost_events: u64,
}

impl ReplayNotes {
    /// Whether the recording contradicts itself or misses events, so that the replay is a guess in places.
    pub fn has_gaps(&self) -> bool {
        self.missing_wakes
            + self.wakers_not_running
            + self.unmatched_switches
            + self.unplaced_forks
            + self.clock_jumps
            + self.lost_events
            > 0
    }
}

impl fmt::Display for ReplayNotes {
    /// One line of what there is, and one for each thing that is not known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tasks: {}, CPU time: {}", self.tasks, time_text(self.run_ns))?;
        if self.charged_ns > 0 {
            write!(f, " and {} that the machine charges anew", time_text(self.charged_ns))?;
        }
        write!(f, "; waits ended by another task: {}", self.messages)?;
        write!(f, ", by an interrupt or from outside: {}", self.sleeps)?;
        write!(f, "; forks: {}, exits: {}", self.forks, self.exits)?;
        let gaps = [
            ("tasks of the deadline class; here they are fifo 99", self.deadlines),
            (
                "tasks whose control group cannot be made; they are in the root",
                self.unplaced_cgroups,
            ),
            ("blocked when the recording ended", self.blocked_at_end),
            ("wake-ups that are missing; these tasks sleep until they ran", self.missing_wakes),
            ("wake-ups by tasks that did not run; they became sleeps", self.wakers_not_running),
            ("switches that do not follow from those before", self.unmatched_switches),
            (
                "forks without a place in a parent; the child starts at that time",
                self.unplaced_forks,
            ),
            ("events that lay before their predecessors", self.clock_jumps),
            ("events that the recorder lost", self.lost_events),
        ];
        for (what, count) in gaps.into_iter().filter(|&(_, count)| count > 0) {
            write!(f, "\n  {what}: {count}")?;
        }
        Ok(())
    }
}
