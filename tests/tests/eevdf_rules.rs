//! The laws of `eevdf` (docs/laws/eevdf.md) that concern whole runs in the simulated machine: shares, lag, slices,
//! custom slices, migration.

use crate::rig::eevdf::{Entity, Queue};
use crate::rig::{MS, Run, US, bench, weight};
use fairground_trace::{EventKind, TaskId, TaskState};

const SETS: [&str; 4] = ["eevdf@6.6", "eevdf@6.12", "eevdf@6.18", "eevdf@7.2"];

fn queue(run: &Run, cpu: usize) -> Queue {
    Queue::read(|word| run.queue_u64(cpu, word))
}

fn entity(run: &Run, task: TaskId) -> Entity {
    Entity::read(|word| {
        run.machine.task_storage("task_ctx", task, word).expect("init_task made it")
    })
}

/// V − v of a runnable task, in wall time of its weight, ns.
fn lag_ns(run: &Run, task: TaskId, nice: i8) -> i64 {
    let e = entity(run, task);
    let q = queue(run, e.cpu as usize);
    let runs = q.curr_pid == run.machine.trace().tasks()[task.index()].pid;
    let vlag = q.vlag(if runs { q.curr_vruntime } else { e.vruntime });
    (i128::from(vlag) * i128::from(weight(nice)) / 1024) as i64
}

/// Slices of tasks that were ended by preemption, ns.
fn slice_lengths(run: &Run, prefix: &str, from_ns: u64) -> Vec<u64> {
    let tasks = run.named(prefix);
    let slices = run.slices();
    let of_tasks = slices.iter().filter(|s| tasks.contains(&s.task) && s.start_ns >= from_ns);
    of_tasks.filter(|s| s.state == TaskState::Runnable).map(|s| s.ran_ns()).collect()
}

/// The bounds of lag while no task comes or leaves, wall ns (law 8). V only advances then. A task loses lag only while
/// it runs, starts to run with lag >= 0, and runs until the first tick after its request, for `r + tick` at most, so
/// its lag is at least `-(r + tick)`. All lags add up to 0, so with n tasks none is above `(n - 1) * (r + tick)`. The
/// tighter bound `r + tick` holds when a request is no shorter than a tick; a shorter one lasts a tick, which its
/// deadline does not tell.
fn lag_bound_ns(r_ns: u64, tick_ns: u64, tasks: usize) -> std::ops::RangeInclusive<i64> {
    let one = (r_ns + tick_ns) as i64;
    -one..=if r_ns >= tick_ns { one } else { one * (tasks as i64 - 1) }
}

#[test]
fn law_08_the_lag_is_bounded() {
    for set in SETS {
        for (nices, hz, base_slice) in [
            ("1:-5:0:5", 1000, None),
            ("8", 1000, Some(3)),
            ("2:-3:0:7", 1000, Some(3)),
            ("1:-10:0:10", 1000, Some(1)),
            ("1:-10:0:10", 250, None),
            ("1:-10:0:10", 250, Some(4)),
        ] {
            // With HRTICK slices hardly exceed their requests, and the bounds are far.
            let (mut bench, mut r_ns) = (bench(set).hz(hz).set("HRTICK", "off"), 750 * US);
            if let Some(ms) = base_slice {
                r_ns = ms * MS;
                bench = bench.set("base_slice_ns", r_ns);
            }
            let mut run = bench.run(&format!("hogs:{nices}"));
            let tasks = run.until(10 * MS).tasks();
            let bound = lag_bound_ns(r_ns, 1_000_000_000 / hz as u64, tasks.len());
            let (mut least, mut most) = (0, 0);
            run.step_ns = 333 * US;
            run.watch(1_200 * MS, |run| {
                for (task, _, nice) in &tasks {
                    let lag = lag_ns(run, *task, *nice);
                    (least, most) = (least.min(lag), most.max(lag));
                }
            });
            let told = format!(
                "{set} hogs:{nices} HZ {hz}, r {r_ns}: lag {least}..={most}, bound {bound:?}"
            );
            assert!(bound.contains(&least) && bound.contains(&most), "{told}");
            assert!(
                least < bound.start() / 8 && most > bound.end() / 8,
                "the bound says something: {told}"
            );
        }
    }
}

