//! The tests of the binary, in one program.

mod analyze;
mod bad_input;
mod book;
mod completions_and_man;
mod contention;
mod diagnose;
mod docs;
mod doctor;
mod experiments;
mod failures;
mod interrupt;
mod load;
mod own_scheduler;
mod packages;
mod page;
mod parquet;
mod plots;
mod profiles;
mod progress;
mod record;
mod rt_app;
mod same_bytes;
mod schema;
mod support;
mod third_party;
mod top;
