//! A metric: a name, a unit, and how it is read.

use crate::Samples;

/// In what a value is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Things per second of the window.
    PerSecond,
    /// Nanoseconds.
    Ns,
    /// Microseconds, where the metric is defined in them.
    Us,
    /// Milliseconds, where the metric is defined in them.
    Ms,
    /// Percent.
    Percent,
    /// A ratio without unit.
    Ratio,
    /// Instructions of the scheduler's program per event.
    InsnsPerEvent,
}

impl Unit {
    /// As it stands in a table: `ns`, `%`, `1/s`, `insns`; empty for counts and ratios.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Count | Unit::Ratio => "",
            Unit::PerSecond => "1/s",
            Unit::Ns => "ns",
            Unit::Us => "µs",
            Unit::Ms => "ms",
            Unit::Percent => "%",
            Unit::InsnsPerEvent => "insns",
        }
    }
}

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricValue {
    /// Exact.
    Int(i64),
    /// A quotient.
    Float(f64),
}

impl MetricValue {
    /// As a float; integers above 2^53 lose their last bits.
    pub fn as_f64(self) -> f64 {
        match self {
            MetricValue::Int(value) => value as f64,
            MetricValue::Float(value) => value,
        }
    }
}

/// In which tables a metric stands where none is chosen by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// In those with every metric.
    OnRequest,
    /// Also where runs stand side by side.
    Compared,
    /// Also where one run's tasks, or its machine, are listed.
    Usual,
}

/// A metric of `T`.
#[derive(Clone, Copy, Debug)]
pub struct Metric<T: 'static> {
    /// The name, which is also the name of the definition page.
    pub name: &'static str,
    /// Which figure of it: `p50`, `count` …; empty when it has one.
    pub figure: &'static str,
    /// The unit of the value.
    pub unit: Unit,
    /// In which tables it stands where none is chosen by name.
    pub shown: Shown,
    /// Reads the value; `None` is "not measured".
    pub read: fn(&T) -> Option<MetricValue>,
}

impl<T> Metric<T> {
    /// `name` or `name.figure`: unique in its list.
    pub fn key(&self) -> String {
        if self.figure.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}.{}", self.name, self.figure)
        }
    }
}

/// An entry of a list, in the usual tables.
pub(crate) const fn usual<T>(
    name: &'static str,
    figure: &'static str,
    unit: Unit,
    read: fn(&T) -> Option<MetricValue>,
) -> Metric<T> {
    Metric { name, figure, unit, shown: Shown::Usual, read }
}

/// An entry of a list, where runs stand side by side.
pub(crate) const fn compared<T>(
    name: &'static str,
    figure: &'static str,
    unit: Unit,
    read: fn(&T) -> Option<MetricValue>,
) -> Metric<T> {
    Metric { name, figure, unit, shown: Shown::Compared, read }
}

/// An entry of a list, on request.
pub(crate) const fn metric<T>(
    name: &'static str,
    figure: &'static str,
    unit: Unit,
    read: fn(&T) -> Option<MetricValue>,
) -> Metric<T> {
    Metric { name, figure, unit, shown: Shown::OnRequest, read }
}

/// A count.
pub(crate) fn int(value: u64) -> Option<MetricValue> {
    Some(MetricValue::Int(i64::try_from(value).unwrap_or(i64::MAX)))
}

/// A count that may not be measured.
pub(crate) fn known(value: Option<u64>) -> Option<MetricValue> {
    value.and_then(int)
}

/// A quotient that may not be defined.
pub(crate) fn float(value: Option<f64>) -> Option<MetricValue> {
    value.map(MetricValue::Float)
}

/// The number of samples.
pub(crate) fn count(samples: &Samples) -> Option<MetricValue> {
    int(samples.count())
}
