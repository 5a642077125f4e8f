//! Differences between recordings: a sentence with the cause, and tables of causes, tasks, parts and the machine.

use fairground_analysis::difference::{
    Cause, CauseKind, Change, Difference, RoleChange, TimeShare, Work,
};
use fairground_report::{Cell, Column, Document, Table, TimeUnit};

/// Less than this part of a recording's length is not called a cause where there is no interval: a hundredth.
const NOTABLE: f64 = 0.01;

/// A cause, task or part with less than this part of a recording's length stands in a table only with `--all`: a
/// thousandth.
const SHOWN: f64 = 0.001;

/// A role whose CPU time grew by at least this part of the time that others lose is named beside a role that did not
/// grow: a quarter.
const DISPLACES_MIN: f64 = 0.25;

/// Rows of a table without `--all`.
const ROWS_MAX: usize = 12;

/// Tasks whose time is shown by its parts, and causes with evidence, without `--all`.
const DETAILED_MAX: usize = 3;

/// The first line: what took most time.
pub fn headline(difference: &Difference) -> String {
    let compared = difference.roles.iter().filter(|role| !role.is_one_sided()).count();
    if compared == 0 {
        return "no task is in recordings of both sides: nothing can be compared".to_owned();
    }
    let conditions = difference.conditions.iter().filter(|condition| condition.what == "scheduler");
    let under: String = conditions
        .map(|one| format!("; the scheduler is `{}` instead of `{}`", one.after, one.before))
        .collect();
    match difference.causes.iter().find(|cause| is_notable(difference, cause)) {
        Some(cause) => format!("{}{under}", sentence(difference, cause)),
        None => match difference.causes.first().filter(|cause| cause.lost.difference() > 0.0) {
            Some(cause) => {
                format!(
                    "no time lost beyond the noise; most: {}{under}",
                    sentence(difference, cause)
                )
            }
            None => format!("no time lost{under}"),
        },
    }
}

/// Whether time was lost, and more than by chance.
fn is_notable(difference: &Difference, cause: &Cause) -> bool {
    let lost = cause.lost.difference();
    let long_enough = |part: f64| lost >= part * difference.machine.window.after;
    match cause.lost.is_beyond_noise() {
        Some(beyond) => lost > 0.0 && beyond && long_enough(SHOWN),
        None => long_enough(NOTABLE),
    }
}

fn time(ns: f64) -> String {
    Cell::Duration { ns }.with_unit()
}

/// `998 times a second`.
fn often(per_second: f64) -> String {
    match per_second {
        0.0 => "never".to_owned(),
        rate if rate >= 10.0 => format!("{rate:.0} times a second"),
        rate => format!("{rate:.1} times a second"),
    }
}

/// A count that is a mean: whole where it is.
fn count(count: f64) -> Cell {
    match count.fract() == 0.0 {
        true => Cell::count(count as u64),
        false => Cell::float(count, 1),
    }
}

fn tasks(number: f64) -> String {
    let number =
        if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.1}") };
    format!("{number} task{}", if number == "1" { "" } else { "s" })
}

/// A cause in words.
fn sentence(difference: &Difference, cause: &Cause) -> String {
    let name = &difference.names[cause.role];
    let lost = time(cause.lost.difference());
    let Some(role) = difference.role(cause.role) else { return String::new() };
    match cause.kind {
        CauseKind::TakesCpu => takes_cpu(difference, cause, role),
        CauseKind::Runs => {
            let work = match role.work {
                Some(Work::Tasks) => format!("for {}", tasks(role.tasks.after)),
                _ => "for as many wake-ups".to_owned(),
            };
            let moved = match role.migrations.after > 2.0 * role.migrations.before + 10.0 {
                true => format!(
                    "; it moves to another CPU {}, before {}",
                    often(role.migrations.after),
                    often(role.migrations.before)
                ),
                false => String::new(),
            };
            let (after, before) = (time(role.run.after), time(role.run.before));
            format!(
                "`{name}` needs {lost} more CPU time {work}: {after} instead of {before}{moved}"
            )
        }
        CauseKind::WaitsIdle => {
            format!("`{name}` waits {lost} longer while the CPU in whose queue it is idles")
        }
        CauseKind::IsWaitedFor => {
            let grown = new_or_grown(difference, role, cause);
            match victims(difference, cause).as_slice() {
                [victim] if *victim == name => {
                    format!("`{name}` sleeps {lost} longer until others of its name wake it")
                }
                [victim] => {
                    format!("`{victim}` sleeps {lost} longer until `{name}` wakes it{grown}")
                }
                victims => format!(
                    "{} sleep {lost} longer until `{name}` wakes them{grown}",
                    victims.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                ),
            }
        }
        CauseKind::Sleeps => {
            format!("`{name}` sleeps {lost} longer until a timer or an interrupt wakes it")
        }
    }
}

