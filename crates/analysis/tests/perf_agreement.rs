//! The figures of a recording of a real machine against those that `perf sched` gives for the same recording.

use crate::perf_sched::Timehist;
use fairground_analysis::{Analysis, Options};
use fairground_trace::{Event, EventKind, TaskId, TaskInfo, TaskState, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/recordings/");

fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{RECORDINGS}{name}")).expect("the recording is part of the repository")
}

fn recorded_text() -> String {
    let packed = file("mixed-2cpu.perf-sched.txt.gz");
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(packed.as_slice());
    unpacked.read_to_string(&mut text).expect("gzip of UTF-8 text");
    text
}

/// The value of ` key=value` in a line of `perf script`.
fn value<'a>(line: &'a str, key: &str) -> &'a str {
    let at = line.find(&format!(" {key}=")).unwrap_or_else(|| panic!("no {key} in {line}"));
    let value = &line[at + key.len() + 2..];
    value.split(' ').next().unwrap_or(value)
}

fn number(line: &str, key: &str) -> u32 {
    value(line, key).parse().unwrap_or_else(|_| panic!("{key} in {line}"))
}

/// As much of a reader as this one recording needs, and independent of the library's.
#[derive(Default)]
struct Tasks(BTreeMap<u32, TaskId>);

impl Tasks {
    fn id(&mut self, trace: &mut Trace, line: &str, comm: &str, pid: &str) -> TaskId {
        let (comm, pid) = (value(line, comm), number(line, pid));
        if pid == 0 {
            return TaskId::IDLE;
        }
        *self.0.entry(pid).or_insert_with(|| trace.add_task(TaskInfo::new(pid, comm)))
    }
}

fn recording(text: &str) -> Trace {
    let (mut trace, mut tasks) = (Trace::new(2), Tasks::default());
    for line in text.lines() {
        let (_, rest) = line.split_once(" [").unwrap_or_else(|| panic!("no CPU in {line}"));
        let (cpu, rest) = rest.split_once(']').unwrap_or_else(|| panic!("no CPU in {line}"));
        let mut words = rest.split_whitespace();
        let time = words.next().unwrap_or_default().trim_end_matches(':').replace('.', "");
        let time_ns: u64 = time.parse().unwrap_or_else(|_| panic!("no time in {line}"));
        let event = words.next().unwrap_or_default().trim_end_matches(':');
        let mut id = |comm: &str, pid: &str| tasks.id(&mut trace, line, comm, pid);
        let kind = match event.trim_start_matches("sched:") {
            "sched_switch" => EventKind::Switch {
                prev: id("prev_comm", "prev_pid"),
                prev_state: match value(line, "prev_state") {
                    "R" | "R+" => TaskState::Runnable,
                    "S" => TaskState::Sleeping,
                    "D" => TaskState::Uninterruptible,
                    "Z" | "X" => TaskState::Dead,
                    _ => TaskState::Parked,
                },
                next: id("next_comm", "next_pid"),
            },
            "sched_waking" => EventKind::Waking {
                task: id("comm", "pid"),
                waker: TaskId::IDLE,
                target_cpu: number(line, "target_cpu"),
            },
            "sched_wakeup" => EventKind::Wakeup {
                task: id("comm", "pid"),
                target_cpu: number(line, "target_cpu"),
            },
            "sched_wakeup_new" => EventKind::WakeupNew {
                task: id("comm", "pid"),
                target_cpu: number(line, "target_cpu"),
            },
            "sched_process_exit" => EventKind::Exit { task: id("comm", "pid") },
            _ => continue,
        };
        if trace.is_empty() {
            trace.start_ns = time_ns;
        }
        trace.end_ns = time_ns;
        let cpu = cpu.parse().unwrap_or_else(|_| panic!("no CPU in {line}"));
        trace.push(Event { time_ns, cpu, insns: 0, kind });
    }
    trace
}

