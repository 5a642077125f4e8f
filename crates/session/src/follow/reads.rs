//! Wake-ups that read a run queue's clock and do not charge the task that runs there.
//!
//! A wake-up charges the running entity of the queue that the woken task joins (`update_curr` in `enqueue_entity`).
//! With control groups that may be the running task's group, or one above it: no `sched_stat_runtime` tells of that,
//! and the task itself is charged later. The scheduler needs the clock of the wake-up all the same. It is the stamp of
//! `sched_wakeup`, less what such a stamp is late: in the median of the wake-ups that do charge the running task, after
//! the stamp of the charge.

use fairground_trace::{Event, EventKind, TaskId};

/// A wake-up without a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockRead {
    /// The index of the wake-up.
    pub(super) wakeup: usize,
    /// How far the clock has come since the running task was charged last, or came, ns.
    pub(super) ahead_ns: u64,
}

/// The events of a CPU so far.
#[derive(Clone, Copy, Debug)]
struct Seen {
    running: TaskId,
    /// The charge before, by index and stamp, ns.
    charged: (usize, u64),
    /// The running task came from the idle task, which is not charged, at that stamp, ns.
    came_ns: Option<u64>,
}

/// Finds them in the events in their order.
#[derive(Debug)]
pub(super) struct ReadFinder {
    cpus: Vec<Seen>,
    /// By task: its CPU, while it runs.
    runs_on: Vec<Option<u32>>,
    /// By task: the index of its last `sched_waking`.
    waking: Vec<Option<usize>>,
    /// How late the stamps of wake-ups and of switches are after those of their charges, ns.
    late_ns: [Vec<u64>; 2],
    /// The index of the wake-up, and from what stamp to what stamp the clock has come, ns.
    found: Vec<(usize, Since, u64)>,
}

#[derive(Clone, Copy, Debug)]
enum Since {
    Charge(u64),
    Switch(u64),
}

const OF_WAKEUP: usize = 0;
const OF_SWITCH: usize = 1;

impl ReadFinder {
    pub(super) fn new(tasks: usize, cpus: usize) -> ReadFinder {
        let seen = Seen { running: TaskId::IDLE, charged: (0, 0), came_ns: None };
        ReadFinder {
            cpus: vec![seen; cpus],
            runs_on: vec![None; tasks],
            waking: vec![None; tasks],
            late_ns: [Vec::new(), Vec::new()],
            found: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, index: usize, event: &Event) {
        match event.kind {
            EventKind::Charge { task, .. } => {
                if let Some(cpu) = self.runs_on[task.index()] {
                    let seen = &mut self.cpus[cpu as usize];
                    (seen.charged, seen.came_ns) = ((index, event.time_ns), None);
                }
            }
            EventKind::Waking { task, .. } => self.waking[task.index()] = Some(index),
            EventKind::Wakeup { task, target_cpu } => {
                if let Some(waking) = self.waking[task.index()].take() {
                    self.wake(index, event.time_ns, waking, target_cpu);
                }
            }
            EventKind::Switch { prev, next, .. } => self.switch(event, prev, next),
            _ => {}
        }
    }

    fn wake(&mut self, index: usize, now_ns: u64, waking: usize, cpu: u32) {
        let Some(&seen) = self.cpus.get(cpu as usize).filter(|seen| !seen.running.is_idle()) else {
            return;
        };
        let (charge, charged_ns) = seen.charged;
        match seen.came_ns {
            None if charge > waking => self.late_ns[OF_WAKEUP].push(now_ns - charged_ns),
            None => self.found.push((index, Since::Charge(charged_ns), now_ns)),
            Some(came_ns) => self.found.push((index, Since::Switch(came_ns), now_ns)),
        }
    }

    fn switch(&mut self, event: &Event, prev: TaskId, next: TaskId) {
        let seen = &mut self.cpus[event.cpu as usize];
        match prev.is_idle() {
            true => seen.came_ns = Some(event.time_ns),
            false if seen.came_ns.is_none() => {
                self.late_ns[OF_SWITCH].push(event.time_ns.saturating_sub(seen.charged.1));
            }
            false => {}
        }
        seen.running = next;
        self.runs_on[prev.index()] = None;
        if !next.is_idle() {
            self.runs_on[next.index()] = Some(event.cpu);
        }
    }

    /// The wake-ups in their order, and how late nearly all switches are stamped after the kernel read the clock, ns.
    pub(super) fn finish(mut self) -> (Vec<ClockRead>, u64) {
        self.late_ns.iter_mut().for_each(|late_ns| late_ns.sort_unstable());
        let at = |of: usize, percent: usize| {
            let late_ns = &self.late_ns[of];
            late_ns.get(late_ns.len() * percent / 100).copied().unwrap_or(0)
        };
        let (of_wakeup_ns, of_switch_ns) = (at(OF_WAKEUP, 50), at(OF_SWITCH, 50));
        let read = |&(wakeup, since, now_ns): &(usize, Since, u64)| {
            let since_ns = match since {
                Since::Charge(stamp_ns) => stamp_ns,
                Since::Switch(stamp_ns) => stamp_ns.saturating_sub(of_switch_ns),
            };
            let ahead_ns = now_ns.saturating_sub(of_wakeup_ns).saturating_sub(since_ns);
            ClockRead { wakeup, ahead_ns }
        };
        (self.found.iter().map(read).collect(), at(OF_SWITCH, 95))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::TaskState;

    const RUNS: TaskId = TaskId(1);
    const WOKEN: TaskId = TaskId(2);
    const WAKING: EventKind = EventKind::Waking { task: WOKEN, waker: TaskId::IDLE, target_cpu: 0 };
    const WAKEUP: EventKind = EventKind::Wakeup { task: WOKEN, target_cpu: 0 };
    const CHARGE: EventKind = EventKind::Charge { task: RUNS, runtime_ns: 1 };

    fn comes(next: TaskId) -> EventKind {
        EventKind::Switch { prev: TaskId::IDLE, prev_state: TaskState::Runnable, next }
    }

    fn found(events: &[(u64, EventKind)]) -> Vec<(usize, u64)> {
        let mut finder = ReadFinder::new(3, 1);
        for (index, &(time_ns, kind)) in events.iter().enumerate() {
            finder.take(index, &Event { time_ns, cpu: 0, insns: 0, kind });
        }
        finder.finish().0.into_iter().map(|read| (read.wakeup, read.ahead_ns)).collect()
    }

    #[test]
    fn a_wake_up_that_charges_tells_how_late_one_is_stamped_that_does_not() {
        let charges = [(0, comes(RUNS)), (100, WAKING), (108, CHARGE), (120, WAKEUP)];
        let does_not = [(200, WAKING), (230, WAKEUP)];
        assert_eq!(found(&charges), []);
        // The clock stood at 230 - 12, and the task was charged last at 108.
        assert_eq!(found(&[&charges[..], &does_not].concat()), [(5, 110)]);
    }

    #[test]
    fn a_wake_up_on_an_idle_cpu_reads_no_clock_of_a_task() {
        assert_eq!(found(&[(100, WAKING), (120, WAKEUP)]), []);
    }
}
