//! Cases with a closed-form answer.

use crate::tape::{IDLE, MS, Tape, round_robin};
use fairground_analysis::{Analysis, Options, compare, metric};
use fairground_trace::{EventKind, TaskId, TaskInfo, TaskState, Trace};

fn analyze(trace: &Trace) -> Analysis {
    Analysis::of(trace, &Options { interval_ns: Some(10 * MS), ..Options::simulated() })
}

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 0.005
}

#[test]
fn equal_tasks_in_turns_are_fair_with_one_index() {
    let mut tape = Tape::new(1);
    let tasks: Vec<TaskId> = (0..4).map(|n| tape.task(&format!("hog/{n}"))).collect();
    round_robin(&mut tape, &tasks, 2 * MS, 80 * MS);
    let analysis = analyze(&tape.end(80 * MS));
    for task in &analysis.tasks {
        let figures = &task.figures;
        assert_eq!(figures.run_ns, 20 * MS);
        assert_eq!(figures.wait_ns, 60 * MS);
        // A rate that is rounded down in its 40th bit loses at most 1 ns here.
        assert!(figures.fairness_error_ns() <= 1, "{}", figures.fairness_error_ns());
        assert_eq!(figures.cpu_share_percent(), Some(25.0));
    }
    assert_eq!(analysis.machine.jain_index, Some(1.0));
    // The first of four waits 3 slices behind a fluid share of a quarter: 1.5 ms ahead; the last lags 1.5 ms.
    assert_eq!(analysis.tasks[0].figures.lead_max_ns, 3 * MS / 2);
    assert_eq!(analysis.tasks[3].figures.lag_max_ns, 3 * MS / 2);
    let hogs = analysis.group("hog").expect("the group of hog/0 to hog/3");
    assert_eq!((hogs.figures.tasks, hogs.figures.run_ns), (4, 80 * MS));
    // 40 slices; the last is still on.
    assert_eq!((hogs.figures.slices.count(), hogs.figures.slices.censored), (39, 1));
    assert_eq!(hogs.figures.slices.p99_ns(), Some(2 * MS));
    assert_eq!(hogs.figures.involuntary_switches, 39);
}

#[test]
fn two_to_one_weights_on_one_cpu() {
    // Weights 820 and 1638 are not a nice pair; a table of the test's own makes it exact.
    let mut weights = [1024; 40];
    weights[19] = 2048;
    let mut tape = Tape::new(1);
    let (light, heavy) = (tape.nice_task("light", 0), tape.nice_task("heavy", -1));
    round_robin(&mut tape, &[heavy, heavy, light], MS, 30 * MS);
    let options = Options { weights, ..Options::simulated() };
    let analysis = Analysis::of(&tape.end(30 * MS), &options);
    let shares: Vec<_> = analysis
        .tasks
        .iter()
        .map(|task| (task.figures.run_ns, task.figures.fluid_ns, task.figures.fluid_on_cpu_ns))
        .collect();
    for (share, expected) in shares.iter().zip([10 * MS, 20 * MS]) {
        assert_eq!(share.0, expected);
        assert!(share.1.abs_diff(expected) <= 1 && share.2.abs_diff(expected) <= 30, "{share:?}");
    }
    assert_eq!(light, TaskId(1));
}

#[test]
fn nice_minus_five_zero_and_five_on_one_cpu() {
    let mut tape = Tape::new(1);
    let tasks = [-5, 0, 5].map(|nice| tape.nice_task("hog", nice));
    round_robin(&mut tape, &tasks, MS, 3_000 * MS);
    let analysis = analyze(&tape.end(3_000 * MS));
    let share = |task: usize| analysis.tasks[task].figures.fluid_share_percent().unwrap_or(0.0);
    assert!(close(share(0), 69.665) && close(share(1), 22.857) && close(share(2), 7.478));
    // They took equal slices instead.
    let error = analysis.tasks[0].figures.fairness_error_percent().unwrap_or(0.0);
    assert!(close(error, 100.0 * (33.3333 / 69.6652 - 1.0)), "{error}");
    assert_eq!(analysis.tasks[0].weight, 3121);
}

