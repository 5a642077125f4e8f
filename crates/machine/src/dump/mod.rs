//! The dump of a scheduler that is ejected: its text within a limit, and the callbacks that write it.

mod state;
mod text;

pub(crate) use text::DumpText;
