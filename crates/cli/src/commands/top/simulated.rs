//! Simulated runs as a view takes them.

use std::collections::BTreeMap;

use fairground_analysis::Options;
use fairground_machine::{Machine, MachineConfig, MachineError, Setting};
use fairground_session::{Failure, Simulation, Simulations, TaskNumbers, ended, sources};
use fairground_top::{About, Follower, Problem, Source, Tunable, View};
use fairground_trace::TaskId;
use fairground_workload::Workload;

use super::state_never_ran;
use crate::commands::sched::{is_tunable, tag, unit, value_text};

/// Instants at which the machine does something that leaves no event, one after the other, before a step gives up.
const SILENT_STEPS_MAX: u32 = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    /// The workload as it was typed.
    pub(super) name: &'a str,
    pub(super) workload: &'a Workload,
    pub(super) interval_ns: u64,
}

/// Runs of one workload, of which one is shown.
#[derive(Debug)]
pub(super) struct Simulated<'a> {
    shown: Shown<'a>,
    config: MachineConfig,
    duration_ns: u64,
    runs: Vec<Run>,
    current: usize,
}

#[derive(Debug)]
struct Run {
    simulation: Simulation,
    machine: Machine,
    follower: Follower,
    /// The scheduler's numbers of a task.
    numbers: TaskNumbers,
    /// Changes on the way, each with its time.
    changes: Vec<Setting>,
}

impl<'a> Simulated<'a> {
    pub(super) fn new(shown: &Shown<'a>, simulations: Simulations) -> Result<Self, Failure> {
        let Simulations { config, duration_ns, simulations } = simulations;
        let run = |simulation: Simulation| {
            let label = simulation.label.clone();
            let made = Run::new(shown, &config, simulation, Vec::new());
            made.map_err(|e| Failure::new(format_args!("{label}: {e}")))
        };
        let runs = simulations.into_iter().map(run).collect::<Result<_, _>>()?;
        Ok(Self { shown: *shown, config, duration_ns, runs, current: 0 })
    }

    /// Options of `run` that make the same changes again: the words for each run in which
    /// something was changed.
    pub(super) fn changes(&self) -> Vec<Vec<String>> {
        let flag = |setting: &Setting| {
            let at_ns = setting.at_ns.unwrap_or(0);
            ["--at".to_owned(), format!("{at_ns}ns:{}={}", setting.name, setting.value)]
        };
        let words = |run: &Run| {
            let scheduler = ["--sched".to_owned(), run.simulation.spec.clone()];
            scheduler.into_iter().chain(run.changes.iter().flat_map(flag)).collect()
        };
        self.runs.iter().filter(|run| !run.changes.is_empty()).map(words).collect()
    }

    fn run(&self) -> &Run {
        &self.runs[self.current]
    }

    fn run_mut(&mut self) -> &mut Run {
        &mut self.runs[self.current]
    }
}

impl Run {
    fn new(
        shown: &Shown<'_>,
        config: &MachineConfig,
        simulation: Simulation,
        changes: Vec<Setting>,
    ) -> Result<Run, MachineError> {
        let settings = [simulation.settings.clone(), changes.clone()].concat();
        let machine = Machine::new(config, &simulation.policy, &settings, shown.workload)?;
        let follower = Follower::new(machine.trace(), &Options::simulated(), shown.interval_ns);
        let numbers = TaskNumbers::of(&simulation.object);
        let mut run = Run { simulation, machine, follower, numbers, changes };
        run.take();
        Ok(run)
    }

    /// What happened is the view's; the machine need not keep it.
    fn take(&mut self) {
        self.follower.take(self.machine.trace(), self.machine.now_ns());
        self.machine.forget_events();
    }

    fn failed(&self) -> impl Fn(MachineError) -> Problem + use<> {
        let label = self.simulation.label.clone();
        move |error| format!("{label}: {error}")
    }

    fn advance(&mut self, to_ns: u64) -> Result<(), Problem> {
        self.machine.run_until(to_ns).map_err(self.failed())?;
        self.take();
        Ok(())
    }