#[test]
fn three_hogs_on_two_cpus() {
    // One hog has a CPU for itself and two share the other: 100/50/50 where 67 each is due.
    let mut tape = Tape::new(2);
    let hogs = [0, 1, 2].map(|n| tape.task(&format!("hog/{n}")));
    for hog in hogs {
        tape.start(0, hog, u32::from(hog != hogs[0]));
    }
    tape.preempt(0, 0, IDLE, hogs[0]).preempt(0, 1, IDLE, hogs[1]);
    for nth in 0..59 {
        let (prev, next) = (hogs[1 + nth % 2], hogs[2 - nth % 2]);
        tape.preempt((nth as u64 + 1) * MS, 1, prev, next);
    }
    let analysis = analyze(&tape.end(60 * MS));
    let run: Vec<u64> = analysis.tasks.iter().map(|task| task.figures.run_ns).collect();
    assert_eq!(run, [60 * MS, 30 * MS, 30 * MS]);
    for task in &analysis.tasks {
        assert!(task.figures.fluid_ns.abs_diff(40 * MS) <= 1, "two thirds of a CPU each");
        // Given where they stood, each CPU shared its time fairly.
        assert!(task.figures.fairness_error_on_cpu_ns().abs() <= 60);
    }
    // x = 1.5, 0.75, 0.75: 9 / (3 · 3.375).
    let jain = analysis.machine.jain_index.unwrap_or(0.0);
    assert!((jain - 9.0 / 10.125).abs() < 1e-9, "{jain}");
    let error = analysis.tasks[0].figures.fairness_error_percent().unwrap_or(0.0);
    assert!(close(error, 50.0), "{error}");
    assert_eq!(analysis.machine.idle_while_waiting_ns, 0);
}

#[test]
fn one_sleeper_is_due_only_what_it_asks_for() {
    // Runs 1 ms, sleeps 4 ms, alone: its fluid service is its run time.
    let mut tape = Tape::new(1);
    let sleeper = tape.task("sleeper");
    tape.start(0, sleeper, 0).preempt(0, 0, IDLE, sleeper);
    for n in 0..10 {
        let t = n * 5 * MS;
        tape.block(t + MS, 0, sleeper, IDLE);
        tape.waking(t + 5 * MS, sleeper, 0).wakeup(t + 5 * MS + 200, sleeper, 0);
        tape.preempt(t + 5 * MS + 1_000, 0, IDLE, sleeper);
    }
    let analysis = analyze(&tape.end(50 * MS + 1_000));
    let figures = &analysis.tasks[0].figures;
    assert_eq!(figures.run_ns, 10 * MS - 9 * 1_000);
    assert_eq!(figures.wait_ns, 10 * 1_000);
    assert_eq!(figures.waking_ns, 10 * 200);
    assert_eq!(figures.sleep_ns, 40 * MS);
    assert_eq!(figures.fluid_ns, figures.run_ns + 10 * 800);
    assert_eq!((figures.wakeups, figures.voluntary_switches), (Some(10), 10));
    assert_eq!(figures.wakeup_latency.values_ns(), [1_000; 10]);
    assert_eq!(analysis.cpus[0].idle_ns, 40 * MS + 10 * 1_000);
    assert_eq!(figures.true_mean_slice_ns(), None, "it was never switched away against its will");
}

#[test]
fn what_ran_before_the_first_switch_is_unknown() {
    let mut tape = Tape::new(2);
    let (a, b) = (tape.task("a"), tape.task("b"));
    tape.preempt(10, 0, a, b).block(30, 0, b, IDLE);
    let analysis = Analysis::of(&tape.end(100), &Options::default());
    let (a, b) = (&analysis.tasks[0].figures, &analysis.tasks[1].figures);
    assert_eq!((a.unknown_ns, a.wait_ns, a.run_ns), (10, 90, 0));
    assert_eq!((a.slices.censored, a.waits.censored), (1, 1));
    assert_eq!((b.unknown_ns, b.run_ns, b.sleep_ns), (10, 20, 70));
    assert_eq!(analysis.cpus[0].unknown_ns, 10);
    assert_eq!(analysis.cpus[1].unknown_ns, 100, "a CPU that says nothing is not idle");
}

