//! A recording of a real machine, read and analysed by the library, compared with `perf sched timehist` of the same
//! recording (experiments/recordings/README.md).

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Read};
use std::path::PathBuf;

use fairground_analysis::{Analysis, Options, TaskMetrics};
use fairground_trace::{EventKind, TaskId, TaskState, Trace};
use flate2::read::MultiGzDecoder;

/// perf's line of a task.
struct Perf {
    comm: String,
    switches: u64,
    run_ms: f64,
    wait_ms: f64,
}

/// Tolerated relative difference.
const TOLERANCE: f64 = 0.01;
/// perf prints whole µs of each of the four figures that are added here, ms.
const ROUNDING_MS: f64 = 0.002;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../experiments/recordings").join(name)
}

fn recording(name: &str) -> Trace {
    let packed = fs::File::open(file(name)).expect("the recording is in the repository");
    let mut text = String::new();
    MultiGzDecoder::new(packed).read_to_string(&mut text).expect("gzip of text");
    fairground_trace::read(name, BufReader::new(text.as_bytes())).expect("a recording")
}

fn perf_figures(name: &str) -> BTreeMap<u32, Perf> {
    let text = fs::read_to_string(file(name)).expect("the figures are in the repository");
    let line = |line: &str| {
        let f: Vec<&str> = line.split('\t').collect();
        let ms = |i: usize| f[i].parse::<f64>().expect("a number of ms");
        let perf = Perf {
            comm: f[1].to_owned(),
            switches: f[2].parse().expect("a count"),
            run_ms: ms(3),
            wait_ms: ms(4) + ms(5) + ms(6),
        };
        (f[0].parse().expect("a pid"), perf)
    };
    text.lines().skip(1).map(line).collect()
}

fn close(ours_ns: u64, perf_ms: f64) -> bool {
    let ours_ms = ours_ns as f64 / 1e6;
    (ours_ms - perf_ms).abs() <= TOLERANCE * perf_ms + ROUNDING_MS
}

/// Waits that timehist does not report, by task: the wake-up came while the task was going to sleep, and perf drops it
/// at the switch that follows.
fn unseen_by_perf(trace: &Trace) -> Vec<u64> {
    #[derive(Clone, Copy, PartialEq)]
    enum Wake {
        None,
        WhileRunning,
        Waiting(u64),
    }
    let mut running = vec![TaskId::IDLE; trace.cpus as usize];
    let mut wake = vec![Wake::None; trace.tasks().len()];
    let mut unseen_ns = vec![0; trace.tasks().len()];
    for event in trace.events() {
        match event.kind {
            EventKind::Waking { task, .. } if running.contains(&task) => {
                wake[task.index()] = Wake::WhileRunning;
            }
            EventKind::Switch { prev, prev_state, next } => {
                running[event.cpu as usize] = next;
                let slept = prev_state != TaskState::Runnable;
                wake[prev.index()] = match wake[prev.index()] {
                    Wake::WhileRunning if slept => Wake::Waiting(event.time_ns),
                    _ => Wake::None,
                };
                if let Wake::Waiting(since_ns) = wake[next.index()] {
                    unseen_ns[next.index()] += event.time_ns - since_ns;
                    wake[next.index()] = Wake::None;
                }
            }
            _ => {}
        }
    }
    unseen_ns
}

#[test]
fn analyze_agrees_with_perf_sched_timehist() {
    let trace = recording("mixed-2cpu-whole.perf-sched.txt.gz");
    assert_eq!(
        (trace.loss.unreadable, trace.loss.lost_events, trace.loss.truncated),
        (0, 0, false)
    );
    let analysis = Analysis::of(&trace, &Options::default());
    let by_pid: BTreeMap<u32, &TaskMetrics> = analysis.tasks.iter().map(|t| (t.pid, t)).collect();
    let perf = perf_figures("mixed-2cpu-whole.perf-figures.tsv");
    assert!(perf.len() > 50, "only {} tasks", perf.len());
    let unseen_ns = unseen_by_perf(&trace);
    assert!(unseen_ns.iter().filter(|ns| **ns > 0).count() < 5, "the exception is no rule");
    let (mut switches, mut wrong) = (0, Vec::new());
    for (pid, expected) in &perf {
        let task = by_pid.get(pid).unwrap_or_else(|| panic!("no task {pid}"));
        let figures = &task.figures;
        switches += figures.switches_away();
        if figures.switches_away() != expected.switches {
            wrong.push(format!("{pid} {}: {} switches", expected.comm, figures.switches_away()));
        }
        // Tasks that run or wait at the end have no line of their own in timehist.
        let open_ns = figures.slices.values_ns().iter().sum::<u64>();
        if !close(open_ns, expected.run_ms) {
            wrong.push(format!(
                "{pid} {}: ran {open_ns} ns, perf {} ms",
                expected.comm, expected.run_ms
            ));
        }
        let waited_ns = figures.waits.sum_ns() - unseen_ns[task.task.index()];
        if !close(waited_ns, expected.wait_ms) {
            let line = format!("waited {waited_ns} ns, perf {} ms", expected.wait_ms);
            wrong.push(format!("{pid} {}: {line}", expected.comm));
        }
    }
    assert!(wrong.is_empty(), "{} figures differ from perf's:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(switches, perf.values().map(|p| p.switches).sum::<u64>());
    assert_eq!(analysis.machine.switches, 6_003, "perf's total number of context switches");
}

#[test]
fn the_comparison_can_fail() {
    assert!(close(1_000_000, 1.0) && close(1_000_000, 1.008));
    assert!(!close(1_000_000, 1.02) && !close(0, 0.01));
}
