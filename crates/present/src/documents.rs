//! Whole documents: of runs side by side, of recordings before and after a change, of a scheduler that followed one.

use fairground_analysis::difference::{Detail, Difference, Recorded};
use fairground_analysis::{Analysis, command_tree, tasks_called, tree};
use fairground_report::{Cell, Document};
use fairground_session::{Failure, Followed, NamedChoice, Outcome, Ran, Recording, RunSpec};
use fairground_trace::Trace;

use crate::{
    Selection, comparison_table, describe_difference, describe_followed, describe_machine,
    describe_run, headline, intervals_table, loader_notes, loss_notes, policy_table, printed_notes,
    variables_table,
};

/// The beginning of a document about the runs of a plan: how they were made. `name` is what it calls them.
pub fn made(ran: &Ran, title: &str, name: &str, spec: &RunSpec) -> Document {
    let mark = if ran.is_interrupted { " (partial)" } else { "" };
    let mut document = Document::new(format!("{title}{mark}"));
    if let Some(machine) = &ran.simulated {
        describe_machine(&mut document, machine, ran.duration_ns);
    }
    document.describe_spec(name, spec.stated());
    document.set_usual("machine", "workload", Cell::text(&spec.workload));
    if let Some(locks) = spec.locks.locks {
        document.set("machine", "locks", Cell::text(locks.word()));
    }
    document
}

/// Runs of a plan side by side, behind `recorded` ones, with the rows that are chosen; and the exit code.
///
/// # Errors
/// If there is no recording of a run.
pub fn compared(
    ran: &Ran,
    title: &str,
    spec: &RunSpec,
    selection: &Selection,
    recorded: &[(&str, &Analysis)],
) -> Result<(Document, u8), Failure> {
    let outcomes = &ran.outcomes;
    // A load that did not start is a verdict and no column.
    let begun = || outcomes.iter().filter(|outcome| !outcome.not_started());
    if let Some(outcome) = begun().find(|outcome| !outcome.is_recorded()) {
        return Err(Failure::new(format_args!(
            "{}: there is nothing to compare: {}",
            outcome.label,
            outcome.not_recorded().unwrap_or_default()
        )));
    }
    let mut document = made(ran, title, title, spec);
    let mut code = 0;
    document.notes.extend(ran.notes.iter().cloned());
    for outcome in outcomes {
        describe_run(&mut document, outcome);
        printed_notes(&mut document, outcome);
        loader_notes(&mut document, outcome);
        document.notes.extend(loss_notes(&outcome.label, &outcome.analysis.irregularities));
        let note = outcome.numbers_note.iter();
        document.notes.extend(note.map(|note| format!("{}: {note}", outcome.label)));
        code = code.max(outcome.exit_code());
    }
    let measured = begun().map(|o| (o.label.as_str(), &o.analysis));
    let columns: Vec<_> = recorded.iter().copied().chain(measured).collect();
    let analyses = columns.iter().map(|(_, analysis)| *analysis);
    let (selection, chosen) = selection.checked(&mut document, analyses);
    document.tables.extend(comparison_table(&columns, &selection));
    if !selection.is_narrow() {
        document.tables.push(policy_table(outcomes));
    }
    for outcome in outcomes.iter().filter(|o| o.analysis.series.is_some()) {
        let mut table = intervals_table(&outcome.analysis, &selection);
        if let Some(table) = &mut table {
            table.title = format!("Over time: {}", outcome.label);
            table.run = Some(outcome.label.clone());
        }
        document.tables.extend(table);
    }
    let variables = |outcome: &Outcome| variables_table(outcome, Some(&outcome.label));
    document.tables.extend(outcomes.iter().filter_map(variables));
    Ok((document, code.max(chosen)))
}

/// The metrics of recordings side by side, with the rows that are chosen. Returns the exit code: that of a negative
/// verdict where a chosen name is not there, else 0.
pub fn add_metrics(
    document: &mut Document,
    recordings: &[&Recording],
    analyses: &[Analysis],
    selection: &Selection,
) -> u8 {
    let names = recordings.iter().map(|recording| recording.name.as_str());
    let columns: Vec<_> = names.zip(analyses).collect();
    let (selection, code) = selection.checked(document, analyses);
    document.tables.extend(comparison_table(&columns, &selection));
    code
}

