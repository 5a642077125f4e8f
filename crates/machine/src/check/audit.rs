//! The consistency of the trace, and the time that it gives to each task.

use fairground_trace::{Event, EventKind, TaskId, TaskState};

use super::{Finding, Invariant};

/// The state of a task according to the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    #[default]
    Unborn,
    Waiting,
    Running(u32),
    Sleeping,
    Dead,
}

/// A task's history so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    pub(crate) place: Whereabouts,
    /// The start of that state, ns.
    pub(crate) since_ns: u64,
    born_ns: u64,
    /// Time in each state up to `since_ns`.
    run_ns: u64,
    wait_ns: u64,
    sleep_ns: u64,
    /// How far the kernel's accounting is ahead of `run_ns`: the time of the decisions that picked it, less those that
    /// replaced it.
    ahead_ns: i64,
}

impl Life {
    /// CPU time up to now, ns.
    pub(crate) fn run_ns(&self, now_ns: u64) -> u64 {
        let present =
            if matches!(self.place, Whereabouts::Running(_)) { now_ns - self.since_ns } else { 0 };
        self.run_ns + present
    }

    /// How far the kernel's accounting is ahead of the trace's CPU time (negative: behind), ns.
    pub(crate) fn ahead_ns(&self) -> i64 {
        self.ahead_ns
    }

    /// Run, wait and sleep time up to now less the time since creation: 0 if no time is missing.
    pub(crate) fn missing_ns(&self, now_ns: u64) -> i128 {
        if self.place == Whereabouts::Unborn {
            return 0;
        }
        let end_ns = if self.place == Whereabouts::Dead { self.since_ns } else { now_ns };
        let told = self.run_ns + self.wait_ns + self.sleep_ns + (end_ns - self.since_ns);
        i128::from(end_ns) - i128::from(self.born_ns) - i128::from(told)
    }

    fn enter(&mut self, place: Whereabouts, now_ns: u64) {
        let spent = now_ns - self.since_ns;
        match self.place {
            Whereabouts::Unborn => self.born_ns = now_ns,
            Whereabouts::Waiting => self.wait_ns += spent,
            Whereabouts::Running(_) => self.run_ns += spent,
            Whereabouts::Sleeping => self.sleep_ns += spent,
            Whereabouts::Dead => {}
        }
        (self.place, self.since_ns) = (place, now_ns);
    }
}

/// A CPU: what it runs, and since when, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnCpu {
    pub(crate) task: TaskId,
    pub(crate) since_ns: u64,
}

/// The history of each task.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    lives: Vec<Life>,
    pub(crate) cpus: Vec<OnCpu>,
}

impl Audit {
    /// All CPUs idle from time 0.
    pub(crate) fn new(cpus: u32) -> Audit {
        let idle = OnCpu { task: TaskId::IDLE, since_ns: 0 };
        Audit { lives: Vec::new(), cpus: vec![idle; cpus as usize] }
    }

    /// The trace's history of a task so far.
    pub(crate) fn life(&self, task: TaskId) -> Life {
        self.lives.get(task.index()).copied().unwrap_or_default()
    }

    fn life_mut(&mut self, task: TaskId) -> &mut Life {
        if task.index() >= self.lives.len() {
            self.lives.resize((task.index() + 1).next_power_of_two(), Life::default());
        }
        &mut self.lives[task.index()]
    }

