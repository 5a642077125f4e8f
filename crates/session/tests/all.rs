//! The integration tests of the crate, linked as one program.

mod runs;
mod spec;
