//! The tasks of a run: created, released, collected.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::SeqCst;

use fairground_workload::Workload;

use super::error::TaskError;
use super::shared_state::SharedState;
use super::usage::{Used, schedstat};
use super::{clock, fork, futex};
use crate::job::{Mark, TaskUsage};

/// Time for the last ready task to reach its CPU and sleep, ns.
const PLACEMENT_NS: u64 = 5_000_000;
/// Minimum idle time before the start, ns. The kernel meanwhile frees what forks and `/proc` files left: RCU's thread
/// wakes for that at successive ticks.
const REST_NS: u64 = 25_000_000;
/// Time of rest in a guest, whose idle time costs nothing, ns: threads of the kernel that wake up every second or more
/// often do so on an idle machine.
const GUEST_REST_NS: u64 = 2_500_000_000;
/// Time for a waiting task to wake up and sleep again alone, ns; tasks that do so at most.
const ALONE_NS: u64 = 1_000_000;
const ALONE_MAX: usize = 256;

/// The tasks of a workload. Dropping this kills them.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(super) shared: SharedState,
    /// Accounting of the reaped tasks, by process number.
    pub(super) used: BTreeMap<u32, Used>,
    /// CPU time and waiting time before the start, by process number.
    pub(super) before: BTreeMap<u32, (u64, u64)>,
    /// Whether all tasks have been reaped.
    pub(super) over: bool,
}

impl Executor {
    /// Creates all initial tasks, which wait for [`Executor::release`]. Marks are written to `marker`, if given. Adds
    /// notes for the reader of the figures to `notes`.
    pub(crate) fn prepare(
        workload: &Workload,
        seed: u64,
        marker: Option<OwnedFd>,
        notes: &mut Vec<String>,
    ) -> Result<Self, TaskError> {
        fork::prepare_runner();
        let shared = SharedState::new(workload, seed, marker, notes)?;
        fork::go_to_first_cpu();
        let executor = Self { shared, used: BTreeMap::new(), before: BTreeMap::new(), over: false };
        for (number, spec) in workload.tasks.iter().enumerate() {
            if spec.start_ns.is_some() {
                for _ in 0..spec.count {
                    executor.shared.fork_first(number as u32)?;
                }
            }
        }
        Ok(executor)
    }

    /// Whether tasks fork tasks: then the runner should call [`Executor::reap_ended`] from time to time.
    pub(crate) fn forks(&self) -> bool {
        self.shared.plan.forks
    }

    /// Waits until the initial tasks have their attributes and wait themselves.
    pub(crate) fn settle(&self) {
        clock::sleep_until(clock::now_ns() + PLACEMENT_NS);
    }

    /// Each waiting task wakes up on an idle machine and sleeps again. What a kernel owes them, or they the others,
    /// from the time of the preparations is forgotten then (`place_entity` with nothing queued, `update_entity_lag`):
    /// the tasks of a run begin alike, and a recording need not say how.
    pub(crate) fn wake_each(&self) {
        self.settle();
        let tasks = self.shared.used_slots().len().min(ALONE_MAX);
        for _ in 0..tasks {
            // The one that has waited longest finds that it is not the start, and waits behind the others.
            futex::wake(&self.shared.head[0].go, 1);
            clock::sleep_until(clock::now_ns() + ALONE_NS);
        }
    }

    /// The kernel's own tasks have time to do what the preparations left to them; in a guest also what they do every
    /// second or more often.
    pub(crate) fn rest(&self, is_guest: bool) {
        fork::end_a_child();
        clock::sleep_until(clock::now_ns() + if is_guest { GUEST_REST_NS } else { REST_NS });
    }

    /// Starts the tasks `hold_ns` after a whole multiple of `tick_ns`; returns the start time, ns of the monotonic
    /// clock.
    pub(crate) fn release(&mut self, hold_ns: u64, tick_ns: u64) -> u64 {
        self.settle();
        for slot in self.shared.used_slots() {
            let tid = slot.tid.load(SeqCst);
            if let Some(before) = schedstat(tid) {
                self.before.insert(tid, before);
            }
        }
        fork::go_to_first_cpu();
        let rested_ns = clock::now_ns() + REST_NS;
        clock::sleep_until(rested_ns.next_multiple_of(tick_ns) + hold_ns);
        let head = &self.shared.head[0];
        let start_ns = clock::now_ns();
        head.start_ns.store(start_ns, SeqCst);
        head.go.store(1, SeqCst);
        futex::wake(&head.go, u32::MAX);
        start_ns
    }

    /// The error of a failed fork, after which the run no longer represents the workload.
    pub(crate) fn failed_fork(&self) -> Option<TaskError> {
        self.shared.failed_fork()
    }

    /// The accounting and marks of all tasks, after all have been reaped.
    pub(crate) fn collect(&self, notes: &mut Vec<String>) -> (Vec<TaskUsage>, Vec<Mark>) {
        self.shared.failures(notes);
        (self.usages(), self.marks(notes))
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if !self.over {
            self.kill();
            // The caller already has an error.
            let _ = self.reap_all();
        }
    }
}
