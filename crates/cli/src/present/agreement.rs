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
    let mut tables = vec![power_table(&rules, figures)];
    let mut summary = Vec::new();
    let mut causes = BTreeSet::new();
    let mut holds = true;
    let mut all = Vec::new();
    for agreement in &experiment.agreements {
        let cells = rules.cells(agreement, &agreement.simulated, &experiment.points, figures);
        let tally = Tally::of(&cells);
        holds &= tally.disagree == 0;
        summary.push((agreement.title.clone(), tally));
        if let Some(control) = &agreement.control {
            let control = rules.cells(agreement, control, &experiment.points, figures);
            let tally = Tally::of(&control);
            holds &= tally.measured() > 0 && !tally.is_enough();
            summary.push((format!("{}: control", agreement.title), tally));
        }
        causes.extend(cells.iter().filter_map(|cell| match cell.verdict {
            CellVerdict::Gap(cause) => Some(cause),
            _ => None,
        }));
        tables.push(cells_table(&agreement.title, &cells));
        all.extend(cells);
    }
    let all = Tally::of(&all);
    holds &= all.is_enough();
    document.summary.push(format!(
        "{} of {} measured cells agree, {} disagree.",
        all.agree,
        all.measured(),
        all.disagree
    ));
    summary.push(("all, without the controls".to_owned(), all));
    let mut summary = summary_table(summary);
    summary.note(format!(
        "It holds when {AGREE_PERCENT_MIN} % of the measured cells agree, every other one is \
         within the kernel's own spread or has a named cause, and every control is rejected by the \
         same rule."
    ));
    for cause in causes {
        summary.note(format!("gap {}: {}", cause + 1, experiment.gaps[cause].why));
    }
    document.tables.push(summary);
    document.tables.append(&mut tables);
    holds
}

fn power_table(rules: &Rules<'_>, figures: &BTreeMap<String, Figures>) -> Table {
    let at = |end: Option<f64>| Cell::known(end, |value| Cell::float(value, 3));
    let powers = rules.powers.iter().map(|power| (power, rules.ends(power, figures)));
    Table::of("power", "Do the metrics move?", powers)
        .text("metric", |(power, _)| format!("{}.{}", power.group, power.metric))
        .text("knob", |(power, _)| power.knob.as_str())
        .text("low", |(power, _)| power.low.as_str())
        .text("high", |(power, _)| power.high.as_str())
        .column(Column::number("at low"), |(_, ends)| at(ends.map(|(low, _)| low)))
        .column(Column::number("at high"), |(_, ends)| at(ends.map(|(_, high)| high)))
        .text("moves", |(power, ends)| match ends {
            None => "not measured",
            Some(_) if rules.moves(power, figures) => "yes",
            Some(_) => "no",
        })
        .table()
}

pub(super) fn cells_table(title: &str, cells: &[AgreementCell]) -> Table {
    let number = |value: Option<f64>| Cell::known(value, |value| Cell::float(value, 3));
    let ratio =
        |cell: &AgreementCell| Some(cell.simulated? / cell.real.filter(|real| *real != 0.0)?);
    Table::of("agreement", title, cells)
        .text("point", |cell| cell.point.as_str())
        .text("group", |cell| cell.group.as_str())
        .text("metric", |cell| cell.label.as_str())
        .column(Column::number("real"), |cell| number(cell.real))
        .text("its starts", |cell| {
            cell.real_range.map_or(String::new(), |(low, high)| format!("{low:.3}..{high:.3}"))
        })
        .column(Column::number("simulated"), |cell| number(cell.simulated))
        .column(Column::number("ratio"), |cell| {
            Cell::known(ratio(cell), |value| Cell::float(value, 2))
        })
        .text("verdict", |cell| match &cell.verdict {
            CellVerdict::Agree => "agree".to_owned(),
            CellVerdict::WithinSpread => "within the kernel's own spread".to_owned(),
            CellVerdict::Disagree => "disagree".to_owned(),
            CellVerdict::Gap(cause) => format!("gap {}", cause + 1),
            CellVerdict::NotMeasured(why) => format!("not measured: {why}"),
        })
        .table()
}

/// A row for each comparison and its control.
fn summary_table(comparisons: Vec<(String, Tally)>) -> Table {
    Table::of("fidelity", "What the cells come to", comparisons)
        .text("comparison", |(title, _)| title.clone())
        .count("agree", |(_, tally)| tally.agree as u64)
        .count("within the kernel's own spread", |(_, tally)| tally.within_spread as u64)
        .count("disagree", |(_, tally)| tally.disagree as u64)
        .count("gap", |(_, tally)| tally.gap as u64)
        .count("not measured", |(_, tally)| tally.not_measured as u64)
        .column(Column::number("agree of measured"), |(_, tally)| {
            let measured = Some(tally.measured()).filter(|measured| *measured > 0);
            let share = measured.map(|measured| 100.0 * tally.agree as f64 / measured as f64);
            Cell::known(share, |share| Cell::text(format!("{share:.0} %")))
        })
        .table()
}
