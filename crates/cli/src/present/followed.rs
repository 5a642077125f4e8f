//! Decisions of a scheduler beside the recorded ones: how many agree, and how the others differ.

use fairground_report::{Cell, Column, Document, Level, Table, Verdict};
use fairground_session::{
    Agreement, Decision, Difference, Differences, FollowVerdict, Followed, Recording,
};
use fairground_trace::{TaskId, Trace};

/// Adds the agreement by kind of decision, the differences, and what was not compared.
pub(crate) fn describe_followed(
    document: &mut Document,
    recording: &Recording,
    followed: &Followed,
    kinds_max: usize,
) {
    let trace = &recording.trace;
    document.set("recording", "events", Cell::count(trace.len() as u64));
    document.set("recording", "cpus", Cell::count(trace.cpus.into()));
    let length_ns = trace.end_ns.saturating_sub(trace.start_ns);
    document.set("recording", "window", Cell::duration_ns(length_ns));
    document.set("recording", "reaction", Cell::duration_ns(followed.reaction_ns));
    document.set("recording", "clock", Cell::duration_ns(followed.clock_ns));
    if let Some(exit) = &followed.exit {
        document.add_verdict(Verdict {
            run: followed.label.clone(),
            level: Level::Failure,
            text: format!("the scheduler left the recording before its end: {exit}"),
            details: Vec::new(),
        });
    }
    document.tables.push(agreement_table(&followed.agreement));
    if !followed.kinds.is_empty() {
        document.tables.push(differences_table(&followed.kinds, kinds_max));
    }
    if let Some(first) = &followed.first {
        document.tables.push(first_table(trace, first, followed));
    }
    let shown = &followed.kinds[..followed.kinds.len().min(kinds_max)];
    if shown.iter().any(|kind| !kind.first.known.is_empty()) {
        document.tables.push(candidates_table(trace, shown));
    }
    document.notes.extend(followed.notes.iter().cloned());
}

fn agreement_table(agreement: &[(Decision, Agreement)]) -> Table {
    let mut table = Table::of("agreement", "Agreement", agreement)
        .text("decision", |(decision, _)| decision.name())
        .count("compared", |(_, a)| a.total())
        .count("same", |(_, a)| a.same)
        .count("ties", |(_, a)| a.ties)
        .count("different", |(_, a)| a.different)
        .column(Column::percent("same_of_compared"), |(_, a)| percent(a))
        .table();
    table.note(
        "ties: the two decisions differ, and the candidates are equals for the scheduler; they are not \
         in `different`.",
    );
    table
}

/// What share of the decisions is the same, ties left out.
pub(super) fn percent(agreement: &Agreement) -> Cell {
    let judged = agreement.same + agreement.different;
    match judged {
        0 => Cell::NotMeasured,
        _ => Cell::percent(agreement.same as f64 * 100.0 / judged as f64, 2),
    }
}

fn differences_table(kinds: &[Differences], kinds_max: usize) -> Table {
    let shown = &kinds[..kinds.len().min(kinds_max)];
    let mut table = Table::of("differences", "Differences", shown)
        .text("decision", |kind| kind.first.decision.name())
        .text("difference", |kind| kind.first.kind.text())
        .count("count", |kind| kind.count)
        .column(Column::mixed("first_at"), |kind| at(&kind.first))
        .table();
    if shown.len() < kinds.len() {
        table.note(format!("{} more kinds: --top {}", kinds.len() - shown.len(), kinds.len()));
    }
    table
}

fn first_table(trace: &Trace, first: &Difference, followed: &Followed) -> Table {
    let by = followed.callbacks.iter().find(|(decision, _)| *decision == first.decision);
    let by = by.map_or("the core's own rules".to_owned(), |(_, by)| match &by.line {
        Some(line) => format!("{} ({}:{})", by.function, line.file, line.line),
        None => by.function.clone(),
    });
    let rows = [
        ("time", at(first)),
        ("CPU", Cell::count(first.cpu.into())),
        ("decision", Cell::text(first.decision.name())),
        ("task", Cell::text(task(trace, first.task))),
        ("recorded", Cell::text(verdict(trace, first.recorded))),
        ("scheduler", Cell::text(verdict(trace, first.scheduler))),
        ("difference", Cell::text(first.kind.text())),
        ("decided by", Cell::text(by)),
    ];
    Table::of("first_difference", "First difference", rows)
        .text("of", |(name, _)| *name)
        .column(Column::mixed("value"), |(_, value)| value.clone())
        .table()
}

/// What the scheduler knew of the candidates at the first difference of each kind.
fn candidates_table(trace: &Trace, kinds: &[Differences]) -> Table {
    let rows = kinds.iter().flat_map(|kind| {
        let first = &kind.first;
        first.known.iter().map(move |known| {
            let is = |of: FollowVerdict| of == FollowVerdict::Task(known.task);
            let role = match (is(first.recorded), is(first.scheduler)) {
                (true, _) => "recorded",
                (_, true) => "scheduler",
                _ if known.task == first.task => "task",
                _ => "other",
            };
            (first, known, role)
        })
    });
    let number = |(name, value): &(String, i64)| format!("{name}={value}");
    let mut table = Table::of("candidates", "Candidates at the first of each kind", rows)
        .column(Column::mixed("at"), |(first, ..)| at(first))
        .text("decision", |(first, ..)| first.decision.name())
        .text("as", |(.., role)| *role)
        .text("task", |(_, known, _)| task(trace, known.task))
        .text("numbers", |(_, known, _)| {
            known.numbers.iter().map(number).collect::<Vec<_>>().join(" ")
        })
        .table();
    table.note("numbers: what the scheduler keeps for the task; slice: what is left of it, ns.");
    table
}

/// The time of a difference, in seconds of the recording's clock to the nanosecond: as its lines show it.
fn at(difference: &Difference) -> Cell {
    let (seconds, ns) = (difference.time_ns / 1_000_000_000, difference.time_ns % 1_000_000_000);
    Cell::text(format!("{seconds}.{ns:09}"))
}

fn task(trace: &Trace, id: TaskId) -> String {
    match trace.tasks().get(id.index()) {
        Some(info) if !id.is_idle() => format!("{}-{}", info.comm, info.pid),
        _ => "idle".to_owned(),
    }
}

fn verdict(trace: &Trace, verdict: FollowVerdict) -> String {
    match verdict {
        FollowVerdict::Task(id) => task(trace, id),
        FollowVerdict::Cpu(cpu) => format!("CPU {cpu}"),
        FollowVerdict::Preempt => "preempts".to_owned(),
        FollowVerdict::Stay => "stays".to_owned(),
    }
}
