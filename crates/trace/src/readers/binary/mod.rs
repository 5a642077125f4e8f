//! The common part of trace-cmd's and perf's files: numbers in either byte order, the kernel's descriptions of its
//! events, and decoding by them.

mod cursor;
mod decode;
mod formats;
mod symbols;
mod tracing_data;

pub(super) use cursor::{Cursor, Endian, Why};
pub(super) use decode::Decoder;
pub use decode::tick_symbols;
pub(super) use formats::TextBytes;
pub(super) use tracing_data::{MAGIC, TracingData, event_formats, ftrace_formats, header_info};