    /// Processes the next event, which was decided at `decided_ns`; an error if it contradicts earlier ones.
    pub(crate) fn event(&mut self, event: &Event, decided_ns: u64) -> Result<(), Finding> {
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                let choice_ns = (event.time_ns - decided_ns) as i64;
                self.leaves(event, prev, prev_state, choice_ns)?;
                self.comes(event, next, choice_ns)
            }
            EventKind::Wakeup { task, .. } => self.wakes(event, task),
            EventKind::WakeupNew { task, .. } => {
                let life = self.life_mut(task);
                if life.place != Whereabouts::Unborn {
                    return Err(contradiction(event, task, "is created again", life.place));
                }
                life.enter(Whereabouts::Waiting, event.time_ns);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn leaves(
        &mut self,
        event: &Event,
        prev: TaskId,
        state: TaskState,
        choice_ns: i64,
    ) -> Result<(), Finding> {
        let ran = self.cpus[event.cpu as usize].task;
        if ran != prev {
            let place = self.life(prev).place;
            return Err(contradiction(event, prev, "leaves a CPU that runs another task", place));
        }
        if prev.is_idle() {
            return Ok(());
        }
        let life = self.life_mut(prev);
        let then = match state {
            TaskState::Runnable => Whereabouts::Waiting,
            TaskState::Dead => Whereabouts::Dead,
            _ => Whereabouts::Sleeping,
        };
        life.enter(then, event.time_ns);
        life.ahead_ns -= choice_ns;
        Ok(())
    }

    fn comes(&mut self, event: &Event, next: TaskId, choice_ns: i64) -> Result<(), Finding> {
        self.cpus[event.cpu as usize] = OnCpu { task: next, since_ns: event.time_ns };
        if next.is_idle() {
            return Ok(());
        }
        let life = self.life_mut(next);
        if life.place != Whereabouts::Waiting {
            return Err(contradiction(event, next, "starts to run", life.place));
        }
        life.enter(Whereabouts::Running(event.cpu), event.time_ns);
        life.ahead_ns += choice_ns;
        Ok(())
    }

    /// A task that is about to sleep, and is still on its CPU or waits for one, keeps its state.
    fn wakes(&mut self, event: &Event, task: TaskId) -> Result<(), Finding> {
        let life = self.life_mut(task);
        match life.place {
            Whereabouts::Sleeping => life.enter(Whereabouts::Waiting, event.time_ns),
            Whereabouts::Waiting | Whereabouts::Running(_) => {}
            place => return Err(contradiction(event, task, "is woken", place)),
        }
        Ok(())
    }
}

fn contradiction(event: &Event, task: TaskId, does: &str, place: Whereabouts) -> Finding {
    let was = match place {
        Whereabouts::Unborn => "not created yet".to_owned(),
        Whereabouts::Waiting => "waiting for a CPU".to_owned(),
        Whereabouts::Running(cpu) => format!("running on CPU {cpu}"),
        Whereabouts::Sleeping => "asleep".to_owned(),
        Whereabouts::Dead => "dead".to_owned(),
    };
    let invariant = match place {
        Whereabouts::Running(_) => Invariant::TwoPlaces,
        _ => Invariant::Story,
    };
    let what = format!("it {does}, and is {was}");
    Finding { invariant, cpu: Some(event.cpu), task: Some(task), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kinds: &[(u64, u32, EventKind)]) -> (Audit, Result<(), Finding>) {
        let mut audit = Audit::new(2);
        for (time_ns, cpu, kind) in kinds {
            let event = Event { time_ns: *time_ns, cpu: *cpu, insns: 0, kind: *kind };
            if let Err(finding) = audit.event(&event, event.time_ns) {
                return (audit, Err(finding));
            }
        }
        (audit, Ok(()))
    }

    const A: TaskId = TaskId(1);
    const B: TaskId = TaskId(2);

    fn switch(prev: TaskId, prev_state: TaskState, next: TaskId) -> EventKind {
        EventKind::Switch { prev, prev_state, next }
    }

    #[test]
    fn a_life_adds_up() {
        let (audit, result) = told(&[
            (5, 0, EventKind::WakeupNew { task: A, target_cpu: 0 }),
            (7, 0, switch(TaskId::IDLE, TaskState::Runnable, A)),
            (10, 0, switch(A, TaskState::Sleeping, TaskId::IDLE)),
            (14, 1, EventKind::Wakeup { task: A, target_cpu: 1 }),
            (15, 1, switch(TaskId::IDLE, TaskState::Runnable, A)),
        ]);
        assert_eq!(result, Ok(()));
        assert_eq!((audit.life(A).run_ns(20), audit.life(A).missing_ns(20)), (8, 0));
        assert_eq!(audit.life(B).missing_ns(20), 0);
    }

    #[test]
    fn contradictions_are_found() {
        let new = |task| EventKind::WakeupNew { task, target_cpu: 0 };
        let run = |task| switch(TaskId::IDLE, TaskState::Runnable, task);
        for (kinds, invariant) in [
            (vec![(0, 0, new(A)), (0, 0, run(A)), (1, 1, run(A))], Invariant::TwoPlaces),
            (vec![(0, 0, run(A))], Invariant::Story),
            (vec![(0, 0, new(A)), (1, 0, new(A))], Invariant::Story),
            (vec![(0, 0, EventKind::Wakeup { task: A, target_cpu: 0 })], Invariant::Story),
            (
                vec![(0, 0, new(A)), (0, 0, new(B)), (1, 0, switch(A, TaskState::Runnable, B))],
                Invariant::Story,
            ),
        ] {
            let (_, result) = told(&kinds);
            assert_eq!(result.map_err(|finding| finding.invariant), Err(invariant), "{kinds:?}");
        }
    }
}
