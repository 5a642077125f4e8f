//! `diagnose`: what is wrong in a recording, and how one sees it.

use std::process::ExitCode;

use fairground_analysis::diagnose::Diagnosis;
use fairground_analysis::{Analysis, Options};
use fairground_report::Document;
use fairground_session::{Failure, Recording};

use crate::args::{Cli, DiagnoseArgs};
use crate::input::find_recording;
use crate::present;

/// A finding is no failure: the exit code is that of success with and without findings.
pub(super) fn diagnose(cli: &Cli, args: &DiagnoseArgs) -> Result<ExitCode, Failure> {
    let recording = find_recording(&args.recording, cli.quiet)?;
    let analysis = Analysis::of(&recording.trace, &Options::default());
    let diagnosis = Diagnosis::with(&recording.trace, &analysis);
    let mut document = Document::new(format!("Diagnosis of {}", recording.name));
    let Recording { name, trace } = &recording;
    present::describe_recording(&mut document, &analysis, trace.len() as u64, trace.cpus);
    present::describe_diagnosis(&mut document, &diagnosis, &args.recording);
    document.notes.extend(present::loss_notes(name, &analysis.irregularities));
    present::print(&document, cli)?;
    Ok(ExitCode::SUCCESS)
}
