//! The tables of one analysis: the machine, tasks or groups, intervals.

use std::borrow::Cow;

use fairground_analysis::metric::{self, Shown};
use fairground_analysis::{Analysis, CgroupMetrics, Figures, GroupMetrics, cgroup_name};
use fairground_report::{Cell, Column, Layout, Table, TimeUnit};

use super::selection::{MACHINE_NAME, Selection};
use super::values::{cell, figure_column, mean_duration};

/// Metrics of the whole machine, one a row; `None` where none is chosen.
pub fn machine_table(analysis: &Analysis, selection: &Selection) -> Option<Table> {
    let shown = metric::MACHINE.iter().filter(|metric| selection.has(metric, Shown::Usual));
    let table = Table::of(MACHINE_NAME, "Machine", shown)
        .text("metric", |metric| metric.key())
        .column(Column::mixed("value"), |m| cell((m.read)(&analysis.machine), m.unit))
        .table()
        .laid_out(Layout::Metrics, MACHINE_NAME);
    (selection.has_machine() && !table.rows.is_empty()).then_some(table)
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

fn members<'a>(analysis: &'a Analysis, per: Per, selection: &Selection) -> Vec<Member<'a>> {
    match per {
        Per::Group => {
            let shown = analysis.groups.iter().filter(|g| selection.has_task(&g.name));
            let of = |g: &'a GroupMetrics| member(Cow::Borrowed(&g.name), &g.figures);
            shown.map(of).collect()
        }
        Per::Task => {
            let tasks = analysis.task_labels().into_iter().zip(&analysis.tasks);
            tasks
                .filter(|(label, task)| {
                    [label.as_str(), &task.name, &analysis.groups[task.group].name]
                        .into_iter()
                        .any(|name| selection.has_task(name))
                })
                .map(|(label, task)| member(Cow::Owned(label), &task.figures))
                .collect()
        }
        Per::Cgroup => {
            let shown = analysis.cgroups.iter().filter(|c| selection.has_task(&c.path));
            let of = |c: &'a CgroupMetrics| Member {
                cgroup: Some(c),
                ..member(Cow::Borrowed(&c.path), &c.figures)
            };
            shown.map(of).collect()
        }
    }
}

/// The names that `--tasks` can choose.
pub(crate) fn task_names(analysis: &Analysis) -> Vec<String> {
    let groups = analysis.groups.iter().map(|group| group.name.clone());
    let cgroups = analysis.cgroups.iter();
    let cgroups = cgroups.flat_map(|one| [one.path.clone(), cgroup_name(&one.path)]);
    let tasks = analysis.tasks.iter().map(|task| task.name.clone());
    groups.chain(cgroups).chain(tasks).chain(analysis.task_labels()).collect()
}

/// Rows of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Equal tasks together.
    Group,
    /// Each task.
    Task,
    /// Each control group, with those below it.
    Cgroup,
}

