//! The tests of sessions, in one program.

mod follow;
mod replay;
mod runs;
mod spec;
