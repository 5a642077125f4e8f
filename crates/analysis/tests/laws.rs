//! Laws that hold for every trace: conservation of time, windows that add up, the fluid schedule against its
//! definition.

use crate::tape::Tape;
use fairground_analysis::{
    Analysis, Figures, Live, Options, Samples, StreamAnalysis, weight_of_nice,
};
use fairground_trace::{CallbackKind, Event, EventKind, Label, TaskId, TaskInfo, TaskState, Trace};
use proptest::prelude::*;

/// One step of a machine that schedules at random: how long it takes, which CPU and which task, and what.
type Step = (u64, u32, u32, u8);

#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Asleep,
    Waking,
    Queued(u32),
    On(u32),
}

/// Where each task was, from when: what the trace says, kept apart from it.
#[derive(Debug)]
struct Truth {
    trace: Trace,
    nices: Vec<i8>,
    /// (time, task, place) by time.
    moves: Vec<(u64, usize, At)>,
    end_ns: u64,
}

/// A correct recording of a random schedule on `cpus` CPUs.
fn random_schedule(cpus: u32, nices: &[i8], steps: &[Step]) -> Truth {
    let mut tape = Tape::new(cpus);
    let tasks: Vec<TaskId> = nices.iter().map(|nice| tape.nice_task("t", *nice)).collect();
    let mut at = vec![At::Queued(0); nices.len()];
    let mut current: Vec<Option<usize>> = vec![None; cpus as usize];
    let mut moves = Vec::new();
    for (n, task) in tasks.iter().enumerate() {
        tape.start(0, *task, 0);
        moves.push((0, n, At::Queued(0)));
    }
    let mut now_ns = 0;
    for (wait_ns, cpu, pick, what) in steps {
        now_ns += wait_ns;
        let (cpu, n) = (cpu % cpus, *pick as usize % nices.len());
        match (what % 4, at[n]) {
            // Switch to a queued task, or to idle; the previous one stays queued or sleeps.
            (0 | 1, At::Queued(_)) | (2, _) => {
                let next = (what % 4 != 2).then_some(n);
                let prev = current[cpu as usize];
                if prev.is_none() && next.is_none() {
                    continue;
                }
                let sleeps = what & 4 != 0;
                let id = |task: Option<usize>| task.map_or(TaskId::IDLE, |n| tasks[n]);
                let state = if sleeps { TaskState::Sleeping } else { TaskState::Runnable };
                tape.switch(now_ns, cpu, id(prev), state, id(next));
                if let Some(prev) = prev {
                    at[prev] = if sleeps { At::Asleep } else { At::Queued(cpu) };
                    moves.push((now_ns, prev, at[prev]));
                }
                if let Some(next) = next {
                    at[next] = At::On(cpu);
                    moves.push((now_ns, next, at[next]));
                }
                current[cpu as usize] = next;
            }
            (_, At::Asleep) => {
                tape.waking(now_ns, tasks[n], cpu);
                at[n] = At::Waking;
                moves.push((now_ns, n, at[n]));
            }
            (_, At::Waking) => {
                tape.wakeup(now_ns, tasks[n], cpu);
                at[n] = At::Queued(cpu);
                moves.push((now_ns, n, at[n]));
            }
            (3, At::Queued(from_cpu)) => {
                let task = tasks[n];
                tape.event(now_ns, cpu, EventKind::Migrate { task, from_cpu, to_cpu: cpu });
                at[n] = At::Queued(cpu);
                moves.push((now_ns, n, at[n]));
            }
            _ => {}
        }
    }
    let end_ns = now_ns + 1;
    // Without any wake-up a trace counts as one that does not record them.
    tape.wakeup(end_ns, TaskId::IDLE, 0);
    Truth { trace: tape.end(end_ns), nices: nices.to_vec(), moves, end_ns }
}

fn schedules() -> impl Strategy<Value = Truth> {
    let nices = prop::collection::vec(prop::sample::select(vec![-20, -5, 0, 0, 0, 5, 19]), 1..8);
    let steps = prop::collection::vec((0u64..5_000, 0u32..4, 0u32..8, any::<u8>()), 0..120);
    (1u32..4, nices, steps).prop_map(|(cpus, nices, steps)| random_schedule(cpus, &nices, &steps))
}

