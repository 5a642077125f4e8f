//! A workload compiled for processes that must not allocate: all indices resolved, all CPU masks built.

use fairground_workload::{CpuList, Duration, Lock, Op, Program, Role, TaskSpec, Workload};

use super::error::TaskError;

/// Maximum bytes of a pipe read or write system call.
const PIPE_CHUNK_MAX: u64 = 1 << 20;
/// Maximum number of initial tasks.
pub(super) const TASKS_AT_START_MAX: u64 = 30_000;

/// A CPU mask for `sched_setaffinity`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuSet(Vec<u64>);

impl CpuSet {
    pub(super) fn new(list: &CpuList) -> Self {
        let last = list.0.iter().map(|(_, last)| *last).max().unwrap_or(0);
        let mut words = vec![0u64; last as usize / 64 + 1];
        for cpu in list.0.iter().flat_map(|(first, last)| *first..=*last) {
            words[cpu as usize / 64] |= 1 << (cpu % 64);
        }
        Self(words)
    }

    /// Sets the calling task's affinity.
    pub(super) fn apply(&self) -> bool {
        // SAFETY: the kernel reads the words, which outlive the call.
        let done = unsafe {
            libc::syscall(
                libc::SYS_sched_setaffinity,
                0,
                size_of_val(self.0.as_slice()),
                self.0.as_ptr(),
            )
        };
        done == 0
    }

    /// Whether it contains one of the CPUs.
    pub(super) fn meets(&self, online: &CpuSet) -> bool {
        self.0.iter().zip(&online.0).any(|(own, other)| own & other != 0)
    }
}

/// One operation.
#[derive(Debug)]
pub(super) enum Step {
    Run(Duration),
    RunForever,
    Touch(u64),
    Sleep(Duration),
    Busy(Duration),
    TimerWait { timer: TimerStorage, period_ns: u64, relative: bool },
    TimerStart(TimerStorage),
    PipeWrite { pipe: usize, bytes: u64 },
    PipeRead { pipe: usize, bytes: u64 },
    Send(usize),
    Receive(usize, u32),
    Lock(usize),
    ReadLock(usize),
    Unlock(usize),
    ConditionWait(usize, usize),
    Notify(usize, u32),
    Barrier(usize),
    Signal(Role),
    Fork(usize),
    WaitChildren,
    Yield,
    SetNice(i8),
    SetSlice(u64),
    SetAffinity(CpuSet),
    SetCgroup(usize),
    SetCgroupWeight(usize, u32),
    Mark(usize),
    Loop(Option<u64>, Box<[Step]>),
    Exit,
}

/// The storage of the last expiry of a timer.
#[derive(Clone, Copy, Debug)]
pub(super) enum TimerStorage {
    /// In a register of the task.
    Own(usize),
    /// In shared memory, by index of the workload's timer.
    Shared(usize),
}

/// A group of equal tasks.
#[derive(Debug)]
pub(super) struct GroupPlan {
    pub(super) name: String,
    pub(super) count: u32,
    pub(super) nice: i8,
    pub(super) cpus: Option<CpuSet>,
    pub(super) cgroup: Option<usize>,
    pub(super) start_ns: Option<u64>,
    pub(super) program: Box<[Step]>,
    pub(super) handler: Box<[Step]>,
    /// Bytes of memory of each task, to touch and to move through pipes.
    pub(super) memory_bytes: u64,
}

impl GroupPlan {
    /// The name of its `nth` task, as in simulation.
    pub(super) fn task_name(&self, nth: u32) -> String {
        if self.count == 1 { self.name.clone() } else { format!("{}/{nth}", self.name) }
    }
}

/// A compiled workload.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) groups: Vec<GroupPlan>,
    /// The labels of all marks. A task's register of the same index counts them; the registers of its timers follow.
    pub(super) labels: Vec<String>,
    /// The locks, as the workload describes them.
    pub(super) locks: Vec<Lock>,
    /// Number of registers of each task.
    pub(super) registers: usize,
    /// Whether tasks fork tasks.
    pub(super) forks: bool,
    /// Whether a task sets its slice length.
    pub(super) sets_slice: bool,
}

