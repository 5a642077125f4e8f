//! A page with pictures: one HTML file that needs nothing else, no network either.
//!
//! A drawing is data in the page ([`Chart`]); `assets/charts.js` draws it with [Apache
//! ECharts](https://echarts.apache.org), which lies beside it under its own licence. To add a chart, make a
//! [`Chart`]; to add a kind of drawing, a [`Shape`] and a function in `charts.js`. The same drawings as files for
//! papers, with the feature `plots`: `Page::pictures`.

mod chart;
mod html;
#[cfg(feature = "plots")]
mod picture;
mod timeline;

pub use chart::{Arrangement, Axis, BarSeries, Bars, Chart, Curve, Curves, Drawing, Marks, Shape};
#[cfg(feature = "plots")]
pub use picture::{Picture, PictureError};
pub use timeline::{Activity, Mark, SLICES_MAX, Slice, TaskName, Timeline};

use crate::{Document, Table};

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The command that makes it.
    pub command: String,
    /// The figures on which the document's summary stands.
    pub overview: Option<Overview>,
    /// The charts, in order.
    pub charts: Vec<Chart>,
    /// The result as tables, with how it was made.
    pub document: Document,
}

/// A table with the best of each column, or row, set off.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// The table.
    pub table: Table,
    /// Rows and columns of the best cells.
    pub best: Vec<(usize, usize)>,
}
