//! The tests of tables and pages, in one program.

mod formats;
mod parquet;
#[cfg(feature = "plots")]
mod pictures;
