//! `analyze`: the metrics of a recording of a real machine.

use std::borrow::Cow;
use std::mem::forget;
use std::process::ExitCode;

use fairground_analysis::{Analysed, Analysis, Options};
use fairground_report::{Cell, Document};
use fairground_session::{Failure, Recording, never_ran};

use crate::args::{AnalyzeArgs, Cli};
use crate::input::{analyse_recording, find_recording, interval_ns};
use crate::pictures::{self, Pictured};
use crate::present::{self, chosen_tasks};

pub(super) fn analyze(cli: &Cli, args: &AnalyzeArgs) -> Result<ExitCode, Failure> {
    pictures::prepare(&args.page)?;
    let selection = args.show.selection()?;
    let options = Options { interval_ns: interval_ns(&args.show)?, ..Options::default() };
    let (name, Analysed { trace, events, analysis }) = if args.page.is_wanted()
        || !args.tree.is_empty()
    {
        // Charts show the events, and forks are among them.
        let Recording { name, trace } = find_recording(&args.recording, &args.source, cli.quiet)?;
        let analysis = Analysis::of(&trace, &options);
        (name, Analysed { events: trace.len() as u64, analysis, trace })
    } else {
        analyse_recording(&args.recording, &args.source, &options, cli.quiet)?
    };
    let mut document = Document::new(name.clone());
    document.run.clone_from(&name);
    if let Some(verdict) = never_ran(analysis.never_ran()) {
        present::add_verdict(&mut document, "", verdict);
    }
    present::describe_recording(&mut document, &analysis, events, trace.cpus);
    document.set("recording", "skipped lines", Cell::count(trace.loss.skipped));
    let (selection, code) = selection.checked(&mut document, [&analysis]);
    document.tables.extend(present::machine_table(&analysis, &selection));
    if let Some(is_in) = chosen_tasks(&args.tree, &name, &trace)? {
        let of = match args.tree.as_slice() {
            [] => Cow::Borrowed("command"),
            asked => Cow::Owned(asked.join(", ")),
        };
        document.tables.extend(present::tree_table(&analysis, &of, &is_in, &selection));
    }
    document.tables.extend(present::tasks_table(&analysis, args.show.per, &selection));
    if selection.is_all() {
        document.tables.push(present::figures_table(&analysis, args.show.per, &selection));
    }
    document.tables.extend(present::intervals_table(&analysis, &selection));
    document.notes.extend(present::loss_notes(&name, &analysis.irregularities));
    let run = Pictured { label: &name, analysis: &analysis, trace: &trace, numbers: &[] };
    if !selection.is_narrow() {
        document.summary = pictures::summary(&[run]);
    }
    let drawn = pictures::write(&args.page, &document, &[run]);
    present::print_drawn(&document, cli, drawn)?;
    // The process ends: its memory need not be put in order first, piece by piece.
    forget((trace, analysis));
    Ok(ExitCode::from(code))
}