/// CPU time and latency: one row for each task, group, or control group with those below it; `None` where no metric
/// of them is chosen.
pub fn tasks_table(analysis: &Analysis, per: Per, selection: &Selection) -> Option<Table> {
    let (id, title, name) = match per {
        Per::Group => ("groups", "Groups of tasks", "group"),
        Per::Task => ("tasks", "Tasks", "task"),
        Per::Cgroup => ("cgroups", "Control groups", "cgroup"),
    };
    let members = members(analysis, per, selection);
    if selection.is_narrow() && members.is_empty() {
        return None;
    }
    let is_several = members.iter().any(|member| member.figures.tasks > 1);
    let mut table = members_table((id, title, name), members, per, selection)?;
    let has_share = table.columns.iter().any(|column| column.name.ends_with("_share"));
    match per {
        Per::Group if is_several && has_share => {
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
    Some(table)
}

/// The same of some tasks together: of those that `of` names, and of all that they started.
pub fn tree_table(
    analysis: &Analysis,
    of: &str,
    is_in: &[bool],
    selection: &Selection,
) -> Option<Table> {
    let figures = analysis.select(|task| is_in.get(task.task.index()) == Some(&true));
    let members = vec![member(Cow::Borrowed(of), &figures)];
    let named = ("tree", "Tasks with all that they started", "tree");
    members_table(named, members, Per::Group, selection)
}

/// A table of this id, title and first column, with a column for each metric that is shown.
fn members_table(
    (id, title, name): (&'static str, &'static str, &'static str),
    members: Vec<Member<'_>>,
    per: Per,
    selection: &Selection,
) -> Option<Table> {
    let shown = metric::GROUP.iter().filter(|metric| match selection.names_metrics() {
        true => selection.has(metric, Shown::Usual),
        // `--all` has a table of its own.
        false => metric.shown == Shown::Usual,
    });
    let columns: Vec<_> = shown
        .map(|metric| {
            let values = members.iter().map(|m| (metric.read)(m.figures));
            (metric, figure_column(&metric.key(), metric.unit, values))
        })
        .collect();
    if columns.is_empty() {
        return None;
    }
    let mut rows = Table::of(id, title, members).text(name, |m| m.name.clone());
    if !selection.names_metrics() {
        if per == Per::Cgroup {
            rows = rows
                .column(Column::number("weight"), |m| {
                    Cell::known(m.cgroup.and_then(|c| c.weight), |w| Cell::count(w.into()))
                })
                .column(Column::number("jain_within"), |m| {
                    let index = m.cgroup.and_then(|c| c.jain_index);
                    Cell::known(index, |index| Cell::quantity(index, 4, ""))
                });
        }
        rows = rows.count("tasks", |m| m.figures.tasks);
    }
    for (metric, column) in columns {
        rows = rows.column(column, |m| cell((metric.read)(m.figures), metric.unit));
    }
    Some(rows.table().laid_out(Layout::Records, name))
}

/// Every metric of each task or group, one a row.
pub fn figures_table(analysis: &Analysis, per: Per, selection: &Selection) -> Table {
    let (id, title, name) = match per {
        Per::Group => ("group_metrics", "Every metric of each group", "group"),
        Per::Task => ("task_metrics", "Every metric of each task", "task"),
        Per::Cgroup => ("cgroup_metrics", "Every metric of each control group", "cgroup"),
    };
    let members = members(analysis, per, selection);
    let all = members.iter().flat_map(|m| metric::GROUP.iter().map(move |metric| (m, metric)));
    Table::of(id, title, all)
        .text(name, |(member, _)| member.name.as_ref())
        .text("metric", |(_, metric)| metric.key())
        .column(Column::mixed("value"), |(m, metric)| cell((metric.read)(m.figures), metric.unit))
        .table()
        .laid_out(Layout::Compared, name)
}

/// The main figures over time, when intervals were asked for.
pub fn intervals_table(analysis: &Analysis, selection: &Selection) -> Option<Table> {
    let series = analysis.series.as_ref()?;
    let table = Table::of("intervals", "Over time", &series.intervals)
        .duration("from", TimeUnit::S, |interval| Some(interval.start_ns))
        .count("switches", |interval| interval.switches)
        .count("involuntary_switches", |interval| interval.involuntary_switches)
        .column(Column::number("wakeups"), |interval| Cell::known(interval.wakeups, Cell::count))
        .column(Column::duration("slice.mean", TimeUnit::Ms), |interval| {
            mean_duration(interval.slices.mean_ns())
        })
        .duration("wakeup_latency.p50", TimeUnit::Us, |interval| interval.wakeup_latency.p50_ns())
        .duration("wakeup_latency.p99", TimeUnit::Us, |interval| interval.wakeup_latency.p99_ns())
        .duration("idle_time", TimeUnit::Ms, |interval| Some(interval.idle_ns))
        .text("changes", |interval| {
            let changes: Vec<_> = interval.params.iter().map(|p| p.text.as_str()).collect();
            changes.join(", ")
        });
    selection.columns_of(table.table().laid_out(Layout::Records, "interval"), &["from", "changes"])
}
