//! What the simulated kernel looks like to a program: the types that CO-RE relocations are resolved against, and where
//! the machine keeps their fields. Only fields that the machine really keeps up to date are there; a program that reads
//! another one ends in a trap that names it.

mod constants;
pub(crate) mod offsets;
mod types;

pub(crate) use constants::constant;
pub(crate) use types::kernel_types;