/// perf's own output: the part below a heading, up to the next one.
fn perf_says(heading: &str) -> Vec<String> {
    let text = String::from_utf8(file("mixed-2cpu.perf-figures.txt")).expect("UTF-8");
    let lines = text.lines().skip_while(|line| *line != heading).skip(1);
    lines.take_while(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// The lines of `timehist -s --state`: pid, sched-in, and run-time, sleep, iowait, preempt, delay in µs.
fn timehist_lines() -> Vec<(u32, u64, [u64; 5])> {
    let micros = |word: &str| word.replace('.', "").parse().ok();
    let line = |line: &String| {
        let (name, figures) = line.rsplit_once(']')?;
        let pid = name.rsplit_once('[')?.1.split('/').next()?.parse().ok()?;
        let words: Vec<&str> = figures.split_whitespace().collect();
        let [.., count, run, sleep, iowait, preempt, delay] = words.as_slice() else {
            return None;
        };
        let times = [run, sleep, iowait, preempt, delay].map(|word| micros(word));
        let [Some(run), Some(sleep), Some(iowait), Some(preempt), Some(delay)] = times else {
            return None;
        };
        Some((pid, count.parse().ok()?, [run, sleep, iowait, preempt, delay]))
    };
    perf_says("# perf sched timehist -s --state").iter().filter_map(line).collect()
}

/// The lines of `latency -p`: pid, count, and their mean delay in µs.
fn latency_lines() -> Vec<(u32, u64, f64)> {
    let line = |line: &String| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let pid = columns.first()?.rsplit_once(':')?.1.parse().ok()?;
        let mean_ms: f64 =
            columns.get(3)?.strip_prefix("avg:")?.strip_suffix("ms")?.trim().parse().ok()?;
        Some((pid, columns.get(2)?.parse().ok()?, mean_ms * 1000.0))
    };
    perf_says("# perf sched latency -p").iter().filter_map(line).collect()
}

#[test]
fn by_perfs_rules_every_figure_of_timehist_is_the_same() {
    let trace = recording(&recorded_text());
    let timehist = Timehist::of(&trace);
    let total = perf_says("# perf sched timehist -s --state")
        .iter()
        .find_map(|line| line.strip_prefix("Total number of context switches: ")?.parse().ok());
    assert_eq!(Some(timehist.switches), total);
    assert_eq!(Analysis::of(&trace, &Options::default()).machine.switches, timehist.switches);
    let by_pid: BTreeMap<u32, _> =
        trace.tasks().iter().zip(&timehist.tasks).map(|(info, task)| (info.pid, task)).collect();
    let lines = timehist_lines();
    assert!(lines.len() > 120, "perf lists 125 tasks, two of them idle: {}", lines.len());
    for (pid, sched_in, [run_us, sleep_us, iowait_us, preempt_us, delay_us]) in lines {
        let ours = by_pid[&pid];
        // perf cuts each time to µs.
        let ours =
            (ours.sched_in, ours.run_ns / 1000, ours.delay_ns / 1000, ours.off_cpu_ns / 1000);
        assert_eq!((ours.0, ours.1, ours.2), (sched_in, run_us, delay_us), "pid {pid}");
        let off_cpu_us = sleep_us + iowait_us + preempt_us;
        assert!(
            (off_cpu_us..=off_cpu_us + 3).contains(&ours.3),
            "pid {pid}: {} {off_cpu_us}",
            ours.3
        );
    }
}

#[test]
fn run_time_is_perfs_where_the_recording_is_whole() {
    let trace = recording(&recorded_text());
    let analysis = Analysis::of(&trace, &Options::default());
    let timehist = Timehist::of(&trace);
    // Eight switches are missing; perf counts the same eight ("context switch bugs" of `perf sched latency`).
    assert_eq!(analysis.irregularities.broken_switches, 8);
    let (mut whole, mut broken) = (0, Vec::new());
    for task in &analysis.tasks {
        let (ours, perfs) = (&task.figures, &timehist.tasks[task.task.index()]);
        let complete_ns = ours.slices.sum_ns();
        if complete_ns.abs_diff(perfs.run_ns) * 100 <= perfs.run_ns {
            whole += 1;
        } else {
            broken.push(task.name.as_str());
            assert!(complete_ns < perfs.run_ns && ours.unknown_ns > 0 && ours.slices.censored > 0);
        }
    }
    // In one of these the kernel itself says 7 µs (sched_stat_runtime) where perf gives rcu_preempt 1038 µs.
    assert_eq!(broken.len(), 4, "{broken:?}");
    assert!(whole > 120);
}

#[test]
fn wait_time_is_that_of_perf_sched_latency() {
    let text = recorded_text();
    let trace = recording(&text);
    let analysis = Analysis::of(&trace, &Options::default());
    // perf does not take a switch-out in R+ for the begin of a wait.
    let in_kernel: BTreeSet<u32> = text
        .lines()
        .filter(|line| line.contains(" prev_state=R+ "))
        .map(|line| number(line, "prev_pid"))
        .collect();
    let mut compared = 0;
    for (pid, count, mean_us) in latency_lines() {
        let Some(task) = analysis.tasks.iter().find(|task| task.pid == pid) else {
            panic!("perf knows pid {pid}");
        };
        let figures = &task.figures;
        if in_kernel.contains(&pid) || figures.waits.censored > 0 {
            continue;
        }
        compared += 1;
        assert_eq!(figures.waits.count(), count, "pid {pid}");
        // perf begins with sched_wakeup, so the time between waking and wakeup is not in it. Its mean has three
        // decimals.
        let ours_us = (figures.waits.sum_ns() - figures.waking_ns) as f64 / 1000.0;
        let perfs_us = mean_us * count as f64;
        let rounding_us = 0.5 * count as f64 + 1.0;
        assert!(
            (ours_us - perfs_us).abs() <= 0.01 * perfs_us + rounding_us,
            "{} {pid}: {ours_us} µs, perf {perfs_us} µs",
            task.name
        );
    }
    assert!(compared > 70, "{compared}");
}
