//! The tests of the metrics on traces, in one program.

mod absence;
mod analytic;
mod cgroups;
mod contention;
mod counters;
mod definition_pages;
mod diagnose;
mod difference;
mod files;
mod laws;
mod open_waits;
mod perf_agreement;
mod perf_sched;
mod slice_program;
mod states;
mod tape;
mod wakeups;