/// Fairness error over 60 s: two times the bound of the lag, 2 * 1.75 ms / 60 s = 0.006 %.
#[test]
fn law_08_shares() {
    for set in SETS {
        let mut run = bench(set).hz(1000).run("hogs:1:-5:0:5");
        let tasks = run.until(61_000 * MS).tasks();
        let total: u64 = tasks.iter().map(|t| weight(t.2)).sum();
        let time = run.cpu_time(1_000 * MS, 61_000 * MS);
        for (task, _, nice) in &tasks {
            let share = time[task] as f64 / 60e9;
            let ideal = weight(*nice) as f64 / total as f64;
            let off = (share - ideal).abs() * 100.0;
            assert!(off < 0.01, "{set} nice {nice}: {share}, not {ideal}");
        }
    }
}

#[test]
fn law_09_slices_of_equal_hogs_end_at_the_first_tick_after_the_request() {
    // Four CPUs: a factor of 3, eight: 4, more count as eight.
    for (set, cpus, slice_ns) in [
        ("eevdf@6.6", 4, 2_250 * US),
        ("eevdf@6.12", 4, 2_250 * US),
        ("eevdf@6.18", 4, 2_100 * US),
        ("eevdf@6.12", 1, 750 * US),
        ("eevdf@6.18", 16, 2_800 * US),
    ] {
        for hz in [250, 1000] {
            let tick_ns = 1_000_000_000 / u64::from(hz);
            let mut run = bench(set).cpus(cpus).hz(hz).run("hogs:3,cpus=0");
            run.until(2_000 * MS);
            let slices = slice_lengths(&run, "hog", 200 * MS);
            assert!(slices.len() > 100, "{set}: {} slices", slices.len());
            let exact_ns = slice_ns.div_ceil(tick_ns) * tick_ns;
            for ran_ns in slices {
                assert_eq!(ran_ns, exact_ns, "{set}, {cpus} CPUs, HZ {hz}");
                assert!(ran_ns >= slice_ns && ran_ns < slice_ns + tick_ns);
            }
        }
    }
}

/// With HRTICK a slice ends with the request, whatever the weight and the length of a tick. Without, at a tick.
#[test]
fn law_09_with_hrtick_a_slice_ends_with_the_request() {
    for (hogs, hz, on, longest_ns) in [
        ("hogs:3", 250, "on", 700 * US),
        ("hogs:3", 100, "on", 700 * US),
        ("hogs:3", 250, "off", 4 * MS),
    ] {
        let mut run = bench("eevdf@7.2").hz(hz).set("HRTICK", on).run(hogs);
        run.until(1_000 * MS);
        let slices = slice_lengths(&run, "hog", 200 * MS);
        assert_eq!(slices.iter().max(), Some(&longest_ns), "{hogs}, HZ {hz}, HRTICK {on}");
        let whole = slices.iter().filter(|ran_ns| **ran_ns == longest_ns).count();
        assert!(whole * 10 > slices.len() * 9, "{whole} of {} slices", slices.len());
    }
}

/// The timer is for tasks that share their CPU.
#[test]
fn a_task_alone_is_not_interrupted_by_hrtick() {
    let passes = |hogs: &str| {
        let mut run = bench("eevdf@7.2").hz(100).run(hogs);
        run.until(1_000 * MS);
        run.machine.trace().events().filter(|e| matches!(e.kind, EventKind::Switch { .. })).count()
    };
    assert!(passes("hogs:1") < 10, "{}", passes("hogs:1"));
    assert!(passes("hogs:2") > 1_300, "{}", passes("hogs:2"));
}

