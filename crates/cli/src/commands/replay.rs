//! `replay`: the load of a recording under other schedulers, beside the recording itself.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use fairground_analysis::{Analysis, Options};
use fairground_session::{Failure, RunSpec};
use fairground_trace::{EventKind, TaskState, Trace};
use fairground_workload::{ReplayBuilder, ReplayNotes, Workload, to_toml};

use super::compare::{Compared, compare_all};
use super::plan::RunPlan;
use crate::args::{Cli, ReplayArgs};
use crate::input::{find_recording, measuring_options};
use crate::pictures::{self, Pictured};
use crate::present;

pub(super) fn replay(cli: &Cli, args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let recording = find_recording(&args.recording, cli.quiet)?;
    let (workload, notes) = workload_of(&recording.name, &recording.trace)?;
    if let Some(path) = &args.write_workload {
        write_workload(path, &workload)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut machine = args.machine.clone();
    if machine.cpus.is_none() && machine.topology.is_none() {
        machine.cpus = Some(recording.trace.cpus);
    }
    // A recorded sleep already contains the slack of the machine that was recorded.
    machine.cost.insert(0, "timer_slack_ns=0".to_owned());
    pictures::prepare(&args.page)?;
    let original = Analysis::of(&recording.trace, &Options::default());
    let spec = RunSpec {
        workload: recording.name.clone(),
        scheduler: args.sched.clone(),
        machine,
        ..RunSpec::default()
    };
    let plan = RunPlan {
        rename: without_pid,
        sample: args.page.is_wanted(),
        ..RunPlan::new(&spec, &workload, measuring_options(&args.show)?)
    };
    let title = format!("replay of {}", recording.name);
    let recorded =
        Pictured { label: "recorded", analysis: &original, trace: &recording.trace, numbers: &[] };
    let compared = compare_all(cli, &title, &plan, args.show.all, Some(recorded))?;
    let Compared { mut document, ran, code } = compared;
    document.notes.extend(present::loss_notes(&recording.name, &original.irregularities));
    document.notes.extend(notes.to_string().lines().map(str::to_owned));
    let runs: Vec<_> = std::iter::once(recorded).chain(ran.pictured()).collect();
    let drawn = pictures::write(&args.page, &document, &runs);
    present::print_drawn(&document, cli, drawn)?;
    Ok(code)
}

/// The recorded name of a task: in the workload its pid stands behind it, so that names are unique.
fn without_pid(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((comm, pid)) if !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()) => comm,
        _ => name,
    }
}

fn write_workload(path: &Path, workload: &Workload) -> Result<(), Failure> {
    let text = to_toml(workload);
    if path == Path::new("-") {
        return present::write_stdout(&text);
    }
    fs::write(path, text).map_err(|e| Failure::io(path.display(), &e))
}

/// Hands the events of a recording to the builder, which knows no trace.
fn workload_of(name: &str, trace: &Trace) -> Result<(Workload, ReplayNotes), Failure> {
    let mut builder = ReplayBuilder::new(trace.cpus);
    builder.name("replay").window(trace.start_ns, trace.end_ns);
    for (number, task) in trace.tasks().iter().enumerate().skip(1) {
        builder.task(number as u32, task.pid, &task.comm, task.nice.unwrap_or(0));
    }
    for event in trace.events() {
        let (time_ns, cpu) = (event.time_ns, event.cpu);
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                let dead = prev_state == TaskState::Dead;
                let blocked = prev_state != TaskState::Runnable;
                builder.switch(time_ns, cpu, prev.0, blocked, dead, next.0)
            }
            EventKind::Waking { task, waker, .. } => {
                builder.waking(time_ns, cpu, Some(waker.0), task.0)
            }
            EventKind::Fork { parent, child } => builder.fork(time_ns, parent.0, child.0),
            EventKind::Exit { task } => builder.exit(time_ns, task.0),
            EventKind::Lost { count } => builder.lost(count),
            _ => &mut builder,
        };
    }
    builder.finish().map_err(|e| Failure::new(format_args!("{name}: {e}")))
}
