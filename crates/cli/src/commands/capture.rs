//! `sched capture`: what a scheduler's own loader sets, as a profile, or against one.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use fairground_bpf::Object;
use fairground_realkernel::job::Captured;
use fairground_report::{Document, Table};
use fairground_session::{
    Failure, LoaderProgram, Profile, SchedulerSpec, TargetSpec, captured_differences,
    captured_profile, find_object, object_within, profile_of,
};

use super::attached::attached;
use crate::args::{CaptureArgs, Cli};
use crate::export;
use crate::present;

pub(super) fn capture(cli: &Cli, args: &CaptureArgs) -> Result<ExitCode, Failure> {
    let program = LoaderProgram::find(&args.loader)?.program;
    let object = match &args.object {
        Some(path) => Object::clone(&*find_object(&path.display().to_string())?),
        None => object_within(&program)?,
    };
    let against = args.against.as_deref().map(profile).transpose()?;
    let captured = in_guest(cli, args)?;
    let Some(profile) = against else {
        let mut text =
            format!("# What `{}` sets on {} CPUs ({}).\n", args.loader, args.cpus, args.on);
        text += &captured_profile(&object, &captured)?;
        match &args.output {
            Some(path) => export::write_whole(path, |sink| sink.write_all(text.as_bytes()))?,
            None => present::write_stdout(&text)?,
        }
        return Ok(ExitCode::SUCCESS);
    };
    let topology = args.cpus.to_string().parse().map_err(Failure::new)?;
    let differences = captured_differences(&object, &captured, &profile, &topology)?;
    let name = args.against.as_deref().unwrap_or_default();
    let mut document = Document::new(match differences.len() {
        0 => format!("{name} sets what `{}` sets", args.loader),
        count => format!("{name} differs from `{}` in {count} values", args.loader),
    });
    document.notes.extend(captured.notes.iter().cloned());
    let code = if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if !differences.is_empty() {
        let table = Table::of("differences", "Differences", differences)
            .text("variable", |difference| difference.name.clone())
            .text("the_loader_sets", |difference| difference.loader.clone())
            .text("the_profile_sets", |difference| difference.profile.clone());
        document.tables.push(table.table());
    }
    present::print(&document, cli)?;
    Ok(code)
}

/// The profile of a file, or of an entry of the catalogue.
fn profile(name: &str) -> Result<Profile, Failure> {
    if let Some(profile) = profile_of(name) {
        return profile;
    }
    if name.ends_with(".toml") || fs::exists(name).unwrap_or(false) {
        return Profile::read(Path::new(name));
    }
    Err(Failure::new(format_args!("--against: there is no published scheduler `{name}`"))
        .help("`fairground sched list` names them; a profile is given as ./NAME.toml"))
}

/// Runs the loader in a guest, and returns what the kernel had once it had attached its scheduler.
fn in_guest(cli: &Cli, args: &CaptureArgs) -> Result<Captured, Failure> {
    let target = TargetSpec {
        on: vec![args.on.clone()],
        loader: Some(args.loader.clone()),
        memory: args.memory,
        ..TargetSpec::default()
    };
    let of_loader = (target, SchedulerSpec::default());
    attached(&args.loader, of_loader, Some(args.cpus), true, cli.quiet)?
        .loader
        .and_then(|loader| loader.captured)
        .ok_or_else(|| Failure::new(format_args!("{}: nothing was captured", args.loader)))
}
