//! `compare`: one workload under several schedulers and settings, on one target or on several, and beside recordings.

use std::process::ExitCode;

use fairground_analysis::{Analysis, Options};
use fairground_report::Document;
use fairground_session::{Failure, Outcome, Ran, Recording, RunPlan};

use super::compare_recordings;
use super::ran;
use crate::args::{Cli, CompareArgs};
use crate::input::{find_recording, find_workload, interval_ns, measuring_options};
use crate::pictures::{self, Pictured};
use crate::present::{self, Selection};
use crate::progress::Progress;

pub(super) fn compare(cli: &Cli, args: &CompareArgs) -> Result<ExitCode, Failure> {
    if let Some(sides) = compare_recordings::sides(args)? {
        return compare_recordings::compare(cli, args, sides);
    }
    let selection = args.show.selection()?;
    let workload = find_workload(&args.run, cli.quiet)?;
    pictures::prepare(&args.page)?;
    let options = measuring_options(&args.show)?;
    let recordings = recordings(cli, args)?;
    let pairs = recordings.iter().map(|(recording, analysis)| (recording, analysis));
    let recorded = pictures::recorded(pairs);
    let sample = args.page.is_wanted();
    // Only a page shows events.
    let plan =
        RunPlan { sample, keep_events: sample, ..RunPlan::new(&args.run, &workload, options) };
    let compared = compare_all(cli, &args.run.workload, &plan, &selection, (&recorded, None))?;
    let Compared { mut document, ran, code } = compared;
    for (recording, analysis) in &recordings {
        let notes = present::loss_notes(&recording.name, &analysis.irregularities);
        document.notes.extend(notes);
    }
    let pictured: Vec<Pictured<'_>> = recorded.iter().copied().chain(ran::pictured(&ran)).collect();
    if !selection.is_narrow() {
        document.summary = pictures::summary(&pictured);
    }
    let drawn = pictures::write(&args.page, &document, &pictured);
    present::print_drawn(&document, cli, drawn)?;
    Ok(code)
}

/// The recordings that stand beside the runs.
fn recordings(cli: &Cli, args: &CompareArgs) -> Result<Vec<(Recording, Analysis)>, Failure> {
    let read = |name: &String| {
        let recording = find_recording(name, &args.source, cli.quiet)?;
        let options = Options { interval_ns: interval_ns(&args.show)?, ..Options::default() };
        let analysis = Analysis::of(&recording.trace, &options);
        Ok((recording, analysis))
    };
    args.recordings.iter().map(read).collect()
}

pub(super) struct Compared {
    pub(super) document: Document,
    pub(super) ran: Ran,
    pub(super) code: ExitCode,
}

/// Runs a plan and makes the document, with the rows that are chosen. Recordings stand in the first
/// columns, a run that was made before in the next.
pub(super) fn compare_all(
    cli: &Cli,
    title: &str,
    plan: &RunPlan<'_>,
    selection: &Selection,
    (recorded, before): (&[Pictured<'_>], Option<Outcome>),
) -> Result<Compared, Failure> {
    let mut ran = plan.run(&Progress::of_runs(cli.quiet))?;
    ran.outcomes.splice(0..0, before);
    let columns: Vec<_> = recorded.iter().map(|run| (run.label, run.analysis)).collect();
    let (document, code) = present::compared(&ran, title, plan.spec, selection, &columns)?;
    let code = ran::exit_code(&ran, code);
    Ok(Compared { document, ran, code })
}
