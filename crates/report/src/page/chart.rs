//! What a chart shows, without a word on how it is drawn.

use serde_json::{Value, json};

use super::timeline::Timeline;
use crate::Table;
use crate::cell::{is_printable, printable};

/// A picture with what a reader must know to trust it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// A short name that does not change: of the file that a chart is written to, of its place in a page.
    pub id: String,
    /// The heading for people.
    pub title: String,
    /// What its figures are, in one or two sentences, with the page that defines them.
    pub definition: String,
    /// How many samples it stands on, in words.
    pub samples: String,
    /// What is drawn, for one choice or for several that a reader picks from.
    pub drawings: Vec<Drawing>,
    /// The same figures as numbers.
    pub table: Option<Table>,
}

/// One drawing of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// What it is of, where a chart has several: a run.
    pub of: String,
    /// The drawing itself.
    pub shape: Shape,
}

/// The kinds of drawing.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Bars beside each other, a group of them for each category.
    Bars(Bars),
    /// Curves over a common axis.
    Curves(Curves),
    /// Who ran on which CPU when.
    Timeline(Timeline),
}

/// Groups of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What the heights are.
    pub axis: Axis,
    /// One group of bars each.
    pub categories: Vec<String>,
    /// One bar in each group.
    pub series: Vec<BarSeries>,
    /// How the bars of a group are put.
    pub arrangement: Arrangement,
}

/// How the bars of a group are put. Bars lie where the names of their groups are too long to stand below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Beside each other.
    Beside,
    /// Each group has a bar of one series only, which takes the place of all.
    Exclusive,
    /// Put together into one, which lies: parts of a whole.
    Stacked,
}

impl Arrangement {
    fn name(self) -> &'static str {
        match self {
            Arrangement::Beside => "beside",
            Arrangement::Exclusive => "exclusive",
            Arrangement::Stacked => "stacked",
        }
    }
}

/// One bar of each group.
#[derive(Clone, Debug, PartialEq)]
pub struct BarSeries {
    /// Its name in the legend.
    pub name: String,
    /// The heights; `None` was not measured and leaves a gap.
    pub values: Vec<Option<f64>>,
    /// What the others are to be held against: drawn as a mark across, not as a bar.
    pub is_reference: bool,
}

/// An axis of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured.
    pub name: String,
    /// Its unit; empty for counts and ratios.
    pub unit: String,
    /// Whether each step is ten times the one before.
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

    fn to_json(&self) -> Value {
        json!({ "name": self.name, "unit": self.unit, "log": self.is_log })
    }
}

/// Curves over a common axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Curve>,
    /// Whether a value stays until the next point, as a distribution's does.
    pub are_steps: bool,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Points in rising order of x.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// What the page's drawing code reads.
    pub(super) fn to_json(&self) -> Value {
        let drawings: Vec<Value> = self
            .drawings
            .iter()
            .map(|drawing| json!({ "of": drawing.of, "shape": drawing.shape.to_json() }))
            .collect();
        json!({ "id": self.id, "title": self.title, "definition": self.definition, "drawings": drawings })
    }
}

impl Shape {
    pub(super) fn to_json(&self) -> Value {
        let mut shape = match self {
            Shape::Bars(bars) => bars.to_json(),
            Shape::Curves(curves) => curves.to_json(),
            Shape::Timeline(timeline) => timeline.to_json(),
        };
        make_printable(&mut shape);
        shape
    }
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

impl Bars {
    fn to_json(&self) -> Value {
        let series: Vec<Value> = self
            .series
            .iter()
            .map(|s| json!({ "name": s.name, "values": s.values, "reference": s.is_reference }))
            .collect();
        json!({
            "kind": "bars",
            "axis": self.axis.to_json(),
            "categories": self.categories,
            "series": series,
            "arrangement": self.arrangement.name()
        })
    }
}

impl Curves {
    fn to_json(&self) -> Value {
        let series: Vec<Value> =
            self.series.iter().map(|s| json!({ "name": s.name, "points": s.points })).collect();
        json!({
            "kind": "curves",
            "x": self.x.to_json(),
            "y": self.y.to_json(),
            "steps": self.are_steps,
            "series": series,
        })
    }
}
