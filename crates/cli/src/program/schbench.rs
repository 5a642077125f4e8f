//! `schbench`: percentiles of wake-ups, of requests, and of requests a second.

use std::fmt::Write as _;

use fairground_trace::{EventKind, TaskId};

use super::{NO_ROUND, Run};

/// What a worker marks after a request.
const REQUEST: &str = "request";
/// Sleeps of a request.
const SLEEPS: usize = 2;
/// Requests are counted in intervals of this length, ns.
const INTERVAL_NS: u64 = 1_000_000_000;
/// Values below 2 to this power plus one stand for themselves in schbench's histogram; above, a bucket is as wide as
/// the value has bits more.
const EXACT_BITS: u32 = 8;

/// Shares of the samples, %, of which its histogram keeps the counts.
const PERCENTILES: [f64; 5] = [20.0, 50.0, 90.0, 99.0, 99.9];

/// What schbench prints at the end.
pub(super) fn schbench(run: &Run<'_>) -> Result<String, String> {
    let found = Found::of(run);
    if found.requests.is_empty() {
        return Err(NO_ROUND.to_owned());
    }
    let s = run.length_ns() / 1_000_000_000;
    let mut text = String::new();
    let latencies = [("Wakeup Latencies", &found.wakeups), ("Request Latencies", &found.requests)];
    for (what, samples) in latencies {
        match samples.is_empty() {
            // Where no switch was recorded there is nothing to say.
            true => {
                text += &format!("{what} percentiles (usec) runtime {s} (s) (- total samples)\n")
            }
            false => {
                text += &percentiles(what, "usec", s, samples, &[50.0, 90.0, 99.0, 99.9], 99.0)
            }
        }
    }
    let rates: Vec<u64> = found.rates.clone();
    if !rates.is_empty() {
        text += &percentiles("RPS", "requests", s, &rates, &[20.0, 50.0, 90.0], 50.0);
    }
    let average = found.count as f64 * 1e9 / run.length_ns().max(1) as f64;
    let _ = writeln!(text, "average rps: {average:.2}");
    Ok(text)
}

/// What the marks and switches of the workers tell.
#[derive(Default)]
struct Found {
    /// From the hand-over to the worker's start, µs.
    wakeups: Vec<u64>,
    /// From its start to its mark, µs.
    requests: Vec<u64>,
    /// Requests in each whole second.
    rates: Vec<u64>,
    /// All of them.
    count: u64,
}

/// A worker since its last mark.
#[derive(Clone, Default)]
struct Worker {
    since_ns: u64,
    woken_ns: Option<u64>,
    /// Each time that it slept: when it was woken, and when it ran.
    naps: Vec<(u64, u64)>,
    /// It has blocked and has not run since.
    is_asleep: bool,
}

impl Found {
    fn of(run: &Run<'_>) -> Found {
        let trace = &run.outcome.trace;
        let mut workers = vec![Worker::default(); trace.tasks().len()];
        let (mut found, mut rate, mut next_ns) =
            (Found::default(), 0, run.start_ns() + INTERVAL_NS);
        workers.iter_mut().for_each(|worker| worker.since_ns = run.start_ns());
        for event in trace.events() {
            while event.time_ns >= next_ns && next_ns <= run.start_ns() + run.length_ns() {
                found.rates.push(std::mem::take(&mut rate));
                next_ns += INTERVAL_NS;
            }
            match event.kind {
                EventKind::Switch { prev, prev_state, next } => {
                    let blocks = !prev_state.is_runnable();
                    if let Some(worker) = workers.get_mut(prev.index()) {
                        worker.is_asleep |= blocks;
                    }
                    if let Some(worker) = workers.get_mut(next.index()) {
                        worker.run(event.time_ns);
                    }
                }
                EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } => {
                    if let Some(worker) = workers.get_mut(task.index()) {
                        worker.woken_ns.get_or_insert(event.time_ns);
                    }
                }
                EventKind::Mark { task, label, .. } if trace.label(label) == REQUEST => {
                    rate += 1;
                    found.count += 1;
                    found.request(&mut workers, task, event.time_ns);
                }
                _ => {}
            }
        }
        found
    }

    /// A worker has finished a request. It slept for each of the request's sleeps, and before them for the request
    /// itself unless one was waiting for it.
    fn request(&mut self, workers: &mut [Worker], task: TaskId, time_ns: u64) {
        let Some(worker) = workers.get_mut(task.index()) else { return };
        let start_ns = match worker.naps.len().checked_sub(SLEEPS + 1) {
            Some(nth) => {
                let (woken_ns, ran_ns) = worker.naps[nth];
                self.wakeups.push(ran_ns.saturating_sub(woken_ns) / 1_000);
                ran_ns
            }
            None => worker.since_ns,
        };
        if !worker.naps.is_empty() {
            self.requests.push(time_ns.saturating_sub(start_ns) / 1_000);
        }
        *worker = Worker { since_ns: time_ns, ..Worker::default() };
    }
}

impl Worker {
    fn run(&mut self, time_ns: u64) {
        if std::mem::take(&mut self.is_asleep) {
            self.naps.push((self.woken_ns.unwrap_or(time_ns), time_ns));
        }
        self.woken_ns = None;
    }
}

/// The middle of a value's bucket in schbench's histogram.
fn bucket(value: u64) -> u64 {
    let bits = value.checked_ilog2().unwrap_or(0).saturating_sub(EXACT_BITS);
    match bits {
        0 => value,
        _ => (value >> bits << bits) + (1 << (bits - 1)),
    }
}

/// `"%s percentiles (%s) runtime %llu (s) (%lu total samples)\n"`, a line for each share, and the ends.
fn percentiles(
    what: &str,
    unit: &str,
    s: u64,
    samples: &[u64],
    shown: &[f64],
    star: f64,
) -> String {
    let mut sorted: Vec<u64> = samples.to_vec();
    sorted.sort_unstable();
    let total = sorted.len();
    let mut text = format!("{what} percentiles ({unit}) runtime {s} (s) ({total} total samples)\n");
    let mut before = 0;
    for percent in PERCENTILES {
        let nth = ((percent / 100.0 * total as f64).ceil() as usize).clamp(1, total) - 1;
        let value = bucket(sorted[nth]);
        let upto = sorted.partition_point(|sample| bucket(*sample) <= value);
        let count = upto - before;
        before = upto;
        if shown.contains(&percent) {
            let mark = if percent == star { "* " } else { "  " };
            let _ = writeln!(text, "\t{mark}{percent:2.1}th: {value:<10} ({count} samples)");
        }
    }
    let (min, max) = (sorted.first().unwrap_or(&0), sorted.last().unwrap_or(&0));
    let _ = writeln!(text, "\t  min={min}, max={max}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_buckets_of_schbench() {
        // Values that schbench printed, and the ends of their buckets.
        let known = [
            (14_976, 14_992),
            (15_007, 14_992),
            (16_928, 16_928),
            (908, 909),
            (175, 175),
            (511, 511),
            (6_447, 6_440),
        ];
        for (value, middle) in known {
            assert_eq!(bucket(value), middle);
        }
    }

    #[test]
    fn percentiles_count_the_samples_up_to_each() {
        let samples: Vec<u64> = (1..=100).collect();
        let text = percentiles("Wakeup Latencies", "usec", 30, &samples, &[50.0, 99.9], 99.0);
        assert_eq!(
            text,
            "Wakeup Latencies percentiles (usec) runtime 30 (s) (100 total samples)\n\
             \t  50.0th: 50         (30 samples)\n\t  99.9th: 100        (1 samples)\n\
             \t  min=1, max=100\n"
        );
    }
}
