//! The rows of tables and matrices, as they are printed and drawn.

use std::collections::BTreeMap;

use super::figures::{Figures, Sample};
use super::file::{Experiment, Table};
use super::sweep::{Matrix, at_point};

/// A figure in each column, where it was measured or published.
pub(crate) struct FigureRow<'a> {
    pub(crate) label: &'a str,
    pub(crate) decimals: u8,
    pub(crate) samples: Vec<Option<&'a Sample>>,
}

impl Table {
    /// A row for each metric.
    pub(crate) fn rows<'a>(&'a self, figures: &'a BTreeMap<String, Figures>) -> Vec<FigureRow<'a>> {
        let rows = self.rows.iter().map(|row| {
            let sample = |column| figures.get(column)?.get(&row.metric);
            let samples = self.columns.iter().map(sample).collect();
            FigureRow { label: &row.label, decimals: row.decimals, samples }
        });
        rows.collect()
    }
}

impl Experiment {
    /// A row for each point at which a matrix has something.
    pub(crate) fn rows_of<'a>(
        &'a self,
        matrix: &'a Matrix,
        figures: &'a BTreeMap<String, Figures>,
    ) -> Vec<FigureRow<'a>> {
        let own = matrix.metric.is_none();
        let points = self.points.iter().filter(|point| self.has_at(matrix, &point.name));
        let rows = points.map(|point| {
            let metric = matrix.metric.as_ref().or(point.metric.as_ref());
            let sample =
                |column: &String| figures.get(&at_point(column, &point.name))?.get(metric?);
            FigureRow {
                label: point.label.as_ref().filter(|_| own).unwrap_or(&point.name),
                decimals: point.decimals.filter(|_| own).unwrap_or(matrix.decimals),
                samples: matrix.columns.iter().map(sample).collect(),
            }
        });
        rows.collect()
    }
}
