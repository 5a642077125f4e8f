//! At drawn points the simulated scheduler also follows a recording of the real kernel: whole runs drift apart after
//! the first difference, decisions are compared one by one.

use fairground_session::{
    Agreement, Decision, EngineChoice, Failure, FollowPlan, MachineSpec, Outcome, RunSpec,
    Scheduler, Unwatched, recorded_machine,
};

use crate::experiment::{Experiment, Run};

/// A real run with calls, charges and ticks, and the scheduler that follows its recording.
pub(super) struct Follow {
    pub(super) run: Run,
    pub(super) comparison: String,
    pub(super) point: String,
    scheduler: String,
}

/// One of each comparison at each point: the first start.
pub(super) fn follows(experiment: &Experiment, runs: &[Run]) -> Vec<Follow> {
    let named = |name: &str| runs.iter().find(|run| run.name == name);
    let first = |sweep: &str, point: &str| {
        let sweep = experiment.sweeps.iter().find(|known| known.name == sweep)?;
        named(sweep.names_at(point).first()?)
    };
    let mut follows = Vec::new();
    for agreement in &experiment.agreements {
        for point in &experiment.points {
            let (Some(real), Some(simulated)) =
                (first(&agreement.real, &point.name), first(&agreement.simulated, &point.name))
            else {
                continue;
            };
            let Some(scheduler) = simulated.spec.scheduler.sched.first() else { continue };
            let mut run = real.clone();
            run.name += ", followed";
            run.spec.target.calls = true;
            follows.push(Follow {
                run,
                comparison: agreement.title.clone(),
                point: point.name.clone(),
                scheduler: scheduler.clone(),
            });
        }
    }
    follows
}

impl Follow {
    /// How many decisions are the recorded ones, by kind.
    ///
    /// # Errors
    /// If the scheduler cannot be loaded, or does not fit the recorded machine.
    pub(super) fn agreement(
        &self,
        engine: EngineChoice,
        outcome: &Outcome,
    ) -> Result<Vec<(Decision, Agreement)>, Failure> {
        let trace = &outcome.trace;
        let machine = recorded_machine(&MachineSpec::default(), trace);
        let machine = RunSpec { machine, ..RunSpec::default() }.simulated_machine()?;
        let scheduler = Scheduler::load(&self.scheduler, None, engine.into())?;
        let plan = FollowPlan { trace, scheduler: &scheduler, settings: Vec::new(), machine };
        Ok(plan.run(&Unwatched)?.agreement)
    }
}
