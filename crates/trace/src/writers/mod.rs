//! Writers of traces in other programs' formats.

mod ftrace;

pub use ftrace::{Precision, write_ftrace, write_ftrace_with};
