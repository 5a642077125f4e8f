//! The tests of sessions, in one program.

mod follow;
mod follow_law;
mod replay;
mod runs;
mod self_replay;
mod spec;
