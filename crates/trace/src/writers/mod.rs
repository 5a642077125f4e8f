//! Writers of traces in other programs' formats.

mod chrome;
#[cfg(feature = "parquet")]
mod columnar;
mod ftrace;
mod own;
mod perfetto;
mod trace_dat;
mod view;

pub use chrome::write_chrome;
#[cfg(feature = "parquet")]
pub use columnar::{EVENTS_SCHEMA_VERSION, EventBatches, write_arrow, write_parquet};
pub use ftrace::{Precision, write_ftrace, write_ftrace_with};
pub use perfetto::write_perfetto;
pub use trace_dat::write_trace_dat;
