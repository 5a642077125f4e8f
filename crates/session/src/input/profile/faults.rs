//! The faults of a profile for an object, all at once, and the names that it leaves out.

use std::collections::BTreeSet;

use crate::failure::Failure;

/// Faults that are listed.
const LISTED_MAX: usize = 20;

/// The faults of a profile, and what the object of another version lacks of what an entry describes.
#[derive(Debug, Default)]
pub(in crate::input) struct ProfileFaults {
    /// The object is of another version than the entry describes: what it lacks is left out.
    other_version: bool,
    lacking: BTreeSet<String>,
    failures: Vec<Failure>,
}

impl ProfileFaults {
    pub(super) fn new(other_version: bool) -> ProfileFaults {
        ProfileFaults { other_version, ..ProfileFaults::default() }
    }

    /// Whether something that the object lacks is left out; else it is a fault, which the caller adds.
    pub(in crate::input) fn leaves_out(&mut self, name: &str) -> bool {
        if self.other_version {
            self.lacking.insert(name.to_owned());
        }
        self.other_version
    }

    pub(super) fn add(&mut self, failure: Failure) {
        self.failures.push(failure);
    }

    /// The value, or a fault more.
    pub(super) fn check<T>(&mut self, result: Result<T, Failure>) -> Option<T> {
        result.map_err(|failure| self.failures.push(failure)).ok()
    }

    /// The names that were left out, if there are no faults.
    pub(super) fn end(mut self) -> Result<Vec<String>, Failure> {
        let more = self.failures.len().saturating_sub(LISTED_MAX);
        match self.failures.len() {
            0 => return Ok(self.lacking.into_iter().collect()),
            1 => return Err(self.failures.remove(0)),
            _ => {}
        }
        let listed = self.failures.iter().take(LISTED_MAX).map(Failure::to_string);
        let mut text = listed.collect::<Vec<_>>().join("\n");
        if more > 0 {
            text += &format!("\nand {more} more");
        }
        Err(Failure::new(text))
    }
}