/// The mean wait of a sleeper, 20 µs each ms, among six hogs with requests of 3 ms; with or without a slice of 0.1 ms.
fn sleeper_waits_ns(set: &'static str, slice: &str) -> u64 {
    let text = format!(
        "format = 1\nname = \"short\"\nduration = \"1s\"\n\
         [[task]]\nname = \"hog\"\ncount = 6\nprogram = [{{ run = \"forever\" }}]\n\
         [[task]]\nname = \"sleeper\"\nprogram = [{slice}{{ loop = [{{ run = \"20us\" }}, {{ \
         sleep = \"1003us\" }}] }}]\n"
    );
    let mut run = bench(set).hz(250).set("base_slice_ns", "3ms").run_toml(&text);
    run.until(1_000 * MS);
    let slices = run.slices();
    let sleeper = run.named("sleeper")[0];
    let mut slices: Vec<_> = slices.iter().filter(|s| s.task == sleeper).collect();
    slices.retain(|s| s.start_ns > 100 * MS);
    let cycle = slices.windows(2).map(|pair| pair[1].start_ns - pair[0].end_ns - 1_003 * US);
    let waits: Vec<u64> = cycle.collect();
    waits.iter().sum::<u64>() / waits.len() as u64
}

#[test]
fn law_10_a_short_slice_preempts() {
    let own = "{ slice = \"100us\" }, ";
    let waits = SETS.map(|set| (sleeper_waits_ns(set, own), sleeper_waits_ns(set, "")));
    let [(with, without), ..] = waits;
    assert_eq!(with, without, "6.6 knows no such thing");
    for (set, (with, without)) in SETS.iter().zip(waits).skip(1) {
        // Where the hog's time up to the wake-up counts, a delayed sleeper waits less even without a slice of its own.
        let times = if set.ends_with("7.2") { 3 } else { 4 };
        assert!(
            with * times < without,
            "{set}: waits {with} ns with its own slice, {without} without"
        );
    }
}

/// Lag is what travels: V of one CPU says nothing on another.
#[test]
fn a_migration_keeps_the_lag() {
    for set in SETS {
        // CPU 1 is busy for a while, then takes one of the three.
        let mut run =
            bench(set).cpus(2).hz(1000).run("hogs:3 + sleepers:1,run=300300us,sleep=9s,cpus=1");
        let hogs = run.until(50 * MS).named("hog");
        run.step_ns = 100 * US;
        let look = |run: &Run| -> Vec<(u32, i64)> {
            hogs.iter().map(|hog| (entity(run, *hog).cpu, lag_ns(run, *hog, 0))).collect()
        };
        let mut last = look(&run);
        let mut moves = 0;
        run.watch(1_500 * MS, |run| {
            let now = look(run);
            for (before, after) in last.iter().zip(&now) {
                if before.0 != after.0 {
                    moves += 1;
                    let off_ns = (before.1 - after.1).unsigned_abs();
                    // Between two samples both queues advance: a step, and the tick's charge that allowed the move.
                    assert!(
                        off_ns <= 1_100 * US,
                        "{set}: lag {} ns became {} ns",
                        before.1,
                        after.1
                    );
                }
            }
            last = now;
        });
        assert!(moves >= 1, "{set}: no move was seen");
    }
}

/// A sleeper with negative lag is queued until V has passed it, and no longer. Tasks get such a lag where ticks end
/// their slices late.
#[test]
fn delayed_entities_come_and_go() {
    for set in SETS {
        let bench = bench(set).hz(1000).set("HRTICK", "off");
        let mut run = bench.run("hogs:2 + sleepers:6,run=700us,sleep=2ms");
        let (mut seen, mut looks) = (0, 0);
        run.step_ns = 37 * US;
        run.watch(1_000 * MS, |run| {
            seen += u64::from(queue(run, 0).delayed != 0);
            looks += 1;
        });
        let expected = if set == "eevdf@6.6" { 0..=0 } else { looks / 50..=looks };
        assert!(expected.contains(&seen), "{set}: a delayed entity at {seen} looks of {looks}");
    }
}

