//! The end of a run: kills and reaps every task, and collects its accounting.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::error::TaskError;
use super::executor::Executor;
use super::shared::{FailedOperation, MARKS_MAX};
use super::shared_state::SharedState;
use super::usage::{Used, figures, schedstat};
use crate::job::{Mark, TaskUsage};

/// Time limit for killed tasks to exit.
const REAP_LIMIT: Duration = Duration::from_secs(20);
/// Polling interval for exited tasks.
const REAP_PAUSE: Duration = Duration::from_millis(1);

impl Executor {
    /// Reaps the tasks that have ended, without blocking.
    pub(crate) fn reap_ended(&mut self) {
        // Terminates: each iteration reaps a process.
        while self.reap_one() == Reaped::One {}
    }

    /// Kills all tasks.
    pub(crate) fn kill(&self) {
        // SAFETY: touches no memory. The anchor is alive, so the group is ours.
        unsafe { libc::kill(-self.shared.anchor, libc::SIGKILL) };
    }

    /// Waits until all tasks have ended, and reaps them.
    pub(crate) fn reap_all(&mut self) -> Result<(), TaskError> {
        let begun = Instant::now();
        loop {
            match self.reap_one() {
                Reaped::One => {}
                Reaped::NoneLeft => {
                    self.over = true;
                    return Ok(());
                }
                Reaped::NoneYet if begun.elapsed() > REAP_LIMIT => {
                    return Err(TaskError::Unfit {
                        problem: "killed tasks still existed after 20 s".to_owned(),
                        help: "check that the scheduler runs them; it is detached now".to_owned(),
                    });
                }
                Reaped::NoneYet => {
                    self.kill();
                    sleep(REAP_PAUSE);
                }
            }
        }
    }

    /// Reaps a task that has ended, after reading its `schedstat`: later, its process number may be reused.
    fn reap_one(&mut self) -> Reaped {
        // SAFETY: zeroes are a value, which the kernel fills in.
        let mut info = unsafe { std::mem::zeroed::<libc::siginfo_t>() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let group = self.shared.anchor as libc::id_t;
        // SAFETY: the information outlives the call.
        if unsafe { libc::waitid(libc::P_PGID, group, &raw mut info, options) } != 0 {
            return Reaped::NoneLeft;
        }
        // SAFETY: filled in by the kernel, or zero.
        let pid = unsafe { info.si_pid() };
        if pid == 0 {
            return Reaped::NoneYet;
        }
        let schedstat = schedstat(pid as u32);
        // SAFETY: both are zeroes that the kernel fills in.
        let usage = unsafe {
            let mut usage = std::mem::zeroed::<libc::rusage>();
            libc::wait4(pid, std::ptr::null_mut(), 0, &raw mut usage);
            usage
        };
        self.used.insert(pid as u32, Used { figures: figures(&usage), schedstat });
        Reaped::One
    }

    /// The accounting of each task, in the order of creation.
    pub(super) fn usages(&self) -> Vec<TaskUsage> {
        // Process numbers are reused: the last task with a number is the one that was reaped at the end.
        let mut owners = BTreeMap::new();
        let slots = self.shared.used_slots();
        for (index, slot) in slots.iter().enumerate() {
            owners.insert(slot.tid.load(SeqCst), index);
        }
        let mut tasks = Vec::with_capacity(slots.len());
        for (index, slot) in slots.iter().enumerate() {
            let tid = slot.tid.load(SeqCst);
            if tid == 0 {
                continue;
            }
            let group = &self.shared.plan.groups[slot.group.load(SeqCst) as usize];
            let own = (owners.get(&tid) == Some(&index)).then(|| self.used.get(&tid)).flatten();
            let kept: [u64; 4] = std::array::from_fn(|n| slot.usage[n].load(Relaxed));
            let [utime_us, stime_us, nvcsw, nivcsw] = match own {
                _ if slot.final_usage.load(SeqCst) == 1 => kept,
                Some(used) => std::array::from_fn(|n| used.figures[n].saturating_sub(kept[n])),
                None => [0; 4],
            };
            let (run_before, wait_before) = self.before.get(&tid).copied().unwrap_or((0, 0));
            let schedstat = own.and_then(|used| used.schedstat);
            tasks.push(TaskUsage {
                name: group.task_name(slot.nth.load(SeqCst)),
                tid,
                nice: group.spec.nice,
                utime_us,
                stime_us,
                nvcsw,
                nivcsw,
                run_ns: schedstat.map(|(run, _)| run.saturating_sub(run_before)),
                wait_ns: schedstat.map(|(_, wait)| wait.saturating_sub(wait_before)),
                ops: slot.ops.load(Relaxed),
            });
        }
        tasks
    }

    /// The tasks' marks in order of time, if no recording contains them.
    pub(super) fn marks(&self, notes: &mut Vec<String>) -> Vec<Mark> {
        let shared = &self.shared;
        let left = shared.head[0].marks.load(SeqCst) as usize;
        if left > MARKS_MAX {
            notes.push(format!(
                "{} marks found no room: only the first MARKS_MAX, {MARKS_MAX}, are kept without a recording",
                left - MARKS_MAX
            ));
        }
        let mut marks: Vec<Mark> = shared.marks[..left.min(shared.marks.len())]
            .iter()
            .filter(|mark| mark.time_ns.load(SeqCst) != 0)
            .map(|mark| Mark {
                time_ns: mark.time_ns.load(SeqCst),
                tid: mark.tid.load(SeqCst),
                label: shared.plan.labels[mark.label.load(SeqCst) as usize].clone(),
                value: mark.value.load(SeqCst),
            })
            .collect();
        marks.sort_by_key(|mark| mark.time_ns);
        marks
    }
}

/// The result of a reaping attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaped {
    One,
    NoneYet,
    NoneLeft,
}

