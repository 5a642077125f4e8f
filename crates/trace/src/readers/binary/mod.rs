//! What trace-cmd's and perf's files share: numbers in either byte order, the kernel's own descriptions of its events, and
//! the decoding of an event's bytes by them.

mod cursor;
mod decode;
mod faces;
mod flat;
mod formats;
mod symbols;
mod tracing_data;

pub(super) use cursor::{Cursor, Endian};
pub(super) use decode::{Decoded, Decoder, Scratch};
pub(super) use faces::RawFaces;
pub(super) use flat::{At, Flat, Planned, RawEvent, WINDOW_BYTES, Window};
pub(super) use tracing_data::{TracingData, event_formats, ftrace_formats, header_info};

/// Why something cannot be read; the reader adds the place.
pub(super) type Why = String;