fn takes_cpu(difference: &Difference, cause: &Cause, role: &RoleChange) -> String {
    let name = &difference.names[cause.role];
    let Some((first, first_lost)) = cause.victims.first() else { return String::new() };
    let victim = &difference.names[*first];
    let lost = time(first_lost.difference());
    if *first == cause.role {
        let grown = match role.tasks.after > role.tasks.before {
            true => format!("{} instead of {:.0}", tasks(role.tasks.after), role.tasks.before),
            false => format!("{} as before", tasks(role.tasks.after)),
        };
        let others = match role.tasks.after > role.tasks.before {
            true => String::new(),
            false => new_or_grown(difference, role, cause),
        };
        return format!(
            "`{victim}` waits {lost} longer for others of its own name: {grown}{others}"
        );
    }
    let (preemptions, woken) = (
        difference.preemptions(*first, cause.role),
        difference.wakeup_preemptions(*first, cause.role),
    );
    let how = match 2.0 * woken.after >= preemptions.after {
        true => "preempts it",
        false => "takes the CPU from it",
    };
    let others =
        match cause.victims.iter().skip(1).filter(|(_, lost)| lost.difference() > 0.0).count() {
            0 => String::new(),
            _ => format!(" ({} with all that it delays)", time(cause.lost.difference())),
        };
    let often = match preemptions.after >= 1.0 {
        true => format!(
            ", which {how} {} (before: {})",
            often(preemptions.after),
            often(preemptions.before)
        ),
        false => String::new(),
    };
    format!(
        "`{victim}` loses {lost} to `{name}`{often}{others}{}",
        new_or_grown(difference, role, cause)
    )
}

fn new_or_grown(difference: &Difference, role: &RoleChange, cause: &Cause) -> String {
    let after = time(role.cpu_time.after);
    if role.is_new() {
        return format!("; it is new, and takes {after} of CPU time");
    }
    if role.has_grown() {
        let before = time(role.cpu_time.before);
        return format!("; it takes {after} of CPU time instead of {before}");
    }
    // It does not run more: another role may leave less of the machine to all.
    let other = difference.most_grown();
    let is_victim = |role: usize| cause.victims.iter().any(|(victim, _)| *victim == role);
    let enough = DISPLACES_MIN * cause.lost.difference();
    match other.filter(|one| !is_victim(one.role) && one.cpu_time.difference() >= enough) {
        Some(other) => format!(
            "; it takes no more CPU time than before, `{}` takes {} more",
            difference.names[other.role],
            time(other.cpu_time.difference())
        ),
        None => String::new(),
    }
}

/// The names of those that lost most.
fn victims<'a>(difference: &'a Difference, cause: &Cause) -> Vec<&'a String> {
    let lost = cause.victims.iter().filter(|(_, lost)| lost.difference() > 0.0);
    lost.take(DETAILED_MAX).map(|(role, _)| &difference.names[*role]).collect()
}

