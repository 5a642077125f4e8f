//! `record`: what this machine's scheduler does, into a file. `convert`: a recording of any kind in another format.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use fairground_analysis::Options;
use fairground_realkernel::job::RecordingJob;
use fairground_realkernel::tracefs::{End, RecordError, Recorded, Recorder, Session};
use fairground_scratch::{Folder, free_name};
use fairground_session::{Failure, parse_time_if};
use fairground_trace::Trace;

use crate::ERROR_CODE;
use crate::args::{Cli, ConvertArgs, RecordArgs, SourceArgs};
use crate::export::{self, ENDS, Form, folder_of};
use crate::input::find_recording;
use crate::progress::elapsed;
use crate::talk;

/// The form that a recording is written in.
fn form_of_recording(output: &Path) -> Result<Form, Failure> {
    let form = Form::of(output).ok_or_else(|| {
        Failure::new(format_args!("{}: no known kind of recording", output.display()))
            .help(format_args!("the name ends in {ENDS}"))
    })?;
    form.check()?;
    Ok(form)
}

pub(super) fn record(cli: &Cli, args: &RecordArgs) -> Result<ExitCode, Failure> {
    let form = form_of_recording(&args.output)?;
    export::check_place(&args.output)?;
    if !args.force && args.output.is_file() {
        return Err(Failure::new(format_args!("{}: it exists", args.output.display()))
            .help("give `--force` to replace it, or another name with --output"));
    }
    let duration = parse_time_if("--duration", args.duration.as_deref())?;
    let duration = duration.map(Duration::from_nanos);
    let session = Session { command: args.command.clone(), duration };
    let job = RecordingJob {
        kib_per_cpu: args.buffer,
        events: args.events.clone(),
        stacks: args.stacks,
        calls: args.calls,
        details: true,
    };
    let folder = folder_of(&args.output);
    if !cli.quiet && args.command.is_empty() && duration.is_none() {
        talk::say("recording this machine; Ctrl-C ends it");
    }
    let (recorder, end) = record_shown(&session, &job, &folder, cli.quiet)?;
    if let Some(missing) = recorder.missing().filter(|_| !cli.quiet) {
        talk::say(missing);
    }
    let recorded = match form {
        Form::TraceDat => recorder.stop(&args.output).map_err(Failure::new)?,
        _ => stop_into(recorder, form, &args.output, cli.quiet)?,
    };
    if !cli.quiet {
        talk::say(summary(&args.output, recorded, end));
    }
    Ok(match end {
        End::Command(status) => ExitCode::from(code_of(status)),
        End::Duration(_) | End::Signal(_) | End::Failed(_) => ExitCode::SUCCESS,
    })
}

/// The exit code of a command as a shell gives it: 128 and the signal where one ended it.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(ERROR_CODE)
}

/// Ends a recording and writes it in a form that is made of trace-cmd's. A recording that cannot be written so is kept
/// in that.
fn stop_into(
    recorder: Recorder,
    form: Form,
    output: &Path,
    quiet: bool,
) -> Result<Recorded, Failure> {
    let space = match export::is_special(output) {
        true => Folder::new(),
        // So that it can be kept by renaming it.
        false => Folder::within(&folder_of(output), ".fairground-record-"),
    };
    let space = space.map_err(|e| Failure::io("<temporary folder>", &e))?;
    let binary = space.path().join("trace.dat");
    let (recorded, partial) = match recorder.stop(&binary) {
        Ok(recorded) => (recorded, None),
        Err(error @ RecordError::Partial { .. }) => (Recorded::default(), Some(error)),
        Err(error) => return Err(Failure::new(error)),
    };
    let place = match &partial {
        Some(_) if output.is_file() => free_name(output, "partial"),
        _ => output.to_owned(),
    };
    let written = find_recording(&binary.display().to_string(), &SourceArgs::default(), quiet)
        .and_then(|recording| write(&recording.trace, form, &place));
    match (written, partial) {
        (Ok(()), None) => Ok(recorded),
        (Ok(()), Some(error)) => Err(Failure::new(error.moved_to(&place))),
        (Err(failure), _) if failure.is_broken_pipe() => Err(failure),
        (Err(failure), partial) => {
            let kept = keep(&binary, output);
            let why = match partial {
                Some(error) => format!("{failure}\n{}", error.moved_to(&kept)),
                None => format!("{failure}; the recording is kept in {}", kept.display()),
            };
            Err(Failure::new(why).help(format_args!(
                "`fairground convert {} FILE` writes it in another form",
                kept.display()
            )))
        }
    }
}

/// Moves a recording out of its temporary folder to a free name like that of the output; returns where it is then.
pub(super) fn keep(binary: &Path, output: &Path) -> PathBuf {
    let beside = if output == Path::new("-") { Path::new("trace") } else { output };
    let kept = free_name(&beside.with_extension("dat"), "recording");
    match std::fs::rename(binary, &kept).or_else(|_| std::fs::copy(binary, &kept).map(drop)) {
        Ok(()) => kept,
        // It is removed with its folder.
        Err(_) => binary.to_owned(),
    }
}

/// Records this machine; one that lasts for a time and has no command, which would write where it is shown, shows how
/// far it is.
pub(super) fn record_shown(
    session: &Session,
    job: &RecordingJob,
    folder: &Path,
    quiet: bool,
) -> Result<(Recorder, End), Failure> {
    let shown = session.duration.filter(|_| session.command.is_empty());
    let bar = shown.map(|length| elapsed("recording", length, quiet));
    let bar = bar.filter(|bar| !bar.is_hidden());
    let mut tell = bar.as_ref().map(|bar| {
        |elapsed: Duration| {
            bar.set_position(elapsed.as_secs());
            bar.tick();
        }
    });
    let tell = tell.as_mut().map(|tell| tell as &mut dyn FnMut(Duration));
    session.record(job, folder, tell).map_err(Failure::new)
}

pub(super) fn convert(cli: &Cli, args: &ConvertArgs) -> Result<ExitCode, Failure> {
    let form = form_of_recording(args.output())?;
    write(&find_recording(&args.recording, &args.source, cli.quiet)?.trace, form, args.output())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a recording, with the numbers over time that can be had from it.
fn write(trace: &Trace, form: Form, output: &Path) -> Result<(), Failure> {
    let counters = match form.has_counters() {
        true => fairground_analysis::counters(trace, &Options::default()),
        false => Vec::new(),
    };
    export::write(trace, &counters, form, output)
}

fn summary(output: &Path, recorded: Recorded, end: End) -> String {
    let Recorded { events, lost } = recorded;
    let status = match end {
        End::Command(status) => Some(status),
        End::Duration(status) | End::Signal(status) | End::Failed(status) => status,
    };
    let command =
        status.map_or_else(String::new, |status| format!("; the command ended with {status}"));
    let lost = match lost {
        0 => "none lost".to_owned(),
        lost => format!("{lost} lost: a larger --buffer may keep them"),
    };
    format!("{}: {events} events, {lost}{command}", output.display())
}
