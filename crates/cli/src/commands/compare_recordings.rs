//! `compare` of recordings: what differs between those before a change and those after it.

use std::process::ExitCode;

use fairground_analysis::difference::{Detail, Difference, Recorded};
use fairground_analysis::{Analysis, Options};
use fairground_report::{Cell, Document};
use fairground_session::{Failure, Recording, RunSpec};

use crate::args::{Cli, CompareArgs, Per};
use crate::input::{asked_tasks, find_recording, is_recording};
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
    let before = || [first.clone()].into_iter().chain(args.recordings.iter().cloned()).collect();
    match (args.recordings.as_slice(), args.against.as_slice()) {
        ([], []) => Err(Failure::new(format_args!("{first}: one recording alone"))
            .help("add a second one; or see the load under other schedulers: `fairground replay`")),
        ([after], []) => Ok(Some([vec![first.clone()], vec![after.clone()]])),
        (_, []) => Err(Failure::new("which of the recordings are those before the change?")
            .help("`compare before1.dat before2.dat --against after1.dat after2.dat`")),
        (_, after) => Ok(Some([before(), after.to_vec()])),
    }
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

/// By task of a recording: whether its losses count.
type ChosenTasks = Option<Vec<bool>>;

/// Whose losses count in the recordings of both sides: those of all tasks, where one recording does not say whose.
fn asked(args: &CompareArgs, sides: [&[Recording]; 2]) -> Result<[Vec<ChosenTasks>; 2], Failure> {
    let of = |side: &[Recording]| -> Result<Vec<ChosenTasks>, Failure> {
        side.iter().map(|one| asked_tasks(&args.of, one)).collect()
    };
    let mut asked = [of(sides[0])?, of(sides[1])?];
    if asked.iter().flatten().any(Option::is_none) {
        asked.iter_mut().flatten().for_each(|one| *one = None);
    }
    Ok(asked)
}

fn recorded<'a>(side: &'a [Recording], asked: &'a [ChosenTasks]) -> Vec<Recorded<'a>> {
    let both = side.iter().zip(asked);
    both.map(|(one, asked)| Recorded { trace: &one.trace, asked: asked.as_deref() }).collect()
}

pub(super) fn compare(
    cli: &Cli,
    args: &CompareArgs,
    [before, after]: [Vec<String>; 2],
) -> Result<ExitCode, Failure> {
    let detail = check(args)?;
    let selection = Selection::of(&args.show)?;
    pictures::prepare(&args.page)?;
    let read = |names: Vec<String>| -> Result<Vec<Recording>, Failure> {
        names.iter().map(|name| find_recording(name, &args.source, cli.quiet)).collect()
    };
    let (before, after) = (read(before)?, read(after)?);
    let [asked_before, asked_after] = asked(args, [&before, &after])?;
    let (old, new) = (recorded(&before, &asked_before), recorded(&after, &asked_after));
    let difference = Difference::of(&old, &new, detail);
    let all: Vec<&Recording> = before.iter().chain(&after).collect();
    for (recording, problems) in all.iter().zip(difference.irregularities()) {
        if problems.no_switches {
            return Err(Failure::new(format_args!(
                "{}: no sched_switch in this recording: there is nothing to compare",
                recording.name
            ))
            .help("record sched_switch, too: docs/howto/record.md has the commands"));
        }
    }
    let names = [&before, &after]
        .map(|side| side.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "));
    let mut document = Document::new(present::headline(&difference));
    document.set("compared", "before", Cell::text(&names[0]));
    document.set("compared", "after", Cell::text(&names[1]));
    present::describe_difference(&mut document, &difference, args.show.all);
    for (recording, problems) in all.iter().zip(difference.irregularities()) {
        document.notes.extend(present::loss_notes(&recording.name, problems));
    }
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
    let runs = pictures::recorded(recordings.iter().copied().zip(&analyses));
    let columns: Vec<_> = runs.iter().map(|run| (run.label, run.analysis)).collect();
    let (selection, code) = selection.checked(document, &analyses);
    document.tables.extend(present::comparison_table(&columns, &selection));
    (code, pictures::write(&args.page, document, &runs))
}
