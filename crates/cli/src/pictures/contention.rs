//! Where tasks wait, and what their blockers did meanwhile.

use fairground_analysis::contention::{Contention, DEPTH, HolderTime, Site, WaitKind};
use fairground_report::page::{Arrangement, Axis, BarSeries, Bars, Chart, Drawing, Page, Shape};
use fairground_report::{Cell, Column, Document, Table, TimeUnit};
use fairground_session::Failure;
use fairground_trace::EventKind;

use super::{Pictured, command_line, grouped, write_page};
use crate::args::PageArgs;

/// Bars of one drawing, the longest; the tables have more.
const BARS_MAX: usize = 12;

/// Draws what `contention` found, where that was asked for.
pub(crate) fn write_contention(
    args: &PageArgs,
    document: &Document,
    contention: &Contention,
) -> Result<(), Failure> {
    write_page(args, || Page {
        command: command_line(std::env::args()),
        overview: None,
        charts: [waits(contention), points(contention)].into_iter().flatten().collect(),
        document: document.clone(),
    })
}

/// Where tasks wait most in a sentence: other than in plain sleep, if they do.
pub(crate) fn contention_summary(contention: &Contention) -> Vec<String> {
    let counted = format!(
        "{} switches; {} waits for locks.",
        grouped(contention.switches),
        grouped(contention.lock_waits)
    );
    let mut waits = contention.sites.iter().filter(|site| site.waits.count() > 0);
    let longest = waits.next().map(|site| {
        format!(
            "Most time is spent at {} ({}): {} waits, {:.3} ms in all.",
            named(site),
            site.kind.name(),
            grouped(site.waits.count()),
            site.waits.sum_ns() as f64 / 1e6
        )
    });
    longest.into_iter().chain([counted]).collect()
}

/// Waits for locks in runs; `None` where no trace has any.
pub(super) fn locks(runs: &[Pictured<'_>]) -> Option<Chart> {
    let begins = |kind| matches!(kind, EventKind::ContentionBegin { .. });
    let found: Vec<(&str, Contention)> = runs
        .iter()
        .filter(|run| run.trace.events().any(|event| begins(event.kind)))
        .map(|run| (run.label, Contention::of(run.trace, DEPTH)))
        .collect();
    let found: Vec<(&str, Vec<&Site>)> = found
        .iter()
        .map(|(label, contention)| {
            let is_lock = |site: &&Site| matches!(site.kind, WaitKind::Lock(_));
            (*label, contention.sites.iter().filter(is_lock).collect())
        })
        .filter(|(_, sites): &(&str, Vec<&Site>)| !sites.is_empty())
        .collect();
    sites_chart("contention", "Which locks are waited for", &found)
}

/// All waits of a recording. Plain sleep, which is longest where nothing is to do, has a drawing of its own.
fn waits(contention: &Contention) -> Option<Chart> {
    let sites = contention.sites.iter().filter(|site| site.waits.count() > 0);
    let (sleep, other): (Vec<&Site>, Vec<&Site>) = sites.partition(|site| site.kind.is_sleep());
    let drawings = [("locks and uninterruptible sleep", other), ("interruptible sleep", sleep)];
    let found: Vec<(&str, Vec<&Site>)> =
        drawings.into_iter().filter(|(_, sites)| !sites.is_empty()).collect();
    sites_chart("waits", "Where tasks wait", &found)
}

/// A drawing for each run: a bar for each place, its parts what the others did meanwhile.
fn sites_chart(id: &str, title: &str, runs: &[(&str, Vec<&Site>)]) -> Option<Chart> {
    if runs.is_empty() {
        return None;
    }
    let counts: Vec<String> = runs
        .iter()
        .map(|(label, sites)| {
            let waits: u64 = sites.iter().map(|site| site.waits.count()).sum();
            let cut: u64 = sites.iter().map(|site| site.waits.censored).sum();
            let cut = if cut == 0 { String::new() } else { format!(", {} cut off", grouped(cut)) };
            let of = if label.is_empty() { String::new() } else { format!("{label}: ") };
            format!("{of}{} waits at {} places{cut}", grouped(waits), sites.len())
        })
        .collect();
    let drawing = |(label, sites): &(&str, Vec<&Site>)| Drawing {
        of: (*label).to_owned(),
        shape: Shape::Bars(bars(sites)),
    };
    Some(Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        definition: format!(
            "Time that tasks waited at a place, all waits together, from the begin of a wait to \
             the wake-up or to having the lock; the parts are what the task that held the lock or \
             ended the wait did meanwhile (docs/howto/find-lock-waits.md). The {BARS_MAX} places \
             with the longest waits."
        ),
        samples: format!("{}.", counts.join("; ")),
        drawings: runs.iter().map(drawing).collect(),
        table: Some(sites_table(runs)),
    })
}

