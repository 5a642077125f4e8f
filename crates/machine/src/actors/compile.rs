//! Programs as flat code: one list of steps for the whole workload, loops as jumps, every counter in a numbered
//! register.

use fairground_workload::{Duration, LockKind, Op, Program, Role, TaskSpec, Timer, Workload};

use super::timers::TimerPlace;
use super::{ActorError, AffinityId, MAX_LOOP_DEPTH, mask_of};
use crate::cpuset::CpuMask;

/// "No handler".
pub(super) const NO_CODE: u32 = u32::MAX;

/// One step. Registers are the actor's own, counted from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Run(Duration),
    RunForever,
    /// Memory, once through.
    Touch {
        bytes: u64,
    },
    Sleep(Duration),
    Io(Duration),
    Busy(Duration),
    TimerWait {
        timer: TimerPlace,
        period_ns: u64,
        relative: bool,
    },
    TimerStart(TimerPlace),
    PipeWrite {
        pipe: u32,
        bytes: u64,
    },
    PipeRead {
        pipe: u32,
        bytes: u64,
    },
    Send {
        queue: u32,
    },
    Receive {
        queue: u32,
        count: u64,
    },
    Lock {
        lock: u32,
        shared: bool,
    },
    Unlock {
        lock: u32,
    },
    /// Gives the lock back and waits; the step behind it takes the lock again.
    ConditionWait {
        condition: u32,
        lock: u32,
    },
    Notify {
        condition: u32,
        all: bool,
    },
    Barrier {
        barrier: u32,
        count: u64,
    },
    Signal(Role),
    Fork {
        spec: u32,
        count: u64,
    },
    WaitChildren,
    Yield,
    SetNice(i8),
    SetSlice(u64),
    SetAffinity(AffinityId),
    SetCgroup(u32),
    SetCgroupWeight {
        cgroup: u32,
        weight: u32,
    },
    Mark {
        label: u32,
        reg: u32,
    },
    /// Sets the loop's counter, or passes over the body when there is nothing to repeat.
    LoopEnter {
        reg: u32,
        count: u64,
        end: u32,
    },
    /// Counts down; goes back to `body` while something is left.
    LoopBack {
        reg: u32,
        body: u32,
    },
    Jump(u32),
    Exit,
    /// The end of a signal handler.
    Return,
}

/// What all tasks of a group share.
#[derive(Clone, Debug)]
pub(super) struct SpecCode {
    pub(super) name: String,
    pub(super) count: u32,
    pub(super) affinity: Option<AffinityId>,
    pub(super) entry: u32,
    pub(super) handler: u32,
    pub(super) regs: u32,
}

/// A compiled workload.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    pub(super) steps: Vec<Step>,
    pub(super) specs: Vec<SpecCode>,
    pub(super) labels: Vec<String>,
    pub(super) affinities: Vec<CpuMask>,
}

/// Compiles one group at a time.
struct Compiler<'a> {
    workload: &'a Workload,
    code: Code,
    /// Registers of the group so far: timers, then marks and loops as they come.
    regs: u32,
    /// The registers of marks, by label.
    marks: Vec<(u32, u32)>,
    /// The registers of timers, by the timer's number.
    timers: Vec<(usize, u32)>,
    /// Registers of the program's loops, by depth.
    loops: Vec<u32>,
}

/// Compiles a workload, checking every index on the way.
pub(super) fn compile(workload: &Workload) -> Result<Code, ActorError> {
    let mut compiler = Compiler {
        workload,
        code: Code::default(),
        regs: 0,
        marks: Vec::new(),
        timers: Vec::new(),
        loops: Vec::new(),
    };
    for timer in &workload.timers {
        if timer.period_ns == 0 {
            return Err(compiler.wrong(format!("the timer `{}` has a period of 0", timer.name)));
        }
    }
    for pipe in &workload.pipes {
        if pipe.capacity == 0 {
            return Err(compiler.wrong(format!("the pipe `{}` has no capacity", pipe.name)));
        }
    }
    for spec in &workload.tasks {
        compiler.group(spec)?;
    }
    Ok(compiler.code)
}

