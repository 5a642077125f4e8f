//! An experiment: published beside measured, and the verdicts.

use std::collections::BTreeMap;

use fairground_report::{Cell, Column, Document, Layout, Table};

use crate::experiment::{
    Experiment, Figures, Matrix, Point, Sample, TopTable, Verdict, at_point, judge,
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
    for table in &experiment.tables {
        document.tables.push(figure_table(table, figures));
    }
    for top in &experiment.tops {
        document.tables.push(top_table(top, figures));
    }
    for matrix in &experiment.matrices {
        let points = experiment.points.iter().filter(|p| experiment.has_at(matrix, &p.name));
        document.tables.push(matrix_table(matrix, points, figures));
    }
    let agrees = super::agreement::add_agreements(&mut document, experiment, figures);
    let (claims, holds) = claims_table(experiment, figures, unmade);
    document.tables.extend(claims);
    document.notes.extend(experiment.about.trim().split("\n\n").map(|p| p.replace('\n', " ")));
    (document, holds && agrees)
}

fn figure_table(table: &crate::experiment::Table, figures: &BTreeMap<String, Figures>) -> Table {
    let mut columns = vec![Column::text("")];
    columns.extend(table.columns.iter().map(Column::mixed));
    let mut result =
        Table::new("figures", table.title.as_str(), columns).laid_out(Layout::Metrics, "figures");
    for row in &table.rows {
        let mut cells = vec![Cell::text(&row.label)];
        for column in &table.columns {
            let sample = figures.get(column).and_then(|f| f.get(&row.metric));
            cells.push(sample.map_or(Cell::NotMeasured, |s| sample_cell(s, row.decimals)));
        }
        result.push(cells);
    }
    result
}

/// The tasks of each column, the busiest first.
fn top_table(top: &TopTable, figures: &BTreeMap<String, Figures>) -> Table {
    let mut columns = vec![Column::text("")];
    for name in &top.columns {
        columns.push(Column::mixed(format!("{name}: PID")));
        columns.push(Column::mixed(format!("{name}: %CPU")));
        columns.push(Column::mixed(format!("{name}: TIME+")));
    }
    let mut table = Table::new("top", top.title.as_str(), columns);
    let lines = |name: &String| figures.get(name).map_or(&[][..], |f| &f.top);
    let rows = top.columns.iter().map(|name| lines(name).len()).max().unwrap_or(0);
    for row in 0..rows {
        let mut cells = vec![Cell::text(format!("{}", row + 1))];
        for name in &top.columns {
            match lines(name).get(row) {
                Some(line) => cells.extend([
                    Cell::text(line.pid.to_string()),
                    Cell::text(line.percent.to_string()),
                    Cell::text(line.time()),
                ]),
                None => cells.extend([Cell::NotMeasured, Cell::NotMeasured, Cell::NotMeasured]),
            }
        }
        table.push(cells);
    }
    table
}

/// A metric with a row for each point.
fn matrix_table<'p>(
    matrix: &Matrix,
    points: impl Iterator<Item = &'p Point>,
    figures: &BTreeMap<String, Figures>,
) -> Table {
    let mut columns = vec![Column::text("")];
    columns.extend(matrix.columns.iter().map(Column::mixed));
    let mut table =
        Table::new("matrix", matrix.title.as_str(), columns).laid_out(Layout::Metrics, "matrix");
    for point in points {
        let own = matrix.metric.is_none();
        let metric = matrix.metric.as_ref().or(point.metric.as_ref());
        let label = point.label.as_ref().filter(|_| own).unwrap_or(&point.name);
        let decimals = point.decimals.filter(|_| own).unwrap_or(matrix.decimals);
        let mut cells = vec![Cell::text(label)];
        for column in &matrix.columns {
            let found = figures.get(&at_point(column, &point.name));
            let sample = found.zip(metric).and_then(|(f, metric)| f.get(metric));
            cells.push(sample.map_or(Cell::NotMeasured, |s| sample_cell(s, decimals)));
        }
        table.push(cells);
    }
    table
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
    let columns = [
        Column::text("verdict"),
        Column::text("claim"),
        Column::text("run"),
        Column::number("value"),
        Column::text("bounds"),
    ];
    let mut table = Table::new("claims", "What must hold", columns);
    let mut holds = true;
    let missing = Figures::default();
    for claim in &experiment.claims {
        let measured = figures.get(&claim.run).unwrap_or(&missing);
        let reference = claim.of.as_ref().and_then(|of| figures.get(of));
        let verdict = judge(claim, measured, reference);
        let (word, value) = match &verdict {
            Verdict::Agrees { value } => ("agrees", Some(*value)),
            Verdict::Disagrees { value } => ("disagrees", Some(*value)),
            Verdict::KnownGap { value, .. } => ("known gap", Some(*value)),
            Verdict::NotMeasured => ("not measured", None),
        };
        holds &= match &verdict {
            Verdict::Agrees { .. } | Verdict::KnownGap { .. } => true,
            Verdict::Disagrees { .. } => false,
            Verdict::NotMeasured => {
                [Some(&claim.run), claim.of.as_ref()].into_iter().flatten().any(|run| unmade(run))
            }
        };
        if let Verdict::KnownGap { why, .. } = &verdict {
            table.note(format!("known gap: {} {why}", claim.say));
        }
        let of = claim.of.as_ref().map_or(String::new(), |of| format!(" × {of}"));
        table.push([
            Cell::text(word),
            Cell::text(&claim.say),
            Cell::text(&claim.run),
            Cell::known(value, |v| Cell::float(v, 3)),
            Cell::text(format!("{}…{}{of}", claim.within.low, claim.within.high)),
        ]);
    }
    (Some(table), holds)
}
