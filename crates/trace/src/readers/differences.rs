//! Times of a text that count from the line before (`perf script --deltatime`), not from a beginning.
//!
//! Both kinds of text begin with 0. Lines of perf are in order of time, so a time that goes back is a difference; until
//! one does, or enough lines have not, lines are held.

use super::{babeltrace, line, prefix};

/// Lines that are held. Of so many differences none that is shorter than the one before is out of the question.
const LINES_MAX: usize = 64;
/// Bytes that are held.
const BYTES_MAX: usize = 1 << 20;

/// The reader's next step with a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Offer {
    Take,
    Hold,
    /// Take all that were held, this one included.
    Release,
}

/// How a text counts time.
#[derive(Debug, Default)]
pub(super) enum Clock {
    /// There was no event yet.
    #[default]
    Unknown,
    /// The first event is at 0: lines with their numbers, their bytes, and the last time, ns.
    Held { lines: Vec<(u64, String)>, bytes: usize, last_ns: u64 },
    /// It is known; the lines that were held are to be taken. Of differences, the sum so far, ns.
    Known { lines: Vec<(u64, String)>, sum_ns: Option<u64> },
}

impl Clock {
    /// Looks at the next line.
    pub(super) fn offer(&mut self, number: u64, text: &str) -> Offer {
        let time_ns = match self {
            Self::Known { .. } => return Offer::Take,
            _ => line::parse(prefix::strip(text).unwrap_or(text)).ok().map(|line| line.time_ns),
        };
        match self {
            Self::Unknown if time_ns == Some(0) => {
                let lines = vec![(number, text.to_owned())];
                *self = Self::Held { lines, bytes: text.len(), last_ns: 0 };
                Offer::Hold
            }
            Self::Held { lines, bytes, last_ns } => {
                lines.push((number, text.to_owned()));
                *bytes += text.len();
                let goes_back = time_ns.is_some_and(|time_ns| time_ns < *last_ns);
                if !goes_back && lines.len() < LINES_MAX && *bytes < BYTES_MAX {
                    *last_ns = time_ns.unwrap_or(*last_ns);
                    return Offer::Hold;
                }
                let lines = std::mem::take(lines);
                *self = Self::Known { lines, sum_ns: goes_back.then_some(0) };
                Offer::Release
            }
            _ => {
                if time_ns.is_some() || babeltrace::is_event(text) {
                    *self = Self::Known { lines: Vec::new(), sum_ns: None };
                }
                Offer::Take
            }
        }
    }

    /// The lines that were held.
    pub(super) fn release(&mut self) -> Vec<(u64, String)> {
        match self {
            Self::Unknown => Vec::new(),
            Self::Known { lines, .. } => std::mem::take(lines),
            Self::Held { lines, .. } => {
                let lines = std::mem::take(lines);
                *self = Self::Known { lines: Vec::new(), sum_ns: None };
                lines
            }
        }
    }

    /// The time of an event, whose line says this.
    pub(super) fn time_ns(&mut self, time_ns: u64) -> u64 {
        match self {
            Self::Known { sum_ns: Some(sum_ns), .. } => {
                *sum_ns = sum_ns.saturating_add(time_ns);
                *sum_ns
            }
            _ => time_ns,
        }
    }
}