impl Compiler<'_> {
    fn wrong(&self, problem: String) -> ActorError {
        ActorError::Inconsistent { workload: self.workload.name.clone(), problem }
    }

    fn group(&mut self, spec: &TaskSpec) -> Result<(), ActorError> {
        if let Some(cgroup) = spec.cgroup {
            self.cgroup(spec, cgroup)?;
        }
        (self.regs, self.marks, self.timers) = (0, Vec::new(), Vec::new());
        let affinity = spec.cpus.as_ref().map(|list| self.affinity(mask_of(list)));
        let entry = self.here();
        self.program(spec, &spec.program, Step::Exit)?;
        let mut handler = NO_CODE;
        if !spec.on_signal.is_empty() {
            handler = self.here();
            self.program(spec, &spec.on_signal, Step::Return)?;
        }
        let (name, count, regs) = (spec.name.clone(), spec.count, self.regs);
        self.code.specs.push(SpecCode { name, count, affinity, entry, handler, regs });
        Ok(())
    }

    /// A handler interrupts loops of the main program, so each program has loop registers of its own.
    fn program(&mut self, spec: &TaskSpec, program: &Program, end: Step) -> Result<(), ActorError> {
        self.loops.clear();
        self.body(spec, program, 0)?;
        self.code.steps.push(end);
        Ok(())
    }

    fn body(&mut self, spec: &TaskSpec, program: &Program, depth: usize) -> Result<(), ActorError> {
        for op in program {
            match op {
                Op::Loop(count, inner) => self.repeat(spec, *count, inner, depth)?,
                op => {
                    let step = self.step(spec, op)?;
                    self.code.steps.push(step);
                    if let Step::ConditionWait { lock, .. } = step {
                        self.code.steps.push(Step::Lock { lock, shared: false });
                    }
                }
            }
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        spec: &TaskSpec,
        count: Option<u64>,
        inner: &Program,
        depth: usize,
    ) -> Result<(), ActorError> {
        if depth == MAX_LOOP_DEPTH {
            return Err(self.wrong(format!(
                "task `{}` has more than {MAX_LOOP_DEPTH} loops within loops",
                spec.name
            )));
        }
        let Some(count) = count else {
            let start = self.here();
            self.body(spec, inner, depth + 1)?;
            self.code.steps.push(Step::Jump(start));
            return Ok(());
        };
        while self.loops.len() <= depth {
            let reg = self.register();
            self.loops.push(reg);
        }
        let (reg, enter) = (self.loops[depth], self.code.steps.len());
        self.code.steps.push(Step::LoopEnter { reg, count, end: 0 });
        self.body(spec, inner, depth + 1)?;
        self.code.steps.push(Step::LoopBack { reg, body: enter as u32 + 1 });
        self.code.steps[enter] = Step::LoopEnter { reg, count, end: self.here() };
        Ok(())
    }

    fn step(&mut self, spec: &TaskSpec, op: &Op) -> Result<Step, ActorError> {
        Ok(match op {
            Op::Run(length) => Step::Run(*length),
            Op::Touch(bytes) => Step::Touch { bytes: *bytes },
            Op::RunForever => Step::RunForever,
            Op::Sleep(length) => Step::Sleep(*length),
            Op::Io(length) => Step::Io(*length),
            Op::Busy(length) => Step::Busy(*length),
            Op::TimerWait(..) | Op::TimerStart(_) => self.timer(spec, op)?,
            Op::PipeWrite(pipe, bytes) => {
                self.found(spec, "pipe", *pipe, self.workload.pipes.get(*pipe))?;
                Step::PipeWrite { pipe: *pipe as u32, bytes: *bytes }
            }
            Op::PipeRead(pipe, bytes) => {
                self.found(spec, "pipe", *pipe, self.workload.pipes.get(*pipe))?;
                Step::PipeRead { pipe: *pipe as u32, bytes: *bytes }
            }
            Op::Send(queue) => {
                self.found(spec, "queue", *queue, self.workload.queues.get(*queue))?;
                Step::Send { queue: *queue as u32 }
            }
            Op::Receive(queue, count) => {
                self.found(spec, "queue", *queue, self.workload.queues.get(*queue))?;
                Step::Receive { queue: *queue as u32, count: u64::from(*count) }
            }
            Op::Lock(_)
            | Op::ReadLock(_)
            | Op::WriteLock(_)
            | Op::Unlock(_)
            | Op::ConditionWait(..)
            | Op::Notify(_)
            | Op::NotifyAll(_)
            | Op::Barrier(_) => self.meeting(spec, op)?,
            Op::Signal(role) => {
                if let Role::All(group) | Role::One(group, _) = role {
                    self.found(spec, "group", *group, self.workload.tasks.get(*group))?;
                }
                Step::Signal(*role)
            }
            Op::Fork(group) => {
                let count =
                    self.found(spec, "group", *group, self.workload.tasks.get(*group))?.count;
                Step::Fork { spec: *group as u32, count: u64::from(count) }
            }
            Op::WaitChildren => Step::WaitChildren,
            Op::Yield => Step::Yield,
            Op::SetNice(nice) => Step::SetNice(*nice),
            Op::SetSlice(ns) => Step::SetSlice(*ns),
            Op::SetAffinity(list) => Step::SetAffinity(self.affinity(mask_of(list))),
            Op::SetCgroup(cgroup) => Step::SetCgroup(self.cgroup(spec, *cgroup)?),
            Op::SetCgroupWeight(cgroup, weight) => {
                Step::SetCgroupWeight { cgroup: self.cgroup(spec, *cgroup)?, weight: *weight }
            }
            Op::Mark(text) => self.mark(text),
            Op::Exit => Step::Exit,
            Op::Loop(..) => {
                return Err(self.wrong("a loop stands where a plain operation belongs".to_owned()));
            }
        })
    }

    /// Operations by which tasks wait for each other.
    fn meeting(&self, spec: &TaskSpec, op: &Op) -> Result<Step, ActorError> {
        Ok(match op {
            Op::Lock(lock) | Op::WriteLock(lock) => {
                Step::Lock { lock: self.lock(spec, *lock)?, shared: false }
            }
            Op::ReadLock(lock) => Step::Lock {
                lock: self.lock(spec, *lock)?,
                shared: self.workload.locks[*lock].kind == LockKind::RwLock,
            },
            Op::ConditionWait(condition, lock) => {
                let lock = self.lock(spec, *lock)?;
                Step::ConditionWait { condition: self.condition(spec, *condition)?, lock }
            }
            Op::Notify(condition) => {
                Step::Notify { condition: self.condition(spec, *condition)?, all: false }
            }
            Op::NotifyAll(condition) => {
                Step::Notify { condition: self.condition(spec, *condition)?, all: true }
            }
            Op::Barrier(barrier) => {
                let known = self.workload.barriers.get(*barrier);
                let count = u64::from(self.found(spec, "barrier", *barrier, known)?.count);
                Step::Barrier { barrier: *barrier as u32, count }
            }
            Op::Unlock(lock) => Step::Unlock { lock: self.lock(spec, *lock)? },
            _ => return Err(self.wrong("an operation that waits for no task".to_owned())),
        })
    }

    fn found<'t, T>(
        &self,
        spec: &TaskSpec,
        what: &str,
        index: usize,
        thing: Option<&'t T>,
    ) -> Result<&'t T, ActorError> {
        thing.ok_or_else(|| {
            self.wrong(format!(
                "task `{}` uses {what} number {index}, which does not exist",
                spec.name
            ))
        })
    }

    fn cgroup(&self, spec: &TaskSpec, cgroup: usize) -> Result<u32, ActorError> {
        self.found(spec, "cgroup", cgroup, self.workload.cgroups.get(cgroup))?;
        Ok(cgroup as u32)
    }

    fn condition(&self, spec: &TaskSpec, condition: usize) -> Result<u32, ActorError> {
        self.found(spec, "condition", condition, self.workload.conditions.get(condition))?;
        Ok(condition as u32)
    }

    fn lock(&self, spec: &TaskSpec, lock: usize) -> Result<u32, ActorError> {
        self.found(spec, "lock", lock, self.workload.locks.get(lock))?;
        Ok(lock as u32)
    }

    fn here(&self) -> u32 {
        self.code.steps.len() as u32
    }

    fn register(&mut self) -> u32 {
        self.regs += 1;
        self.regs - 1
    }

    fn timer(&mut self, spec: &TaskSpec, op: &Op) -> Result<Step, ActorError> {
        let (Op::TimerWait(timer, _) | Op::TimerStart(timer)) = op else {
            return Err(self.wrong("an operation of no timer".to_owned()));
        };
        let workload = self.workload;
        let Timer { relative, shared, .. } =
            *self.found(spec, "timer", *timer, workload.timers.get(*timer))?;
        let place = match shared {
            true => TimerPlace::Shared(*timer as u32),
            false => TimerPlace::Own(self.timer_register(*timer)),
        };
        Ok(match op {
            Op::TimerWait(_, period_ns) => {
                Step::TimerWait { timer: place, period_ns: *period_ns, relative }
            }
            _ => Step::TimerStart(place),
        })
    }

    fn timer_register(&mut self, timer: usize) -> u32 {
        if let Some((_, reg)) = self.timers.iter().find(|(known, _)| *known == timer) {
            return *reg;
        }
        let reg = self.register();
        self.timers.push((timer, reg));
        reg
    }

    fn mark(&mut self, text: &str) -> Step {
        let label = match self.code.labels.iter().position(|known| known == text) {
            Some(known) => known as u32,
            None => {
                self.code.labels.push(text.to_owned());
                self.code.labels.len() as u32 - 1
            }
        };
        if let Some((_, reg)) = self.marks.iter().find(|(known, _)| *known == label) {
            return Step::Mark { label, reg: *reg };
        }
        let reg = self.register();
        self.marks.push((label, reg));
        Step::Mark { label, reg }
    }

    fn affinity(&mut self, mask: CpuMask) -> AffinityId {
        let known = self.code.affinities.iter().position(|other| *other == mask);
        AffinityId(known.unwrap_or_else(|| {
            self.code.affinities.push(mask);
            self.code.affinities.len() - 1
        }) as u32)
    }
}
