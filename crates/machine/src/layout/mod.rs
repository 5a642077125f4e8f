//! The simulated kernel as programs see it: the types that CO-RE relocations are resolved against, and the places of
//! their fields. Contains only fields that the machine updates; a program that reads another one ends in a trap that
//! names it.

mod arguments;
pub(crate) mod offsets;
mod types;

pub(crate) use types::kernel_types;
