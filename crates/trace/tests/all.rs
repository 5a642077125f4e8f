//! The tests of the readers and writers, in one program.

mod babeltrace;
mod blocked;
mod calls;
mod chrome;
mod classes;
mod compressed;
mod ctf;
mod damage;
mod dialects;
mod hardships;
mod one_run;
mod parquet;
mod perf_data;
mod perf_forms;
mod perf_losses;
mod perf_rounds;
mod perfetto;
mod perfetto_read;
mod prints;
mod recording;
mod round_trip;
mod samples;
mod support;
mod texts;
mod trace_dat;
mod wakers;
