//! `replay`: the load of a recording under other schedulers, beside the recording itself and beside a replay under the
//! scheduler that made it.

use std::process::ExitCode;

use fairground_analysis::{Analysis, Options};
use fairground_session::{CHUNK_NS, Failure, Replay, RunPlan, RunSpec, nearness, without_pid};
use fairground_trace::{TaskId, Trace};
use fairground_workload::{Workload, to_toml};

use super::compare::{Compared, compare_all};
use super::ran;
use crate::args::{Cli, ReplayArgs};
use crate::export;
use crate::input::{find_recording, measuring_options};
use crate::pictures::{self, Pictured};
use crate::present::{self, Per};
use crate::progress::Progress;

pub(super) fn replay(cli: &Cli, args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let selection = args.show.selection()?;
    let mut recording = find_recording(&args.recording, &args.source, cli.quiet)?;
    let replay = Replay::of(&recording.name, &recording.trace, &args.machine);
    let (workload, notes) = replay.workload(&recording.trace, &args.sched)?;
    if let Some(path) = &args.write_workload {
        export::write_whole(path, |sink| sink.write_all(to_toml(&workload).as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if is_per_task(args) {
        name_by_pid(&mut recording.trace);
    }
    pictures::prepare(&args.page)?;
    let original = Analysis::of(&recording.trace, &Options::default());
    let spec = replay.spec(args.sched.0.clone());
    let own = match (replay.own(), replay.own_spec(&args.sched)) {
        (Some(own), Some(spec)) => {
            let label = format!("{} (its own)", own.spec);
            let progress = Progress::new(cli.quiet, steps(workload.duration_ns));
            Some(plan(args, &spec, &workload)?.run_alone(&label, &progress)?)
        }
        _ => None,
    };
    let near = own.as_ref().map(|own| nearness(&original, &own.analysis));
    let title = format!("replay of {}", recording.name);
    let recorded =
        Pictured { label: "recorded", analysis: &original, trace: &recording.trace, numbers: &[] };
    let plan = plan(args, &spec, &workload)?;
    let compared = compare_all(cli, &title, &plan, &selection, (&[recorded], own))?;
    let Compared { mut document, ran, code } = compared;
    match (&near, replay.own()) {
        (Some(near), Some(own)) => {
            present::add_nearness(&mut document, &own.spec, near, &selection)
        }
        _ => document.notes.push(format!(
            "not measured: how near a replay comes to this recording; {}",
            replay.why_no_own()
        )),
    }
    document.notes.extend(present::loss_notes(&recording.name, &original.irregularities));
    document.notes.extend(notes.to_string().lines().map(str::to_owned));
    let runs: Vec<_> = std::iter::once(recorded).chain(ran::pictured(&ran)).collect();
    if !selection.is_narrow() {
        document.summary = pictures::summary(&runs);
    }
    let drawn = pictures::write(&args.page, &document, &runs);
    present::print_drawn(&document, cli, drawn)?;
    Ok(code)
}

fn plan<'p>(
    args: &ReplayArgs,
    spec: &'p RunSpec,
    workload: &'p Workload,
) -> Result<RunPlan<'p>, Failure> {
    let (options, drawn) = (measuring_options(&args.show)?, args.page.is_wanted());
    let rename: fn(&str) -> &str = if is_per_task(args) { |name| name } else { without_pid };
    let plan = RunPlan::new(spec, workload, options);
    Ok(RunPlan { rename, sample: drawn, keep_events: drawn, ..plan })
}

fn is_per_task(args: &ReplayArgs) -> bool {
    args.show.per == Per::Task
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
