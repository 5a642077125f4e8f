//! What the simulated machine charges anew.

use fairground_machine::{CostModel, Counters, Path};
use fairground_workload::Workload;

use crate::failure::Failure;
use crate::input::Scheduler;
use crate::outcome::TargetReport;
use crate::simulate::{Plan, Unwatched};
use crate::spec::RunSpec;

/// Length of the run that counts what a scheduler costs, ns.
const COUNTED_NS: u64 = 300_000_000;

/// CPU time of the kernel's own work, which recorded bursts contain and which a simulated machine charges again, ns
/// each. It is taken out of the bursts, or it would be paid twice.
///
/// System calls, blocking, forks and exits are not among them: a replay is charged nothing for these
/// ([`fairground_workload::Workload::recorded`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charges {
    /// A switch to a task; the task pays for it.
    pub(super) switch_ns: u64,
    /// The scheduler's choice before a switch; the task that leaves pays for it.
    pub(super) choice_ns: u64,
    /// Waking a task, with the scheduler's part in it; the waker pays for it.
    pub(super) wakeup_ns: u64,
    /// An interrupt that wakes a task, without the wake-up; the task that it interrupts pays for it.
    pub(super) interrupt_ns: u64,
    /// The scheduler's part in a yield, without the choice that follows; the task that yields pays for it.
    pub(super) yield_ns: u64,
    /// A tick, with the scheduler's part in it; the task that it interrupts pays for it.
    pub(super) tick_ns: u64,
}

impl Charges {
    /// Those of a machine with these costs, under a scheduler that takes no time.
    pub fn of(cost: &CostModel) -> Self {
        Self {
            switch_ns: cost.context_switch_ns,
            choice_ns: 0,
            yield_ns: 0,
            wakeup_ns: cost.wakeup_ns,
            interrupt_ns: cost.timer_irq_ns,
            tick_ns: cost.tick_ns,
        }
    }

    /// Those of the simulated machine of a run, with the mean times of its scheduler: a first run of the replay
    /// `workload` counts them.
    ///
    /// # Errors
    /// If the scheduler or the machine cannot be used, or the run fails.
    pub fn under(run: &RunSpec, workload: &Workload) -> Result<Self, Failure> {
        let resolved = run.resolve(workload, false)?;
        let spec = run.scheduler.sched.first().map_or("", String::as_str);
        let scheduler = Scheduler::load(spec, None, (&run.scheduler).into())?;
        let (cost, length_ns) =
            (resolved.machine.cost.clone(), resolved.duration_ns.min(COUNTED_NS));
        let settings = resolved.variants.into_iter().next().map_or(Vec::new(), |v| v.settings);
        let plan = Plan::new(&scheduler, workload, resolved.machine, length_ns);
        let outcome = Plan { settings, keep_events: false, ..plan }.run(&Unwatched)?;
        let charges = Self::of(&cost);
        Ok(match &outcome.report {
            TargetReport::Simulated { counters, .. } => charges.with_scheduler(&cost, counters),
            TargetReport::Real { .. } => charges,
        })
    }

    /// The same with the mean times of a scheduler, as a run with these costs has counted them.
    fn with_scheduler(self, cost: &CostModel, counted: &Counters) -> Self {
        let mean_ns = |path: Path| {
            let path = counted.path(path);
            let ps = path.insns.saturating_mul(cost.policy_insn_ps);
            ps.checked_div(path.times.saturating_mul(1_000)).unwrap_or(0)
        };
        Self {
            choice_ns: self.choice_ns + mean_ns(Path::Switch),
            wakeup_ns: self.wakeup_ns + mean_ns(Path::Wakeup),
            yield_ns: self.yield_ns + mean_ns(Path::Yield),
            tick_ns: self.tick_ns + mean_ns(Path::Tick),
            ..self
        }
    }
}
