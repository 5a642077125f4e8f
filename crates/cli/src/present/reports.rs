//! What programs that measure would have printed, and what was so.

use fairground_analysis::ring::{RING_PROGRAM, RingReport};
use fairground_analysis::slice_report::SliceReports;
use fairground_report::{Cell, Column, Table, TimeUnit};

use super::values::{cell, mean_duration};

/// One row for each report; `None` when the workload reports nothing.
pub(crate) fn reports_table(title: &str, reports: &SliceReports) -> Option<Table> {
    if reports.reports.is_empty() {
        return None;
    }
    let columns = [
        Column::number("report"),
        Column::number_in("own_figure", "ms"),
        Column::number_in("true_mean_slice", "ms"),
        Column::number_in("utime", "µs"),
        Column::duration("period", TimeUnit::S),
        Column::number_in("utime_per_second", "µs"),
        Column::text("remark"),
    ];
    let mut table = Table::new("reports", title, columns);
    for (number, report) in reports.reports.iter().enumerate() {
        let mut remarks = report.params.clone();
        if report.start_up {
            remarks.insert(0, "covers the start".to_owned());
        }
        let float = |value: Option<f64>, decimals| Cell::known(value, |v| Cell::float(v, decimals));
        table.push([
            Cell::count(number as u64 + 1),
            float(report.program_slice_ms(), 2),
            float(report.true_slice_ms(), 2),
            float(report.program_utime_us(), 1),
            mean_duration(Some(report.period_ns as f64)),
            float(report.utime_us_per_s(), 0),
            Cell::text(remarks.join(", ")),
        ]);
    }
    table.note(
        "own figure: what the program prints, a mean of slices of which each lost its fraction of a millisecond; \
         utime: per worker and report",
    );
    Some(table)
}

/// The figures of a ring of processes; times also as instructions where one takes `instruction_ns`.
pub(crate) fn ring_table(report: &RingReport, instruction_ns: Option<u64>) -> Table {
    let columns = [Column::text("figure"), Column::mixed("value")];
    let title = format!("A ring of {} processes (lat_ctx)", report.members);
    let mut table = Table::new("ring", title, columns);
    for metric in RING_PROGRAM {
        table.push([Cell::text(metric.key()), cell((metric.read)(report), metric.unit)]);
    }
    for (name, value) in ring_instructions(report, instruction_ns) {
        table.push([Cell::text(name), Cell::float(value, 1)]);
    }
    table.note(
        "ring_switch: the time of a round less that of the passes without switches, per process",
    );
    table
}

/// A switch and a hop of a ring in instructions of the machine, under their names; nothing where time does not count
/// them.
pub(crate) fn ring_instructions(
    report: &RingReport,
    instruction_ns: Option<u64>,
) -> Vec<(&'static str, f64)> {
    let Some(ns) = instruction_ns.filter(|ns| *ns > 0) else { return Vec::new() };
    let of = |us: f64| us * 1e3 / ns as f64;
    vec![
        ("ring_switch_instructions", of(report.switch_us())),
        ("ring_hop_instructions", of(report.hop_us())),
    ]
}
