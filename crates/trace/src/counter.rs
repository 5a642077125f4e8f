//! Numbers that change over time, beside the events.

use crate::TaskId;

/// The owner of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterOf {
    /// A CPU.
    Cpu(u32),
    /// A task.
    Task(TaskId),
}

/// The unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    /// Nanoseconds.
    Ns,
    /// A count.
    Count,
    /// A scheduler's own unit, such as weighted virtual time.
    Own,
}

/// A number over time, drawn by the writers that can as a track of its own: the depth of a queue, a task's virtual
/// time. A number that cannot be had has no counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its owner.
    pub of: CounterOf,
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: CounterUnit,
    /// From when (ns of the trace's clock) it had which value, in order of time. Before the first the value is not
    /// known.
    pub points: Vec<(u64, i64)>,
}

impl Counter {
    /// A counter without values.
    pub fn new(of: CounterOf, name: &str, unit: CounterUnit) -> Self {
        Self { of, name: name.to_owned(), unit, points: Vec::new() }
    }

    /// Notes that the value is `value` from `time_ns` on; of several at one instant the last one stays, and an equal
    /// value is no new point.
    pub fn set(&mut self, time_ns: u64, value: i64) {
        if let Some(last) = self.points.last_mut().filter(|last| last.0 == time_ns) {
            last.1 = value;
        } else if self.points.last().is_none_or(|last| last.1 != value) {
            self.points.push((time_ns, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_points() {
        let mut counter = Counter::new(CounterOf::Cpu(0), "queue", CounterUnit::Count);
        for (time_ns, value) in [(1, 5), (2, 5), (3, 7), (3, 8), (4, 8)] {
            counter.set(time_ns, value);
        }
        assert_eq!(counter.points, [(1, 5), (3, 8)]);
    }
}
