//! The executor: a workload as real processes, one for each task.
//!
//! The runner makes everything that tasks share ([`world`]), forks those that exist from the beginning one after the other
//! ([`birth`]), and lets them go at once. From then on it sleeps. A task executes its program ([`task`], [`calls`]) and counts
//! what it finishes in shared memory. At the end the runner kills the tasks' process group, waits for all and reads their
//! accounting ([`reap`]).
//!
//! An operation means what it means in simulation. The differences are the kernel's: a message that a woken receiver has not
//! taken yet may be taken by another one; a parent that waits for children is woken by each; a sleep is lengthened by the
//! timer slack that the process has; a spin lock is one of user space, so that a task that has it can be preempted ([`locks`]).

mod birth;
mod calls;
pub(crate) mod cgroups;
pub(crate) mod clock;
mod error;
mod futex;
mod locks;
mod meeting;
mod plan;
mod queue;
mod reap;
mod shared;
mod spin;
mod task;
mod text;
mod world;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::SeqCst;

use fairground_workload::Workload;

pub use error::TaskError;
use reap::Used;
use shared::Slot;
use world::World;

use crate::job::{Mark, TaskUsage};

/// How long the runner waits after the last task is ready, so that it is asleep, ns.
const SETTLE_NS: u64 = 5_000_000;
/// How long it then does nothing at least, so that the kernel has given back what forks and the files of `/proc` left behind, ns: RCU's
/// thread is woken for that at one tick after the other.
const REST_NS: u64 = 25_000_000;

/// The tasks of a workload: made, ready, and killed at the latest when this is dropped.
#[derive(Debug)]
pub(crate) struct Executor {
    world: World,
    /// Accounting of those that were waited for, by process.
    used: BTreeMap<u32, Used>,
    /// CPU time and waiting time before the start, by process.
    before: BTreeMap<u32, (u64, u64)>,
    /// No task is left.
    over: bool,
}

impl Executor {
    /// Makes all tasks that exist from the beginning. They wait for [`Executor::release`]. Marks go to `marker` when there is
    /// one. `notes` gets what a reader of the figures should know.
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
            if let Some(before) = reap::schedstat(tid) {
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

impl World {
    /// The slots that had a task.
    fn used_slots(&self) -> &[Slot] {
        &self.slots[..self.head[0].slots.load(SeqCst) as usize]
    }
}

/// The ranges of a list of CPUs as the kernel writes it, `0-3,8`; what is no number is left out.
pub(crate) fn parse_cpu_list(text: &str) -> Vec<(u32, u32)> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last && last <= fairground_workload::limits::CPU_MAX).then_some((first, last))
    };
    text.split(',').filter_map(range).collect()
}
