//! The tests of the readers and writers, in one program.

mod calls;
mod chrome;
mod classes;
mod damage;
mod dialects;
mod hardships;
mod parquet;
mod perf_data;
mod perf_losses;
mod perf_rounds;
mod perfetto;
mod prints;
mod recording;
mod round_trip;
mod support;
mod texts;
mod trace_dat;
