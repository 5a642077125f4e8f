//! `replay`: the load of a recording under other schedulers, beside the recording itself.

use std::process::ExitCode;

use fairground_analysis::{Analysis, Options};
use fairground_session::{Failure, RunSpec, replay_workload};
use fairground_workload::to_toml;

use super::compare::{Compared, compare_all};
use super::plan::RunPlan;
use crate::args::{Cli, ReplayArgs};
use crate::export;
use crate::input::{find_recording, measuring_options};
use crate::pictures::{self, Pictured};
use crate::present;

pub(super) fn replay(cli: &Cli, args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let recording = find_recording(&args.recording, cli.quiet)?;
    let (workload, notes) = replay_workload("replay", &recording.trace)
        .map_err(|e| Failure::new(format_args!("{}: {e}", recording.name)))?;
    if let Some(path) = &args.write_workload {
        export::write_whole(path, |sink| sink.write_all(to_toml(&workload).as_bytes()))?;
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
        keep_events: args.page.is_wanted(),
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
