//! The locks that a task holds at each operation. A program has no branches, so this is known before it runs.

use crate::limits::LOCKS_HELD_MAX;
use crate::model::{LockId, LockKind, Op, Program, Workload};
use crate::spans::{Finding, Subject};
use crate::walk::{OpPath, never_returns, programs};

/// The first problem of each program.
pub(super) fn findings(workload: &Workload) -> Vec<Finding> {
    let walks = programs(workload).filter_map(|(path, program)| {
        let mut walk = Walk { workload, path, held: Vec::new() };
        walk.whole(program).err().map(|finding| *finding)
    });
    walks.collect()
}

/// A walk through one program.
struct Walk<'w> {
    workload: &'w Workload,
    path: OpPath,
    /// The locks that the task holds, with the operations that took them.
    held: Vec<(LockId, OpPath)>,
}

type Checked = Result<(), Box<Finding>>;

impl Walk<'_> {
    fn whole(&mut self, program: &Program) -> Checked {
        self.program(program)?;
        let task = &self.workload.tasks[self.path.task];
        match self.held.last() {
            Some((lock, taken)) if !program.iter().any(never_returns) => {
                let name = self.name(*lock);
                let message = format!("task `{}` ends while it holds the lock `{name}`", task.name);
                let help = format!("add {{ unlock = \"{name}\" }}");
                Err(Box::new(Finding::new(Subject::Op(taken.clone()), message, help)))
            }
            _ => Ok(()),
        }
    }

    fn program(&mut self, program: &Program) -> Checked {
        for (index, op) in program.iter().enumerate() {
            self.path.path.push(index);
            self.op(op)?;
            self.path.path.pop();
        }
        Ok(())
    }

    fn op(&mut self, op: &Op) -> Checked {
        match op {
            Op::Lock(lock) | Op::ReadLock(lock) | Op::WriteLock(lock) => {
                self.is_taken_so(*lock, matches!(op, Op::Lock(_)))?;
                self.may_wait_for(*lock)?;
                self.take(*lock)
            }
            Op::ConditionWait(_, lock) => self.waits_without(*lock),
            Op::Unlock(lock) => self.give_back(*lock),
            Op::Loop(times, body) => self.iterations(*times, body),
            Op::Exit => match self.held.last() {
                Some((lock, taken)) => Err(self.problem(
                    format!("the task ends here while it holds the lock `{}`", self.name(*lock)),
                    "release it first",
                    Some(taken.clone()),
                )),
                None => Ok(()),
            },
            op => match (op.effect(self.workload).forbidden, self.atomic()) {
                (Some(what), Some((lock, taken))) => Err(self.problem(
                    format!("{what} while the task holds the spin lock `{}`", self.name(lock)),
                    "release it first: a task that holds a spin lock is inside the kernel and may not sleep",
                    Some(taken),
                )),
                _ => Ok(()),
            },
        }
    }

    /// An rwlock is taken to read or to write; no other lock is.
    fn is_taken_so(&self, lock: LockId, plainly: bool) -> Checked {
        let (name, is_rw) = (self.name(lock), self.workload.locks[lock].kind == LockKind::RwLock);
        match (is_rw, plainly) {
            (true, true) => Err(self.problem(
                format!("`{name}` is an rwlock: it is taken to read or to write"),
                &format!("write {{ read_lock = \"{name}\" }} or {{ write_lock = \"{name}\" }}"),
                None,
            )),
            (false, false) => Err(self.problem(
                format!("`{name}` is not an rwlock"),
                &format!("write {{ lock = \"{name}\" }}, or `kind = \"rwlock\"`"),
                None,
            )),
            _ => Ok(()),
        }
    }

    /// A task waits for a condition with a sleeping lock, which it holds, and without any spin lock.
    fn waits_without(&self, lock: LockId) -> Checked {
        let name = self.name(lock);
        if !self.held.iter().any(|(held, _)| *held == lock) {
            return Err(self.problem(
                format!("the task does not hold the lock `{name}`, which the wait would release"),
                &format!(
                    "write {{ lock = \"{name}\" }} before, and {{ unlock = \"{name}\" }} behind"
                ),
                None,
            ));
        }
        if !matches!(self.workload.locks[lock].kind, LockKind::Mutex | LockKind::RtMutex) {
            return Err(self.problem(
                format!(
                    "a task cannot wait for a condition with the {} `{name}`",
                    self.workload.locks[lock].kind.word()
                ),
                "use a mutex or an rt_mutex",
                None,
            ));
        }
        match self.atomic() {
            Some((held, taken)) => Err(self.problem(
                format!("a wait while the task holds the spin lock `{}`", self.name(held)),
                "release it first",
                Some(taken),
            )),
            None => Ok(()),
        }
    }

    fn take(&mut self, lock: LockId) -> Checked {
        let name = self.name(lock);
        if self.path.handler {
            return Err(self.problem(
                format!("the handler of a signal takes the lock `{name}`"),
                "take it in the program: a handler may interrupt the task that holds it, and would wait for itself",
                None,
            ));
        }
        if let Some((_, taken)) = self.held.iter().find(|(held, _)| *held == lock) {
            let problem = self.problem(
                format!("the task holds the lock `{name}` already and would wait for itself"),
                "release it before it is taken again",
                Some(taken.clone()),
            );
            return Err(self.waits_for_itself(lock, problem));
        }
        if self.held.len() == LOCKS_HELD_MAX {
            return Err(self.problem(
                format!("more than LOCKS_HELD_MAX, {LOCKS_HELD_MAX}, locks at the same time"),
                "release some first",
                None,
            ));
        }
        self.held.push((lock, self.path.clone()));
        Ok(())
    }

    /// A task that takes a mutex twice waits for ever; a kernel that knows the owner refuses the second time.
    fn waits_for_itself(&self, lock: LockId, problem: Box<Finding>) -> Box<Finding> {
        match self.workload.locks[lock].kind {
            LockKind::Mutex => Box::new(problem.hanging()),
            _ => problem,
        }
    }

    fn give_back(&mut self, lock: LockId) -> Checked {
        match self.held.iter().position(|(held, _)| *held == lock) {
            Some(at) => {
                self.held.remove(at);
                Ok(())
            }
            None => Err(self.problem(
                format!("the task does not hold the lock `{}`", self.name(lock)),
                "take it first: only the holder of a lock releases it",
                None,
            )),
        }
    }

    /// A body with more than one iteration must end with the locks that it begins with.
    fn iterations(&mut self, times: Option<u64>, body: &Program) -> Checked {
        let before: Vec<LockId> = self.held.iter().map(|(lock, _)| *lock).collect();
        self.program(body)?;
        if times == Some(1) || body.iter().any(never_returns) {
            return Ok(());
        }
        let now = |lock: &LockId| self.held.iter().any(|(held, _)| held == lock);
        if let Some((lock, taken)) = self.held.iter().find(|(lock, _)| !before.contains(lock)) {
            let problem = self.problem(
                format!(
                    "the loop takes the lock `{}` and keeps it from one iteration to the next",
                    self.name(*lock)
                ),
                "release it inside the loop, or take it outside",
                Some(taken.clone()),
            );
            return Err(self.waits_for_itself(*lock, problem));
        }
        match before.iter().find(|lock| !now(lock)) {
            Some(lock) => Err(self.problem(
                format!("the loop releases the lock `{}` in each iteration", self.name(*lock)),
                "take it inside the loop too, or release it outside",
                None,
            )),
            None => Ok(()),
        }
    }

    /// Under a spin lock only other spin locks may be waited for.
    fn may_wait_for(&self, lock: LockId) -> Checked {
        let wanted = &self.workload.locks[lock];
        match self.atomic() {
            Some((held, taken)) if !wanted.kind.is_atomic() => Err(self.problem(
                format!(
                    "the task may have to sleep for the {} `{}` while it has the spin lock `{}`",
                    wanted.kind.word(),
                    wanted.name,
                    self.name(held)
                ),
                "take the sleeping lock first",
                Some(taken),
            )),
            _ => Ok(()),
        }
    }

    /// The spin lock that the task took last, of those that it holds.
    fn atomic(&self) -> Option<(LockId, OpPath)> {
        let kind = |lock: LockId| -> LockKind { self.workload.locks[lock].kind };
        self.held.iter().rev().find(|(lock, _)| kind(*lock).is_atomic()).cloned()
    }

    fn name(&self, lock: LockId) -> &str {
        &self.workload.locks[lock].name
    }

    fn problem(&self, message: String, help: &str, taken: Option<OpPath>) -> Box<Finding> {
        let mut finding = Finding::new(Subject::Op(self.path.clone()), message, help);
        finding.notes.extend(taken.map(|path| (Subject::Op(path), "taken here".to_owned())));
        Box::new(finding)
    }
}