/// The recordings before a change and those after it: two, or with `against` several of each side.
///
/// # Errors
/// It is not clear which recordings are to be compared.
pub fn sides(
    first: &str,
    others: &[String],
    against: &[String],
) -> Result<[Vec<String>; 2], Failure> {
    let all = || [first.to_owned()].into_iter().chain(others.iter().cloned()).collect();
    match (others, against) {
        ([], []) => Err(Failure::new(format_args!("{first}: one recording alone"))
            .help("add a second one; or see the load under other schedulers: `fairground replay`")),
        ([after], []) => Ok([vec![first.to_owned()], vec![after.clone()]]),
        (_, []) => Err(Failure::new("which of the recordings are those before the change?")
            .help("`compare before1.dat before2.dat --against after1.dat after2.dat`")),
        (_, after) => Ok([all(), after.to_vec()]),
    }
}

/// What differs between the recordings before a change and those after it, for the tasks that `asked` names and what
/// they started; with `all` every row.
///
/// # Errors
/// If a recording has no switches, or no task of the name.
pub fn difference(
    [before, after]: [&[Recording]; 2],
    asked: &[String],
    detail: Detail,
    all: bool,
) -> Result<Document, Failure> {
    let of = |side: &[Recording]| -> Result<Vec<ChosenTasks>, Failure> {
        side.iter().map(|one| chosen_tasks(asked, &one.name, &one.trace)).collect()
    };
    let mut chosen = [of(before)?, of(after)?];
    // Where one recording does not say whose losses count, those of all tasks do.
    if chosen.iter().flatten().any(Option::is_none) {
        chosen.iter_mut().flatten().for_each(|one| *one = None);
    }
    let [old, new] = &chosen;
    let difference = Difference::of(&recorded(before, old), &recorded(after, new), detail);
    let recordings = || before.iter().chain(after).zip(difference.irregularities());
    if let Some((recording, _)) = recordings().find(|(_, problems)| problems.no_switches) {
        return Err(Failure::new(format_args!(
            "{}: no sched_switch in this recording: there is nothing to compare",
            recording.name
        ))
        .help("record sched_switch, too: docs/howto/record.md has the commands"));
    }
    let names = [before, after]
        .map(|side| side.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "));
    let mut document = Document::new(headline(&difference));
    document.set("compared", "before", Cell::text(&names[0]));
    document.set("compared", "after", Cell::text(&names[1]));
    describe_difference(&mut document, &difference, all);
    for (recording, problems) in recordings() {
        document.notes.extend(loss_notes(&recording.name, problems));
    }
    Ok(document)
}

/// By task of a recording: whether its losses count. `None`: those of all do.
pub type ChosenTasks = Option<Vec<bool>>;

/// The tasks of these names and pids with all that they started, or the recorded command's where there is none.
///
/// # Errors
/// No task is called so.
pub fn chosen_tasks(asked: &[String], name: &str, trace: &Trace) -> Result<ChosenTasks, Failure> {
    if asked.is_empty() {
        return Ok(command_tree(trace));
    }
    let mut roots = Vec::new();
    for called in asked {
        let found = tasks_called(trace, called);
        if found.is_empty() {
            return Err(Failure::new(format_args!(
                "{name}: no task has the name or pid `{called}`"
            ))
            .help(format_args!("`fairground analyze {name} --per task` lists the tasks")));
        }
        roots.extend(found);
    }
    Ok(Some(tree(trace, &roots)))
}

fn recorded<'a>(side: &'a [Recording], chosen: &'a [ChosenTasks]) -> Vec<Recorded<'a>> {
    let both = side.iter().zip(chosen);
    both.map(|(one, chosen)| Recorded { trace: &one.trace, asked: chosen.as_deref() }).collect()
}

/// The decisions of a scheduler beside those of the recording that it followed; at most `kinds_max` kinds of
/// differences.
pub fn followed(recording: &Recording, followed: &Followed, kinds_max: usize) -> Document {
    let mut document = Document::new(format!("{} follows {}", followed.label, recording.name));
    describe_followed(&mut document, recording, followed, kinds_max);
    document.notes.extend(loss_notes(&recording.name, &followed.irregularities));
    document
}
