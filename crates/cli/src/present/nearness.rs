//! How near a replay under the recording's own scheduler comes to the recording.

use fairground_report::{Cell, Column, Document, Layout, Level, Table, Verdict};
use fairground_session::{Closeness, Near, nearest};

/// Adds the table, and what a reader has to think of the other columns.
pub(crate) fn add_nearness(document: &mut Document, scheduler: &str, all: &[Closeness]) {
    let class = |near: Near| match near {
        Near::Near => "near",
        Near::Fair => "fair",
        Near::Poor => "poor",
    };
    let table =
        Table::of("nearness", "How near the replay under its own scheduler comes", all.iter())
            .text("figure", |one| one.what.clone())
            .column(Column::mixed("off"), |one| {
                Cell::known(one.off_percent, |off| Cell::percent(off, 1))
            })
            .text("class", |one| one.near.map_or("not measured", class).to_owned())
            .table()
            .laid_out(Layout::Records, "figure");
    document.tables.push(table);
    let worst: Vec<String> = all
        .iter()
        .filter(|one| one.near == Some(Near::Poor))
        .filter_map(|one| Some(format!("{} {:+.0} %", one.what, one.off_percent?)))
        .collect();
    match nearest(all) {
        Some(Near::Poor) => document.add_verdict(Verdict {
            run: String::new(),
            level: Level::Warning,
            text: format!(
                "this recording does not come back under {scheduler}, which made it: {}",
                worst.join(", ")
            ),
            details: vec![
                "read the columns of other schedulers as tendencies at most".to_owned(),
            ],
        }),
        Some(near) => document.notes.push(format!(
            "under {scheduler}, which made it, the recording comes back: {} (counts and shares within {} %, latencies within {} %)",
            class(near),
            if near == Near::Near { 5 } else { 10 },
            if near == Near::Near { 15 } else { 25 },
        )),
        None => document.notes.push("not measured: how near a replay comes: too few events".to_owned()),
    }
}