/// Adds all tables and notes.
pub fn describe_difference(document: &mut Document, difference: &Difference, all: bool) {
    let shown = |ns: f64| all || ns.abs() >= SHOWN * difference.machine.window.after;
    let rows = if all { usize::MAX } else { ROWS_MAX };
    document.tables.push(causes_table(difference, &shown, rows));
    let notable = difference.causes.iter().filter(|cause| is_notable(difference, cause));
    let detailed: Vec<&Cause> = notable.take(if all { usize::MAX } else { DETAILED_MAX }).collect();
    for cause in &detailed {
        document.tables.push(evidence_table(difference, cause));
    }
    document.tables.push(tasks_table(difference, &shown, rows));
    let mut victims: Vec<usize> = Vec::new();
    for cause in &detailed {
        let first = cause.victims.first().map(|(role, _)| *role);
        victims.extend(first.filter(|role| !victims.contains(role)));
    }
    for role in victims.into_iter().filter_map(|role| difference.role(role)) {
        document.tables.push(parts_table(difference, role, &shown));
    }
    let one_sided = one_sided_table(difference, &shown, rows);
    document.tables.extend(Some(one_sided).filter(|table| !table.rows.is_empty()));
    document.tables.push(machine_table(difference));
    let conditions =
        Table::of("conditions", "Recorded under other conditions", &difference.conditions)
            .text("what", |one| one.what.as_str())
            .text("before", |one| one.before.as_str())
            .text("after", |one| one.after.as_str())
            .table();
    document.tables.extend(Some(conditions).filter(|table| !table.rows.is_empty()));
    let (before, after) = difference.recordings;
    document.notes.push(match before > 1 && after > 1 {
        true => format!("intervals: 95 % (Welch), of {before} recordings before and {after} after"),
        false if before == 1 && after == 1 => "one recording a side: no interval".to_owned(),
        false => "one recording on a side: no interval; two or more a side give one".to_owned(),
    });
    for (old, new) in &difference.renamed {
        document.notes.push(format!(
            "`{new}` is taken for what was `{old}` before: the same tasks wake it and are woken by it"
        ));
    }
}

/// Columns of an interval, where there are intervals.
fn with_interval<T>(
    rows: fairground_report::Rows<T>,
    difference: &Difference,
    change: impl Fn(&T) -> Change,
) -> fairground_report::Rows<T> {
    let (before, after) = difference.recordings;
    if before < 2 || after < 2 {
        return rows;
    }
    let end = |of: fn((f64, f64)) -> f64| {
        let change = &change;
        move |thing: &T| Cell::known(change(thing).interval, |ends| Cell::Duration { ns: of(ends) })
    };
    rows.column(Column::duration("from", TimeUnit::Ms), end(|ends| ends.0))
        .column(Column::duration("to", TimeUnit::Ms), end(|ends| ends.1))
}

fn duration(ns: f64) -> Cell {
    Cell::Duration { ns }
}

fn causes_table(difference: &Difference, shown: &dyn Fn(f64) -> bool, most: usize) -> Table {
    let causes = difference.causes.iter().filter(|cause| shown(cause.lost.difference()));
    let (all, causes) = (causes.clone().count(), causes.take(most));
    let rows = Table::of("causes", "What took the time", (1..).zip(causes))
        .count("rank", |(rank, _)| *rank)
        .column(Column::duration("lost", TimeUnit::Ms), |(_, cause)| {
            duration(cause.lost.difference())
        });
    let mut table = with_interval(rows, difference, |(_, cause)| cause.lost)
        .text("kind", |(_, cause)| cause.kind.name())
        .text("cause", |(_, cause)| match cause.lost.difference() > 0.0 {
            true => sentence(difference, cause),
            false => gained(difference, cause),
        })
        .table();
    table.note(match table.rows.is_empty() {
        true => "Nothing reaches a thousandth of a recording's length.",
        false => "lost: by all tasks together, in a recording after; negative: gained.",
    });
    if all > most {
        table.note(format!("{} more: --all shows them.", all - most));
    }
    table
}

fn gained(difference: &Difference, cause: &Cause) -> String {
    let first = cause.victims.last().map(|(role, _)| difference.names[*role].as_str());
    let (victim, name) = (first.unwrap_or_default(), &difference.names[cause.role]);
    match cause.kind {
        CauseKind::TakesCpu => format!("`{victim}` waits less for `{name}`"),
        CauseKind::Runs => format!("`{name}` needs less CPU time"),
        CauseKind::WaitsIdle => format!("`{name}` waits less while its CPU idles"),
        CauseKind::IsWaitedFor => format!("`{victim}` sleeps less until `{name}` wakes it"),
        CauseKind::Sleeps => format!("`{name}` sleeps less until a timer or an interrupt wakes it"),
    }
}

