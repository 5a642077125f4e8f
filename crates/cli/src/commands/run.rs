//! `run`: one workload, one scheduler, one table.

use std::path::Path;
use std::process::ExitCode;

use fairground_analysis::Options;
use fairground_analysis::playback::Playback;
use fairground_analysis::ring::RingReport;
use fairground_analysis::slice_report::{SliceReports, UserTime};
use fairground_report::Document;
use fairground_session::{Failure, Outcome, RunPlan, one_scheduler, one_variant};

use super::ran;
use crate::args::{Cli, RunArgs};
use crate::export::{self, ENDS, Form};
use crate::input::{find_workload, measuring_options};
use crate::pictures;
use crate::present::{self, Per, Selection};
use crate::progress::Progress;

pub(super) fn run(cli: &Cli, args: &RunArgs) -> Result<ExitCode, Failure> {
    if args.run.scheduler.sched.len() > 1 || args.run.target.on.len() > 1 {
        return Err(Failure::new("`run` takes one scheduler on one target")
            .help("`fairground compare` runs several"));
    }
    let selection = args.show.selection()?;
    one_scheduler(&args.run.scheduler, &args.run.target)?;
    one_variant(&args.run.scheduler.set)?;
    let form = args.trace.as_deref().map(form_of_trace).transpose()?;
    let workload = find_workload(&args.run, cli.quiet)?;
    pictures::prepare(&args.page)?;
    let options = measuring_options(&args.show)?;
    let shows_events = args.trace.is_some() || args.page.is_wanted();
    let plan = RunPlan {
        callbacks: args.callbacks,
        keep_events: shows_events || workload.leaves_marks(),
        sample: args.page.is_wanted() || form.is_some_and(Form::has_counters),
        ..RunPlan::new(&args.run, &workload, options.clone())
    };
    let ran = plan.run(&Progress::of_runs(cli.quiet))?;
    let [outcome] = ran.outcomes.as_slice() else {
        return Err(Failure::new("`run` makes one run"));
    };
    if let Some((path, form)) = args.trace.as_ref().zip(form) {
        let window = Some((outcome.analysis.start_ns, outcome.analysis.end_ns));
        write_trace((path, form), outcome, &Options { window, ..options })?;
        if path == Path::new("-") {
            return Ok(ran::exit_code(&ran, outcome.exit_code()));
        }
    }
    let title = match args.run.target.on.as_slice() {
        [target] if target != "sim" => {
            format!("{} under {} on {target}", args.run.workload, outcome.label)
        }
        _ => format!("{} under {}", args.run.workload, outcome.label),
    };
    let mut document = present::made(&ran, &title, &title, &args.run);
    document.run.clone_from(&outcome.label);
    present::describe_run(&mut document, outcome);
    present::printed_notes(&mut document, outcome);
    present::loader_notes(&mut document, outcome);
    document.notes.extend(ran.notes.iter().cloned());
    document.notes.extend(outcome.numbers_note.clone());
    let (selection, chosen) = selection.checked(&mut document, [&outcome.analysis]);
    add_tables(&mut document, outcome, args.show.per, &selection);
    if !selection.is_narrow() && outcome.is_recorded() {
        document.summary = pictures::summary(&ran::pictured(&ran));
    }
    let drawn = pictures::write(&args.page, &document, &ran::pictured(&ran));
    present::print_drawn(&document, cli, drawn)?;
    Ok(ran::exit_code(&ran, outcome.exit_code().max(chosen)))
}

fn add_tables(document: &mut Document, outcome: &Outcome, per: Per, selection: &Selection) {
    // Nothing ran: the verdict says why.
    if outcome.not_started() {
        return;
    }
    if !selection.is_narrow() {
        document.tables.extend(present::accounting_table(outcome));
    }
    let ring = RingReport::of(&outcome.trace);
    let ring =
        ring.and_then(|ring| present::ring_table(&ring, outcome.instruction_ns(), selection));
    let playback = present::playback_table(&Playback::of(&outcome.trace), selection);
    if !outcome.is_recorded() {
        document.tables.extend(ring.into_iter().chain(playback));
        return;
    }
    document.tables.extend(present::machine_table(&outcome.analysis, selection));
    document.tables.extend(present::tasks_table(&outcome.analysis, per, selection));
    if selection.is_all() {
        document.tables.push(present::figures_table(&outcome.analysis, per, selection));
    }
    let reports = SliceReports::of(&outcome.trace, UserTime::Exact);
    document.tables.extend(present::reports_table("Reports of the program", &reports, selection));
    document.tables.extend(ring.into_iter().chain(playback));
    document.tables.extend(present::intervals_table(&outcome.analysis, selection));
    document.tables.extend(present::variables_table(outcome, None));
    document.notes.extend(present::loss_notes(&outcome.label, &outcome.analysis.irregularities));
}

/// Writes the trace into a file or to stdout.
fn write_trace(
    (path, form): (&Path, Form),
    outcome: &Outcome,
    options: &Options,
) -> Result<(), Failure> {
    let mut counters = Vec::new();
    if form.has_counters() {
        counters = fairground_analysis::counters(&outcome.trace, options);
        counters.extend(outcome.numbers.iter().cloned());
    }
    export::write(&outcome.trace, &counters, form, path)
}

/// The form that the name of the trace says, where it can be written; ftrace text for a pipe or a device.
fn form_of_trace(path: &Path) -> Result<Form, Failure> {
    let form = Form::of(path)
        .or_else(|| export::is_special(path).then_some(Form::Text))
        .ok_or_else(|| {
            Failure::new(format_args!("--trace {}: no known kind of trace", path.display()))
                .help(format_args!("the name ends in {ENDS}"))
        })?;
    form.check()?;
    export::check_place(path)?;
    Ok(form)
}
