//! Contention: the histogram of scheduling points in the form of the mail of 2006, and the waits of tasks by place and
//! by blocker.

use fairground_analysis::contention::{Contention, Site};
use fairground_report::{Cell, Column, Document, Table, TimeUnit};

/// Adds the figures, at most `top` lines to a table.
pub(crate) fn describe_contention(document: &mut Document, contention: &Contention, top: usize) {
    document.set("contention", "switches", Cell::count(contention.switches));
    document.set("contention", "with stack", Cell::count(contention.with_stack));
    document.set("contention", "waits for locks", Cell::count(contention.lock_waits));
    if contention.points.is_empty() {
        document.notes.push(
            "no scheduling points: the recording has no stacks (`fairground record --stacks`; \
             simulated kernels have none)"
                .to_owned(),
        );
    } else {
        document.tables.push(points_table(contention, top));
    }
    document.tables.push(sites_table(contention, top));
    document.tables.push(blockers_table(contention, top));
    if contention.pairs_not_kept > 0 {
        let count = contention.pairs_not_kept;
        document.notes.push(format!(
            "{count} waits have no pair of groups: there are too many different ones"
        ));
    }
}

/// The rarest first, as `sort -n` leaves it in the mail.
fn points_table(contention: &Contention, top: usize) -> Table {
    let left_out = contention.points.len().saturating_sub(top);
    let (rarer, shown) = contention.points.split_at(left_out);
    let mut table = Table::of("points", "Scheduling points", shown)
        .count("switches", |point| point.count)
        .text("scheduling_point", |point| point.chain.text())
        .table();
    if left_out > 0 {
        let switches: u64 = rarer.iter().map(|point| point.count).sum();
        table.note(format!("{left_out} rarer ones, {switches} switches, are left out (--top)"));
    }
    table
}

fn sites_table(contention: &Contention, top: usize) -> Table {
    let measured = |site: &Site| (site.waits.count() > 0).then_some(site.waits.sum_ns());
    let part = |site: &Site, ns: u64| {
        let whole = Some(site.waits.sum_ns()).filter(|total| *total > 0);
        Cell::known(whole, |whole| Cell::percent(ns as f64 * 100.0 / whole as f64, 0))
    };
    let mut table = Table::of("sites", "Where tasks wait", contention.sites.iter().take(top))
        .text("kind", |site| site.kind.name())
        .count("waits", |site| site.waits.count())
        .duration("total", TimeUnit::Ms, |site| measured(site))
        .duration("p50", TimeUnit::Us, |site| site.waits.p50_ns())
        .duration("p99", TimeUnit::Us, |site| site.waits.p99_ns())
        .count("cut_off", |site| site.waits.censored)
        .column(Column::percent("holder_running"), |site| part(site, site.holder.running_ns))
        .column(Column::percent("holder_runnable"), |site| part(site, site.holder.runnable_ns))
        .column(Column::percent("holder_sleeping"), |site| part(site, site.holder.sleeping_ns))
        .text("site", |site| site.name.as_str())
        .table();
    table.note(
        "total, p50, p99: from the begin of the wait to the wake-up, or to having the lock. \
         holder: what the task that held the lock or ended the wait did meanwhile, in % of the \
         waits; the rest is not known. Plain sleep comes last.",
    );
    let left_out = contention.sites.len().saturating_sub(top);
    if left_out > 0 {
        table.note(format!("{left_out} places with shorter waits are left out (--top)"));
    }
    table
}

fn blockers_table(contention: &Contention, top: usize) -> Table {
    let pairs =
        contention.sites.iter().flat_map(|site| site.blockers.iter().map(move |b| (site, b)));
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_by_key(|(site, pair)| (site.kind.is_sleep(), std::cmp::Reverse(pair.wait_ns)));
    let mut table = Table::of("blockers", "Waiters and blockers", pairs.into_iter().take(top))
        .text("blocker", |(_, pair)| pair.blocker.as_str())
        .text("waiter", |(_, pair)| pair.waiter.as_str())
        .count("waits", |(_, pair)| pair.count)
        .duration("total", TimeUnit::Ms, |(_, pair)| Some(pair.wait_ns))
        .text("site", |(site, _)| site.name.as_str())
        .table();
    table.note(
        "blocker: the task that held the lock, or whose wake-up ended the wait; a wake-up from an \
         interrupt counts as one of the task that was interrupted.",
    );
    table
}
