//! Figures that measuring programs would print, beside the true ones.

use fairground_analysis::metric::Shown;
use fairground_analysis::playback::{PLAYBACK_PROGRAM, Playback};
use fairground_analysis::ring::{RING_PROGRAM, RingReport};
use fairground_analysis::slice_report::{SliceReport, SliceReports};
use fairground_report::{Cell, Column, Table, TimeUnit};

use super::selection::Selection;
use super::values::cell;

/// One row for each report; `None` when the workload reports nothing, or nothing of it is chosen.
pub fn reports_table(title: &str, reports: &SliceReports, selection: &Selection) -> Option<Table> {
    if reports.reports.is_empty() {
        return None;
    }
    let float = |value: Option<f64>, decimals| Cell::known(value, |v| Cell::float(v, decimals));
    let remark = |report: &SliceReport| {
        let start = report.start_up.then(|| "covers the start".to_owned());
        start.into_iter().chain(report.params.iter().cloned()).collect::<Vec<_>>().join(", ")
    };
    let (ms, us) = (|name| Column::number_in(name, "ms"), |name| Column::number_in(name, "µs"));
    let mut table = Table::of("reports", title, (1..).zip(&reports.reports))
        .count("report", |(number, _)| *number)
        .column(ms("program_slice"), |(_, report)| float(report.program_slice_ms(), 2))
        .column(ms("true_mean_slice"), |(_, report)| float(report.true_slice_ms(), 2))
        .column(us("program_utime"), |(_, report)| float(report.program_utime_us(), 1))
        .duration("report_period", TimeUnit::S, |(_, report)| Some(report.period_ns))
        .column(us("utime_per_second"), |(_, report)| float(report.utime_us_per_s(), 0))
        .text("remark", |(_, report)| remark(report))
        .table();
    table.note(
        "program slice: what the program prints, a mean of slices of which each lost its fraction of a millisecond; \
         utime: per worker and report",
    );
    selection.columns_of(table, &["report", "remark"])
}

/// The figures of a ring of processes; times also as instructions where one takes `instruction_ns`.
pub fn ring_table(
    report: &RingReport,
    instruction_ns: Option<u64>,
    selection: &Selection,
) -> Option<Table> {
    let title = format!("A ring of {} processes (lat_ctx)", report.members);
    let shown = RING_PROGRAM.iter().filter(|metric| selection.has(metric, Shown::OnRequest));
    let mut table = Table::of("ring", title, shown)
        .text("figure", |metric| metric.key())
        .column(Column::mixed("value"), |metric| cell((metric.read)(report), metric.unit))
        .table();
    for (name, value) in ring_instructions(report, instruction_ns) {
        if !selection.names_metrics() {
            table.push([Cell::text(name), Cell::float(value, 1)]);
        }
    }
    table.note(
        "ring_switch: the time of a round less that of the passes without switches, per process",
    );
    (selection.has_machine() && !table.rows.is_empty()).then_some(table)
}

/// Skips and frames of players of sound and of dragged windows; `None` where nothing played and nothing was drawn, or none of it is chosen.
pub fn playback_table(playback: &Playback, selection: &Selection) -> Option<Table> {
    if playback.audio.is_none() && playback.frames.is_none() {
        return None;
    }
    let shown = PLAYBACK_PROGRAM.iter().filter(|metric| selection.has(metric, Shown::OnRequest));
    let measured = shown.filter(|metric| (metric.read)(playback).is_some());
    let mut table = Table::of("playback", "Sound and frames", measured)
        .text("figure", |metric| metric.key())
        .column(Column::mixed("value"), |metric| cell((metric.read)(playback), metric.unit))
        .table();
    if let Some(audio) = &playback.audio {
        table.note(format!("skips: of {} periods of sound", audio.rounds));
    }
    (selection.has_machine() && !table.rows.is_empty()).then_some(table)
}

/// A switch and a hop of a ring in instructions of the machine, under their names; nothing where time does not count
/// them.
pub fn ring_instructions(
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
