//! An experiment's page: published beside measured, a chart for each of its tables.

use std::collections::BTreeMap;

use fairground_report::page::{
    Arrangement, Axis, BarSeries, Bars, Chart, Drawing, Overview, Page, Shape,
};
use fairground_report::{Document, Table};
use fairground_session::Failure;

use super::{command_line, write_page};
use crate::args::PageArgs;
use crate::experiment::{Experiment, FigureRow, Figures, Matrix, Sample};

/// Figures of an experiment by the name of a run or of a published column.
type Measured = BTreeMap<String, Figures>;

/// Writes the page of an experiment, where one was asked for.
pub(crate) fn write_experiment(
    args: &PageArgs,
    document: &Document,
    experiment: &Experiment,
    figures: &Measured,
) -> Result<(), Failure> {
    write_page(args, || page(document, experiment, figures))
}

fn page(document: &Document, experiment: &Experiment, figures: &Measured) -> Page {
    let tables = experiment.tables.iter().enumerate().filter_map(|(index, table)| {
        let id = format!("figures-{index}");
        rows_chart(id, &table.title, experiment, &table.columns, table.rows(figures))
    });
    let matrices = experiment.matrices.iter().enumerate().filter_map(|(index, matrix)| {
        matrix_chart(format!("matrix-{index}"), matrix, experiment, figures)
    });
    Page {
        command: command_line(std::env::args()),
        overview: claims(document),
        // A matrix says at a glance what the tables have one by one.
        charts: matrices.chain(tables).collect(),
        document: document.clone(),
    }
}

/// The claims with their verdicts.
fn claims(document: &Document) -> Option<Overview> {
    let table = document.table("claims")?;
    Some(Overview { table: Table { id: "overview".to_owned(), ..table.clone() }, best: Vec::new() })
}

/// A table whose rows are different figures: one drawing each, to pick from.
fn rows_chart(
    id: String,
    title: &str,
    experiment: &Experiment,
    columns: &[String],
    rows: Vec<FigureRow<'_>>,
) -> Option<Chart> {
    let is_published = |name: &String| experiment.given.iter().any(|given| given.name == *name);
    let drawing = |row: FigureRow<'_>| {
        let series = [("published or recorded", true), ("measured here", false)];
        let series = series.map(|(name, published)| {
            let value = |(column, sample): (&String, &Option<&Sample>)| {
                sample.filter(|_| is_published(column) == published).map(|s| s.mean)
            };
            BarSeries::new(name, columns.iter().zip(&row.samples).map(value).collect())
        });
        let used = series.into_iter().filter(|s| s.values.iter().any(Option::is_some));
        let bars = Bars {
            axis: Axis::linear(row.label, ""),
            categories: columns.to_vec(),
            series: used.collect(),
            arrangement: Arrangement::Exclusive,
        };
        Drawing { of: row.label.to_owned(), shape: Shape::Bars(bars) }
    };
    let measured = rows.into_iter().filter(|row| row.samples.iter().any(Option::is_some));
    chart(id, title, measured.map(drawing).collect())
}

/// A metric with a group of bars for each point; where each point has a metric of its own, a drawing for each.
fn matrix_chart(
    id: String,
    matrix: &Matrix,
    experiment: &Experiment,
    figures: &Measured,
) -> Option<Chart> {
    let rows = experiment.rows_of(matrix, figures);
    let Some(metric) = &matrix.metric else {
        return rows_chart(id, &matrix.title, experiment, &matrix.columns, rows);
    };
    let series = matrix.columns.iter().enumerate().map(|(nth, column)| {
        BarSeries::new(column, rows.iter().map(|row| row.samples[nth].map(|s| s.mean)).collect())
    });
    let bars = Bars {
        axis: Axis::linear(metric.as_str(), ""),
        categories: rows.iter().map(|row| row.label.to_owned()).collect(),
        series: series.collect(),
        arrangement: Arrangement::Beside,
    };
    let is_measured = bars.series.iter().any(|s| s.values.iter().any(Option::is_some));
    let drawing = is_measured.then(|| Drawing::alone(Shape::Bars(bars)));
    chart(id, &matrix.title, drawing.into_iter().collect())
}

fn chart(id: String, title: &str, drawings: Vec<Drawing>) -> Option<Chart> {
    if drawings.is_empty() {
        return None;
    }
    Some(Chart {
        id,
        title: title.to_owned(),
        definition:
            "A bar is a mean; of a published range it is the middle, of several starts the \
                     median. Ranges stand in the table of the same name under “All numbers”; \
                     what a column is of, under “How it was made”."
                .to_owned(),
        samples: "One run for each column, unless the experiment says otherwise.".to_owned(),
        drawings,
        table: None,
    })
}
