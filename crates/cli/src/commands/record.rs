//! `record`: what this machine's scheduler does, into a file. `convert`: a recording of any kind as text.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fairground_kernel::job::RecordingJob;
use fairground_kernel::tracefs::{End, Recorded, Session};
use fairground_trace::Trace;

use crate::args::{Cli, ConvertArgs, RecordArgs};
use crate::failure::Failure;
use crate::input::{parse_time, read_recording};

/// What a file's name says that should be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    TraceDat,
    Text,
}

impl Form {
    fn of(output: &Path) -> Result<Self, Failure> {
        match output.extension().and_then(|extension| extension.to_str()) {
            _ if output == Path::new("-") => Ok(Self::Text),
            Some("dat") => Ok(Self::TraceDat),
            Some("txt" | "ftrace") => Ok(Self::Text),
            _ => {
                Err(Failure::new(format_args!("{}: no known kind of recording", output.display()))
                    .help("the name ends in .dat (trace-cmd's format), .txt or .ftrace (text)"))
            }
        }
    }
}

pub(super) fn record(cli: &Cli, args: &RecordArgs) -> Result<ExitCode, Failure> {
    let form = Form::of(&args.output)?;
    let duration = match args.duration.as_deref().map(|text| parse_time("--duration", text)) {
        Some(ns) => Some(Duration::from_nanos(ns?)),
        None => None,
    };
    let session = Session { command: args.command.clone(), duration };
    let job =
        RecordingJob { kib_per_cpu: args.buffer, events: args.events.clone(), stacks: args.stacks };
    let folder = folder_of(&args.output);
    if !cli.quiet && args.command.is_empty() && duration.is_none() {
        eprintln!("recording this machine; Ctrl-C ends it");
    }
    let (recorder, end) = session.record(&job, &folder).map_err(Failure::new)?;
    let recorded = match form {
        Form::TraceDat => recorder.stop(&args.output).map_err(Failure::new)?,
        Form::Text => {
            let space = tempfile::tempdir().map_err(|e| Failure::io("<temporary folder>", &e))?;
            let binary = space.path().join("trace.dat");
            let recorded = recorder.stop(&binary).map_err(Failure::new)?;
            let recording = read_recording(&binary.display().to_string())?;
            write_text(&recording.trace, &args.output)?;
            recorded
        }
    };
    if !cli.quiet {
        eprintln!("{}", summary(&args.output, recorded, end));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn convert(args: &ConvertArgs) -> Result<ExitCode, Failure> {
    if Form::of(&args.output)? == Form::TraceDat {
        return Err(Failure::new(format_args!(
            "{}: only recording writes trace.dat",
            args.output.display()
        ))
        .help("give a name that ends in .txt or .ftrace, or `-`"));
    }
    write_text(&read_recording(&args.recording)?.trace, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

fn folder_of(output: &Path) -> PathBuf {
    match output.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Writes a trace as text: a file is there whole or not at all.
fn write_text(trace: &Trace, output: &Path) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::io(output.display(), &e);
    if output == Path::new("-") {
        let stdout = std::io::stdout().lock();
        return fairground_trace::write_ftrace(trace, BufWriter::new(stdout)).map_err(failed);
    }
    let file = tempfile::Builder::new()
        .prefix(".fairground-recording-")
        .tempfile_in(folder_of(output))
        .map_err(failed)?;
    let mut sink = BufWriter::new(file.as_file());
    fairground_trace::write_ftrace(trace, &mut sink).map_err(failed)?;
    sink.flush().map_err(failed)?;
    drop(sink);
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(readable).map_err(failed)?;
    file.persist(output).map_err(|e| failed(e.error))?;
    Ok(())
}

fn summary(output: &Path, recorded: Recorded, end: End) -> String {
    let Recorded { events, lost } = recorded;
    let status = match end {
        End::Command(status) => Some(status),
        End::Duration(status) | End::Signal(status) => status,
    };
    let command =
        status.map_or_else(String::new, |status| format!("; the command ended with {status}"));
    let lost = match lost {
        0 => "none lost".to_owned(),
        lost => format!("{lost} lost: a larger --buffer may keep them"),
    };
    format!("{}: {events} events, {lost}{command}", output.display())
}
