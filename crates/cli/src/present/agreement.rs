//! The cells of an agreement, and what they come to.

use std::collections::{BTreeMap, BTreeSet};

use fairground_report::{Cell, Column, Document, Table};

use crate::experiment::{
    AGREE_PERCENT_MIN, AgreementCell, CellVerdict, Experiment, Figures, Rules, Tally,
};

/// Adds the tables of all agreements; false when one of them does not hold.
pub(super) fn add_agreements(
    document: &mut Document,
    experiment: &Experiment,
    figures: &BTreeMap<String, Figures>,
) -> bool {
    if experiment.agreements.is_empty() {
        return true;
    }
    let rules = experiment.rules();
    document.tables.push(power_table(&rules, figures));
    let mut summary = summary_table();
    let mut causes = BTreeSet::new();
    let mut holds = true;
    let mut all = Tally::default();
    for agreement in &experiment.agreements {
        let cells = rules.cells(agreement, &agreement.simulated, &experiment.points, figures);
        let tally = Tally::of(&cells);
        holds &= tally.disagree == 0;
        all.agree += tally.agree;
        all.within_spread += tally.within_spread;
        all.disagree += tally.disagree;
        all.gap += tally.gap;
        all.not_measured += tally.not_measured;
        summary.push(summary_row(&agreement.title, &tally));
        if let Some(control) = &agreement.control {
            let control = rules.cells(agreement, control, &experiment.points, figures);
            let tally = Tally::of(&control);
            holds &= tally.measured() > 0 && !tally.is_enough();
            summary.push(summary_row(&format!("{}: control", agreement.title), &tally));
        }
        causes.extend(cells.iter().filter_map(|cell| match cell.verdict {
            CellVerdict::Gap(cause) => Some(cause),
            _ => None,
        }));
        document.tables.push(cells_table(&agreement.title, &cells));
    }
    holds &= all.is_enough();
    summary.push(summary_row("all, without the controls", &all));
    summary.note(format!(
        "It holds when {AGREE_PERCENT_MIN} % of the measured cells agree, every other one is \
         within the kernel's own spread or has a named cause, and every control is rejected by the \
         same rule."
    ));
    for cause in causes {
        summary.note(format!("gap {}: {}", cause + 1, experiment.gaps[cause].why));
    }
    document.tables.push(summary);
    holds
}

fn power_table(rules: &Rules<'_>, figures: &BTreeMap<String, Figures>) -> Table {
    let columns = [
        Column::text("metric"),
        Column::text("knob"),
        Column::text("low"),
        Column::text("high"),
        Column::number("at low"),
        Column::number("at high"),
        Column::text("moves"),
    ];
    let mut table = Table::new("power", "Do the metrics move?", columns);
    for power in rules.powers {
        let ends = rules.ends(power, figures);
        let moves = match ends {
            None => "not measured",
            Some(_) if rules.moves(power, figures) => "yes",
            Some(_) => "no",
        };
        table.push([
            Cell::text(format!("{}.{}", power.group, power.metric)),
            Cell::text(&power.knob),
            Cell::text(&power.low),
            Cell::text(&power.high),
            Cell::known(ends, |(low, _)| Cell::float(low, 3)),
            Cell::known(ends, |(_, high)| Cell::float(high, 3)),
            Cell::text(moves),
        ]);
    }
    table
}

fn cells_table(title: &str, cells: &[AgreementCell]) -> Table {
    let columns = [
        Column::text("point"),
        Column::text("group"),
        Column::text("metric"),
        Column::number("real"),
        Column::text("its starts"),
        Column::number("simulated"),
        Column::number("ratio"),
        Column::text("verdict"),
    ];
    let mut table = Table::new("agreement", title, columns);
    for cell in cells {
        let ratio = match (cell.real, cell.simulated) {
            (Some(real), Some(simulated)) if real != 0.0 => Some(simulated / real),
            _ => None,
        };
        let verdict = match &cell.verdict {
            CellVerdict::Agree => "agree".to_owned(),
            CellVerdict::WithinSpread => "within the kernel's own spread".to_owned(),
            CellVerdict::Disagree => "disagree".to_owned(),
            CellVerdict::Gap(cause) => format!("gap {}", cause + 1),
            CellVerdict::NotMeasured(why) => format!("not measured: {why}"),
        };
        table.push([
            Cell::text(&cell.point),
            Cell::text(&cell.group),
            Cell::text(&cell.label),
            Cell::known(cell.real, |value| Cell::float(value, 3)),
            Cell::text(
                cell.real_range.map_or(String::new(), |(low, high)| format!("{low:.3}..{high:.3}")),
            ),
            Cell::known(cell.simulated, |value| Cell::float(value, 3)),
            Cell::known(ratio, |value| Cell::float(value, 2)),
            Cell::text(verdict),
        ]);
    }
    table
}

fn summary_table() -> Table {
    let columns = [
        Column::text("comparison"),
        Column::number("agree"),
        Column::number("within the kernel's own spread"),
        Column::number("disagree"),
        Column::number("gap"),
        Column::number("not measured"),
        Column::number("agree of measured"),
    ];
    Table::new("fidelity", "What the cells come to", columns)
}

fn summary_row(title: &str, tally: &Tally) -> [Cell; 7] {
    let measured = tally.measured();
    let share = (measured > 0).then(|| 100.0 * tally.agree as f64 / measured as f64);
    [
        Cell::text(title),
        Cell::count(tally.agree as u64),
        Cell::count(tally.within_spread as u64),
        Cell::count(tally.disagree as u64),
        Cell::count(tally.gap as u64),
        Cell::count(tally.not_measured as u64),
        Cell::known(share, |share| Cell::text(format!("{share:.0} %"))),
    ]
}