impl SharedState {
    /// Adds a note for each kind of failed operation.
    pub(super) fn failures(&self, notes: &mut Vec<String>) {
        const TEXTS: [(FailedOperation, &str); 9] = [
            (FailedOperation::Nice, "a nice value was rejected"),
            (FailedOperation::Policy, "a real-time policy was rejected (requires CAP_SYS_NICE)"),
            (
                FailedOperation::Slice,
                "a slice length was rejected or ignored (requires Linux 6.12)",
            ),
            (FailedOperation::Affinity, "an affinity was rejected"),
            (FailedOperation::Cgroup, "a task could not enter its control group"),
            (FailedOperation::CgroupWeight, "a control group's weight could not be set"),
            (FailedOperation::Pipe, "a pipe could not be read or written"),
            (
                FailedOperation::Lock,
                "a lock with priority inheritance could not be taken or released",
            ),
            (FailedOperation::Marker, "a mark could not be written to the recording"),
        ];
        for (kind, text) in TEXTS {
            if let Some((times, error)) = self.head[0].failure(kind) {
                notes.push(format!("{times} times {text}: {error}"));
            }
        }
    }

    /// The error of a failed fork, after which the run no longer represents the workload.
    pub(super) fn failed_fork(&self) -> Option<TaskError> {
        let failed = |kind| self.head[0].failure(kind).map(|(_, error)| error);
        if failed(FailedOperation::Slots).is_some() {
            let max = super::shared::SLOTS_MAX;
            return Some(TaskError::Unfit {
                problem: format!("the workload forked more than {max} tasks (SLOTS_MAX)"),
                help: "use a shorter run".to_owned(),
            });
        }
        let (error, what) = match (failed(FailedOperation::Fork), failed(FailedOperation::Memory)) {
            (Some(error), _) => (error, "fork a task of the workload during the run"),
            (None, Some(error)) => (error, "allocate the memory that a forked task reads"),
            (None, None) => return None,
        };
        Some(TaskError::System {
            what: what.to_owned(),
            error,
            help: Some(
                "use fewer tasks, or raise the limits: ulimit -u, /proc/sys/kernel/pid_max"
                    .to_owned(),
            ),
        })
    }
}
