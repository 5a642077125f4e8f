//! An experiment: published beside measured, and the verdicts.

use std::collections::BTreeMap;

use fairground_report::{Cell, Column, Document, Layout, Table};

use crate::experiment::{
    Claim, Experiment, FigureRow, Figures, Sample, TOP_COLUMNS, TopTable, Verdict, judge,
};

/// The document, and whether every claim holds. A claim about a run that is `unmade`, one on a real kernel that is
/// not here, is not measured and does not fail the experiment.
pub(crate) fn experiment_document(
    experiment: &Experiment,
    figures: &BTreeMap<String, Figures>,
    unmade: &dyn Fn(&str) -> bool,
) -> (Document, bool) {
    let mut document = Document::new(format!("{}: {}", experiment.name, experiment.title));
    document.set("source", "published", Cell::text(&experiment.source));
    for (name, source) in experiment.sources() {
        document.set("source", name, Cell::text(source));
    }
    for top in &experiment.tops {
        document.tables.extend(top_tables(top, figures));
    }
    for table in &experiment.tables {
        let rows = table.rows(figures);
        document.tables.push(figures_table("figures", &table.title, &table.columns, rows));
    }
    for matrix in &experiment.matrices {
        let rows = experiment.rows_of(matrix, figures);
        document.tables.push(figures_table("matrix", &matrix.title, &matrix.columns, rows));
    }
    let agrees = super::agreement::add_agreements(&mut document, experiment, figures);
    let (claims, holds) = claims_table(experiment, figures, unmade);
    document.tables.extend(claims);
    document.notes.extend(experiment.about.trim().split("\n\n").map(|p| p.replace('\n', " ")));
    (document, holds && agrees)
}

/// Metrics or points down, runs and given figures across.
fn figures_table(id: &str, title: &str, columns: &[String], rows: Vec<FigureRow<'_>>) -> Table {
    let mut table = Table::of(id, title, rows).text("", |row| row.label);
    for (nth, name) in columns.iter().enumerate() {
        table = table.column(Column::mixed(name), |row| {
            Cell::known(row.samples[nth], |sample| sample_cell(sample, row.decimals))
        });
    }
    table.table().laid_out(Layout::Metrics, id)
}

/// The tasks of each column as `top` prints them, the busiest first.
fn top_tables<'a>(
    top: &'a TopTable,
    figures: &'a BTreeMap<String, Figures>,
) -> impl Iterator<Item = Table> + 'a {
    top.columns.iter().map(|name| {
        let lines = figures.get(name).map_or(&[][..], |figures| &figures.top);
        let mut table = Table::of("top", format!("{}: {name}", top.title), lines);
        for (nth, (name, is_left)) in TOP_COLUMNS.into_iter().enumerate() {
            let of_column = if is_left { Column::text(name) } else { Column::mixed(name) };
            table = table.column(of_column, move |line| Cell::text(&line.cells()[nth]));
        }
        table.table().as_program()
    })
}

/// One value, or the smallest and the largest.
fn sample_cell(sample: &Sample, decimals: u8) -> Cell {
    let places = usize::from(decimals);
    let (low, high) = (format!("{:.places$}", sample.low), format!("{:.places$}", sample.high));
    if low == high {
        Cell::float(sample.mean, decimals)
    } else {
        Cell::text(format!("{low}–{high}"))
    }
}

fn claims_table(
    experiment: &Experiment,
    figures: &BTreeMap<String, Figures>,
    unmade: &dyn Fn(&str) -> bool,
) -> (Option<Table>, bool) {
    if experiment.claims.is_empty() {
        return (None, true);
    }
    let missing = Figures::default();
    let judged = experiment.claims.iter().map(|claim| {
        let measured = figures.get(&claim.run).unwrap_or(&missing);
        let reference = claim.of.as_ref().and_then(|of| figures.get(of));
        (claim, judge(claim, measured, reference))
    });
    let judged: Vec<(&Claim, (Verdict, Option<f64>))> = judged.collect();
    let holds = judged.iter().all(|(claim, (verdict, _))| match verdict {
        Verdict::Agrees | Verdict::KnownGap => true,
        Verdict::Disagrees => false,
        Verdict::NotMeasured => claim.of.iter().chain([&claim.run]).any(|run| unmade(run)),
    });
    let mut table = Table::of("claims", "What must hold", &judged)
        .text("verdict", |(_, (verdict, _))| verdict.word())
        .text("claim", |(claim, _)| claim.say.as_str())
        .text("run", |(claim, _)| claim.run.as_str())
        .column(Column::number("value"), |(_, (_, value))| {
            Cell::known(*value, |value| Cell::float(value, 3))
        })
        .text("bounds", |(claim, _)| {
            let of = claim.of.as_ref().map_or(String::new(), |of| format!(" × {of}"));
            format!("{}…{}{of}", claim.within.low, claim.within.high)
        })
        .table();
    let gaps = judged.iter().filter(|(_, (verdict, _))| *verdict == Verdict::KnownGap);
    for (claim, _) in gaps {
        table.note(format!(
            "known gap: {} {}",
            claim.say,
            claim.known_gap.as_deref().unwrap_or("")
        ));
    }
    (Some(table), holds)
}
