//! `compare` of recordings: what differs between those before a change and those after it.

use std::process::ExitCode;

use fairground_analysis::difference::Detail;
use fairground_analysis::{Analysis, Options};
use fairground_report::Document;
use fairground_session::{Failure, Recording, RunSpec, is_recording};

use fairground_present::Per;

use crate::args::{Cli, CompareArgs};
use crate::input::find_recording;
use crate::pictures;
use crate::present::{self, Selection};

/// The recordings of both sides, where recordings are compared; `None` where a workload is run.
///
/// # Errors
/// It is not clear which recordings are to be compared.
pub(super) fn sides(args: &CompareArgs) -> Result<Option<[Vec<String>; 2]>, Failure> {
    let first = &args.run.workload;
    if !is_recording(first) {
        let is_for_recordings = !args.against.is_empty() || !args.of.tree.is_empty();
        let chooses_of_none = args.source.machine.is_some() && args.recordings.is_empty();
        return match !is_for_recordings && !chooses_of_none {
            true => Ok(None),
            false => Err(Failure::new(format_args!(
                "{first}: no such recording, and --against, --tree and --machine are for recordings"
            ))
            .help("`compare before1.dat before2.dat --against after1.dat after2.dat`")),
        };
    }
    present::sides(first, &args.recordings, &args.against).map(Some)
}

/// Checks that the options have a meaning for recordings.
fn check(args: &CompareArgs) -> Result<Detail, Failure> {
    let plain = RunSpec { workload: args.run.workload.clone(), ..RunSpec::default() };
    if *args.run != plain {
        return Err(Failure::new("options of runs mean nothing where recordings are compared")
            .help("leave them out; a recording's load under a scheduler: `fairground replay`"));
    }
    if args.show.interval.is_some() {
        return Err(Failure::new("--interval means nothing where recordings are compared")
            .help("`fairground analyze RECORDING --interval 1s` shows one over time"));
    }
    match args.show.per {
        Per::Group => Ok(Detail::Group),
        Per::Task => Ok(Detail::Task),
        Per::Cgroup => Err(Failure::new("recordings are compared by task or by group of tasks")
            .help("`--per group`, or `--per task`")),
    }
}

pub(super) fn compare(
    cli: &Cli,
    args: &CompareArgs,
    [before, after]: [Vec<String>; 2],
) -> Result<ExitCode, Failure> {
    let detail = check(args)?;
    let selection = args.show.selection()?;
    pictures::prepare(&args.page)?;
    let read = |names: Vec<String>| -> Result<Vec<Recording>, Failure> {
        names.iter().map(|name| find_recording(name, &args.source, cli.quiet)).collect()
    };
    let (before, after) = (read(before)?, read(after)?);
    let mut document =
        present::difference([&before, &after], &args.of.tree, detail, args.show.all)?;
    let all: Vec<&Recording> = before.iter().chain(&after).collect();
    let (code, drawn) = add_metrics(args, &selection, &mut document, &all);
    present::print_drawn(&document, cli, drawn)?;
    Ok(ExitCode::from(code))
}

/// The metrics of each recording side by side, and their charts, where they are asked for. Also whether a name that
/// was chosen is not there, as an exit code.
fn add_metrics(
    args: &CompareArgs,
    selection: &Selection,
    document: &mut Document,
    recordings: &[&Recording],
) -> (u8, Result<(), Failure>) {
    if !selection.is_all() && !selection.is_narrow() && !args.page.is_wanted() {
        return (0, Ok(()));
    }
    let measure = |one: &&Recording| Analysis::of(&one.trace, &Options::default());
    let analyses: Vec<Analysis> = recordings.iter().map(measure).collect();
    let code = present::add_metrics(document, recordings, &analyses, selection);
    let runs = pictures::recorded(recordings.iter().copied().zip(&analyses));
    (code, pictures::write(&args.page, document, &runs))
}
