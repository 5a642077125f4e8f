//! How near a replay under the recording's own scheduler comes to the recording.

use fairground_report::{Cell, Column, Document, Layout, Level, Table, Verdict};
use fairground_session::{Closeness, Near, worst};

use super::selection::Selection;

/// Adds the table, and what a reader has to think of the other columns.
pub fn add_nearness(
    document: &mut Document,
    scheduler: &str,
    all: &[Closeness],
    selection: &Selection,
) {
    let table =
        Table::of("nearness", "How near the replay under its own scheduler comes", all.iter())
            .text("figure", |one| one.what.clone())
            .column(Column::mixed("off"), |one| {
                Cell::known(one.off_percent, |off| Cell::percent(off, 1))
            })
            .text("class", |one| one.near.map_or("not measured", Near::name).to_owned())
            .table()
            .laid_out(Layout::Records, "figure");
    if !selection.is_narrow() {
        document.tables.push(table);
    }
    let poor: Vec<String> = all
        .iter()
        .filter(|one| one.near == Some(Near::Poor))
        .filter_map(|one| Some(format!("{} {:+.0} %", one.what, one.off_percent?)))
        .collect();
    let Some(near) = worst(all) else {
        document.notes.push("not measured: how near a replay comes: too few events".to_owned());
        return;
    };
    let Some([counts, latencies]) = near.limits_percent() else {
        document.add_verdict(Verdict {
            run: String::new(),
            level: Level::Warning,
            text: format!(
                "this recording does not come back under {scheduler}, which made it: {}",
                poor.join(", ")
            ),
            details: vec!["read the columns of other schedulers as tendencies at most".to_owned()],
        });
        return;
    };
    document.notes.push(format!(
        "under {scheduler}, which made it, the recording comes back: {} (counts and shares within \
         {counts} %, latencies within {latencies} %)",
        near.name()
    ));
}
