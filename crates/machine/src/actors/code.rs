//! A workload as flat code, and its compilation: one list of steps, loops as jumps, every counter in a numbered
//! register.

use fairground_workload::{
    CpuList, Duration, LockKind, ObjectKind, Op, Program, Role, TaskSpec, Workload,
};

use super::effect::{AffinityId, Effect};
use super::error::{ActorError, MAX_LOOP_DEPTH};
use crate::cpuset::CpuMask;

/// "No handler".
pub(super) const NO_CODE: u32 = u32::MAX;

/// The location of a timer's last expiry plus 1, ns; it holds 0 before the timer begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum TimerPlace {
    /// In a register of the actor.
    Own(u32),
    /// With all actors, by the workload's number of the timer.
    Shared(u32),
}

/// One step. Registers are the actor's own, counted from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Run(Duration),
    RunForever,
    /// Reads the memory once.
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
    /// Releases the lock and waits; the next step takes the lock again.
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
    /// Sets an attribute of its own or of a cgroup.
    Set(Effect),
    Mark {
        label: u32,
        reg: u32,
    },
    /// Sets the loop's counter, or skips the body if there is nothing to repeat.
    LoopEnter {
        reg: u32,
        count: u64,
        end: u32,
    },
    /// Decrements the counter; jumps to `body` while it is not 0.
    LoopBack {
        reg: u32,
        body: u32,
    },
    Jump(u32),
    Exit,
    /// The end of a signal handler.
    Return,
}

/// The data that all tasks of a group share.
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
            self.exists(spec, ObjectKind::Cgroup, cgroup)?;
        }
        (self.regs, self.marks, self.timers) = (0, Vec::new(), Vec::new());
        let affinity = spec.cpus.as_ref().map(|list| self.affinity(list));
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
        for (kind, index) in op.references() {
            self.exists(spec, kind, index)?;
        }
        let workload = self.workload;
        let lock = |lock: usize, shared| Step::Lock { lock: lock as u32, shared };
        Ok(match *op {
            Op::Run(length) => Step::Run(length),
            Op::Touch(bytes) => Step::Touch { bytes },
            Op::RunForever => Step::RunForever,
            Op::Sleep(length) => Step::Sleep(length),
            Op::Io(length) => Step::Io(length),
            Op::Busy(length) => Step::Busy(length),
            Op::TimerWait(index, period_ns) => {
                let relative = workload.timers[index].relative;
                Step::TimerWait { timer: self.timer(index), period_ns, relative }
            }
            Op::TimerStart(timer) => Step::TimerStart(self.timer(timer)),
            Op::PipeWrite(pipe, bytes) => Step::PipeWrite { pipe: pipe as u32, bytes },
            Op::PipeRead(pipe, bytes) => Step::PipeRead { pipe: pipe as u32, bytes },
            Op::Send(queue) => Step::Send { queue: queue as u32 },
            Op::Receive(queue, count) => Step::Receive { queue: queue as u32, count: count.into() },
            Op::Lock(index) | Op::WriteLock(index) => lock(index, false),
            Op::ReadLock(index) => lock(index, workload.locks[index].kind == LockKind::RwLock),
            Op::Unlock(lock) => Step::Unlock { lock: lock as u32 },
            Op::ConditionWait(condition, lock) => {
                Step::ConditionWait { condition: condition as u32, lock: lock as u32 }
            }
            Op::Notify(condition) => Step::Notify { condition: condition as u32, all: false },
            Op::NotifyAll(condition) => Step::Notify { condition: condition as u32, all: true },
            Op::Barrier(barrier) => {
                let count = workload.barriers[barrier].count.into();
                Step::Barrier { barrier: barrier as u32, count }
            }
            Op::Signal(role) => Step::Signal(role),
            Op::Fork(spec) => {
                Step::Fork { spec: spec as u32, count: workload.tasks[spec].count.into() }
            }
            Op::WaitChildren => Step::WaitChildren,
            Op::Yield => Step::Yield,
            Op::SetNice(nice) => Step::Set(Effect::SetNice { nice }),
            Op::SetPolicy(policy) => Step::Set(Effect::SetPolicy { policy }),
            Op::SetSlice(slice_ns) => Step::Set(Effect::SetSlice { slice_ns }),
            Op::SetAffinity(ref list) => {
                Step::Set(Effect::SetAffinity { mask: self.affinity(list) })
            }
            Op::SetCgroup(cgroup) => Step::Set(Effect::SetCgroup { cgroup: cgroup as u32 }),
            Op::SetCgroupWeight(cgroup, weight) => {
                Step::Set(Effect::SetCgroupWeight { cgroup: cgroup as u32, weight })
            }
            Op::Mark(ref text) => self.mark(text),
            Op::Exit => Step::Exit,
            Op::Loop(..) => {
                return Err(self.wrong("a loop stands where a plain operation belongs".to_owned()));
            }
        })
    }

    fn exists(&self, spec: &TaskSpec, kind: ObjectKind, index: usize) -> Result<(), ActorError> {
        if index < self.workload.count(kind) {
            return Ok(());
        }
        let what = if kind == ObjectKind::Task { "group" } else { kind.word() };
        Err(self.wrong(format!(
            "task `{}` uses {what} number {index}, which does not exist",
            spec.name
        )))
    }

    fn here(&self) -> u32 {
        self.code.steps.len() as u32
    }

    fn register(&mut self) -> u32 {
        self.regs += 1;
        self.regs - 1
    }

    fn timer(&mut self, timer: usize) -> TimerPlace {
        if self.workload.timers[timer].shared {
            return TimerPlace::Shared(timer as u32);
        }
        if let Some((_, reg)) = self.timers.iter().find(|(known, _)| *known == timer) {
            return TimerPlace::Own(*reg);
        }
        let reg = self.register();
        self.timers.push((timer, reg));
        TimerPlace::Own(reg)
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

    fn affinity(&mut self, list: &CpuList) -> AffinityId {
        let mask = CpuMask::from_list(list);
        let known = self.code.affinities.iter().position(|other| *other == mask);
        AffinityId(known.unwrap_or_else(|| {
            self.code.affinities.push(mask);
            self.code.affinities.len() - 1
        }) as u32)
    }
}
