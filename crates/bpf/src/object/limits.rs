//! How large an object may be. A real scheduler stays below a tenth of each limit.

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
pub(crate) const MAX_DATA_BYTES: u64 = 64 << 20;
/// Maps, data sections included.
pub(crate) const MAX_MAPS: u64 = 1 << 10;
/// Types of the type information.
pub(crate) const MAX_TYPES: u64 = 1 << 20;
/// Bytes of all data sections in memory.
pub(crate) const MAX_DATA_TOTAL_BYTES: u64 = 256 << 20;

/// Refuses a value above a limit.
pub(crate) fn check(what: &'static str, value: u64, limit: u64) -> Result<(), LoadCause> {
    if value > limit { Err(LoadCause::Limit { what, value, limit }) } else { Ok(()) }
}
