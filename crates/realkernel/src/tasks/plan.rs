//! A workload prepared for processes that must not allocate: what its programs need is known before the first fork.

use fairground_workload::limits::CPU_MAX;
use fairground_workload::{Lock, Op, Program, TaskSpec, Timer, Workload};

use super::error::TaskError;

/// Maximum bytes of a pipe read or write system call.
const PIPE_CHUNK_MAX: u64 = 1 << 20;
/// Maximum number of initial tasks.
pub(super) const TASKS_AT_START_MAX: u64 = 30_000;

/// A CPU mask for `sched_setaffinity`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuSet([u64; CPU_MAX as usize / 64 + 1]);

impl CpuSet {
    /// The CPUs of inclusive ranges, up to [`CPU_MAX`].
    pub(super) fn new(ranges: &[(u32, u32)]) -> Self {
        let mut set = Self([0; _]);
        for cpu in ranges.iter().flat_map(|(first, last)| *first..=(*last).min(CPU_MAX)) {
            set.0[cpu as usize / 64] |= 1 << (cpu % 64);
        }
        set
    }

    /// Sets the calling task's affinity. Allocates nothing.
    pub(super) fn apply(&self) -> bool {
        // SAFETY: the kernel reads the words, which outlive the call.
        let done = unsafe {
            libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&self.0), self.0.as_ptr())
        };
        done == 0
    }

    /// Whether it contains one of the CPUs.
    pub(super) fn meets(&self, online: &CpuSet) -> bool {
        self.0.iter().zip(&online.0).any(|(own, other)| own & other != 0)
    }
}

/// A group of equal tasks.
#[derive(Debug)]
pub(super) struct GroupPlan {
    pub(super) spec: TaskSpec,
    /// Bytes of memory of each task, to touch and to move through pipes.
    pub(super) memory_bytes: u64,
}

impl GroupPlan {
    /// The name of its `nth` task, as in simulation.
    pub(super) fn task_name(&self, nth: u32) -> String {
        let name = &self.spec.name;
        if self.spec.count == 1 { name.clone() } else { format!("{name}/{nth}") }
    }
}

/// A prepared workload.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) groups: Vec<GroupPlan>,
    /// The labels of all marks. A task's register of the same index counts them; the registers of its timers follow.
    pub(super) labels: Vec<String>,
    /// The locks, as the workload describes them.
    pub(super) locks: Vec<Lock>,
    /// The timers, as the workload describes them.
    pub(super) timers: Vec<Timer>,
    /// Whether tasks fork tasks.
    pub(super) forks: bool,
    /// Whether a task computes for a length of time that is worth watching.
    pub(super) computes: bool,
}

impl Plan {
    /// Prepares a checked workload.
    pub(super) fn new(workload: &Workload) -> Result<Self, TaskError> {
        let at_start = workload.tasks.iter().filter(|spec| spec.start_ns.is_some());
        let at_start: u64 = at_start.map(|spec| u64::from(spec.count)).sum();
        if at_start > TASKS_AT_START_MAX {
            return Err(TaskError::Unfit {
                problem: format!(
                    "the workload starts {at_start} tasks; on a real kernel, the maximum is \
                     {TASKS_AT_START_MAX} (TASKS_AT_START_MAX)"
                ),
                help: "run it in the simulator, or with fewer tasks".to_owned(),
            });
        }
        let mut plan = Self {
            groups: Vec::new(),
            labels: Vec::new(),
            locks: workload.locks.clone(),
            timers: workload.timers.clone(),
            forks: false,
            computes: false,
        };
        for spec in &workload.tasks {
            let mut memory_bytes = 0;
            for program in [&spec.program, &spec.on_signal] {
                plan.prepare(workload, program, &mut memory_bytes)?;
            }
            plan.groups.push(GroupPlan { spec: spec.clone(), memory_bytes });
        }
        Ok(plan)
    }

    /// Number of registers of each task.
    pub(super) fn registers(&self) -> usize {
        self.labels.len() + self.timers.len()
    }

    /// Notes what the operations of a program need.
    fn prepare(
        &mut self,
        workload: &Workload,
        program: &Program,
        memory_bytes: &mut u64,
    ) -> Result<(), TaskError> {
        for op in program {
            match op {
                Op::Run(_) | Op::Busy(_) => self.computes = true,
                Op::Fork(_) => self.forks = true,
                Op::Mark(text) if !self.labels.contains(text) => self.labels.push(text.clone()),
                Op::Touch(bytes) => *memory_bytes = (*memory_bytes).max(*bytes),
                Op::PipeWrite(pipe, bytes) | Op::PipeRead(pipe, bytes) => {
                    let chunk = (*bytes).min(workload.pipes[*pipe].capacity).min(PIPE_CHUNK_MAX);
                    *memory_bytes = (*memory_bytes).max(chunk);
                }
                Op::Loop(_, body) => self.prepare(workload, body, memory_bytes)?,
                Op::Io(_) => {
                    return Err(TaskError::Unfit {
                        problem: "the workload uses a block device with a service time (`io`), \
                                  which a real kernel does not have"
                            .to_owned(),
                        help: "run it in the simulator".to_owned(),
                    });
                }
                // Its execution needs nothing that is made before the first fork.
                _ => {}
            }
        }
        Ok(())
    }
}