/// Evidence for a cause, before and after.
fn evidence_table(difference: &Difference, cause: &Cause) -> Table {
    let name = &difference.names[cause.role];
    let columns = [Column::text("evidence"), Column::mixed("before"), Column::mixed("after")];
    let title = format!("Evidence: {} `{name}`", cause.kind.name());
    let mut table = Table::new("evidence", title, columns);
    let mut add = |what: String, change: Change, cell: &dyn Fn(f64) -> Cell| {
        table.push([Cell::text(what), cell(change.before), cell(change.after)]);
    };
    let per_second = |value: f64| Cell::quantity(value, 1, "1/s");
    if let Some(role) = difference.role(cause.role) {
        add(format!("tasks of `{name}`"), role.tasks, &count);
        add(format!("CPU time of `{name}`"), role.cpu_time, &duration);
        add(format!("wake-ups of `{name}`"), role.wakeups, &per_second);
        add(format!("preemptions of `{name}`"), role.preempted, &per_second);
        add(format!("moves of `{name}` to another CPU"), role.migrations, &per_second);
    }
    let victims = cause.victims.iter().filter(|(role, lost)| {
        let is_other = *role != cause.role || cause.kind == CauseKind::TakesCpu;
        is_other && lost.difference() > 0.0
    });
    for (victim, _) in victims.take(DETAILED_MAX) {
        let Some(role) = difference.role(*victim) else { continue };
        let victim_name = &difference.names[*victim];
        if cause.kind == CauseKind::TakesCpu {
            let (all, woken) = (
                difference.preemptions(*victim, cause.role),
                difference.wakeup_preemptions(*victim, cause.role),
            );
            add(format!("`{victim_name}` preempted by it"), all, &per_second);
            add(format!("`{victim_name}` preempted when it wakes up"), woken, &per_second);
            let waits = role.part(TimeShare::WaitsBehind(cause.role));
            add(format!("`{victim_name}` waits while it runs"), waits, &duration);
        } else if cause.kind == CauseKind::IsWaitedFor {
            let sleeps = role.part(TimeShare::SleepsFor(cause.role));
            add(format!("`{victim_name}` sleeps until it wakes it"), sleeps, &duration);
        }
    }
    table
}

fn tasks_table(difference: &Difference, shown: &dyn Fn(f64) -> bool, most: usize) -> Table {
    let changed = |role: &&RoleChange| {
        let times = [role.lost, role.run, role.wait];
        role.asked && !role.is_one_sided() && times.iter().any(|time| shown(time.difference()))
    };
    let all = difference.roles.iter().filter(changed).count();
    let roles = difference.roles.iter().filter(changed).take(most);
    let more =
        |of: fn(&RoleChange) -> Change| move |role: &&RoleChange| duration(of(role).difference());
    let rows = Table::of("lost", "Tasks by time lost", roles)
        .text("task", |role| difference.names[role.role].as_str())
        .column(Column::number("tasks"), |role| count(role.tasks.after))
        .text("work", |role| role.work.map_or("", Work::name))
        .column(Column::duration("lost", TimeUnit::Ms), more(|role| role.lost));
    let mut table = with_interval(rows, difference, |role| role.lost)
        .column(Column::duration("runs", TimeUnit::Ms), more(|role| role.run))
        .column(Column::duration("waits", TimeUnit::Ms), more(|role| role.wait))
        .column(Column::duration("sleeps", TimeUnit::Ms), more(|role| role.sleep))
        .table();
    table.note(
        "runs, waits, sleeps: how much longer than before, for the same work. work: what bounds it. \
         tasks: their number, a longer life is lost; cpu-time: they always want to run, what they \
         run less is lost; pace: they are woken from outside, running or waiting longer is lost.",
    );
    if all > most {
        table.note(format!("{} more tasks changed: --all shows them.", all - most));
    }
    table
}

