//! The tasks of a run: created, released, collected.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::SeqCst;

use fairground_workload::Workload;

use super::error::TaskError;
use super::usage::{Used, schedstat};
use super::world::World;
use super::{birth, clock, futex};
use crate::job::{Mark, TaskUsage};

/// How long the runner waits after the last task is ready, so that it is asleep, ns.
const SETTLE_NS: u64 = 5_000_000;
/// How long it then does nothing at least, so that the kernel has given back what forks and the files of `/proc` left
/// behind, ns: RCU's thread is woken for that at one tick after the other.
const REST_NS: u64 = 25_000_000;

/// The tasks of a workload: made, ready, and killed at the latest when this is dropped.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(super) world: World,
    /// Accounting of those that were waited for, by process.
    pub(super) used: BTreeMap<u32, Used>,
    /// CPU time and waiting time before the start, by process.
    pub(super) before: BTreeMap<u32, (u64, u64)>,
    /// No task is left.
    pub(super) over: bool,
}

impl Executor {
    /// Makes all tasks that exist from the beginning. They wait for [`Executor::release`]. Marks go to `marker` when
    /// there is one. `notes` gets what a reader of the figures should know.
    pub(crate) fn prepare(
        workload: &Workload,
        seed: u64,
        marker: Option<OwnedFd>,
        notes: &mut Vec<String>,
    ) -> Result<Self, TaskError> {
        birth::prepare_runner();
        let world = World::new(workload, seed, marker, notes)?;
        birth::go_to_first_cpu();
        let executor = Self { world, used: BTreeMap::new(), before: BTreeMap::new(), over: false };
        for (number, spec) in workload.tasks.iter().enumerate() {
            if spec.start_ns.is_some() {
                for _ in 0..spec.count {
                    executor.world.fork_first(number as u32)?;
                }
            }
        }
        Ok(executor)
    }

    /// Whether tasks fork tasks: then the runner should wait for those that have ended now and then.
    pub(crate) fn forks(&self) -> bool {
        self.world.plan.forks
    }

    /// Lets the tasks go, so much after a whole multiple of `tick_ns`, and says when: ns of the monotonic clock.
    pub(crate) fn release(&mut self, hold_ns: u64, tick_ns: u64) -> u64 {
        clock::sleep_until(clock::now_ns() + SETTLE_NS);
        for slot in self.world.used_slots() {
            let tid = slot.tid.load(SeqCst);
            if let Some(before) = schedstat(tid) {
                self.before.insert(tid, before);
            }
        }
        birth::go_to_first_cpu();
        let rested_ns = clock::now_ns() + REST_NS;
        clock::sleep_until(rested_ns.next_multiple_of(tick_ns) + hold_ns);
        let head = &self.world.head[0];
        let start_ns = clock::now_ns();
        head.start_ns.store(start_ns, SeqCst);
        head.go.store(1, SeqCst);
        futex::wake(&head.go, u32::MAX);
        start_ns
    }

    /// A fork that failed: what comes after it is not the workload any more.
    pub(crate) fn failed_fork(&self) -> Option<TaskError> {
        self.world.failed_fork()
    }

    /// What each task did and said, once none is left.
    pub(crate) fn collect(&self, notes: &mut Vec<String>) -> (Vec<TaskUsage>, Vec<Mark>) {
        self.world.troubles(notes);
        (self.usages(), self.marks(notes))
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if !self.over {
            self.kill();
            // An error has been said, or is being said.
            let _ = self.reap_all();
        }
    }
}
