//! The common part of trace-cmd's and perf's files: numbers in either byte order, the kernel's descriptions of its
//! events, and decoding by them.

mod cursor;
mod decode;
mod formats;
mod symbols;
mod tracing_data;

pub(super) use cursor::{Cursor, Endian, Why};
pub(super) use decode::{Decoded, Decoder, Scratch};
pub(super) use tracing_data::{TracingData, event_formats, ftrace_formats, header_info};