impl Plan {
    /// Compiles a checked workload.
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
        if workload.tasks.iter().any(|spec| does_io(&spec.program) || does_io(&spec.on_signal)) {
            return Err(TaskError::Unfit {
                problem: "the workload uses a block device with a service time (`io`), which a \
                          real kernel does not have"
                    .to_owned(),
                help: "run it in the simulator".to_owned(),
            });
        }
        let mut plan = Self {
            groups: Vec::new(),
            labels: Vec::new(),
            locks: workload.locks.clone(),
            registers: 0,
            forks: false,
            sets_slice: false,
        };
        for spec in &workload.tasks {
            plan.labels_of(&spec.program);
            plan.labels_of(&spec.on_signal);
        }
        plan.registers = plan.labels.len() + workload.timers.len();
        for spec in &workload.tasks {
            let group = plan.group(workload, spec);
            plan.groups.push(group);
        }
        Ok(plan)
    }

    fn labels_of(&mut self, program: &Program) {
        for op in program {
            match op {
                Op::Mark(text) if !self.labels.contains(text) => self.labels.push(text.clone()),
                Op::Loop(_, body) => self.labels_of(body),
                _ => {}
            }
        }
    }

    fn group(&mut self, workload: &Workload, spec: &TaskSpec) -> GroupPlan {
        let mut memory_bytes = 0;
        let program = self.steps(workload, &spec.program, &mut memory_bytes);
        let handler = self.steps(workload, &spec.on_signal, &mut memory_bytes);
        GroupPlan {
            name: spec.name.clone(),
            count: spec.count,
            nice: spec.nice,
            cpus: spec.cpus.as_ref().map(CpuSet::new),
            cgroup: spec.cgroup,
            start_ns: spec.start_ns,
            program,
            handler,
            memory_bytes,
        }
    }

    fn timer(&self, workload: &Workload, timer: usize) -> TimerStorage {
        match workload.timers[timer].shared {
            true => TimerStorage::Shared(timer),
            false => TimerStorage::Own(self.labels.len() + timer),
        }
    }

    fn steps(&mut self, workload: &Workload, program: &Program, memory: &mut u64) -> Box<[Step]> {
        program.iter().map(|op| self.step(workload, op, memory)).collect()
    }

    fn step(&mut self, workload: &Workload, op: &Op, memory: &mut u64) -> Step {
        let mut chunk = |pipe: usize, bytes: u64| {
            let chunk = bytes.min(workload.pipes[pipe].capacity).min(PIPE_CHUNK_MAX);
            *memory = (*memory).max(chunk);
        };
        match op {
            Op::Run(length) => Step::Run(*length),
            Op::RunForever => Step::RunForever,
            Op::Touch(bytes) => {
                *memory = (*memory).max(*bytes);
                Step::Touch(*bytes)
            }
            // `Plan::new` rejects workloads with `io`.
            Op::Sleep(length) | Op::Io(length) => Step::Sleep(*length),
            Op::Busy(length) => Step::Busy(*length),
            Op::TimerWait(timer, period_ns) => Step::TimerWait {
                timer: self.timer(workload, *timer),
                period_ns: *period_ns,
                relative: workload.timers[*timer].relative,
            },
            Op::TimerStart(timer) => Step::TimerStart(self.timer(workload, *timer)),
            Op::PipeWrite(pipe, bytes) => {
                chunk(*pipe, *bytes);
                Step::PipeWrite { pipe: *pipe, bytes: *bytes }
            }
            Op::PipeRead(pipe, bytes) => {
                chunk(*pipe, *bytes);
                Step::PipeRead { pipe: *pipe, bytes: *bytes }
            }
            Op::Send(queue) => Step::Send(*queue),
            Op::Receive(queue, count) => Step::Receive(*queue, *count),
            Op::Lock(lock) | Op::WriteLock(lock) => Step::Lock(*lock),
            Op::ReadLock(lock) => Step::ReadLock(*lock),
            Op::ConditionWait(condition, lock) => Step::ConditionWait(*condition, *lock),
            Op::Notify(condition) => Step::Notify(*condition, 1),
            Op::NotifyAll(condition) => Step::Notify(*condition, u32::MAX),
            Op::Barrier(barrier) => Step::Barrier(*barrier),
            Op::Unlock(lock) => Step::Unlock(*lock),
            Op::Signal(role) => Step::Signal(*role),
            Op::Fork(group) => {
                self.forks = true;
                Step::Fork(*group)
            }
            Op::WaitChildren => Step::WaitChildren,
            Op::Yield => Step::Yield,
            Op::SetNice(nice) => Step::SetNice(*nice),
            Op::SetSlice(ns) => {
                self.sets_slice = true;
                Step::SetSlice(*ns)
            }
            Op::SetAffinity(list) => Step::SetAffinity(CpuSet::new(list)),
            Op::SetCgroup(cgroup) => Step::SetCgroup(*cgroup),
            Op::SetCgroupWeight(cgroup, weight) => Step::SetCgroupWeight(*cgroup, *weight),
            Op::Mark(text) => {
                // All labels have been collected.
                Step::Mark(self.labels.iter().position(|label| label == text).unwrap_or(0))
            }
            Op::Loop(times, body) => Step::Loop(*times, self.steps(workload, body, memory)),
            Op::Exit => Step::Exit,
        }
    }
}

/// Whether a program uses the block device.
fn does_io(program: &Program) -> bool {
    program.iter().any(|op| match op {
        Op::Io(_) => true,
        Op::Loop(_, body) => does_io(body),
        _ => false,
    })
}