/// The life of a role's tasks in parts.
fn parts_table(difference: &Difference, role: &RoleChange, shown: &dyn Fn(f64) -> bool) -> Table {
    let name = &difference.names[role.role];
    let part = |part: TimeShare| match part {
        TimeShare::Runs => "runs".to_owned(),
        TimeShare::WaitsBehind(by) => format!("waits while `{}` runs", difference.names[by]),
        TimeShare::WaitsIdle => "waits while the CPU idles".to_owned(),
        TimeShare::WaitsUnknown => "waits, it is not known for what".to_owned(),
        TimeShare::SleepsFor(by) => format!("sleeps until `{}` wakes it", difference.names[by]),
        TimeShare::Sleeps => "sleeps until a timer or an interrupt".to_owned(),
        TimeShare::SleepsOn => "sleeps up to the end of the recording".to_owned(),
        TimeShare::Unknown => "unknown".to_owned(),
    };
    let mut lines: Vec<(String, Change)> = Vec::new();
    let mut rest = Change::default();
    for (kind, time) in &role.parts {
        match shown(time.difference()) || shown(time.after) {
            true => lines.push((part(*kind), *time)),
            false => {
                rest.before += time.before;
                rest.after += time.after;
            }
        }
    }
    lines.sort_by(|(_, a), (_, b)| b.difference().total_cmp(&a.difference()));
    if rest != Change::default() {
        lines.push(("less than a thousandth each".to_owned(), rest));
    }
    lines.push(("all".to_owned(), role.life));
    let rows = Table::of("parts", format!("The time of `{name}`"), lines)
        .text("part", |(part, _)| part.clone())
        .column(Column::duration("before", TimeUnit::Ms), |(_, time)| duration(time.before))
        .column(Column::duration("after", TimeUnit::Ms), |(_, time)| duration(time.after))
        .column(Column::duration("more", TimeUnit::Ms), |(_, time)| duration(time.difference()));
    with_interval(rows, difference, |(_, time)| *time).table()
}

/// Tasks that only one side has, or that take more CPU time than before.
fn one_sided_table(difference: &Difference, shown: &dyn Fn(f64) -> bool, most: usize) -> Table {
    let mut roles: Vec<&RoleChange> = difference
        .roles
        .iter()
        .filter(|role| role.is_one_sided() && shown(role.cpu_time.difference()))
        .collect();
    roles.sort_by(|a, b| b.cpu_time.difference().total_cmp(&a.cpu_time.difference()));
    let all = roles.len();
    roles.truncate(most);
    let mut table = Table::of("one-sided", "Tasks of one side only", roles)
        .text("task", |role| difference.names[role.role].as_str())
        .text("is", |role| if role.is_new() { "new" } else { "gone" })
        .column(Column::number("tasks"), |role| count(role.tasks.before + role.tasks.after))
        .column(Column::duration("cpu_time", TimeUnit::Ms), |role| {
            duration(role.cpu_time.before + role.cpu_time.after)
        })
        .column(Column::number_in("wakeups", "1/s"), |role| {
            Cell::float(role.wakeups.before + role.wakeups.after, 1)
        })
        .table();
    if all > most {
        table.note(format!("{} more: --all shows them.", all - most));
    }
    table
}

fn machine_table(difference: &Difference) -> Table {
    let machine = &difference.machine;
    let per_second = |value: f64| Cell::quantity(value, 1, "1/s");
    let columns = [
        Column::text("figure"),
        Column::mixed("before"),
        Column::mixed("after"),
        Column::mixed("difference"),
    ];
    let mut table = Table::new("machine", "The machine", columns);
    let mut add = |what: &str, change: Change, cell: &dyn Fn(f64) -> Cell| {
        let difference = cell(change.difference());
        table.push([Cell::text(what), cell(change.before), cell(change.after), difference]);
    };
    add("length of a recording", machine.window, &duration);
    add("cpus", machine.cpus, &|value| Cell::float(value, 0));
    add("CPU time of tasks, of all CPUs", machine.busy, &|value| Cell::percent(value, 2));
    add("switches", machine.switches, &per_second);
    add("preemptions", machine.preemptions, &per_second);
    add("wake-ups", machine.wakeups, &per_second);
    add("migrations", machine.migrations, &per_second);
    table
}
