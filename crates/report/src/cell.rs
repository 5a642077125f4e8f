//! One value of a table.

use crate::NOT_MEASURED;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number; people see it with that many decimals, programs see all digits.
    Float {
        /// The value.
        value: f64,
        /// Decimals for people.
        decimals: u8,
    },
    /// A duration, ns. It may be a mean and have a fraction.
    Duration {
        /// The value, ns.
        ns: f64,
    },
    /// A percentage: 50.0 is a half.
    Percent {
        /// The value, %.
        value: f64,
        /// Decimals for people.
        decimals: u8,
    },
    /// A number with a unit of its own, for a place where the column has none.
    Quantity {
        /// The value.
        value: f64,
        /// Decimals for people.
        decimals: u8,
        /// Its unit, such as `1/s`.
        unit: String,
    },
    /// The value is not known. Not zero.
    NotMeasured,
}

/// The unit in which people see the durations of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds, no decimals.
    Ns,
    /// Microseconds, one decimal.
    Us,
    /// Milliseconds, three decimals.
    Ms,
    /// Seconds, three decimals.
    S,
}

impl TimeUnit {
    /// As it stands behind a number.
    pub fn symbol(self) -> &'static str {
        match self {
            TimeUnit::Ns => "ns",
            TimeUnit::Us => "µs",
            TimeUnit::Ms => "ms",
            TimeUnit::S => "s",
        }
    }

    fn ns(self) -> f64 {
        match self {
            TimeUnit::Ns => 1.0,
            TimeUnit::Us => 1e3,
            TimeUnit::Ms => 1e6,
            TimeUnit::S => 1e9,
        }
    }

    pub(crate) fn format(self, ns: f64) -> String {
        let decimals = match self {
            TimeUnit::Ns => 0,
            TimeUnit::Us => 1,
            TimeUnit::Ms | TimeUnit::S => 3,
        };
        format!("{:.decimals$}", ns / self.ns())
    }

    /// The unit of a column whose longest duration is this, ns: it keeps digits of those that are much shorter.
    pub fn for_longest(ns: f64) -> Self {
        Self::fitting(ns / 10.0)
    }

    /// The unit that shows a single duration with few digits.
    fn fitting(ns: f64) -> Self {
        match ns.abs() {
            ns if ns < 1e3 => TimeUnit::Ns,
            ns if ns < 1e6 => TimeUnit::Us,
            ns if ns < 1e9 => TimeUnit::Ms,
            _ => TimeUnit::S,
        }
    }
}

impl Cell {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Cell::Text(text.into())
    }

    /// A whole number; it stops at `i64::MAX`.
    pub fn count(value: u64) -> Self {
        Cell::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// A number with decimals for people.
    pub fn float(value: f64, decimals: u8) -> Self {
        Cell::Float { value, decimals }
    }

    /// A duration in whole ns.
    pub fn duration_ns(ns: u64) -> Self {
        Cell::Duration { ns: ns as f64 }
    }

    /// A percentage with decimals for people.
    pub fn percent(value: f64, decimals: u8) -> Self {
        Cell::Percent { value, decimals }
    }

    /// A number with decimals for people and a unit of its own.
    pub fn quantity(value: f64, decimals: u8, unit: impl Into<String>) -> Self {
        Cell::Quantity { value, decimals, unit: unit.into() }
    }

    /// The cell of a value that may not be measured.
    pub fn known<T>(value: Option<T>, cell: impl FnOnce(T) -> Cell) -> Self {
        value.map_or(Cell::NotMeasured, cell)
    }

    /// Whether there is no value: not measured, or a float that is not a number.
    pub fn is_missing(&self) -> bool {
        match self {
            Cell::NotMeasured => true,
            Cell::Float { value, .. }
            | Cell::Percent { value, .. }
            | Cell::Quantity { value, .. } => !value.is_finite(),
            Cell::Duration { ns } => !ns.is_finite(),
            Cell::Text(_) | Cell::Int(_) => false,
        }
    }

    /// The cell for people: in the unit of its column, or, with `None`, with a unit of its own.
    pub(crate) fn for_people(&self, column: Option<TimeUnit>) -> String {
        if self.is_missing() {
            return NOT_MEASURED.to_owned();
        }
        match self {
            Cell::Text(text) => printable(text),
            Cell::Int(value) => value.to_string(),
            Cell::Float { value, decimals }
            | Cell::Percent { value, decimals }
            | Cell::Quantity { value, decimals, .. } => fixed(*value, *decimals),
            Cell::Duration { ns } => match column {
                Some(unit) => unit.format(*ns),
                None => {
                    let unit = TimeUnit::fitting(*ns);
                    format!("{} {}", unit.format(*ns), unit.symbol())
                }
            },
            Cell::NotMeasured => NOT_MEASURED.to_owned(),
        }
    }

    /// The cell for people with its unit behind it, for a place that has none; durations are in the unit that needs
    /// few digits.
    pub fn with_unit(&self) -> String {
        let text = self.for_people(None);
        match self {
            Cell::Percent { .. } if !self.is_missing() => format!("{text} %"),
            Cell::Quantity { unit, .. } if !self.is_missing() => {
                format!("{text} {}", printable(unit))
            }
            _ => text,
        }
    }

    /// The raw value as a text; empty where there is none.
    pub(crate) fn raw_text(&self) -> String {
        match self {
            _ if self.is_missing() => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Int(value) => value.to_string(),
            Cell::Float { value, .. }
            | Cell::Percent { value, .. }
            | Cell::Quantity { value, .. }
            | Cell::Duration { ns: value } => {
                whole(*value).map_or_else(|| value.to_string(), |value| value.to_string())
            }
            Cell::NotMeasured => String::new(),
        }
    }

    /// The unit of the raw value; `None` for texts and plain numbers.
    pub(crate) fn raw_unit(&self) -> Option<&str> {
        match self {
            Cell::Duration { .. } => Some("ns"),
            Cell::Percent { .. } => Some("percent"),
            Cell::Quantity { unit, .. } => Some(unit),
            Cell::Text(_) | Cell::Int(_) | Cell::Float { .. } | Cell::NotMeasured => None,
        }
    }
}

/// A float without fraction that an integer holds exactly.
pub(crate) fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
}

/// A number with a fixed count of decimals; a negative one that rounds to zero loses its sign.
fn fixed(value: f64, decimals: u8) -> String {
    let text = format!("{value:.*}", usize::from(decimals));
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        _ => text,
    }
}

/// Names come out of traces: a character in one that controls a terminal must reach neither it nor a picture, whose XML
/// has no room for two others as well.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { '\u{fffd}' }).collect()
}

/// Whether a character may stand in a name that is shown: not a control character (C0, C1, DEL), no mark, embedding,
/// override or isolate of the direction of writing (Unicode's annex 9), and none that XML lacks.
pub fn is_printable(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !turns && !matches!(c, '\u{fffe}' | '\u{ffff}')
}
