//! The tables of one analysis: the machine, tasks or groups, intervals.

use fairground_analysis::{Analysis, Figures, metric};
use fairground_report::{Cell, Column, Layout, Table, TimeUnit};

use super::values::{cell, duration, mean_duration, percent};
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
    let mut table =
        Table::new("machine", "Machine", [Column::text("metric"), Column::mixed("value")])
            .laid_out(Layout::Metrics, "machine");
    for metric in metric::MACHINE.iter().filter(|m| shows_machine(&m.key(), all)) {
        table.push([Cell::text(metric.key()), cell((metric.read)(analysis), metric.unit)]);
    }
    table
}

/// Who got what: one row for each task or group.
pub(crate) fn tasks_table(analysis: &Analysis, per: Per) -> Table {
    let (id, title, name) = match per {
        Per::Group => ("groups", "Groups of tasks", "group"),
        Per::Task => ("tasks", "Tasks", "task"),
        Per::Cgroup => return cgroups_table(analysis),
    };
    let mut table = Table::new(id, title, columns(name)).laid_out(Layout::Records, name);
    match per {
        Per::Group => {
            for group in &analysis.groups {
                table.push(row(&group.name, &group.figures));
            }
        }
        Per::Task => {
            for task in &analysis.tasks {
                table.push(row(&task.name, &task.figures));
            }
        }
        Per::Cgroup => {}
    }
    if per == Per::Group && analysis.groups.iter().any(|g| g.figures.tasks > 1) {
        table.note("The shares of a group are those of its tasks together, in % of one CPU.");
    }
    table
}

/// Every metric of each task or group, one a row.
pub(crate) fn figures_table(analysis: &Analysis, per: Per) -> Table {
    let (id, title, name) = match per {
        Per::Group => ("group_metrics", "Every metric of each group", "group"),
        Per::Task => ("task_metrics", "Every metric of each task", "task"),
        Per::Cgroup => ("cgroup_metrics", "Every metric of each control group", "cgroup"),
    };
    let columns = [Column::text(name), Column::text("metric"), Column::mixed("value")];
    let mut table = Table::new(id, title, columns).laid_out(Layout::Compared, name);
    let mut add = |name: &str, figures: &Figures| {
        for metric in metric::GROUP {
            let value = cell((metric.read)(figures), metric.unit);
            table.push([Cell::text(name), Cell::text(metric.key()), value]);
        }
    };
    match per {
        Per::Group => analysis.groups.iter().for_each(|group| add(&group.name, &group.figures)),
        Per::Task => analysis.tasks.iter().for_each(|task| add(&task.name, &task.figures)),
        Per::Cgroup => {
            analysis.cgroups.iter().for_each(|cgroup| add(&cgroup.path, &cgroup.figures));
        }
    }
    table
}

/// Who got what in the tree of control groups.
fn cgroups_table(analysis: &Analysis) -> Table {
    let mut columns = columns("cgroup");
    columns.insert(1, Column::number("weight"));
    columns.insert(6, Column::number("jain_within"));
    let mut table =
        Table::new("cgroups", "Control groups", columns).laid_out(Layout::Records, "cgroup");
    for cgroup in &analysis.cgroups {
        let mut row = row(&cgroup.path, &cgroup.figures);
        row.insert(1, Cell::known(cgroup.weight, |weight| Cell::count(weight.into())));
        row.insert(6, Cell::known(cgroup.jain_index, |index| Cell::quantity(index, 4, "")));
        table.push(row);
    }
    if analysis.cgroups.is_empty() {
        table.note("The workload, or the recording, has no control groups.");
    } else {
        table.note(
            "A row is all tasks in the group and below it. Shares are in % of one CPU; the fluid \
             share goes down the tree by weight.",
        );
        table.note(
            "jain_within: how evenly the tasks of the group got what they were due; 1 is exactly.",
        );
    }
    table
}

fn columns(name: &str) -> Vec<Column> {
    vec![
        Column::text(name),
        Column::number("tasks"),
        Column::percent("cpu_share"),
        Column::percent("fluid_share"),
        Column::percent("fairness_error"),
        Column::number("involuntary"),
        Column::number("voluntary"),
        Column::duration("true_mean_slice", TimeUnit::Ms),
        Column::number("wakeups"),
        Column::duration("latency_p50", TimeUnit::Us),
        Column::duration("latency_p99", TimeUnit::Us),
        Column::duration("wait_max", TimeUnit::Ms),
        Column::number("migrations"),
    ]
}

fn row(name: &str, figures: &Figures) -> Vec<Cell> {
    vec![
        Cell::text(name),
        Cell::count(figures.tasks),
        percent(figures.cpu_share_percent()),
        percent(figures.fluid_share_percent()),
        percent(figures.fairness_error_percent()),
        Cell::count(figures.involuntary_switches),
        Cell::count(figures.voluntary_switches),
        mean_duration(figures.true_mean_slice_ns()),
        Cell::count(figures.wakeups),
        duration(figures.wakeup_latency.p50_ns()),
        duration(figures.wakeup_latency.p99_ns()),
        duration(figures.waits.max_ns()),
        Cell::known(figures.migrations, Cell::count),
    ]
}

/// The main figures over time, when intervals were asked for.
pub(crate) fn intervals_table(analysis: &Analysis) -> Option<Table> {
    let series = analysis.series.as_ref()?;
    let columns = [
        Column::duration("from", TimeUnit::S),
        Column::number("switches"),
        Column::number("involuntary"),
        Column::number("wakeups"),
        Column::duration("slice_mean", TimeUnit::Ms),
        Column::duration("latency_p50", TimeUnit::Us),
        Column::duration("latency_p99", TimeUnit::Us),
        Column::duration("idle", TimeUnit::Ms),
        Column::text("changes"),
    ];
    let mut table =
        Table::new("intervals", "Over time", columns).laid_out(Layout::Records, "interval");
    for interval in &series.intervals {
        let changes: Vec<_> = interval.params.iter().map(|p| p.text.as_str()).collect();
        table.push([
            Cell::duration_ns(interval.start_ns),
            Cell::count(interval.switches),
            Cell::count(interval.involuntary_switches),
            Cell::count(interval.wakeups),
            mean_duration(interval.slices.mean_ns()),
            duration(interval.wakeup_latency.p50_ns()),
            duration(interval.wakeup_latency.p99_ns()),
            Cell::duration_ns(interval.idle_ns),
            Cell::text(changes.join(", ")),
        ]);
    }
    Some(table)
}