/// Run time and fluid service of each task by the definition: at each instant, over all tasks, without classes.
fn by_definition(truth: &Truth) -> Vec<(u64, f64)> {
    let count = truth.nices.len();
    let mut at = vec![At::Asleep; count];
    let mut service = vec![(0, 0.0); count];
    let mut now_ns = 0;
    let end = (truth.end_ns, usize::MAX, At::Asleep);
    for (time_ns, task, place) in truth.moves.iter().chain([&end]) {
        let elapsed_ns = time_ns - now_ns;
        now_ns = *time_ns;
        let mut left: Vec<usize> =
            (0..count).filter(|n| matches!(at[*n], At::Queued(_) | At::On(_))).collect();
        let mut cpus = f64::from(truth.trace.cpus).min(left.len() as f64);
        let weight = |n: usize| f64::from(weight_of_nice(truth.nices[n]));
        loop {
            let total: f64 = left.iter().map(|n| weight(*n)).sum();
            let capped = left.iter().position(|n| weight(*n) / total * cpus >= 1.0 - 1e-12);
            let Some(capped) = capped else {
                for n in &left {
                    service[*n].1 += weight(*n) / total * cpus * elapsed_ns as f64;
                }
                break;
            };
            service[left.swap_remove(capped)].1 += elapsed_ns as f64;
            cpus -= 1.0;
        }
        for n in 0..count {
            service[n].0 += if matches!(at[n], At::On(_)) { elapsed_ns } else { 0 };
        }
        if let Some(slot) = at.get_mut(*task) {
            *slot = *place;
        }
    }
    service
}

fn check_conservation(analysis: &Analysis) -> Result<(), TestCaseError> {
    let window_ns = u128::from(analysis.window_ns());
    for task in &analysis.tasks {
        let f = &task.figures;
        let parts = [f.run_ns, f.wait_ns, f.sleep_ns, f.absent_ns, f.unknown_ns];
        let sum: u128 = parts.iter().map(|ns| u128::from(*ns)).sum();
        prop_assert_eq!(sum, window_ns, "{} {:?}", task.name, parts);
        prop_assert!(f.waking_ns + f.preempted_wait_ns <= f.wait_ns);
        let waited = f.waits.count() + f.waits.censored;
        prop_assert!(waited >= f.switch_ins, "each switch-in ends a wait, known or not");
        prop_assert!(f.slices.count() + f.slices.censored >= f.switches_away());
    }
    for cpu in &analysis.cpus {
        let sum = u128::from(cpu.run_ns) + u128::from(cpu.idle_ns) + u128::from(cpu.unknown_ns);
        prop_assert_eq!(sum, window_ns, "CPU {}", cpu.cpu);
    }
    let all = window_ns * analysis.cpus.len() as u128;
    prop_assert!(u128::from(analysis.machine.idle_while_waiting_ns) <= all);
    Ok(())
}

fn window(trace: &Trace, from_ns: u64, to_ns: u64) -> Analysis {
    let window = Some((from_ns, to_ns));
    Analysis::of(trace, &Options { window, interval_ns: Some(700), ..Options::simulated() })
}

fn merged(left: &Samples, right: &Samples) -> Vec<u64> {
    let mut both = left.clone();
    both.merge(right);
    both.values_ns().to_vec()
}

fn times(f: &Figures) -> [u64; 7] {
    [f.run_ns, f.wait_ns, f.waking_ns, f.preempted_wait_ns, f.sleep_ns, f.absent_ns, f.unknown_ns]
}

fn counts(f: &Figures) -> [u64; 6] {
    let (migrations, wakeups) = (f.migrations.unwrap_or(0), f.wakeups.unwrap_or(0));
    let switches = [f.switch_ins, f.voluntary_switches, f.involuntary_switches];
    [switches[0], switches[1], switches[2], wakeups, f.cpu_changes, migrations]
}