#[test]
fn a_waking_before_the_switch_away_leaves_the_task_waiting() {
    let mut tape = Tape::new(1);
    let task = tape.task("task");
    tape.start(0, task, 0).preempt(0, 0, IDLE, task);
    tape.waking(90, task, 0).block(100, 0, task, IDLE);
    tape.wakeup(120, task, 0).preempt(150, 0, IDLE, task);
    // Woken on the CPU and never switched away: it did not sleep.
    tape.waking(160, task, 0).wakeup(161, task, 0).block(170, 0, task, IDLE);
    let analysis = analyze(&tape.end(200));
    let figures = &analysis.tasks[0].figures;
    assert_eq!((figures.run_ns, figures.wait_ns, figures.sleep_ns), (120, 50, 30));
    assert_eq!(figures.wakeup_latency.values_ns(), [60]);
}

#[test]
fn idle_while_a_task_waits_elsewhere_is_seen() {
    let mut tape = Tape::new(2);
    let (a, b) = (tape.task("a"), tape.task("b"));
    tape.start(0, a, 0).start(0, b, 0).preempt(0, 0, IDLE, a);
    // b waits for CPU 0 while CPU 1 idles, until it is moved.
    tape.event(40, 1, EventKind::Migrate { task: b, from_cpu: 0, to_cpu: 1 });
    tape.preempt(50, 1, IDLE, b);
    let analysis = analyze(&tape.end(100));
    assert_eq!(analysis.machine.idle_while_waiting_ns, 40);
    assert_eq!(analysis.machine.idle_while_waiting_longest_ns, 40);
    assert_eq!(analysis.machine.migrations, Some(1));
    let series = analysis.series.as_ref().expect("a series was asked for");
    assert_eq!(series.intervals[0].idle_while_waiting_ns, 40);
}

#[test]
fn moves_without_migrate_events_are_not_measured() {
    let mut tape = Tape::new(2);
    let a = tape.task("a");
    tape.start(0, a, 0).preempt(0, 0, IDLE, a).preempt(10, 0, a, IDLE).preempt(11, 1, IDLE, a);
    let analysis = analyze(&tape.end(20));
    assert_eq!((analysis.machine.migrations, analysis.machine.cpu_changes), (None, 1));
    assert_eq!(analysis.group("a").and_then(|group| group.figures.migrations), None);
}

#[test]
fn a_nice_change_moves_the_fluid_share() {
    let mut tape = Tape::new(1);
    let tasks = [tape.task("a"), tape.task("b")];
    for task in tasks {
        tape.start(0, task, 0);
    }
    tape.preempt(0, 0, IDLE, tasks[0]);
    tape.event(100_000, 0, EventKind::Nice { task: tasks[1], nice: 19 });
    let analysis = analyze(&tape.end(200_000));
    let b = &analysis.tasks[1].figures;
    let due = 50_000.0 + 100_000.0 * 15.0 / 1039.0;
    assert!((b.fluid_ns as f64 - due).abs() < 2.0, "{} of {due}", b.fluid_ns);
    assert!((b.fluid_on_cpu_ns as f64 - due).abs() < 2.0);
}

#[test]
fn instructions_are_measured_or_not() {
    let mut tape = Tape::new(1);
    let a = tape.task("a");
    tape.start(0, a, 0).preempt(0, 0, IDLE, a);
    let mut trace = tape.end(10);
    let read = metric::machine("policy_instructions.switch").expect("a metric").read;
    assert_eq!(read(&analyze(&trace).machine), None);
    trace.counts_insns = true;
    assert_eq!(read(&analyze(&trace).machine).map(metric::MetricValue::as_f64), Some(0.0));
    let tick = metric::machine("policy_instructions.tick").expect("a metric").read;
    assert_eq!(tick(&analyze(&trace).machine), None, "no tick, so no cost of a tick");
}

#[test]
fn a_tunable_changes_within_its_interval() {
    let mut tape = Tape::new(1);
    let tasks = [tape.task("hog/0"), tape.task("hog/1")];
    round_robin(&mut tape, &tasks, 2 * MS, 20 * MS);
    tape.param(20 * MS, "fair_sleepers=off");
    let mut running = 1;
    for nth in 0..4 {
        let t = (20 + nth * 5) * MS;
        tape.preempt(t, 0, tasks[running], tasks[1 - running]);
        running = 1 - running;
    }
    let analysis = analyze(&tape.end(40 * MS));
    let series = analysis.series.as_ref().expect("a series was asked for");
    let changes: Vec<usize> = series.intervals.iter().map(|i| i.params.len()).collect();
    assert_eq!(changes, [0, 0, 1, 0]);
    assert_eq!(analysis.params[0].text, "fair_sleepers=off");
    let means: Vec<_> = series.intervals.iter().map(|i| i.slices.p50_ns()).collect();
    assert_eq!(means, [2, 2, 2, 5].map(|ms| Some(ms * MS)));
    assert!(series.intervals.iter().all(|i| i.run_ns == 10 * MS && i.idle_ns == 0));
    assert_eq!(series.intervals[3].groups[0].true_mean_slice_ns(), Some(5e6));
}