#[test]
fn all_sets_are_complete() {
    let tunables = |set: &str| crate::rig::set_of("eevdf", set).len();
    assert_eq!([tunables("6.6"), tunables("6.12"), tunables("7.2")], [tunables("6.18"); 3]);
    assert!(tunables("6.18") >= 20);
}

/// SCHED_IDLE has the weight 3, whatever its nice value: it gets 3 parts of 1027 beside a task at nice 0. No operation
/// of a workload sets a policy, so the test writes it; it counts from the next wake-up on.
#[test]
fn an_idle_task_has_next_to_nothing() {
    for set in SETS {
        let share = |policy: u32| {
            let mut run = bench(set).hz(1000).run("hogs:1 + sleepers:1,run=5ms,sleep=100us");
            run.until(3 * MS);
            let sleeper = run.named("sleeper")[0];
            assert!(run.machine.set_task_policy(sleeper, policy));
            run.until(6_000 * MS);
            let slices = run.slices();
            let own = slices.iter().filter(|s| s.task == sleeper && s.start_ns > 1_000 * MS);
            own.map(|s| s.ran_ns()).sum::<u64>() as f64 / (5_000 * MS) as f64
        };
        let (normal, idle) = (share(0), share(5));
        assert!((0.40..0.52).contains(&normal), "{set}: {normal}");
        assert!((0.0005..0.02).contains(&idle), "{set}: {idle}");
    }
}

/// Two tasks that wake each other through pipes. Up to 6.18 a delayed task that wakes up is judged by a V from before
/// the current task's slice: it keeps a lead over a waker that it preempts indefinitely. In 7.2 that ends at its next
/// delayed sleep.
#[test]
fn tasks_that_wake_each_other_alternate_since_7_2() {
    let forced = |set: &'static str| {
        let run = bench(set).hz(250).like_a_kernel("linux-7.2", 20 * MS);
        let mut run = run.run("pipe");
        run.until(1_000 * MS);
        let (mut all, mut forced) = (0, 0);
        for event in run.machine.trace().events() {
            if let EventKind::Switch { prev, prev_state, .. } = event.kind
                && prev != TaskId::IDLE
            {
                all += 1;
                forced += usize::from(prev_state == TaskState::Runnable);
            }
        }
        assert!(all > 5_000, "{all} switches");
        forced * 100 / all
    };
    let (before, since) = (forced("eevdf@6.18"), forced("eevdf@7.2"));
    // On Linux 7.2.13: 3 %.
    assert!(
        before > 30 && since < 10,
        "{before} % of the switches are forced in 6.18, {since} % in 7.2"
    );
}

/// Two tasks wake up for an idle CPU with equal deadlines: the one that runs continues, and the second one does not
/// preempt it before the tick.
#[test]
fn of_equals_the_first_on_an_idle_cpu_goes_on() {
    for set in ["eevdf@6.18", "eevdf@7.2"] {
        let bench = bench(set).cpus(2).hz(250).set("HRTICK", "off");
        // Without this cost all have run for the same time before: it tells the first and the last from the others.
        let bench = bench.like_a_kernel("linux-7.2", 400 * MS).cost("idle_saving_ns", 0);
        let mut run = bench.run("hogs:4");
        run.until(500 * MS);
        let first = |task: &TaskId| {
            let slices = run.slices();
            let of_task = slices.into_iter().find(|s| s.task == *task && s.start_ns >= 400 * MS);
            of_task.expect("it ran").start_ns - 400 * MS
        };
        let waits: Vec<u64> = run.named("hog").iter().map(first).collect();
        let early = waits.iter().filter(|ns| **ns < MS).count();
        assert!(early == 2 && waits.iter().all(|ns| *ns < MS || *ns > 3 * MS), "{set}: {waits:?}");
    }
}
