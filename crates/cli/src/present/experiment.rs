//! An experiment: published beside measured, and the verdicts.

use std::collections::BTreeMap;

use fairground_report::{Cell, Column, Document, Layout, Table};

use crate::experiment::{
    Claim, ClaimVerdict, Experiment, FigureRow, Figures, Range, Sample, TOP_COLUMNS, TopTable,
    judge,
};

/// Claims that do not agree, in the summary.
const CLAIMS_MAX: usize = 5;

/// The document, and whether every claim holds. A claim about a run that is `unmade`, one on a real kernel that is
/// not here, is not measured and does not fail the experiment.
pub(crate) fn experiment_document(
    experiment: &Experiment,
    figures: &BTreeMap<String, Figures>,
    unmade: &dyn Fn(&str) -> bool,
) -> (Document, bool) {
    let mut document = Document::new(format!("{}: {}", experiment.name, experiment.title));
    document.set_usual("source", "published", Cell::text(&experiment.source));
    for (name, source) in experiment.sources() {
        document.set_usual("source", name, Cell::text(source));
    }
    let judged: Vec<Judged<'_>> =
        experiment.claims.iter().map(|claim| (claim, judge(claim, figures))).collect();
    document.summary.extend(claims_summary(&judged));
    document.tables.extend(claims_table(&judged));
    let agrees = super::agreement::add_agreements(&mut document, experiment, figures);
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
    document.about.extend(experiment.about.trim().split("\n\n").map(|p| p.replace('\n', " ")));
    let holds = judged.iter().all(|(claim, (verdict, _))| match verdict {
        ClaimVerdict::Agrees | ClaimVerdict::KnownGap => true,
        ClaimVerdict::Disagrees => false,
        ClaimVerdict::NotMeasured => claim.of.iter().chain(&claim.runs).any(|run| unmade(run)),
    });
    (document, holds && agrees)
}

/// A claim, its verdict, and the least and the greatest value that was compared with its bounds.
type Judged<'e> = (&'e Claim, (ClaimVerdict, Option<Range>));

/// How many claims agree, and those that do not.
fn claims_summary(judged: &[Judged<'_>]) -> Vec<String> {
    if judged.is_empty() {
        return Vec::new();
    }
    let others = || judged.iter().filter(|(_, (verdict, _))| *verdict != ClaimVerdict::Agrees);
    let agree = judged.len() - others().count();
    let count = format!("{agree} of {} claims agree.", judged.len());
    let said = others().map(|(claim, (verdict, _))| format!("{}: {}", verdict.word(), claim.say));
    let left_out = others().count().saturating_sub(CLAIMS_MAX);
    let more = (left_out > 0).then(|| format!("{left_out} more do not agree: see below."));
    [count].into_iter().chain(said.take(CLAIMS_MAX)).chain(more).collect()
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

fn claims_table(judged: &[Judged<'_>]) -> Option<Table> {
    if judged.is_empty() {
        return None;
    }
    let value = |range: Option<Range>| {
        let shown = |range: Range| match [range.low, range.high].map(|end| format!("{end:.3}")) {
            [low, high] if low == high => Cell::float(range.low, 3),
            [low, high] => Cell::text(format!("{low}–{high}")),
        };
        Cell::known(range, shown)
    };
    let mut table = Table::of("claims", "What must hold", judged)
        .text("verdict", |(_, (verdict, _))| verdict.word())
        .text("claim", |(claim, _)| claim.say.as_str())
        .column(Column::number("value"), |(_, (_, range))| value(*range))
        .text("bounds", |(claim, _)| {
            let times = if claim.of.is_empty() { "" } else { " ×" };
            format!("{}…{}{times}", claim.within.low, claim.within.high)
        })
        .column(Column::text("of").as_detail(), |(claim, _)| Cell::text(claim.of.join("; ")))
        .column(Column::text("run").as_detail(), |(claim, _)| Cell::text(claim.runs.join("; ")))
        .table();
    let gaps = judged.iter().filter(|(_, (verdict, _))| *verdict == ClaimVerdict::KnownGap);
    for (claim, _) in gaps {
        table.note(format!(
            "known gap: {} {}",
            claim.say,
            claim.known_gap.as_deref().unwrap_or("")
        ));
    }
    Some(table)
}
