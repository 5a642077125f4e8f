//! Writers of traces in other programs' formats.

mod chrome;
mod ftrace;
mod perfetto;
mod view;

pub use chrome::write_chrome;
pub use ftrace::{Precision, write_ftrace, write_ftrace_with};
pub use perfetto::write_perfetto;
