//! Tables and pictures for people and for programs.
//!
//! A [`Document`] is one result: what it is, how it was made (seed, parameters, cost model, versions) and [`Table`]s.
//! The same document is written as text for a terminal, as Markdown, as JSON and as CSV, with the feature `parquet`
//! also as Parquet:
//!
//! ```
//! use fairground_report::{Cell, Column, Table, TextOptions, TimeUnit};
//!
//! let mut table = Table::new("tasks", "Tasks", [
//!     Column::text("task"),
//!     Column::duration("wait", TimeUnit::Ms),
//!     Column::percent("share"),
//! ]);
//! table.push([Cell::text("hog"), Cell::duration_ns(1_500_000), Cell::percent(33.3, 1)]);
//! table.push([Cell::text("cat"), Cell::NotMeasured, Cell::percent(0.0, 1)]);
//!
//! let text = table.to_text(&TextOptions::plain());
//! assert!(text.contains("1.500") && text.contains("not measured"));
//! assert_eq!(table.to_csv(), "task,wait_ns,share_percent\nhog,1500000,33.3\ncat,,0\n");
//! ```
//!
//! A value that was not measured is [`Cell::NotMeasured`]: "not measured" to read, `null` in JSON, an empty field in
//! CSV, and never 0. Programs get raw values: durations in ns, numbers with all their digits, whatever the terminal
//! shows.
//!
//! A [`page::Page`] is the same with charts, as one HTML file.
//!
//! This crate knows no other crate of the workspace.

mod cell;
mod csv_text;
mod document;
mod fit;
mod json;
mod markdown;
pub mod page;
#[cfg(feature = "parquet")]
mod parquet_file;
mod table;
mod text;
mod tidy;

pub use cell::{Cell, TimeUnit, is_printable};
pub use document::{Document, Level, Parameter, Section, Spec, Verdict};
pub use json::{SCHEMA, SCHEMA_VERSION, json_schema};
#[cfg(feature = "parquet")]
pub use parquet_file::METRICS_SCHEMA_VERSION;
pub use table::{Align, Column, Layout, Rows, Table, Unit};
pub use text::TextOptions;

/// Text in place of a value that was not measured.
pub const NOT_MEASURED: &str = "not measured";
