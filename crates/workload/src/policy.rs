//! Scheduling policies.

use std::fmt;
use std::ops::RangeInclusive;

use crate::units::TextError;

/// Priorities of the real-time policies (`sched_get_priority_min(2)`, `sched_get_priority_max(2)`).
pub const RT_PRIORITIES: RangeInclusive<u8> = 1..=99;

/// The scheduling policy of a task, with its priority (`sched(7)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedPolicy {
    /// `SCHED_OTHER`: the class of the scheduler under test.
    #[default]
    Other,
    /// `SCHED_FIFO` of a priority, 1…99, a higher one first: the task runs until it blocks, yields, or one of a higher
    /// priority preempts it.
    Fifo(u8),
    /// `SCHED_RR` of a priority, 1…99: as `SCHED_FIFO`, in turns of 100 ms among tasks of one priority.
    Rr(u8),
}

impl SchedPolicy {
    /// The names of all policies in files.
    pub const WORDS: [&'static str; 3] = ["other", "fifo", "rr"];

    /// The policy of a name, with a priority where it needs one; `None`: no such name.
    pub fn of_word(word: &str, priority: u8) -> Option<SchedPolicy> {
        match word {
            "other" => Some(SchedPolicy::Other),
            "fifo" => Some(SchedPolicy::Fifo(priority)),
            "rr" => Some(SchedPolicy::Rr(priority)),
            _ => None,
        }
    }

    /// Reads `other`, `fifo:50` or `rr:50`.
    ///
    /// # Errors
    /// An unknown name, a real-time policy without a priority from 1 to 99, or another one with a priority.
    pub fn parse(text: &str) -> Result<SchedPolicy, TextError> {
        let (word, priority) = match text.split_once(':') {
            Some((word, priority)) => (word, priority.parse().ok()),
            None => (text, Some(0)),
        };
        let policy = priority.and_then(|priority| SchedPolicy::of_word(word, priority));
        let has_priority = text.contains(':');
        policy
            .filter(|policy| {
                policy.priority().is_some() == has_priority && policy.problem().is_none()
            })
            .ok_or_else(|| {
                let help = "write `other`, or `fifo:50` or `rr:50` with a priority from 1 to 99";
                TextError::new(format!("`{text}` is no scheduling policy"), help)
            })
    }

    /// Its name in files.
    pub fn word(self) -> &'static str {
        match self {
            SchedPolicy::Other => "other",
            SchedPolicy::Fifo(_) => "fifo",
            SchedPolicy::Rr(_) => "rr",
        }
    }

    /// Its priority, if it is a real-time policy.
    pub fn priority(self) -> Option<u8> {
        match self {
            SchedPolicy::Other => None,
            SchedPolicy::Fifo(priority) | SchedPolicy::Rr(priority) => Some(priority),
        }
    }

    /// The problem with the priority, and the remedy; `None` if there is none.
    pub(crate) fn problem(self) -> Option<(String, &'static str)> {
        let wrong = self.priority().filter(|priority| !RT_PRIORITIES.contains(priority))?;
        Some((format!("the priority {wrong} is out of range"), "write a `priority` from 1 to 99"))
    }
}

impl fmt::Display for SchedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.priority() {
            None => f.write_str(self.word()),
            Some(priority) => write!(f, "{} {priority}", self.word()),
        }
    }
}
