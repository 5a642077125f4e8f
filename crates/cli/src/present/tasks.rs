//! The tables of one analysis: the machine, tasks or groups, intervals.

use std::borrow::Cow;

use fairground_analysis::{Analysis, CgroupMetrics, Figures, GroupMetrics, metric};
use fairground_report::{Cell, Column, Layout, Table, TimeUnit};

use super::values::{cell, mean_duration, percent};
use crate::args::Per;

/// The machine's metrics that are shown without `--all`.
const USUAL_MACHINE: &[&str] = &[
    "switches.rate",
    "voluntary_switches",
    "involuntary_switches",
    "wakeups.rate",
    "migrations",
    "idle_time.share",
    "idle_while_waiting.share",
    "idle_while_waiting.longest",
    "jain_index",
    "wakeup_latency.p50",
    "wakeup_latency.p99",
    "policy_instructions.switch",
    "policy_instructions.wakeup",
    "policy_instructions.tick",
];

/// Whether a metric of the machine is shown.
pub(crate) fn shows_machine(key: &str, all: bool) -> bool {
    all || USUAL_MACHINE.contains(&key)
}

/// Metrics of the whole machine, one a row.
pub(crate) fn machine_table(analysis: &Analysis, all: bool) -> Table {
    let shown = metric::MACHINE.iter().filter(|metric| shows_machine(&metric.key(), all));
    Table::of("machine", "Machine", shown)
        .text("metric", |metric| metric.key())
        .column(Column::mixed("value"), |m| cell((m.read)(&analysis.machine), m.unit))
        .table()
        .laid_out(Layout::Metrics, "machine")
}

/// A task, a group or a control group, by a name that no other one has.
struct Member<'a> {
    name: Cow<'a, str>,
    figures: &'a Figures,
    /// A control group's own figures.
    cgroup: Option<&'a CgroupMetrics>,
}

fn member<'a>(name: Cow<'a, str>, figures: &'a Figures) -> Member<'a> {
    Member { name, figures, cgroup: None }
}

fn members<'a>(analysis: &'a Analysis, per: Per) -> Vec<Member<'a>> {
    match per {
        Per::Group => {
            let of = |g: &'a GroupMetrics| member(Cow::Borrowed(&g.name), &g.figures);
            analysis.groups.iter().map(of).collect()
        }
        Per::Task => {
            let tasks = analysis.task_labels().into_iter().zip(&analysis.tasks);
            tasks.map(|(label, task)| member(Cow::Owned(label), &task.figures)).collect()
        }
        Per::Cgroup => {
            let of = |c: &'a CgroupMetrics| Member {
                cgroup: Some(c),
                ..member(Cow::Borrowed(&c.path), &c.figures)
            };
            analysis.cgroups.iter().map(of).collect()
        }
    }
}

/// CPU time and latency: one row for each task, group, or control group with those below it.
pub(crate) fn tasks_table(analysis: &Analysis, per: Per) -> Table {
    let (id, title, name) = match per {
        Per::Group => ("groups", "Groups of tasks", "group"),
        Per::Task => ("tasks", "Tasks", "task"),
        Per::Cgroup => ("cgroups", "Control groups", "cgroup"),
    };
    let members = members(analysis, per);
    let is_several = members.iter().any(|member| member.figures.tasks > 1);
    let mut table = members_table((id, title, name), members, per);
    match per {
        Per::Group if is_several => {
            table.note("The shares of a group are those of its tasks together, in % of one CPU.");
        }
        Per::Cgroup if table.rows.is_empty() => {
            table.note("The workload, or the recording, has no control groups.");
        }
        Per::Cgroup => {
            table.note(
                "A row is all tasks in the group and below it. Shares are in % of one CPU; the \
                 fluid share goes down the tree by weight.",
            );
            table.note(
                "jain_within: how evenly the tasks of the group got what they were due; 1 is \
                 exactly.",
            );
        }
        Per::Group | Per::Task => {}
    }
    table
}

/// The same of some tasks together: of those that `of` names, and of all that they started.
pub(crate) fn tree_table(analysis: &Analysis, of: &str, is_in: &[bool]) -> Table {
    let figures = analysis.select(|task| is_in.get(task.task.index()) == Some(&true));
    let members = vec![member(Cow::Borrowed(of), &figures)];
    members_table(("tree", "Tasks with all that they started", "tree"), members, Per::Group)
}

