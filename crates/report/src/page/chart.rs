//! Data of charts, without a word on how they are drawn.

use serde::Serialize;
use serde_json::Value;

use super::timeline::Timeline;
use crate::Table;
use crate::cell::{is_printable, printable};

/// A picture with what a reader must know to trust it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// A short name that does not change: of the file that a chart is written to, of its place in a page.
    pub id: String,
    /// The heading for people.
    pub title: String,
    /// Definition of its figures in one or two sentences, with the page that defines them.
    pub definition: String,
    /// How many samples it stands on, in words.
    #[serde(skip)]
    pub samples: String,
    /// Its drawings: one, or several that a reader picks from.
    pub drawings: Vec<Drawing>,
    /// The same figures as numbers.
    #[serde(skip)]
    pub table: Option<Table>,
}

/// One drawing of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drawing {
    /// Its run, where a chart has several.
    pub of: String,
    /// The drawing itself.
    pub shape: Shape,
}

impl Drawing {
    /// The only drawing of a chart.
    pub fn alone(shape: Shape) -> Self {
        Self { of: String::new(), shape }
    }
}

/// The kinds of drawing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Shape {
    /// Bars beside each other, a group of them for each category.
    Bars(Bars),
    /// Curves over a common axis.
    Curves(Curves),
    /// Slices of each CPU and each task over time.
    Timeline(Timeline),
}

/// Groups of bars.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bars {
    /// Quantity of the heights.
    pub axis: Axis,
    /// One group of bars each.
    pub categories: Vec<String>,
    /// One bar in each group.
    pub series: Vec<BarSeries>,
    /// How the bars of a group are put.
    pub arrangement: Arrangement,
}

/// How the bars of a group are put. Bars lie where the names of their groups are too long to stand below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrangement {
    /// Beside each other.
    Beside,
    /// Each group has a bar of one series only, which takes the place of all.
    Exclusive,
    /// Put together into one, which lies: parts of a whole.
    Stacked,
}

/// One bar of each group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BarSeries {
    /// Its name in the legend.
    pub name: String,
    /// The heights; `None` was not measured and leaves a gap.
    pub values: Vec<Option<f64>>,
    /// Values to compare the bars with: a mark across each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
}

/// Marks across the bars of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Marks {
    /// Their name in the legend; the same for all series of a drawing.
    pub name: String,
    /// The heights by category; `None` has no mark.
    pub values: Vec<Option<f64>>,
}

impl BarSeries {
    /// Bars with a height for each category.
    pub fn new(name: impl Into<String>, values: Vec<Option<f64>>) -> Self {
        Self { name: name.into(), values, marks: None }
    }
}

/// An axis of numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// The quantity.
    pub name: String,
    /// Its unit; empty for counts and ratios.
    pub unit: String,
    /// Whether each step is ten times the one before.
    #[serde(rename = "log")]
    pub is_log: bool,
}

impl Axis {
    /// An axis with equal steps.
    pub fn linear(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { name: name.into(), unit: unit.into(), is_log: false }
    }

    /// An axis on which each step is ten times the one before. Zero has no place on it.
    pub fn log(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { is_log: true, ..Self::linear(name, unit) }
    }
}

/// Curves over a common axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curves {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Whether a value stays until the next point, as a distribution's does.
    #[serde(rename = "steps")]
    pub are_steps: bool,
    /// The curves.
    pub series: Vec<Curve>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Points in rising order of x.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// JSON for the page's drawing code.
    pub(super) fn to_json(&self) -> Value {
        to_json(self)
    }
}

#[cfg(feature = "plots")]
impl Shape {
    pub(super) fn to_json(&self) -> Value {
        to_json(self)
    }
}

fn to_json(drawn: &impl Serialize) -> Value {
    let mut value =
        serde_json::to_value(drawn).expect("every key is a text, and no value can fail");
    make_printable(&mut value);
    value
}

/// Replaces in all texts what may not be shown: names of tasks are whatever the tasks like.
fn make_printable(value: &mut Value) {
    match value {
        Value::String(text) if !text.chars().all(is_printable) => *text = printable(text),
        Value::Array(values) => values.iter_mut().for_each(make_printable),
        Value::Object(values) => values.values_mut().for_each(make_printable),
        _ => {}
    }
}
