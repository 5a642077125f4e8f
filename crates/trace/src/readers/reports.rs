//! Outputs of tools about scheduling that hold no events: sums, histograms, dumps. Such a text is recognised by a line,
//! wherever that stands, and only if the input has no event.

use super::magic::Foreign;

/// Lines that are examined.
const LINES_MAX: u64 = 4_096;

const GIVE_PERF_DATA: &str =
    "give the perf.data from which it was made, or what `perf sched script` prints of it";
const RECORD: &str =
    "record the events of the same load: `fairground record --duration 2s -o recording.dat`";
const RUN_OR_RECORD: &str = "record the same load under the scheduler (`fairground record --duration 2s -o \
    recording.dat`), or run the scheduler in the simulated machine (`fairground run WORKLOAD --sched OBJECT`)";
const SCX_DUMP: &str =
    "the debug dump that sched_ext prints when it ejects a scheduler; it holds no events";
const HISTOGRAM: &str = "a histogram of bcc or bpftrace (runqlat, cpudist …), without events";
const RTLA: &str = "what `rtla` prints, a table of latencies without events";
const CYCLICTEST: &str = "what `cyclictest` prints, latencies without events";

/// Texts of a line that must all be in it, what prints it, and what to do.
type Sign = (&'static [&'static str], &'static str, &'static str);

const SIGNS: [Sign; 36] = [
    (&["DEBUG DUMP"], SCX_DUMP, RUN_OR_RECORD),
    (&["triggered exit kind "], SCX_DUMP, RUN_OR_RECORD),
    (&["nr_run=", "ops_qseq="], SCX_DUMP, RUN_OR_RECORD),
    (&["scx_state/flags="], SCX_DUMP, RUN_OR_RECORD),
    (&["failed to run for", "runnable task stall"], SCX_DUMP, RUN_OR_RECORD),
    (
        &["Task ", "Runtime ms", "delay ms"],
        "a table of `perf sched latency`, without events",
        GIVE_PERF_DATA,
    ),
    (&["task name", "wait time", "sch delay"], "a table of `perf sched timehist`", GIVE_PERF_DATA),
    (&[" secs ", " => "], "what `perf sched map` prints", GIVE_PERF_DATA),
    (
        &["Columns description"],
        "what `perf sched stats` prints, sums without events",
        GIVE_PERF_DATA,
    ),
    (&["# Overhead "], "what `perf report` prints, sums without events", GIVE_PERF_DATA),
    (&["Performance counter stats for"], "what `perf stat` prints, sums without events", RECORD),
    (&["# Running '", "' benchmark"], "what `perf bench` prints, sums without events", RECORD),
    (&[": count ", "distribution"], HISTOGRAM, RECORD),
    (&["Tracing ", "Hit Ctrl-C to end"], HISTOGRAM, RECORD),
    (&["Attaching ", " probe"], HISTOGRAM, RECORD),
    (&["|@"], HISTOGRAM, RECORD),
    (&["COMM ", "LAT(us)"], "what `runqslower` prints: long waits alone", RECORD),
    (&["T:", " I:", "Min:", "Max:"], CYCLICTEST, RECORD),
    (&["/dev/cpu_dma_latency set to"], CYCLICTEST, RECORD),
    (&["# Min Latencies:"], CYCLICTEST, RECORD),
    (&["# RTLA "], RTLA, RECORD),
    (&["Timer Latency"], RTLA, RECORD),
    (&["Operating System Noise"], RTLA, RECORD),
    (&["rtla ", " hit stop tracing"], RTLA, RECORD),
    (&["hwlatdetect:"], "what `hwlatdetect` prints, latencies without events", RECORD),
    (&["Wakeup Latencies percentiles"], "what `schbench` prints, latencies without events", RECORD),
    (
        &["Request Latencies percentiles"],
        "what `schbench` prints, latencies without events",
        RECORD,
    ),
    (
        &["Sched Debug Version"],
        "a copy of sched/debug, states at one moment without events",
        RECORD,
    ),
    (&["cpu0 0 0 0"], SCHEDSTAT, RECORD),
    (&["domain0 "], SCHEDSTAT, RECORD),
    (&["se.sum_exec_runtime"], "a copy of /proc/PID/sched, sums without events", RECORD),
    (&["procs ", "memory", "cpu"], "what `vmstat` prints, sums without events", RECORD),
    (&["UID ", "PID ", "cswch/s"], "what `pidstat` prints, sums without events", RECORD),
    (&["load average:", "top - "], "what `top` prints, sums without events", RECORD),
    (&["%usr", "%idle"], "what `mpstat` prints, sums without events", RECORD),
    (&["Running in process mode with"], "what `hackbench` prints, a time without events", RECORD),
];

const SCHEDSTAT: &str = "a copy of /proc/schedstat, sums without events";

/// The first line of a text that one of these tools prints.
#[derive(Debug, Default)]
pub(super) struct Reports {
    lines: u64,
    pub(super) found: Option<Foreign>,
}

impl Reports {
    /// Looks at a line, as long as the input has shown no event.
    pub(super) fn look(&mut self, text: &str) {
        if self.found.is_some() || self.lines >= LINES_MAX {
            return;
        }
        self.lines += 1;
        let signs = SIGNS.iter();
        let sign = signs.clone().find(|(words, ..)| words.iter().all(|word| text.contains(word)));
        self.found = sign.map(|(_, format, remedy)| Foreign { format, remedy });
    }
}
