//! AIM VII's `multitask`, and dbench.

use super::text::{g, seconds};
use super::{NO_ROUND, Run};

/// A line of the table of `multitask`. Its job timing index is made of the times at which its tasks end, and here none
/// ends.
pub(super) fn aim7(run: &Run<'_>) -> Result<String, String> {
    let jobs = run.marks("job").len() as f64;
    if jobs == 0.0 {
        return Err(NO_ROUND.to_owned());
    }
    let tasks = run.specs("aim7/").count();
    let real = seconds(run.length_ns());
    let own = run.outcome.analysis.groups.iter();
    let own = own.filter(|group| ["aim7", "child"].contains(&group.name.as_str()));
    let cpu_ns: Option<u64> =
        own.map(|group| group.figures.of_switches(group.figures.run_ns)).sum();
    let cpu = cpu_ns.map_or("-".to_owned(), |ns| format!("{:.2}", seconds(ns)));
    let per_minute = jobs * 60.0 / real;
    Ok(format!(
        "Tasks    jobs/min  jti  jobs/min/task      real       cpu\n\
         {tasks:5}{per_minute:12.2}{:>5}{:15.4}{real:10.2}{cpu:>10}\n",
        "-",
        per_minute / tasks.max(1) as f64
    ))
}

/// `"Throughput %g MB/sec %d procs\n"`, with megabytes of 10^6 bytes.
pub(super) fn dbench(run: &Run<'_>) -> Result<String, String> {
    let bytes = (run.marks("1 MiB").len() as u64) << 20;
    if bytes == 0 {
        return Err(NO_ROUND.to_owned());
    }
    let clients: u32 = run.specs("client").map(|client| client.count).sum();
    let rate = bytes as f64 / 1e6 / seconds(run.length_ns());
    Ok(format!("Throughput {} MB/sec {clients} procs\n", g(rate)))
}
