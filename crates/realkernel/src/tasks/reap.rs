//! The end: every task is killed, waited for, and its accounting collected.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::error::TaskError;
use super::executor::Executor;
use super::shared::{MARKS_MAX, Trouble};
use super::usage::{Used, figures, schedstat};
use super::world::World;
use crate::job::{Mark, TaskUsage};

/// How long killed tasks may take to be gone.
const REAP_LIMIT: Duration = Duration::from_secs(20);
/// How long the runner sleeps when nothing has ended yet.
const REAP_PAUSE: Duration = Duration::from_millis(1);

impl Executor {
    /// Waits for those that have ended so far, without waiting.
    pub(crate) fn reap_ended(&mut self) {
        // Ends: each turn is a process less.
        while self.reap_one() == Reaped::One {}
    }

    /// Kills all tasks.
    pub(crate) fn kill(&self) {
        // SAFETY: touches no memory. The anchor lives, so the group's number is ours.
        unsafe { libc::kill(-self.world.anchor, libc::SIGKILL) };
    }

    /// Waits until no task is left.
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
                        problem: "killed tasks were still there after 20 s".to_owned(),
                        help: "does the scheduler run them at all? It is taken off now".to_owned(),
                    });
                }
                Reaped::NoneYet => {
                    self.kill();
                    sleep(REAP_PAUSE);
                }
            }
        }
    }

    /// A task that has ended is looked at before it is waited for: after that, its number may be another's.
    fn reap_one(&mut self) -> Reaped {
        // SAFETY: zeroes are a value, which the kernel fills in.
        let mut info = unsafe { std::mem::zeroed::<libc::siginfo_t>() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let group = self.world.anchor as libc::id_t;
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

    /// What each task did, in the order in which they were made.
    pub(super) fn usages(&self) -> Vec<TaskUsage> {
        // A process number may have had several tasks; the last of them is the one that was left to the end.
        let mut owners = BTreeMap::new();
        let slots = self.world.used_slots();
        for (index, slot) in slots.iter().enumerate() {
            owners.insert(slot.tid.load(SeqCst), index);
        }
        let mut tasks = Vec::with_capacity(slots.len());
        for (index, slot) in slots.iter().enumerate() {
            let tid = slot.tid.load(SeqCst);
            if tid == 0 {
                continue;
            }
            let group = &self.world.plan.groups[slot.group.load(SeqCst) as usize];
            let own = (owners.get(&tid) == Some(&index)).then(|| self.used.get(&tid)).flatten();
            let kept: [u64; 4] = std::array::from_fn(|n| slot.usage[n].load(Relaxed));
            let [utime_us, stime_us, nvcsw, nivcsw] = match own {
                _ if slot.told.load(SeqCst) == 1 => kept,
                Some(used) => std::array::from_fn(|n| used.figures[n].saturating_sub(kept[n])),
                None => [0; 4],
            };
            let (run_before, wait_before) = self.before.get(&tid).copied().unwrap_or((0, 0));
            let schedstat = own.and_then(|used| used.schedstat);
            tasks.push(TaskUsage {
                name: group.task_name(slot.nth.load(SeqCst)),
                tid,
                nice: group.nice,
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

    /// What the tasks said, in order of time, when no recording holds it.
    pub(super) fn marks(&self, notes: &mut Vec<String>) -> Vec<Mark> {
        let world = &self.world;
        let left = world.head[0].marks.load(SeqCst) as usize;
        if left > MARKS_MAX {
            notes.push(format!(
                "{} marks found no room: only the first MARKS_MAX, {MARKS_MAX}, are kept without a recording",
                left - MARKS_MAX
            ));
        }
        let mut marks: Vec<Mark> = world.marks[..left.min(world.marks.len())]
            .iter()
            .filter(|mark| mark.time_ns.load(SeqCst) != 0)
            .map(|mark| Mark {
                time_ns: mark.time_ns.load(SeqCst),
                tid: mark.tid.load(SeqCst),
                label: world.plan.labels[mark.label.load(SeqCst) as usize].clone(),
                value: mark.value.load(SeqCst),
            })
            .collect();
        marks.sort_by_key(|mark| mark.time_ns);
        marks
    }
}

/// What a look at the tasks' process group found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaped {
    One,
    NoneYet,
    NoneLeft,
}

impl World {
    /// What failed, in words for the reader of the figures.
    pub(super) fn troubles(&self, notes: &mut Vec<String>) {
        const TEXTS: [(Trouble, &str); 8] = [
            (Trouble::Nice, "a nice value was refused"),
            (Trouble::Slice, "a slice length was refused or forgotten (it takes Linux 6.12)"),
            (Trouble::Affinity, "an affinity was refused"),
            (Trouble::Cgroup, "a task could not enter its control group"),
            (Trouble::CgroupWeight, "a control group's weight could not be set"),
            (Trouble::Pipe, "a pipe could not be read or written"),
            (Trouble::Lock, "a lock with priority inheritance could not be taken or given back"),
            (Trouble::Marker, "a mark could not be written into the recording"),
        ];
        for (kind, text) in TEXTS {
            let (times, error) = &self.head[0].troubles[kind as usize];
            let (times, error) = (times.load(SeqCst), error.load(SeqCst));
            if times > 0 {
                let error = std::io::Error::from_raw_os_error(error);
                notes.push(format!("{times} times {text}: {error}"));
            }
        }
    }

    /// A fork that failed: what comes after it is not the workload any more.
    pub(super) fn failed_fork(&self) -> Option<TaskError> {
        let failed = |kind: Trouble| {
            let (times, error) = &self.head[0].troubles[kind as usize];
            (times.load(SeqCst) > 0).then(|| error.load(SeqCst))
        };
        if failed(Trouble::Slots).is_some() {
            let max = super::shared::SLOTS_MAX;
            return Some(TaskError::Unfit {
                problem: format!("the workload forked more than SLOTS_MAX, {max}, tasks"),
                help: "let it run for a shorter time".to_owned(),
            });
        }
        let (error, what) = match (failed(Trouble::Fork), failed(Trouble::Memory)) {
            (Some(error), _) => (error, "fork a task of the workload during the run"),
            (None, Some(error)) => (error, "get the memory that a forked task reads"),
            (None, None) => return None,
        };
        Some(TaskError::System {
            what: what.to_owned(),
            error: std::io::Error::from_raw_os_error(error),
            help: Some(
                "use fewer tasks, or raise the limits: ulimit -u, /proc/sys/kernel/pid_max"
                    .to_owned(),
            ),
        })
    }
}
