//! `replay`: the load of a recording under other schedulers, beside the recording itself and beside a replay under the
//! scheduler that made it.

use std::process::ExitCode;

use fairground_analysis::{Analysis, Options};
use fairground_session::{
    CHUNK_NS, COSTS_DEFAULT, Charges, Failure, MachineSpec, OwnScheduler, Recording, RunSpec,
    SchedulerSpec, nearness, recorded_machine, replay_workload,
};
use fairground_trace::{TaskId, Trace};
use fairground_workload::{ReplayNotes, Workload, to_toml};

use super::compare::{Compared, compare_all};
use super::plan::RunPlan;
use crate::args::{Cli, Per, ReplayArgs};
use crate::export;
use crate::input::{find_recording, measuring_options};
use crate::pictures::{self, Pictured};
use crate::present;
use crate::progress::Progress;

pub(super) fn replay(cli: &Cli, args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let mut recording = find_recording(&args.recording, cli.quiet)?;
    let replay = Replay::of(args, &recording);
    let (workload, notes) = replay.workload(&recording)?;
    if let Some(path) = &args.write_workload {
        export::write_whole(path, |sink| sink.write_all(to_toml(&workload).as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rename: fn(&str) -> &str = match args.show.per {
        Per::Task => {
            name_by_pid(&mut recording.trace);
            |name| name
        }
        _ => without_pid,
    };
    pictures::prepare(&args.page)?;
    let original = Analysis::of(&recording.trace, &Options::default());
    let spec = replay.spec(args.sched.clone());
    let own = match &replay.own {
        None => None,
        Some(own) => {
            let (spec, label) = (replay.own_spec(own), format!("{} (its own)", own.spec));
            let progress = Progress::new(cli.quiet, steps(workload.duration_ns));
            Some(replay.plan(&spec, &workload, rename)?.run_alone(&label, &progress)?)
        }
    };
    let near = own.as_ref().map(|own| nearness(&original, &own.analysis));
    let title = format!("replay of {}", recording.name);
    let recorded =
        Pictured { label: "recorded", analysis: &original, trace: &recording.trace, numbers: &[] };
    let plan = replay.plan(&spec, &workload, rename)?;
    let compared = compare_all(cli, &title, &plan, args.show.all, (Some(recorded), own))?;
    let Compared { mut document, ran, code } = compared;
    match (&near, &replay.own) {
        (Some(near), Some(own)) => present::add_nearness(&mut document, &own.spec, near),
        _ => document.notes.push(replay.why_no_own()),
    }
    document.notes.extend(present::loss_notes(&recording.name, &original.irregularities));
    document.notes.extend(notes.to_string().lines().map(str::to_owned));
    let runs: Vec<_> = std::iter::once(recorded).chain(ran.pictured()).collect();
    let drawn = pictures::write(&args.page, &document, &runs);
    present::print_drawn(&document, cli, drawn)?;
    Ok(code)
}

/// What is replayed: the scheduler and the machine that made the recording, as far as it tells.
struct Replay<'a> {
    args: &'a ReplayArgs,
    name: String,
    machine: MachineSpec,
    own: Option<OwnScheduler>,
    /// Why the scheduler that made it is not at hand.
    missing: Option<Failure>,
}

impl<'a> Replay<'a> {
    fn of(args: &'a ReplayArgs, recording: &Recording) -> Self {
        let machine = recorded_machine(&args.machine, &recording.trace);
        let (own, missing) = match OwnScheduler::of(&recording.trace.origin) {
            Ok(own) => (own, None),
            Err(failure) => (None, Some(failure)),
        };
        Self { args, name: recording.name.clone(), machine, own, missing }
    }

    /// The workload of the recording, without what the machine charges anew: where its scheduler is known, a first
    /// replay under it counts what that one takes.
    fn workload(&self, recording: &Recording) -> Result<(Workload, ReplayNotes), Failure> {
        let failed = |e| Failure::new(format_args!("{}: {e}", recording.name));
        let make = |charges| replay_workload("replay", &recording.trace, charges).map_err(failed);
        let charges = Charges::of(&self.machine.cost_model(COSTS_DEFAULT)?);
        let Some(own) = &self.own else { return make(charges) };
        let (workload, _) = make(charges)?;
        make(Charges::under(&self.own_spec(own), &workload)?)
    }

    fn spec(&self, scheduler: SchedulerSpec) -> RunSpec {
        let (workload, machine) = (self.name.clone(), self.machine.clone());
        RunSpec { workload, scheduler, machine, ..RunSpec::default() }
    }

    fn own_spec(&self, own: &OwnScheduler) -> RunSpec {
        let SchedulerSpec { engine, null_loads, kernel_abi, .. } = self.args.sched;
        self.spec(SchedulerSpec {
            sched: vec![own.spec.clone()],
            set: own.set.clone(),
            engine,
            null_loads,
            kernel_abi,
            ..SchedulerSpec::default()
        })
    }

    fn plan<'p>(
        &self,
        spec: &'p RunSpec,
        workload: &'p Workload,
        rename: fn(&str) -> &str,
    ) -> Result<RunPlan<'p>, Failure> {
        let (options, drawn) = (measuring_options(&self.args.show)?, self.args.page.is_wanted());
        let plan = RunPlan::new(spec, workload, options);
        Ok(RunPlan { rename, sample: drawn, keep_events: drawn, ..plan })
    }

    fn why_no_own(&self) -> String {
        let why = match &self.missing {
            Some(failure) => format!("the scheduler that made it is not at hand: {failure}"),
            None => "the recording does not tell which scheduler made it".to_owned(),
        };
        format!("not measured: how near a replay comes to this recording; {why}")
    }
}

fn steps(duration_ns: u64) -> u64 {
    duration_ns.div_ceil(CHUNK_NS)
}

/// Every task is a group of its own.
fn name_by_pid(trace: &mut Trace) {
    for number in 1..trace.tasks().len() {
        let task = trace.task_mut(TaskId(number as u32));
        task.comm = format!("{}-{}", task.comm, task.pid);
    }
}

/// The recorded name of a task: in the workload its pid stands behind it, so that names are unique.
fn without_pid(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((comm, pid)) if !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()) => comm,
        _ => name,
    }
}