/// Two hogs wait in turn on CPU 0 while CPU 1 is offline from 10 to 30 ms: no time of it is wasted, and a half is all
/// that is due to each. It is idle before and after.
#[test]
fn a_cpu_that_is_offline_is_not_idle() {
    let mut tape = Tape::new(2);
    let hogs = [tape.task("hog/0"), tape.task("hog/1")];
    hogs.iter().for_each(|hog| {
        tape.start(0, *hog, 0);
    });
    tape.preempt(0, 0, IDLE, hogs[0]);
    tape.param(10 * MS, "cpu.1.online=off");
    for (nth, running) in [(1, 0), (2, 1), (3, 0)] {
        if nth == 3 {
            tape.param(30 * MS, "cpu.1.online=on");
        }
        tape.preempt(nth * 10 * MS, 0, hogs[running], hogs[1 - running]);
    }
    let analysis = analyze(&tape.end(40 * MS));
    let cpu = &analysis.cpus[1];
    assert_eq!((cpu.run_ns, cpu.idle_ns, cpu.unknown_ns), (0, 20 * MS, 20 * MS));
    assert_eq!(analysis.machine.idle_while_waiting_ns, 20 * MS);
    assert_eq!(analysis.machine.idle_while_waiting_longest_ns, 10 * MS);
    // A whole CPU each for 20 ms, a half of one for 20 ms.
    assert!(analysis.tasks.iter().all(|hog| hog.figures.fluid_ns.abs_diff(30 * MS) <= 1));
}

#[test]
fn lost_events_make_the_cpu_unknown_until_its_next_switch() {
    let mut tape = Tape::new(1);
    let (a, b) = (tape.task("a"), tape.task("b"));
    tape.start(0, a, 0).preempt(0, 0, IDLE, a);
    tape.event(40, 0, EventKind::Lost { count: 7 });
    tape.switch(60, 0, b, TaskState::Sleeping, IDLE);
    let analysis = analyze(&tape.end(100));
    assert_eq!(analysis.cpus[0].run_ns, 40);
    assert_eq!((analysis.cpus[0].unknown_ns, analysis.cpus[0].idle_ns), (20, 40));
    assert_eq!(analysis.tasks[0].figures.unknown_ns, 60);
    assert_eq!(analysis.irregularities.broken_switches, 0);
}

#[test]
fn runs_stand_side_by_side() {
    let run = |slice_ns| {
        let mut tape = Tape::new(1);
        let tasks = [tape.task("hog/0"), tape.task("hog/1")];
        round_robin(&mut tape, &tasks, slice_ns, 20 * MS);
        analyze(&tape.end(20 * MS))
    };
    let (short, long) = (run(MS), run(4 * MS));
    let table = compare(&[("short", &short), ("long", &long)]);
    assert_eq!(table.columns, ["short", "long"]);
    let row = |key: &str, group: Option<&str>| {
        let row = table.rows.iter().find(|row| row.key() == key && row.group.as_deref() == group);
        row.unwrap_or_else(|| panic!("no row {key}"))
    };
    let switches = row("switches", None);
    assert_eq!(switches.values, [20, 5].map(|n| Some(metric::MetricValue::Int(n))));
    let p50 = row("slice.p50", Some("hog"));
    assert_eq!(p50.values[1].map(metric::MetricValue::as_f64), Some(4e6));
    let rows = metric::MACHINE.len() + metric::GROUP.len();
    assert_eq!(table.rows.len(), rows);
}

