//! `contention`: the waits of tasks, their sites and their blockers.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fairground_analysis::Options;
use fairground_analysis::contention::Contention;
use fairground_realkernel::job::RecordingJob;
use fairground_realkernel::tracefs::{RecordError, Session};
use fairground_report::{Cell, Document};
use fairground_scratch::Folder;
use fairground_session::{
    Failure, Recording, RunPlan, RunSpec, VariablesSpec, is_recording, one_scheduler, one_variant,
    parse_time_if,
};
use fairground_trace::{Event, EventKind};

use super::ran;
use super::record::{keep, record_shown};
use crate::args::{Cli, ContentionArgs, SourceArgs};
use crate::export;
use crate::input::{asked_tasks, find_recording, find_workload};
use crate::pictures;
use crate::present;
use crate::progress::Progress;

/// How long this machine is recorded by default: "up to 1 second worth of system activity", as in the mail.
const DURATION: Duration = Duration::from_secs(1);

pub(super) fn contention(cli: &Cli, args: &ContentionArgs) -> Result<ExitCode, Failure> {
    pictures::prepare(&args.page)?;
    let recording = match &args.what {
        Some(what) if !is_recording(what) => {
            refuse_machine(args)?;
            return run(cli, args, what);
        }
        Some(what) => {
            refuse_locks(args)?;
            find_recording(what, &args.source, cli.quiet)?
        }
        None => {
            refuse_machine(args)?;
            refuse_locks(args)?;
            record(cli, args)?
        }
    };
    print(cli, args, &recording, Document::new(title(&recording.name)))?;
    Ok(ExitCode::SUCCESS)
}

fn title(name: &str) -> String {
    format!("Contention in {name}")
}

/// A recording made now is of one machine.
fn refuse_machine(args: &ContentionArgs) -> Result<(), Failure> {
    match args.source.machine {
        Some(_) => Err(Failure::new("--machine chooses from a recording, and this is none")
            .help("leave it out, or name the file of a recording")),
        None => Ok(()),
    }
}

/// A recording has the locks that it had.
fn refuse_locks(args: &ContentionArgs) -> Result<(), Failure> {
    match args.locks.locks {
        Some(_) => {
            Err(Failure::new("--locks applies to a workload's locks, and this is no workload")
                .help("name a workload: `fairground contention netperf-stream --locks rt`"))
        }
        None => Ok(()),
    }
}

/// Adds the tables to a document that already states the source of the recording, and prints it.
fn print(
    cli: &Cli,
    args: &ContentionArgs,
    recording: &Recording,
    mut document: Document,
) -> Result<(), Failure> {
    let Recording { name, trace } = recording;
    let asked = if args.all { None } else { asked_tasks(&args.of, recording)? };
    let depth = args.depth.into();
    let contention = match &asked {
        Some(asked) => Contention::of_tasks(trace, depth, asked),
        None => Contention::of(trace, depth),
    };
    if let Some(path) = &args.folded {
        write_folded(path, &contention)?;
    }
    document.set("recording", "events", Cell::count(trace.len() as u64));
    document.set("recording", "cpus", Cell::count(trace.cpus.into()));
    let window_ns = trace.end_ns.saturating_sub(trace.start_ns);
    document.set("recording", "window", Cell::duration_ns(window_ns));
    document.summary = pictures::contention_summary(&contention);
    present::describe_contention(&mut document, &contention, args.top);
    if let Some(asked) = &asked {
        let count = asked.iter().filter(|asked| **asked).count();
        document.set("contention", "tasks asked for", Cell::count(count as u64));
        if args.of.tree.is_empty() {
            let note = "waits of the recorded command and of what it started: --all shows those of all tasks";
            document.notes.push(note.to_owned());
        }
    }
    let switches = |event: Event| matches!(event.kind, EventKind::Switch { .. });
    let loss = fairground_analysis::Irregularities {
        loss: trace.loss.clone(),
        no_switches: !trace.events().any(switches),
        ..Default::default()
    };
    document.notes.extend(present::loss_notes(name, &loss));
    let drawn = pictures::write_contention(&args.page, &document, &contention);
    present::print_drawn(&document, cli, drawn)
}