proptest! {
    #[test]
    fn a_complete_recording_leaves_nothing_unknown(truth in schedules()) {
        let analysis = window(&truth.trace, 0, u64::MAX);
        check_conservation(&analysis)?;
        prop_assert_eq!(analysis.machine.unknown_ns, 0);
        prop_assert_eq!(analysis.irregularities.broken_switches, 0);
        prop_assert_eq!(analysis.irregularities.missed_wakeups, 0);
        let run: u64 = analysis.tasks.iter().map(|task| task.figures.run_ns).sum();
        prop_assert_eq!(run, analysis.machine.run_ns);
        for task in &analysis.tasks {
            prop_assert_eq!(task.figures.unknown_ns, 0);
            let complete = task.figures.slices.sum_ns();
            prop_assert!(complete <= task.figures.run_ns);
            if task.figures.slices.censored == 0 {
                prop_assert_eq!(complete, task.figures.run_ns);
            }
        }
    }

    #[test]
    fn a_run_that_goes_on_has_the_figures_of_its_windows(
        truth in schedules(),
        lines in prop::collection::btree_set(1u64..200_000, 0..6),
    ) {
        let trace = &truth.trace;
        let options = |window| Options { window, ..Options::simulated() };
        let mut live = Live::new(trace, &options(None));
        let mut events = trace.events().peekable();
        let mut from_ns = 0;
        for line_ns in lines.into_iter().filter(|line| *line < truth.end_ns).chain([u64::MAX]) {
            while let Some(event) = events.next_if(|event| event.time_ns < line_ns) {
                live.take(trace, &event);
            }
            let to_ns = line_ns.min(trace.end_ns);
            let window = Analysis::of(trace, &options(Some((from_ns, to_ns))));
            prop_assert_eq!(&live.look(trace, to_ns).recent, &window);
            if line_ns == u64::MAX {
                break;
            }
            prop_assert_eq!(&live.draw_line(trace, to_ns), &window);
            from_ns = line_ns;
        }
        let (look, whole) = (live.look(trace, trace.end_ns), Analysis::of(trace, &options(None)));
        for (sum, task) in look.whole.iter().zip(&whole.tasks) {
            prop_assert_eq!(times(sum), times(&task.figures));
            prop_assert_eq!(&counts(sum)[..5], &counts(&task.figures)[..5]);
            // In a window without any such event, nothing says whether the trace has them.
            if sum.migrations.is_some() {
                prop_assert_eq!(sum.migrations, task.figures.migrations);
            }
            prop_assert_eq!(sum.window_ns, task.figures.window_ns);
            prop_assert!(task.figures.fluid_ns - sum.fluid_ns <= 7, "{} {}", task.figures.fluid_ns, sum.fluid_ns);
        }
        let waiting: u64 = look.cpus.iter().map(|cpu| cpu.queue).sum();
        let last = |n: usize| truth.moves.iter().rfind(|(_, task, _)| *task == n).map(|(_, _, at)| *at);
        let places: Vec<_> = (0..truth.nices.len()).filter_map(last).collect();
        prop_assert_eq!(waiting, places.iter().filter(|at| matches!(at, At::Queued(_))).count() as u64);
        let running = look.cpus.iter().filter(|cpu| cpu.running.is_some_and(|task| task != TaskId::IDLE));
        prop_assert_eq!(running.count(), places.iter().filter(|at| matches!(at, At::On(_))).count());
    }

    #[test]
    fn a_run_whose_events_are_not_kept_has_the_figures_of_its_trace(
        truth in schedules(),
        cut: prop::sample::Index,
        at_once in 1usize..50,
    ) {
        let trace = &truth.trace;
        for window in [None, Some((cut.index(truth.end_ns as usize) as u64, trace.end_ns))] {
            let options = Options { window, ..Options::simulated() };
            let mut part = trace.clone();
            part.clear_events();
            // The run was to be longer, and ended early.
            let mut stream = StreamAnalysis::new(&part, &options, trace.end_ns + 7);
            for events in trace.events().collect::<Vec<_>>().chunks(at_once) {
                events.iter().for_each(|event| part.push(*event));
                stream.take(&part);
                part.clear_events();
            }
            prop_assert_eq!(stream.finish(&part), Analysis::of(trace, &options));
        }
    }

    #[test]
    fn service_and_fluid_service_are_the_definition(truth in schedules()) {
        let analysis = window(&truth.trace, 0, u64::MAX);
        for (task, (run_ns, fluid_ns)) in analysis.tasks.iter().zip(by_definition(&truth)) {
            prop_assert_eq!(task.figures.run_ns, run_ns);
            let error = task.figures.fluid_ns as f64 - fluid_ns;
            prop_assert!(error.abs() <= 2.0, "{error} ns off {fluid_ns}");
            let lag = i128::from(task.figures.fluid_ns) - i128::from(task.figures.run_ns);
            prop_assert!(lag <= i128::from(task.figures.lag_max_ns));
            prop_assert!(-lag <= i128::from(task.figures.lead_max_ns));
        }
        // Among the tasks of a CPU nothing is lost: what it shares out is the time in which it had any.
        let on_cpus: u64 = analysis.tasks.iter().map(|task| task.figures.fluid_on_cpu_ns).sum();
        prop_assert!(on_cpus <= truth.end_ns * u64::from(truth.trace.cpus));
    }

    #[test]
    fn two_windows_are_the_whole(truth in schedules(), cut: prop::sample::Index, at_event: bool) {
        // An event at the border belongs to one side only.
        let event_ns = truth.moves[cut.index(truth.moves.len())].0;
        let cut_ns = if at_event { event_ns } else { cut.index(truth.end_ns as usize) as u64 };
        let whole = window(&truth.trace, 0, truth.end_ns);
        let (left, right) =
            (window(&truth.trace, 0, cut_ns), window(&truth.trace, cut_ns, truth.end_ns));
        check_conservation(&left)?;
        check_conservation(&right)?;
        prop_assert_eq!(left.machine.switches + right.machine.switches, whole.machine.switches);
        prop_assert_eq!(
            left.machine.idle_while_waiting_ns + right.machine.idle_while_waiting_ns,
            whole.machine.idle_while_waiting_ns
        );
        for ((l, r), w) in left.tasks.iter().zip(&right.tasks).zip(&whole.tasks) {
            let (l, r, w) = (&l.figures, &r.figures, &w.figures);
            for ((l, r), w) in times(l).iter().zip(times(r)).zip(times(w)) {
                prop_assert_eq!(l + r, w);
            }
            for ((l, r), w) in counts(l).iter().zip(counts(r)).zip(counts(w)) {
                prop_assert_eq!(l + r, w);
            }
            prop_assert!((l.fluid_ns + r.fluid_ns).abs_diff(w.fluid_ns) <= 1);
            prop_assert_eq!(merged(&l.slices, &r.slices), w.slices.values_ns());
            prop_assert_eq!(merged(&l.waits, &r.waits), w.waits.values_ns());
            let latency = merged(&l.wakeup_latency, &r.wakeup_latency);
            prop_assert_eq!(latency, w.wakeup_latency.values_ns());
        }
    }

    #[test]
    fn the_intervals_are_the_whole(truth in schedules()) {
        let whole = window(&truth.trace, 0, truth.end_ns);
        let Some(series) = &whole.series else { panic!("a series was asked for") };
        let sum = |read: fn(&fairground_analysis::Interval) -> u64| -> u64 {
            series.intervals.iter().map(read).sum()
        };
        prop_assert_eq!(sum(|i| i.run_ns), whole.machine.run_ns);
        prop_assert_eq!(sum(|i| i.idle_ns), whole.machine.idle_ns);
        prop_assert_eq!(sum(|i| i.idle_while_waiting_ns), whole.machine.idle_while_waiting_ns);
        prop_assert_eq!(sum(|i| i.switches), whole.machine.switches);
        prop_assert_eq!(sum(|i| i.involuntary_switches), whole.machine.involuntary_switches);
        prop_assert_eq!(Some(sum(|i| i.wakeups.unwrap_or(0))), whole.machine.wakeups);
        prop_assert_eq!(sum(|i| i.slices.count()), whole.machine.slices.count());
        let wait: u64 = whole.tasks.iter().map(|task| task.figures.wait_ns).sum();
        prop_assert_eq!(sum(|i| i.wait_ns), wait);
        prop_assert_eq!(sum(|i| i.groups.iter().map(|g| g.run_ns).sum()), whole.machine.run_ns);
    }

    #[test]
    fn the_unit_of_weight_does_not_matter(truth in schedules(), scale in 2u32..50) {
        let plain = window(&truth.trace, 0, u64::MAX);
        let options = Options {
            weights: Options::default().weights.map(|weight| weight * scale),
            ..Options::simulated()
        };
        let scaled = Analysis::of(&truth.trace, &options);
        for (a, b) in plain.tasks.iter().zip(&scaled.tasks) {
            prop_assert!(a.figures.fluid_ns.abs_diff(b.figures.fluid_ns) <= 1);
            let on_cpu = a.figures.fluid_on_cpu_ns.abs_diff(b.figures.fluid_on_cpu_ns);
            prop_assert!(on_cpu <= 1, "{on_cpu}");
        }
    }

    #[test]
    fn the_same_trace_gives_the_same_figures(truth in schedules()) {
        let twice = [0, 1].map(|_| format!("{:?}", window(&truth.trace, 0, u64::MAX)));
        prop_assert_eq!(&twice[0], &twice[1]);
    }

    #[test]
    fn a_recording_that_starts_late_is_unknown_in_part(truth in schedules()) {
        let late = Analysis::of(&truth.trace, &Options::default());
        let whole = Analysis::of(&truth.trace, &Options::simulated());
        check_conservation(&late)?;
        for (l, w) in late.tasks.iter().zip(&whole.tasks) {
            prop_assert!(l.figures.run_ns <= w.figures.run_ns);
            prop_assert_eq!(l.figures.switches_away(), w.figures.switches_away());
        }
    }
}