/// A table of this id, title and first column.
fn members_table(
    (id, title, name): (&'static str, &'static str, &'static str),
    members: Vec<Member<'_>>,
    per: Per,
) -> Table {
    let mut rows = Table::of(id, title, members).text(name, |m| m.name.clone());
    if per == Per::Cgroup {
        rows = rows.column(Column::number("weight"), |m| {
            Cell::known(m.cgroup.and_then(|c| c.weight), |weight| Cell::count(weight.into()))
        });
    }
    rows = rows
        .count("tasks", |m| m.figures.tasks)
        .column(Column::percent("cpu_share"), |m| percent(m.figures.cpu_share_percent()))
        .column(Column::percent("fluid_share"), |m| percent(m.figures.fluid_share_percent()))
        .column(Column::percent("fairness_error"), |m| percent(m.figures.fairness_error_percent()));
    if per == Per::Cgroup {
        rows = rows.column(Column::number("jain_within"), |m| {
            Cell::known(m.cgroup.and_then(|c| c.jain_index), |index| Cell::quantity(index, 4, ""))
        });
    }
    rows.column(Column::number("involuntary"), |m| {
        Cell::known(m.figures.of_switches(m.figures.involuntary_switches), Cell::count)
    })
    .column(Column::number("voluntary"), |m| {
        Cell::known(m.figures.of_switches(m.figures.voluntary_switches), Cell::count)
    })
    .column(Column::duration("true_mean_slice", TimeUnit::Ms), |m| {
        mean_duration(m.figures.true_mean_slice_ns())
    })
    .column(Column::number("wakeups"), |m| Cell::known(m.figures.wakeups, Cell::count))
    .duration("latency_p50", TimeUnit::Us, |m| m.figures.wakeup_latency.p50_ns())
    .duration("latency_p99", TimeUnit::Us, |m| m.figures.wakeup_latency.p99_ns())
    .duration("wait_max", TimeUnit::Ms, |m| m.figures.waits.max_ns())
    .column(Column::number("migrations"), |m| Cell::known(m.figures.migrations, Cell::count))
    .table()
    .laid_out(Layout::Records, name)
}

/// Every metric of each task or group, one a row.
pub(crate) fn figures_table(analysis: &Analysis, per: Per) -> Table {
    let (id, title, name) = match per {
        Per::Group => ("group_metrics", "Every metric of each group", "group"),
        Per::Task => ("task_metrics", "Every metric of each task", "task"),
        Per::Cgroup => ("cgroup_metrics", "Every metric of each control group", "cgroup"),
    };
    let members = members(analysis, per);
    let all = members.iter().flat_map(|m| metric::GROUP.iter().map(move |metric| (m, metric)));
    Table::of(id, title, all)
        .text(name, |(member, _)| member.name.as_ref())
        .text("metric", |(_, metric)| metric.key())
        .column(Column::mixed("value"), |(m, metric)| cell((metric.read)(m.figures), metric.unit))
        .table()
        .laid_out(Layout::Compared, name)
}

/// The main figures over time, when intervals were asked for.
pub(crate) fn intervals_table(analysis: &Analysis) -> Option<Table> {
    let series = analysis.series.as_ref()?;
    let table = Table::of("intervals", "Over time", &series.intervals)
        .duration("from", TimeUnit::S, |interval| Some(interval.start_ns))
        .count("switches", |interval| interval.switches)
        .count("involuntary", |interval| interval.involuntary_switches)
        .column(Column::number("wakeups"), |interval| Cell::known(interval.wakeups, Cell::count))
        .column(Column::duration("slice_mean", TimeUnit::Ms), |interval| {
            mean_duration(interval.slices.mean_ns())
        })
        .duration("latency_p50", TimeUnit::Us, |interval| interval.wakeup_latency.p50_ns())
        .duration("latency_p99", TimeUnit::Us, |interval| interval.wakeup_latency.p99_ns())
        .duration("idle", TimeUnit::Ms, |interval| Some(interval.idle_ns))
        .text("changes", |interval| {
            let changes: Vec<_> = interval.params.iter().map(|p| p.text.as_str()).collect();
            changes.join(", ")
        });
    Some(table.table().laid_out(Layout::Records, "interval"))
}
