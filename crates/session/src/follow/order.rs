//! The order of the tasks that sleep when a recording begins.
//!
//! A task that slept for a short time keeps its place in its queue: in a control group with little to do, tasks keep
//! for seconds what they were apart when the recording began. Where the recording says how far each was ahead of its
//! queue's clock ([`vruntime_ahead_ns`](fairground_trace::TaskInfo::vruntime_ahead_ns)), the tasks of each queue live
//! through it again, with another one that stands for the clock: they run, in pieces, as the scheduler lets them, until
//! it is indifferent between them; then each runs for what it is ahead, and the other one last.

use std::collections::BTreeMap;

use fairground_analysis::{NICE_0_WEIGHT, weight_of_nice};
use fairground_machine::Wake;
use fairground_trace::{CgroupId, TaskId, TaskState, Trace};

use super::begin::Present;
use super::follower::{Follower, MachineResult};
use crate::OwnScheduler;

/// The pieces in which tasks run until the scheduler is indifferent between them, ns: they differ by as much as the
/// last ones afterwards.
const PIECES_NS: [u64; 3] = [20_000, 500, 20];
/// Pieces of a task on average, at most: more than any scheduler grants a task that slept.
const PIECES_MAX: usize = 4_000;
/// A task that is further behind than this is placed anew when it wakes up, ns.
const LAG_NS_MAX: i64 = 24_000_000;

/// A task, and how far it is ahead of its queue when the recording begins.
#[derive(Clone, Copy, Debug)]
struct Sleeper {
    task: TaskId,
    ahead_ns: i64,
    weight: u64,
}

/// The tasks of a recording of CFS whose places are known, by CPU and control group. Since 6.6 sleeping tasks keep
/// another quantity (`vlag`).
fn queues(trace: &Trace, present: &[Present]) -> BTreeMap<(u32, CgroupId), Vec<Sleeper>> {
    let mut queues: BTreeMap<_, Vec<Sleeper>> = BTreeMap::new();
    let own = OwnScheduler::of(&trace.origin).ok().flatten();
    if own.is_none_or(|own| own.spec.split('@').next() != Some("cfs")) {
        return queues;
    }
    for one in present {
        let info = &trace.tasks()[one.task.index()];
        let (Some(ahead_ns), Some(nice)) = (info.vruntime_ahead_ns, info.nice) else { continue };
        let weight = u64::from(weight_of_nice(nice));
        let queue = (one.slept_on(trace), info.cgroup.unwrap_or(CgroupId::ROOT));
        queues.entry(queue).or_default().push(Sleeper { task: one.task, ahead_ns, weight });
    }
    queues
}

impl Follower<'_> {
    /// Puts the tasks that sleep where the recording says that they are, from a time of the machine on, which is
    /// afterwards when it is done, ns.
    pub(super) fn order_sleepers(
        &mut self,
        trace: &Trace,
        present: &[Present],
        now_ns: &mut u64,
    ) -> MachineResult {
        if !self.timeline.has_charges {
            return Ok(());
        }
        // The root's queues last: the tasks of a group run for it, too, and it sleeps as long as they do.
        for ((cpu, cgroup), mut sleepers) in queues(trace, present).into_iter().rev() {
            sleepers.sort_by_key(|sleeper| sleeper.ahead_ns);
            for sleeper in &sleepers {
                self.driven.wake(cpu, sleeper.task, cpu, None, Wake::default())?;
            }
            let clock = self.make_earlier(cpu, cgroup)?;
            let weight = u64::from(NICE_0_WEIGHT);
            sleepers.push(Sleeper { task: clock, ahead_ns: 0, weight });
            for piece_ns in PIECES_NS {
                self.level(cpu, &sleepers, piece_ns, now_ns)?;
            }
            self.spread(cpu, &sleepers, now_ns)?;
            self.driven.remove(clock)?;
        }
        Ok(())
    }

    /// The tasks run in pieces until the scheduler has chosen each of them three times.
    fn level(
        &mut self,
        cpu: u32,
        sleepers: &[Sleeper],
        piece_ns: u64,
        now_ns: &mut u64,
    ) -> MachineResult {
        let mut chosen: BTreeMap<TaskId, u32> =
            sleepers.iter().map(|sleeper| (sleeper.task, 0)).collect();
        for _ in 0..PIECES_MAX * sleepers.len() {
            self.driven.preempt(cpu)?;
            let next = self.driven.pick(cpu, None)?;
            self.driven.run(next)?;
            let Some(times) = chosen.get_mut(&next) else { break };
            *times += 1;
            self.run_for(cpu, next, piece_ns, now_ns)?;
            if chosen.values().all(|times| *times >= 3) {
                break;
            }
        }
        Ok(())
    }

    /// Each task runs for what it is ahead of the one that is furthest behind, and sleeps; the one that stands for the
    /// clock last.
    fn spread(&mut self, cpu: u32, sleepers: &[Sleeper], now_ns: &mut u64) -> MachineResult {
        let first_ns = sleepers.iter().map(|sleeper| sleeper.ahead_ns.max(-LAG_NS_MAX)).min();
        let mut leaves = None;
        for &Sleeper { task, ahead_ns, weight } in sleepers {
            self.driven.preempt(cpu)?;
            self.switch_to(cpu, leaves, task)?;
            let ahead_ns = ahead_ns.min(LAG_NS_MAX) - first_ns.unwrap_or_default();
            let runs_ns = ahead_ns.max(0) as u64 * weight / u64::from(NICE_0_WEIGHT);
            self.run_for(cpu, task, runs_ns, now_ns)?;
            leaves = Some(TaskState::Sleeping);
        }
        self.switch_to(cpu, leaves, TaskId::IDLE)
    }

    fn run_for(&mut self, cpu: u32, task: TaskId, ns: u64, now_ns: &mut u64) -> MachineResult {
        *now_ns += ns;
        self.driven.advance(*now_ns)?;
        self.driven.charge(cpu, task, ns)
    }
}