#[test]
fn contradictions_are_counted_and_their_time_is_unknown() {
    let mut tape = Tape::new(2);
    let (a, b) = (tape.task("a"), tape.task("b"));
    tape.start(0, a, 0).preempt(0, 0, IDLE, a).block(10, 0, a, IDLE);
    // Its wake-up is missing: whether it slept or waited is not known.
    tape.preempt(30, 0, IDLE, a);
    // It comes up on another CPU without having left the first.
    tape.start(40, b, 1).preempt(40, 1, IDLE, b).preempt(50, 1, b, a);
    // CPU 1 is left by a task that it was not running.
    tape.block(60, 1, b, IDLE);
    let analysis = analyze(&tape.end(100));
    let irregularities = &analysis.irregularities;
    assert_eq!(irregularities.missed_wakeups, 1);
    assert_eq!(irregularities.doubly_running, 1);
    assert_eq!(irregularities.broken_switches, 1);
    let (a, b) = (&analysis.tasks[0].figures, &analysis.tasks[1].figures);
    assert_eq!((a.run_ns, a.sleep_ns, a.unknown_ns), (10, 0, 90));
    // Each of its two strange switch-ins ended a wait of unknown length.
    assert_eq!((a.waits.censored, a.wakeup_latency.censored), (2, 1));
    assert_eq!((b.absent_ns, b.run_ns, b.unknown_ns, b.sleep_ns), (40, 10, 10, 40));
    assert_eq!(analysis.cpus[0].unknown_ns, 70, "CPU 0 never switched again");
    assert_eq!(analysis.cpus[1].unknown_ns, 10);
}

#[test]
fn the_first_run_of_a_new_task_is_a_wait_and_no_wakeup() {
    let mut tape = Tape::new(1);
    let (parent, child) = (tape.task("sh"), tape.task("sh"));
    tape.start(0, parent, 0).preempt(0, 0, IDLE, parent);
    tape.event(10, 0, EventKind::Fork { parent, child }).start(12, child, 0);
    tape.preempt(20, 0, parent, child);
    tape.event(25, 0, EventKind::Exit { task: child });
    tape.switch(30, 0, child, TaskState::Dead, parent);
    let analysis = analyze(&tape.end(50));
    let child = &analysis.tasks[1].figures;
    assert_eq!((child.waits.values_ns(), child.wakeup_latency.count()), ([8].as_slice(), 0));
    assert_eq!((child.absent_ns, child.sleep_ns, child.run_ns), (30, 2, 10));
    assert_eq!((child.voluntary_switches, child.wakeups), (1, Some(0)));
    assert_eq!(analysis.machine.new_tasks, 2);
}

#[test]
fn a_window_reads_what_came_before_it() {
    let mut tape = Tape::new(1);
    let tasks = [tape.task("hog/0"), tape.task("hog/1")];
    round_robin(&mut tape, &tasks, 10, 100);
    let window = Some((25, 55));
    let options = Options { window, ..Options::simulated() };
    let analysis = Analysis::of(&tape.end(100), &options);
    assert_eq!((analysis.start_ns, analysis.end_ns), (25, 55));
    let run: Vec<u64> = analysis.tasks.iter().map(|task| task.figures.run_ns).collect();
    assert_eq!(run, [15, 15]);
    // Switches at 30, 40 and 50; the slices that end there are whole.
    assert_eq!(analysis.machine.switches, 3);
    assert_eq!(analysis.machine.slices.values_ns(), [10, 10, 10]);
    assert_eq!(analysis.select(|task| task.name == "hog/1").run_ns, 15);
    assert_eq!(analysis.tasks_named("hog").count(), 2);
    assert_eq!(analysis.tasks_named("hog/0").count(), 1);
}

#[test]
fn without_wakeup_events_a_task_is_queued_when_it_is_asked_to_wake() {
    let mut tape = Tape::new(1);
    let a = tape.task("a");
    tape.preempt(0, 0, IDLE, a).block(10, 0, a, IDLE).waking(20, a, 0).preempt(26, 0, IDLE, a);
    let analysis = analyze(&tape.end(30));
    let figures = &analysis.tasks[0].figures;
    assert_eq!((figures.wait_ns, figures.waking_ns), (6, 0));
    assert_eq!(figures.wakeup_latency.values_ns(), [6]);
    assert_eq!(figures.fluid_ns, figures.run_ns + 6);
}

#[test]
fn labels_tell_tasks_of_one_name_apart() {
    let mut trace = Trace::new(1);
    for (pid, comm) in [(7, "sh"), (8, "sh"), (9, "make"), (7, "sh")] {
        trace.add_task(TaskInfo::new(pid, comm));
    }
    let labels = analyze(&trace).task_labels();
    assert_eq!(labels, ["sh[7]", "sh[8]", "make", "sh[7]#2"]);
}
