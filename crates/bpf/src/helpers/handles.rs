//! Arguments that name a map or a function of the program.

use crate::layout;
use crate::trap::Trap;

/// The map that an argument names.
pub(super) fn map(handle: u64) -> Result<usize, Trap> {
    layout::handle_map(handle)
        .ok_or_else(|| Trap::helper(format!("{handle:#x} is not the address of a map")))
}

/// The function that an argument names.
pub(super) fn function(handle: u64) -> Result<usize, Trap> {
    layout::handle_function(handle)
        .ok_or_else(|| Trap::helper(format!("{handle:#x} is not the address of a function")))
}