/// Any event, about tasks and CPUs that may not exist, in any order.
fn any_kind() -> impl Strategy<Value = EventKind> {
    let states = vec![
        TaskState::Runnable,
        TaskState::Sleeping,
        TaskState::Uninterruptible,
        TaskState::Stopped,
        TaskState::Dead,
        TaskState::Parked,
    ];
    let id = (0u32..6).prop_map(TaskId);
    let cpu = 0u32..4;
    (0u8..13, id.clone(), id, prop::sample::select(states), cpu.clone(), cpu, any::<i8>()).prop_map(
        |(which, task, other, prev_state, a, b, nice)| match which {
            0..=2 => EventKind::Switch { prev: task, prev_state, next: other },
            3 => EventKind::Waking { task, waker: other, target_cpu: a },
            4 => EventKind::Wakeup { task, target_cpu: a },
            5 => EventKind::WakeupNew { task, target_cpu: a },
            6 => EventKind::Migrate { task, from_cpu: a, to_cpu: b },
            7 => EventKind::Fork { parent: other, child: task },
            8 => EventKind::Exit { task },
            9 => EventKind::Nice { task, nice },
            10 => EventKind::Tick { task },
            11 => EventKind::Callback { kind: CallbackKind::Enqueue, task },
            _ if a == 0 => EventKind::Lost { count: 3 },
            _ if a == 1 => EventKind::Param { label: Label(0) },
            _ => EventKind::Mark { task, label: Label(b % 2), value: 0 },
        },
    )
}

