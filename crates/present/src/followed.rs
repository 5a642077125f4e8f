//! Decisions of a scheduler beside the recorded ones: how many agree, and how the others differ.

use fairground_report::{Cell, Column, Document, Level, Table, Verdict};
use fairground_session::{
    Agreement, Choice, Decision, Difference, Differences, Followed, Recording,
};
use fairground_trace::{TaskId, Trace};

/// Adds the agreement by kind of decision, the differences, and what was not compared.
pub fn describe_followed(
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
    let mut all = Agreement::default();
    followed.agreement.iter().for_each(|(_, agreement)| all += agreement);
    document.title += &match all.different {
        0 => format!(": no decision of {} differs", all.decided()),
        different => format!(": {different} of {} decisions differ", all.decided()),
    };
    document.verdicts.extend(undecided(followed, &all));
    document.tables.push(agreement_table(&followed.agreement));
    if !followed.kinds.is_empty() {
        document.tables.push(differences_table(&followed.kinds, kinds_max));
    }
    if let Some(first) = &followed.first {
        document.tables.push(first_table(trace, first, followed));
    }
    let shown = &followed.kinds[..followed.kinds.len().min(kinds_max)];
    if shown.iter().any(|kind| !kind.first.candidates.is_empty()) {
        document.tables.push(candidates_table(trace, shown));
    }
    document.notes.extend(followed.notes.iter().cloned());
}

/// The share of the decisions that the recording decides, and the events to record for more of them.
fn undecided(followed: &Followed, all: &Agreement) -> Option<Verdict> {
    let remedy = followed.remedy?;
    let share = all.decided() as f64 * 100.0 / all.total().max(1) as f64;
    let error = Cell::duration_ns(followed.error_ns).with_unit();
    Some(Verdict {
        run: String::new(),
        level: Level::Warning,
        text: format!("the recording decides {share:.1} % of {} decisions", all.total()),
        details: vec![format!("its stamps are up to {error} late"), remedy.to_owned()],
    })
}

fn agreement_table(agreement: &[(Decision, Agreement)]) -> Table {
    let mut table = Table::of("agreement", "Agreement", agreement)
        .text("decision", |(decision, _)| decision.name())
        .count("compared", |(_, a)| a.total())
        .count("same", |(_, a)| a.same)
        .count("with_sync", |(_, a)| a.with_sync)
        .count("ties", |(_, a)| a.ties)
        .count("different", |(_, a)| a.different)
        .column(Column::percent("agree"), |(_, a)| percent(a))
        .table();
    table.note(
        "ties: the two decisions differ, and their candidates are equals for the scheduler, or the \
         error of the recording explains it. with sync: the same only if the waker was about to sleep \
         (WF_SYNC), which no event says. agree: the same, of these and the different ones.",
    );
    table
}

/// The share of the same decisions among those that the recording decides.
fn percent(agreement: &Agreement) -> Cell {
    match agreement.decided() {
        0 => Cell::NotMeasured,
        decided => Cell::percent(agreement.same as f64 * 100.0 / decided as f64, 2),
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
        ("recorded", Cell::text(choice(trace, first.recorded))),
        ("scheduler", Cell::text(choice(trace, first.scheduler))),
        ("difference", Cell::text(first.kind.text())),
        ("decided by", Cell::text(by)),
    ];
    Table::of("first_difference", "First difference", rows)
        .text("of", |(name, _)| *name)
        .column(Column::mixed("value"), |(_, value)| value.clone())
        .table()
}

/// The candidates at the first difference of each kind, as the scheduler kept them.
fn candidates_table(trace: &Trace, kinds: &[Differences]) -> Table {
    let rows = kinds.iter().flat_map(|kind| {
        let first = &kind.first;
        first.candidates.iter().map(move |candidate| {
            let is = |of: Choice| of == Choice::Task(candidate.task);
            let role = match (is(first.recorded), is(first.scheduler)) {
                (true, _) => "recorded",
                (_, true) => "scheduler",
                _ if candidate.task == first.task => "task",
                _ => "other",
            };
            (first, candidate, role)
        })
    });
    let number = |(name, value): &(String, i64)| format!("{name}={value}");
    let mut table = Table::of("candidates", "Candidates at the first of each kind", rows)
        .column(Column::mixed("at"), |(first, ..)| at(first))
        .text("decision", |(first, ..)| first.decision.name())
        .text("as", |(.., role)| *role)
        .text("task", |(_, candidate, _)| task(trace, candidate.task))
        .text("numbers", |(_, candidate, _)| {
            candidate.numbers.iter().map(number).collect::<Vec<_>>().join(" ")
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

fn choice(trace: &Trace, choice: Choice) -> String {
    match choice {
        Choice::Task(id) => task(trace, id),
        Choice::Cpu(cpu) => format!("CPU {cpu}"),
        Choice::Preempt => "preempts".to_owned(),
        Choice::Stay => "stays".to_owned(),
    }
}
