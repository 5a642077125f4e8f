//! A run as a file describes it, and as a sweep makes it.

use serde::Deserialize;

use super::locks::Locks;

/// A run; its words are those of a spec.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RunEntry {
    pub(super) name: String,
    pub(super) locks: Option<Locks>,
    pub(super) against: Option<String>,
    #[serde(default)]
    pub(super) reports: bool,
    #[serde(default)]
    pub(super) user_time: UserTimeEntry,
    #[serde(flatten)]
    pub(super) words: toml::Table,
}

/// How the user time that a program reports is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UserTimeEntry {
    /// To the nanosecond.
    #[default]
    Exact,
    /// By sampling at ticks.
    Ticks,
}

/// The decimals of a table that states none.
pub(super) fn two() -> u8 {
    2
}
