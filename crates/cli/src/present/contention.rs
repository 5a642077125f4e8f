//! Contention: the histogram of scheduling points in the form of the mail of 2006, and the waits of tasks by place and
//! by blocker.

use fairground_analysis::contention::{Contention, HolderTime, Site};
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
    let columns = [Column::number("switches"), Column::text("scheduling_point")];
    let mut table = Table::new("points", "Scheduling points", columns);
    let left_out = contention.points.len().saturating_sub(top);
    for point in &contention.points[left_out..] {
        table.push([Cell::count(point.count), Cell::text(point.chain.text())]);
    }
    if left_out > 0 {
        let switches: u64 = contention.points[..left_out].iter().map(|point| point.count).sum();
        table.note(format!("{left_out} rarer ones, {switches} switches, are left out (--top)"));
    }
    table
}

fn sites_table(contention: &Contention, top: usize) -> Table {
    let columns = [
        Column::text("kind"),
        Column::number("waits"),
        Column::duration("total", TimeUnit::Ms),
        Column::duration("p50", TimeUnit::Us),
        Column::duration("p99", TimeUnit::Us),
        Column::number("cut_off"),
        Column::percent("holder_running"),
        Column::percent("holder_runnable"),
        Column::percent("holder_sleeping"),
        Column::text("site"),
    ];
    let mut table = Table::new("sites", "Where tasks wait", columns);
    for site in contention.sites.iter().take(top) {
        table.push(site_row(site));
    }
    table.note(
        "total, p50, p99: from the begin of the wait to the wake-up, or to having the lock. \
         holder: what the task that held the lock or ended the wait did meanwhile, in % of the \
         waits; the rest is not known.",
    );
    let left_out = contention.sites.len().saturating_sub(top);
    if left_out > 0 {
        table.note(format!("{left_out} places with shorter waits are left out (--top)"));
    }
    table
}

fn site_row(site: &Site) -> [Cell; 10] {
    let HolderTime { running_ns, runnable_ns, sleeping_ns, .. } = site.holder;
    let total_ns = site.waits.sum_ns();
    let part = |ns: u64| {
        let whole = Some(total_ns).filter(|total| *total > 0);
        Cell::known(whole, |whole| Cell::percent(ns as f64 * 100.0 / whole as f64, 0))
    };
    let measured = |ns: Option<u64>| Cell::known(ns, Cell::duration_ns);
    [
        Cell::text(site.kind.name()),
        Cell::count(site.waits.count()),
        measured((site.waits.count() > 0).then_some(total_ns)),
        measured(site.waits.p50_ns()),
        measured(site.waits.p99_ns()),
        Cell::count(site.waits.censored),
        part(running_ns),
        part(runnable_ns),
        part(sleeping_ns),
        Cell::text(&site.name),
    ]
}

fn blockers_table(contention: &Contention, top: usize) -> Table {
    let columns = [
        Column::text("blocker"),
        Column::text("waiter"),
        Column::number("waits"),
        Column::duration("total", TimeUnit::Ms),
        Column::text("site"),
    ];
    let mut table = Table::new("blockers", "Waiters and blockers", columns);
    let pairs =
        contention.sites.iter().flat_map(|site| site.blockers.iter().map(move |b| (site, b)));
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_by_key(|(_, pair)| std::cmp::Reverse(pair.wait_ns));
    for (site, pair) in pairs.iter().take(top) {
        table.push([
            Cell::text(&pair.blocker),
            Cell::text(&pair.waiter),
            Cell::count(pair.count),
            Cell::duration_ns(pair.wait_ns),
            Cell::text(&site.name),
        ]);
    }
    table.note(
        "blocker: the task that held the lock, or whose wake-up ended the wait; a wake-up from an \
         interrupt counts as one of the task that was interrupted.",
    );
    table
}
