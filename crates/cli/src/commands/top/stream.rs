//! The parts of a recording of this machine as one stream, and what is seen of it.

use fairground_analysis::Options;
use fairground_top::{Follower, View};
use fairground_trace::{Joiner, Loss, Trace};

/// Counts of what was recorded so far, and its losses.
#[derive(Debug)]
pub(super) struct RunningRecording {
    cpus: u32,
    interval_ns: u64,
    /// Of so many tasks, most of them ended, it begins anew: it keeps something of each.
    tasks_max: usize,
    joiner: Joiner,
    follower: Follower,
    /// How far it is, ns since it began, or began anew.
    now_ns: u64,
    begun_anew: u64,
    /// Losses before it began anew.
    before: Missing,
}

/// Counts of events that are not in the figures.
#[derive(Clone, Copy, Debug, Default)]
struct Missing {
    lost: u64,
    unreadable: u64,
    /// They came too late for their time.
    late: u64,
    /// They waited for a later part when the stream began anew.
    dropped: u64,
}

impl Missing {
    fn and(self, loss: &Loss) -> Missing {
        Missing {
            lost: self.lost + loss.lost_events,
            unreadable: self.unreadable + loss.unreadable,
            late: self.late + loss.clock_jumps,
            dropped: self.dropped,
        }
    }
}

impl RunningRecording {
    /// Begins with nothing at `origin_ns` of the recording's clock.
    pub(super) fn new(
        cpus: u32,
        origin_ns: u64,
        interval_ns: u64,
        tasks_max: usize,
    ) -> RunningRecording {
        let joiner = Joiner::new(cpus, origin_ns);
        let follower = Follower::new(joiner.trace(), &Options::default(), interval_ns);
        let before = Missing::default();
        RunningRecording {
            cpus,
            interval_ns,
            tasks_max,
            joiner,
            follower,
            now_ns: 0,
            begun_anew: 0,
            before,
        }
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Takes the next part, to which nothing that happened before `complete_ns` of the recording's clock will be added.
    pub(super) fn take(&mut self, part: &Trace, complete_ns: u64) {
        self.now_ns = self.joiner.add(part, complete_ns);
        self.follower.take(self.joiner.trace(), self.now_ns);
        self.joiner.forget_events();
        if self.joiner.trace().tasks().len() > self.tasks_max {
            self.before = self.before.and(&self.joiner.trace().loss);
            let waiting = part.events().filter(|event| event.time_ns >= complete_ns).count();
            self.before.dropped += waiting as u64;
            self.begun_anew += 1;
            self.joiner = Joiner::new(self.cpus, complete_ns);
            self.follower =
                Follower::new(self.joiner.trace(), &Options::default(), self.interval_ns);
            self.now_ns = 0;
        }
    }

    pub(super) fn view(&self) -> View {
        let mut view = self.follower.view(self.joiner.trace(), self.now_ns);
        view.notes = self.notes();
        view
    }

    /// Losses in words.
    fn notes(&self) -> Vec<String> {
        let loss = &self.joiner.trace().loss;
        let missing = self.before.and(loss);
        let counted = [
            (missing.lost, "events were lost: a larger --buffer may keep them"),
            (missing.unreadable, "records could not be read"),
            (missing.late, "events came too late, and count from when they came"),
        ];
        let mut notes: Vec<String> =
            counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        if self.begun_anew > 0 {
            let times = match self.begun_anew {
                1 => "once".to_owned(),
                n => format!("{n} times"),
            };
            notes.push(format!(
                "the view began anew {times}, at time 0, after {} tasks; {} events fell between",
                self.tasks_max, missing.dropped
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::{Event, EventKind, TaskId, TaskInfo, TaskState};

    /// A part in which tasks of those pids start one after the other, 1 ns apart.
    fn part(from_ns: u64, pids: &[u32]) -> Trace {
        let mut trace = Trace::new(1);
        let mut prev = TaskId::IDLE;
        for (time_ns, pid) in (from_ns..).zip(pids) {
            let next = trace.add_task(TaskInfo::new(*pid, "t"));
            let kind = EventKind::Switch { prev, prev_state: TaskState::Runnable, next };
            trace.push(Event { time_ns, cpu: 0, insns: 0, kind });
            prev = next;
        }
        trace
    }

    #[test]
    fn what_is_missing_is_not_forgotten_when_it_begins_anew() {
        let mut stream = RunningRecording::new(1, 1_000, 100, 4);
        let mut first = part(1_010, &[1, 2]);
        (first.loss.lost_events, first.loss.unreadable) = (5, 2);
        stream.take(&first, 1_200);
        assert_eq!((stream.now_ns(), stream.view().now_ns), (200, 200));
        assert_eq!(
            stream.view().notes,
            ["5 events were lost: a larger --buffer may keep them", "2 records could not be read"]
        );
        // One event of an earlier time, four tasks more, and three events that wait for the next part.
        stream.take(&part(1_199, &[3, 4, 5, 6]), 1_200);
        assert_eq!((stream.now_ns(), stream.view().now_ns), (0, 0));
        assert!(stream.view().tasks.is_empty());
        let mut third = part(1_250, &[7]);
        third.loss.lost_events = 1;
        stream.take(&third, 1_300);
        let view = stream.view();
        assert_eq!((view.now_ns, view.tasks.len()), (100, 1));
        assert_eq!((view.recent.start_ns, view.recent.end_ns), (0, 100));
        assert_eq!(view.recent.tasks[0].figures.run_ns, 50);
        let begun_anew =
            "the view began anew once, at time 0, after 4 tasks; 3 events fell between";
        assert_eq!(
            view.notes,
            [
                "6 events were lost: a larger --buffer may keep them",
                "2 records could not be read",
                "1 events came too late, and count from when they came",
                begun_anew
            ]
        );
    }
}
