//! A view of a stream of events, in memory that does not grow with its length.

use std::collections::{BTreeMap, VecDeque};

use fairground_analysis::{Analysis, Live, Options};
use fairground_trace::{Event, Trace};

use crate::source::View;
use crate::words::words;

/// Limit of the last events that are kept for display.
const EVENTS_SHOWN_MAX: usize = 64;

/// Follows a stream of events.
#[derive(Clone, Debug)]
pub struct Follower {
    live: Live,
    /// Events that the analysis has not processed yet: they are of the present instant, which may not be over.
    held: VecDeque<Event>,
    last: VecDeque<Event>,
    interval_ns: u64,
    /// End of the present interval, ns.
    line_ns: u64,
    /// The last whole interval.
    recent: Option<Analysis>,
}

impl Follower {
    /// Begins at the start of the trace, without its events. Figures are of intervals of `interval_ns` (at least 1).
    pub fn new(trace: &Trace, options: &Options, interval_ns: u64) -> Follower {
        let interval_ns = interval_ns.max(1);
        Follower {
            live: Live::new(trace, options),
            held: VecDeque::new(),
            last: VecDeque::new(),
            interval_ns,
            line_ns: trace.start_ns.saturating_add(interval_ns),
            recent: None,
        }
    }

    /// Processes the events of `trace`, all of them newer than those before, up to `now_ns`. Earlier events are
    /// counted; the caller may drop them.
    pub fn take(&mut self, trace: &Trace, now_ns: u64) {
        let skipped = trace.len().saturating_sub(EVENTS_SHOWN_MAX);
        self.last.extend(trace.events_in(skipped..trace.len()));
        let superfluous = self.last.len().saturating_sub(EVENTS_SHOWN_MAX);
        self.last.drain(..superfluous);
        self.held.extend(trace.events());
        while let Some(event) = self.held.pop_front_if(|event| event.time_ns < now_ns) {
            self.draw_lines(trace, event.time_ns);
            self.live.take(trace, &event);
        }
        self.draw_lines(trace, now_ns);
    }

    /// Closes each interval that ends up to now.
    fn draw_lines(&mut self, trace: &Trace, now_ns: u64) {
        if now_ns < self.line_ns {
            return;
        }
        let passed = (now_ns - self.line_ns) / self.interval_ns;
        self.recent = Some(self.live.draw_line(trace, self.line_ns));
        if passed > 0 {
            // Of several intervals without an event only the last one is shown.
            self.line_ns += (passed - 1) * self.interval_ns;
            if passed > 1 {
                self.live.draw_line(trace, self.line_ns);
            }
            self.line_ns += self.interval_ns;
            self.recent = Some(self.live.draw_line(trace, self.line_ns));
        }
        self.line_ns += self.interval_ns;
    }

    /// The view at `now_ns`, up to which all events were processed. `trace` has the tasks and labels of the events.
    pub fn view(&self, trace: &Trace, now_ns: u64) -> View {
        let look = if self.held.is_empty() {
            self.live.look(trace, now_ns)
        } else {
            let mut live = self.live.clone();
            self.held.iter().for_each(|event| live.take(trace, event));
            live.look(trace, now_ns)
        };
        let named = trace.tasks().iter().skip(1);
        View {
            now_ns: now_ns - trace.start_ns.min(now_ns),
            never_ran: look.recent.never_ran(),
            recent: self.recent.clone().unwrap_or(look.recent),
            whole: look.whole,
            tasks: named.map(|task| (task.pid, task.comm.clone())).collect(),
            doing: look.doing,
            cpus: look.cpus,
            number_names: Vec::new(),
            numbers: BTreeMap::new(),
            events: self.last.iter().map(|event| words(trace, event)).collect(),
            ended: None,
            notes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::{EventKind, TaskId, TaskInfo, TaskState};

    /// Two tasks that alternate in slices of 4 ns on one CPU.
    fn slices(from: u64, to: u64) -> Vec<Event> {
        let event = |n: u64| {
            let (prev, next) = (TaskId(1 + (n as u32 + 1) % 2), TaskId(1 + n as u32 % 2));
            let kind = EventKind::Switch { prev, prev_state: TaskState::Runnable, next };
            Event { time_ns: 4 * n, cpu: 0, insns: 0, kind }
        };
        (from..to).map(event).collect()
    }

    fn trace() -> Trace {
        let mut trace = Trace::new(1);
        for pid in [7, 8] {
            trace.add_task(TaskInfo { nice: Some(0), ..TaskInfo::new(pid, "t") });
        }
        let kind = EventKind::WakeupNew { task: TaskId(1), target_cpu: 0 };
        trace.push(Event { time_ns: 0, cpu: 0, insns: 0, kind });
        let kind = EventKind::WakeupNew { task: TaskId(2), target_cpu: 0 };
        trace.push(Event { time_ns: 0, cpu: 0, insns: 0, kind });
        let kind = EventKind::Switch {
            prev: TaskId::IDLE,
            prev_state: TaskState::Runnable,
            next: TaskId(1),
        };
        trace.push(Event { time_ns: 0, cpu: 0, insns: 0, kind });
        trace
    }

    #[test]
    fn a_long_run_keeps_its_figures_and_few_events() {
        let mut trace = trace();
        let mut follower = Follower::new(&trace, &Options::simulated(), 100);
        let mut at = 1;
        for round in 1..=50 {
            slices(at, round * 20).into_iter().for_each(|event| trace.push(event));
            at = round * 20;
            follower.take(&trace, 80 * round - 1);
            trace.clear_events();
            assert!(follower.held.is_empty() && follower.last.len() <= EVENTS_SHOWN_MAX);
        }
        let view = follower.view(&trace, 3_999);
        assert_eq!((view.recent.start_ns, view.recent.end_ns), (3_800, 3_900));
        assert_eq!(view.recent.tasks[0].figures.run_ns, 52);
        let runs: Vec<u64> = view.whole.iter().map(|figures| figures.run_ns).collect();
        assert_eq!(runs, [2_000, 1_999]);
        assert_eq!(view.events.len(), EVENTS_SHOWN_MAX);
    }

    #[test]
    fn intervals_in_which_nothing_happened_pass_too() {
        let mut trace = trace();
        let mut follower = Follower::new(&trace, &Options::simulated(), 100);
        follower.take(&trace, 1_050);
        trace.clear_events();
        let view = follower.view(&trace, 1_050);
        assert_eq!((view.recent.start_ns, view.recent.end_ns), (900, 1_000));
        assert_eq!(view.recent.tasks[0].figures.run_ns, 100);
        assert_eq!(view.whole[0].run_ns, 1_050);
    }

    #[test]
    fn what_happens_now_is_seen_and_counted_once() {
        let mut trace = trace();
        let mut follower = Follower::new(&trace, &Options::simulated(), 100);
        slices(1, 26).into_iter().for_each(|event| trace.push(event));
        follower.take(&trace, 100);
        trace.clear_events();
        assert_eq!(follower.held.len(), 1, "the switch at 100 belongs to the next interval");
        assert_eq!(follower.view(&trace, 100).cpus[0].running, Some(TaskId(2)));
        follower.take(&trace, 150);
        assert_eq!(follower.view(&trace, 150).recent.machine.switches, 25);
    }
}
