//! A metric's value as a cell.

use fairground_analysis::metric::{MetricValue, Unit};
use fairground_report::{Cell, Column, TimeUnit};

/// The cell of a value, in a column where every cell has its own unit.
pub fn cell(value: Option<MetricValue>, unit: Unit) -> Cell {
    let Some(value) = value else { return Cell::NotMeasured };
    let number = value.as_f64();
    match (unit, value) {
        (Unit::Ns, _) => Cell::Duration { ns: number },
        (Unit::Us, _) => Cell::Duration { ns: number * 1e3 },
        (Unit::Ms, _) => Cell::Duration { ns: number * 1e6 },
        (Unit::Percent, _) => Cell::percent(number, 2),
        (Unit::PerSecond, _) => Cell::quantity(number, 1, "1/s"),
        (Unit::InsnsPerEvent, _) => Cell::quantity(number, 1, "insns"),
        (Unit::Count, MetricValue::Int(count)) => Cell::Int(count),
        (Unit::Count, MetricValue::Float(count)) => Cell::float(count, 1),
        (Unit::Ratio, _) => Cell::float(number, 4),
    }
}

/// The column of a metric, which has these values: durations stand in the unit that suits the longest.
pub(crate) fn figure_column(
    key: &str,
    unit: Unit,
    values: impl Iterator<Item = Option<MetricValue>>,
) -> Column {
    let ns = match unit {
        Unit::Ns => 1.0,
        Unit::Us => 1e3,
        Unit::Ms => 1e6,
        Unit::Percent => return Column::percent(key),
        Unit::Count | Unit::Ratio => return Column::number(key),
        Unit::PerSecond | Unit::InsnsPerEvent => return Column::mixed(key),
    };
    let longest = values.flatten().map(|value| value.as_f64().abs() * ns).fold(0.0, f64::max);
    Column::duration(key, TimeUnit::for_longest(longest))
}

/// A mean duration in ns that may not be known.
pub(crate) fn mean_duration(ns: Option<f64>) -> Cell {
    Cell::known(ns, |ns| Cell::Duration { ns })
}
