//! Tables of tasks as `top` shows them.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use crate::program::TopLine;

/// A table of tasks for each of its columns: runs and given figures, each in the order of its own %CPU.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopTable {
    pub(crate) title: String,
    /// Names of runs and of given figures, in order.
    pub(crate) columns: Vec<String>,
}

/// Reads lines as `top` printed them; the head is left out.
pub(super) fn lines<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<TopLine>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !TopLine::is_head(line));
    let parse = |line: &str| {
        TopLine::parse(line).ok_or_else(|| {
            D::Error::custom(format!(
                "`{line}` is no line of top: PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND"
            ))
        })
    };
    lines.map(parse).collect()
}