/// A workload, on any target.
fn run(cli: &Cli, args: &ContentionArgs, what: &str) -> Result<ExitCode, Failure> {
    if args.sched.sched.len() > 1 || args.target.on.len() > 1 {
        return Err(Failure::new("`contention` takes one scheduler on one target"));
    }
    one_scheduler(&args.sched, &args.target)?;
    one_variant(&args.sched.set)?;
    let mut spec = RunSpec {
        workload: what.to_owned(),
        target: args.target.0.clone(),
        scheduler: args.sched.0.clone(),
        machine: args.machine.0.clone(),
        locks: args.locks.0,
        variables: VariablesSpec::default(),
    };
    spec.target.stacks |= spec.target.on.iter().any(|on| on != "sim");
    let workload = find_workload(&spec, cli.quiet).map_err(|failure| {
        failure.help("a recording is a file; a workload is one of `workload list`")
    })?;
    let mut ran =
        RunPlan::new(&spec, &workload, Options::simulated()).run(&Progress::of_runs(cli.quiet))?;
    let (Some(outcome), true) = (ran.outcomes.pop(), ran.outcomes.is_empty()) else {
        return Err(Failure::new("`contention` makes one run"));
    };
    if let Some(why) = outcome.not_recorded() {
        return Err(Failure::new(format_args!(
            "{what} ran, but was not recorded, so there is nothing to analyze: {why}"
        )));
    }
    let code = ran::exit_code(&ran, outcome.exit_code());
    let name = format!("{what} under {}", outcome.label);
    let mut document = present::made(&ran, &title(&name), &name, &spec);
    document.run.clone_from(&outcome.label);
    present::describe_run(&mut document, &outcome);
    present::loader_notes(&mut document, &outcome);
    document.notes.extend(ran.notes);
    print(cli, args, &Recording { name, trace: outcome.trace }, document)?;
    Ok(code)
}

/// This machine, as it is.
fn record(cli: &Cli, args: &ContentionArgs) -> Result<Recording, Failure> {
    let on = args.target.on.as_slice();
    if !matches!(on, [target] if target == "host" || target == "sim") {
        return Err(Failure::new(
            "without a recording or a workload, this machine is recorded, and nothing else can be",
        )
        .help("name a workload: `fairground contention hackbench:2 --on vm:7.2-rt`"));
    }
    let stated = parse_time_if("--duration", args.machine.duration.as_deref())?;
    let by_default = args.command.is_empty().then_some(DURATION);
    let duration = stated.map(Duration::from_nanos).or(by_default);
    let session = Session { command: args.command.clone(), duration };
    let job =
        RecordingJob { kib_per_cpu: args.target.buffer, stacks: true, ..RecordingJob::default() };
    let space = Folder::new().map_err(|e| Failure::io("<temporary folder>", &e))?;
    let file = space.path().join("trace.dat");
    let (recorder, _) = record_shown(&session, &job, space.path(), cli.quiet)?;
    recorder.stop(&file).map_err(|error| match error {
        RecordError::Partial { .. } => {
            // On the same disk, which is full.
            let kept = keep(&file, &space.path().with_file_name("fairground"));
            Failure::new(error.moved_to(&kept)).help(format_args!(
                "`fairground contention {}` shows what there is; TMPDIR chooses another disk",
                kept.display()
            ))
        }
        error => Failure::new(error),
    })?;
    let recording = find_recording(&file.display().to_string(), &SourceArgs::default(), cli.quiet)?;
    Ok(Recording { name: "this machine".to_owned(), ..recording })
}

/// A line `group;outer;…;inner µs` for each call chain: what flame-graph programs read.
fn write_folded(path: &Path, contention: &Contention) -> Result<(), Failure> {
    export::write_whole(path, |sink| {
        let mut chains = contention.folded.iter();
        chains.try_for_each(|folded| {
            writeln!(sink, "{} {}", folded.stack, folded.wait_ns.div_ceil(1000))
        })
    })
}