    fn step(&mut self) -> Result<(), Problem> {
        for _ in 0..SILENT_STEPS_MAX {
            let Some(next_ns) = self.machine.next_ns() else {
                return Err("nothing happens any more".to_owned());
            };
            self.machine.run_until(next_ns).map_err(self.failed())?;
            if !self.machine.trace().is_empty() {
                self.take();
                return Ok(());
            }
        }
        self.take();
        Err(format!("{SILENT_STEPS_MAX} steps of the machine left no event"))
    }

    fn numbers(&self) -> BTreeMap<TaskId, Vec<Option<i64>>> {
        let tasks = self.machine.tasks(&self.numbers.places).into_iter();
        tasks
            .map(|(id, view, words)| {
                // Virtual times wrap around: near the wrap they are small negative numbers.
                let own = words.into_iter().chain([Some(view.dsq_vtime), Some(view.slice_ns)]);
                (id, own.map(|word| word.map(|word| word as i64)).collect())
            })
            .collect()
    }
}

impl Source for Simulated<'_> {
    fn about(&self) -> About {
        let config = &self.config;
        let scheduler = match self.runs.len() {
            1 => self.run().simulation.label.clone(),
            n => format!("{} ({} of {n})", self.run().simulation.label, self.current + 1),
        };
        let made = format!(
            "{} CPUs, {} Hz, {} costs, seed {}",
            config.cpus(),
            config.hz,
            config.cost.preset_name(),
            config.seed
        );
        let length_ns = Some(config.lead_in_ns + self.duration_ns);
        About { what: self.shown.name.to_owned(), scheduler, made, is_real: false, length_ns }
    }

    fn now_ns(&self) -> u64 {
        self.run().machine.now_ns()
    }

    fn advance(&mut self, to_ns: u64) -> Result<(), Problem> {
        self.run_mut().advance(to_ns)
    }

    fn view(&self) -> View {
        let run = self.run();
        let mut view = run.follower.view(run.machine.trace(), run.machine.now_ns());
        view.number_names.clone_from(&run.numbers.names);
        view.number_names.extend(["dsq_vtime", "slice left"].map(str::to_owned));
        view.numbers = run.numbers();
        let exit = run.machine.exit();
        let ended = exit.and_then(|exit| ended(exit, &sources(&run.simulation.object, exit)));
        view.ended = ended.map(|verdict| verdict.text);
        state_never_ran(&mut view);
        view
    }

    fn step(&mut self) -> Result<(), Problem> {
        self.run_mut().step()
    }

    fn restart(&mut self) -> Result<(), Problem> {
        let Run { simulation, changes, .. } = self.run();
        let failed = self.run().failed();
        let run = Run::new(&self.shown, &self.config, simulation.clone(), changes.clone());
        *self.run_mut() = run.map_err(failed)?;
        Ok(())
    }

    fn next_scheduler(&mut self) -> Result<(), Problem> {
        if self.runs.len() == 1 {
            return Err(
                "there is one scheduler: name several, as in `--sched cfs,eevdf`".to_owned()
            );
        }
        self.current = (self.current + 1) % self.runs.len();
        Ok(())
    }

    fn tunables(&self) -> Vec<Tunable> {
        let run = self.run();
        let globals = run.simulation.policy.tunables().filter(|global| is_tunable(global));
        let tunable = |global: &fairground_bpf::Global| {
            let fixed = global.read_only.then(|| {
                format!(
                    "`{0}` is fixed when the scheduler is loaded: leave, and give `--set {0}=VALUE`",
                    global.name
                )
            });
            Some(Tunable {
                name: global.name.clone(),
                value: value_text(global, &run.machine.variable(&global.name)?),
                unit: unit(global).to_owned(),
                what: tag(global, "doc:").to_owned(),
                fixed,
            })
        };
        let mut tunables: Vec<Tunable> = globals.filter_map(tunable).collect();
        // Those that can change come first.
        tunables.sort_by_key(|tunable| tunable.fixed.is_some());
        tunables
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let lead_in_ns = self.config.lead_in_ns;
        let run = self.run_mut();
        let at_ns = run.machine.change(name, value).map_err(|error| error.to_string())?;
        run.take();
        // Those of a run begun again that lie ahead are overtaken by this one.
        let at_ns = at_ns.saturating_sub(lead_in_ns);
        run.changes.push(Setting::at(at_ns, name, value));
        Ok(())
    }
}
