//! Tasks that go to another CPU's queue without a wake-up: in the recording, and by the scheduler.

use fairground_trace::TaskId;

use super::follower::{Follower, MachineResult};
use super::tally::{Choice, Decision, Kind};

/// A recorded move that the scheduler has not made yet, or one of the scheduler's that is not in the recording yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    task: TaskId,
    cpu: u32,
    until_ns: u64,
}

/// The moves that are open.
#[derive(Debug)]
pub(super) struct Moves {
    /// By task: the CPU of its queue in the recording.
    pub(super) recorded: Vec<u32>,
    /// By CPU: the tasks whose queue was there, those that left included until the list is read.
    queues: Vec<Vec<TaskId>>,
    /// By task: the CPU in whose list it stands.
    listed: Vec<Option<u32>>,
    /// How long one side may come after the other, ns: a pass moves a task before it switches.
    wait_ns: u64,
    /// Moves of the recording.
    expected: Vec<Open>,
    /// Tasks that the scheduler moved.
    strayed: Vec<Open>,
    /// Scratch: what the machine reports.
    reported: Vec<(TaskId, u32)>,
}

impl Moves {
    pub(super) fn new(tasks: usize, cpus: u32, wait_ns: u64) -> Moves {
        Moves {
            recorded: vec![0; tasks],
            queues: vec![Vec::new(); cpus as usize],
            listed: vec![None; tasks],
            wait_ns,
            expected: Vec::new(),
            strayed: Vec::new(),
            reported: Vec::new(),
        }
    }

    /// A task is in the queue of a CPU in the recording. Returns the CPU before.
    pub(super) fn put(&mut self, task: TaskId, cpu: u32) -> u32 {
        self.expected.retain(|open| open.task != task);
        std::mem::replace(&mut self.recorded[task.index()], cpu)
    }

    /// Lists a task among those of its queue.
    fn list(&mut self, task: TaskId) {
        let cpu = self.recorded[task.index()];
        if self.listed[task.index()] != Some(cpu) {
            self.listed[task.index()] = Some(cpu);
            self.queues[cpu as usize].push(task);
        }
    }

    /// The tasks whose queue is that of a CPU.
    pub(super) fn queue(&mut self, cpu: u32) -> &[TaskId] {
        let Moves { recorded, listed, queues, .. } = self;
        let queue = &mut queues[cpu as usize];
        queue.retain(|task| recorded[task.index()] == cpu && listed[task.index()] == Some(cpu));
        queue
    }
}

impl Follower<'_> {
    /// A task is in the queue of a CPU in the recording.
    pub(super) fn put(&mut self, task: TaskId, cpu: u32) {
        let from = self.moves.put(task, cpu);
        if !self.resolution.is_exact() {
            self.moves.list(task);
            if from != cpu {
                self.resolution.moves(from, cpu);
            }
        }
    }

    /// `sched_migrate_task` on a CPU.
    pub(super) fn on_migrate(&mut self, cpu: u32, task: TaskId, to: u32) -> MachineResult {
        self.put(task, to);
        if !self.driven.is_runnable(task) {
            // It is on its way to where it was placed.
            return Ok(());
        }
        let until_ns = self.now_ns + self.moves.wait_ns;
        match self.driven.cpu_of(task) == Some(to) {
            true => self.tally.agree(Decision::Move),
            false => self.moves.expected.push(Open { task, cpu, until_ns }),
        }
        Ok(())
    }

    /// After a step: notes which tasks the scheduler moved.
    pub(super) fn after_step(&mut self) -> MachineResult {
        let mut reported = std::mem::take(&mut self.moves.reported);
        self.driven.take_moves(&mut reported);
        let until_ns = self.now_ns + self.moves.wait_ns;
        for (task, _) in reported.drain(..) {
            let at = self.driven.cpu_of(task).filter(|_| self.driven.is_runnable(task));
            let Some(at) = at else { continue };
            let is_recorded = at == self.moves.recorded[task.index()];
            let expected = self.moves.expected.len();
            if is_recorded {
                self.moves.expected.retain(|open| open.task != task);
            }
            for _ in self.moves.expected.len()..expected {
                self.tally.agree(Decision::Move);
            }
            if !is_recorded && self.moves.strayed.iter().all(|open| open.task != task) {
                self.moves.strayed.push(Open { task, cpu: at, until_ns });
            }
        }
        self.moves.reported = reported;
        Ok(())
    }

    /// Moves that only one side made within the time that the other had: the machine goes on with the recorded ones.
    pub(super) fn settle_moves(&mut self, now_ns: u64) -> MachineResult {
        if self.moves.expected.is_empty() && self.moves.strayed.is_empty() {
            return Ok(());
        }
        let is_over = |open: &mut Open| open.until_ns < now_ns;
        let expected: Vec<Open> = self.moves.expected.extract_if(.., is_over).collect();
        let strayed: Vec<Open> = self.moves.strayed.extract_if(.., is_over).collect();
        for open in expected {
            self.settle_move(open, Kind::OnlyRecordingMoves)?;
        }
        for open in strayed {
            self.settle_move(open, Kind::OnlySchedulerMoves)?;
        }
        Ok(())
    }

    /// Between a pass's choice and what runs then: a task runs next that the recording has moved for this pass. The
    /// scheduler has moved it, too, or its time to do so is over.
    pub(super) fn judge_move_of(&mut self, task: TaskId) {
        let expected = self.moves.expected.iter().position(|open| open.task == task);
        let Some(Open { cpu, .. }) = expected.map(|at| self.moves.expected.remove(at)) else {
            return;
        };
        let recorded = self.moves.recorded[task.index()];
        match self.driven.cpu_of(task) {
            Some(at) if at != recorded => {
                let (of_recording, of_scheduler) = (Choice::Cpu(recorded), Choice::Cpu(at));
                let kind = Kind::OnlyRecordingMoves;
                self.differ(Decision::Move, kind, (cpu, task), of_recording, of_scheduler, &[task]);
            }
            _ => self.tally.agree(Decision::Move),
        }
    }

    /// Whether the recording has moved a task to a CPU for this pass, and the scheduler has left it elsewhere.
    pub(super) fn is_pulled(&self, cpu: u32, task: TaskId) -> bool {
        self.moves.expected.iter().any(|open| open.task == task)
            && self.driven.cpu_of(task).is_some_and(|at| at != cpu)
    }

    /// Counts a task that the scheduler has chosen and that waits on another CPU in the recording. False: it does not.
    pub(super) fn judge_pull(&mut self, cpu: u32, task: TaskId) -> bool {
        let recorded = self.moves.recorded[task.index()];
        if task.is_idle() || recorded == cpu {
            return false;
        }
        let (of_recording, of_scheduler) = (Choice::Cpu(recorded), Choice::Cpu(cpu));
        let kind = Kind::OnlySchedulerMoves;
        self.differ(Decision::Move, kind, (cpu, task), of_recording, of_scheduler, &[task]);
        true
    }

    fn settle_move(&mut self, open: Open, kind: Kind) -> MachineResult {
        let Open { task, cpu, .. } = open;
        let recorded = self.moves.recorded[task.index()];
        let at = self.driven.cpu_of(task).filter(|_| self.driven.is_runnable(task));
        let Some(at) = at.filter(|at| *at != recorded) else { return Ok(()) };
        let (of_recording, of_scheduler) = (Choice::Cpu(recorded), Choice::Cpu(at));
        self.differ(Decision::Move, kind, (cpu, task), of_recording, of_scheduler, &[task]);
        self.driven.move_task(task, recorded)
    }
}