proptest! {
    #[test]
    fn no_order_of_events_breaks_the_books(
        cpus in 0u32..4,
        events in prop::collection::vec((0u64..100, 0u32..4, any_kind()), 0..200),
        scale in prop::sample::select(vec![1u64, 1_000_000, u64::MAX / 20_001]),
        starts_idle: bool,
        window in prop::option::of((any::<u64>(), any::<u64>())),
        restricted: bool,
    ) {
        let mut trace = Trace::new(cpus);
        trace.intern("answer");
        trace.intern("report");
        for n in 0..4 {
            let allowed_cpus = (restricted && n > 1).then(|| vec![(0, 1), (3, 9)]);
            let nice = (n > 0).then_some(n as i8 * 9 - 20);
            trace.add_task(TaskInfo { allowed_cpus, nice, ..TaskInfo::new(n, "t/1") });
        }
        let mut time_ns = 0;
        for (gap, cpu, kind) in events {
            time_ns += gap * scale;
            trace.push(Event { time_ns, cpu, insns: 1, kind });
        }
        trace.end_ns = time_ns / 2;
        let options =
            Options { starts_idle, window, interval_ns: Some(scale * 50), ..Options::default() };
        let analysis = Analysis::of(&trace, &options);
        check_conservation(&analysis)?;
        fairground_analysis::slice_report::SliceReports::of(
            &trace,
            fairground_analysis::slice_report::UserTime::Exact,
        );
    }
}