fn bars(sites: &[&Site]) -> Bars {
    let shown = &sites[..sites.len().min(BARS_MAX)];
    type TimeOf = fn(&HolderTime) -> u64;
    let parts: [(&str, TimeOf); 4] = [
        ("holder runs", |holder| holder.running_ns),
        ("holder waits for a CPU", |holder| holder.runnable_ns),
        ("holder sleeps", |holder| holder.sleeping_ns),
        ("not known", |holder| holder.unknown_ns),
    ];
    let series = parts.into_iter().map(|(name, part)| {
        BarSeries::new(name, shown.iter().map(|site| Some(part(&site.holder) as f64)).collect())
    });
    Bars {
        axis: Axis::linear("time waited", "ns"),
        categories: shown
            .iter()
            .map(|site| format!("{} ({})", named(site), site.kind.name()))
            .collect(),
        series: series.collect(),
        arrangement: Arrangement::Stacked,
    }
}

/// The name of a place, with room to break a chain of calls into lines.
fn named(site: &Site) -> String {
    match site.name.as_str() {
        "-" => "a place that the trace does not tell".to_owned(),
        name => name.replace("<-", " ← "),
    }
}

fn sites_table(runs: &[(&str, Vec<&Site>)]) -> Table {
    let shown = runs
        .iter()
        .flat_map(|(label, sites)| sites.iter().take(BARS_MAX).map(move |site| (*label, *site)));
    let mut rows = Table::of("chart-rows", "", shown);
    if runs.len() > 1 {
        rows = rows.text("of", |(label, _)| *label);
    }
    let mut table = rows
        .text("kind", |(_, site)| site.kind.name())
        .count("waits", |(_, site)| site.waits.count())
        .duration("total", TimeUnit::Ms, |(_, site)| Some(site.waits.sum_ns()))
        .duration("p99", TimeUnit::Us, |(_, site)| site.waits.p99_ns())
        .column(Column::text("most for"), |(_, site)| {
            Cell::known(site.blockers.first(), |pair| Cell::text(&pair.blocker))
        })
        .text("site", |(_, site)| site.name.as_str())
        .table();
    table.note("most for: the group that held the lock, or ended the wait, for most of the time");
    table
}

/// The histogram of the mail of 2006: call chains by which CPUs were given up.
fn points(contention: &Contention) -> Option<Chart> {
    let shown: Vec<_> = contention.points.iter().rev().take(BARS_MAX).collect();
    if shown.is_empty() {
        return None;
    }
    let bars = Bars {
        axis: Axis::linear("switches", ""),
        categories: shown.iter().map(|point| point.chain.text().replace("<-", " ← ")).collect(),
        series: vec![BarSeries::new(
            "switches",
            shown.iter().map(|point| Some(point.count as f64)).collect(),
        )],
        arrangement: Arrangement::Stacked,
    };
    Some(Chart {
        id: "scheduling-points".to_owned(),
        title: "Scheduling points".to_owned(),
        definition: format!(
            "Switches by the call chain that led to them, the called function first \
             (docs/howto/find-lock-waits.md). The {BARS_MAX} most frequent."
        ),
        samples: format!(
            "{} switches with a stack, of {}; {} different points.",
            grouped(contention.with_stack),
            grouped(contention.switches),
            grouped(contention.points.len() as u64)
        ),
        drawings: vec![Drawing::alone(Shape::Bars(bars))],
        table: None,
    })
}
