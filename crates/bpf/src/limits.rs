//! Limits of an object. A real scheduler stays below a tenth of each.
//!
//! The size of the file alone does not bound the work: a small file can refer to one long name a million times. Derived
//! data is limited, too.

use std::cell::Cell;

use crate::error::LoadCause;

/// Bytes of the file.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;
/// Sections of the file.
pub(crate) const MAX_SECTIONS: u64 = 1 << 16;
/// Symbols of the file.
pub(crate) const MAX_SYMBOLS: u64 = 1 << 20;
/// Functions.
pub(crate) const MAX_FUNCTIONS: u64 = 1 << 14;
/// Instruction slots of all functions: the kernel's `BPF_COMPLEXITY_LIMIT_INSNS`.
pub(crate) const MAX_SLOTS: u64 = 1_000_000;
/// Bytes of a data section in memory.
pub(crate) const MAX_DATA_BYTES: u64 = 256 << 20;
/// Maps, data sections included.
pub(crate) const MAX_MAPS: u64 = 1 << 10;
/// Types of the type information.
pub(crate) const MAX_TYPES: u64 = 1 << 20;
/// Bytes of all data sections in memory.
pub(crate) const MAX_DATA_TOTAL_BYTES: u64 = 256 << 20;

/// Bytes of one name or source line.
pub(crate) const MAX_TEXT_BYTES: usize = 4096;
/// Bytes of all names and source lines, each counted as often as it is named.
pub(crate) const MAX_TEXT_TOTAL_BYTES: u64 = 64 << 20;
/// Global variables.
pub(crate) const MAX_GLOBALS: u64 = 1 << 16;
/// Constants of the enumerations of global variables, counted for each variable.
pub(crate) const MAX_GLOBAL_CONSTANTS: u64 = 1 << 20;
/// Variables of struct_ops sections.
pub(crate) const MAX_STRUCT_OPS: u64 = 16;
/// Members of a struct_ops variable.
pub(crate) const MAX_STRUCT_OPS_MEMBERS: u64 = 1 << 10;
/// Bytes of a struct_ops variable.
pub(crate) const MAX_STRUCT_OPS_BYTES: u64 = 1 << 14;

/// The remaining budget for names and source lines.
#[derive(Debug)]
pub(crate) struct TextBudget(Cell<u64>);

impl TextBudget {
    pub(crate) const fn new() -> Self {
        Self(Cell::new(MAX_TEXT_TOTAL_BYTES))
    }

    /// Charges the budget for a text of `bytes` bytes.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), LoadCause> {
        check("bytes of a name", bytes as u64, MAX_TEXT_BYTES as u64)?;
        // Empty texts are charged, too.
        let left = self.0.get().checked_sub(1 + bytes as u64);
        let limit = MAX_TEXT_TOTAL_BYTES;
        let what = "bytes of all names";
        self.0.set(left.ok_or(LoadCause::Limit { what, value: limit + 1, limit })?);
        Ok(())
    }
}

/// Rejects a value above a limit.
pub(crate) fn check(what: &'static str, value: u64, limit: u64) -> Result<(), LoadCause> {
    if value > limit { Err(LoadCause::Limit { what, value, limit }) } else { Ok(()) }
}
