//! The laws of `sd` (docs/laws/sd.md) on workloads in the machine: service per epoch, waits, preemption, and the quotas
//! per level of the rotating staircase.

use std::collections::BTreeMap;

use crate::rig::sd::{allowed, current, epochs, level, prio_quota, queue, service, slots};
use crate::rig::{MS, Run, US, bench};
use fairground_trace::{EventKind, TaskId, TaskState};

/// `rr_interval_ns` of the two sets on one CPU.
const QUOTA_NS: u64 = 8 * MS;
const RSDL_QUOTA_NS: u64 = 6 * MS;
/// Long enough for the first epoch of the tasks.
const SETTLED_NS: u64 = 4_000 * MS;

/// A run in a steady state, sampled once a tick, at the tick.
fn settled(set: &'static str, hz: u32, workload: &str) -> Run {
    let mut run = bench(set).hz(hz).run(workload);
    run.until(SETTLED_NS);
    run.step_ns = 1_000 * MS / u64::from(hz);
    run
}

/// The rows of the matrix that are documented, and the number of slots of each nice value.
#[test]
fn the_matrix_has_the_documented_rows() {
    let mut run = bench("sd").run("hogs:1");
    run.until(MS);
    let table = run.machine.variable("nice_levels").expect("the scheduler keeps it");
    let row = |nice: i8| {
        let at = (nice + 20) as usize * 8;
        u64::from_le_bytes(table[at..at + 8].try_into().expect("eight bytes"))
    };
    // 0: allowed, as documented; level 0 first.
    for (nice, text) in [
        (-20, "0000000000000000000000000000000000000000"),
        (0, "1010101010101010101010101010101010101010"),
        (10, "1110111011101110111011101110111011101110"),
        (15, "1111111011111110111111101111111011111110"),
        (19, "1111111111111111111111111111111111111110"),
    ] {
        let bits: String =
            (0..40).map(|k| if row(nice) >> k & 1 == 1 { '0' } else { '1' }).collect();
        assert_eq!(bits, text, "nice {nice}");
    }
    for nice in -20..20 {
        let levels: Vec<u32> = (0..40).filter(|k| row(nice) >> k & 1 == 1).collect();
        assert_eq!(levels, allowed(nice), "nice {nice}");
        assert_eq!(levels.len() as u64, slots(nice), "nice {nice}");
    }
}

#[test]
fn law_01_an_epoch_gives_each_task_its_slots_times_the_quota() {
    for (hz, mix) in [
        (1000, "hogs:1:-20:-10:0:5:10:15:19"),
        (250, "hogs:2:0:10"),
        (100, "hogs:1:-20:0:19"),
        (1000, "hogs:1:0 + sleepers:3,run=300us,sleep=2ms"),
    ] {
        let mut run = settled("sd", hz, mix);
        let begun = epochs(&mut run, 14_000 * MS);
        assert!(begun.len() > 6, "{mix}: {} epochs", begun.len());
        let tick_ns = 1_000 * MS / u64::from(hz);
        // A slice ends at the first tick after the quota.
        for epoch in service(&run, &begun) {
            for (task, _, nice) in run.tasks().into_iter().filter(|t| t.1.starts_with("hog")) {
                let got = epoch.get(&task).copied().unwrap_or(0);
                let due = slots(nice) * QUOTA_NS;
                assert!(
                    got.abs_diff(due) <= slots(nice) * tick_ns,
                    "{mix} at {hz} Hz, nice {nice}: {got} ns in an epoch, {due} due"
                );
                if QUOTA_NS.is_multiple_of(tick_ns) && !mix.contains("sleepers") {
                    assert_eq!(got, due, "{mix}: ticks fall on the quota");
                }
            }
        }
    }
}

#[test]
fn law_02_shares_are_as_slots_times_quotas() {
    // Against one task of nice 0, in thousandths; with half quotas.
    for (nice, equal, half) in [
        (-20, 667, 667),
        (-10, 600, 600),
        (5, 429, 273),
        (10, 333, 200),
        (15, 200, 111),
        (19, 48, 24),
    ] {
        for (halves, expected) in [("off", equal), ("on", half)] {
            let bench = bench("sd").hz(1000).set("rule_half_quota", halves);
            let mut run = bench.run(&format!("hogs:1:0:{nice}"));
            run.until(1_000 * MS);
            run.step_ns = MS;
            let begun = epochs(&mut run, 8_000 * MS);
            let (first, last) = (begun[0].1, begun[begun.len() - 1].1);
            let time = run.cpu_time(first, last);
            let other = run
                .named("hog")
                .into_iter()
                .find(|t| run.tasks().iter().any(|(id, _, n)| id == t && *n == nice));
            let got = time[&other.expect("it is there")];
            let total: u64 = time.values().sum();
            let share = (got * 1000 + total / 2) / total;
            assert_eq!(share, expected, "nice {nice} beside nice 0, half quotas {halves}");
        }
    }
}

#[test]
fn law_03_equal_hogs_go_round() {
    for (n, nice) in [(2u64, 0i8), (5, 0), (3, 10), (4, -20)] {
        let mut run = settled("sd", 1000, &format!("hogs:{n},nice={nice}"));
        let begun = epochs(&mut run, SETTLED_NS + 5 * n * slots(nice) * QUOTA_NS);
        for pair in begun.windows(2) {
            assert_eq!(pair[1].1 - pair[0].1, n * slots(nice) * QUOTA_NS, "length of an epoch");
        }
        let slices = run.slices();
        let slices: Vec<_> = slices
            .iter()
            .filter(|s| s.start_ns > SETTLED_NS)
            .map(|s| (s.task, s.ran_ns()))
            .collect();
        assert!(slices.len() > 50, "{n} hogs: {} slices", slices.len());
        for round in slices.chunks_exact(n as usize) {
            assert_eq!(
                round.iter().map(|t| t.0).collect::<Vec<_>>(),
                slices[..n as usize].iter().map(|t| t.0).collect::<Vec<_>>(),
                "the same order each time"
            );
        }
        assert!(slices.iter().all(|t| t.1 == QUOTA_NS), "{n} hogs: {slices:?}");
    }
}

/// The longest time that a task was runnable without running, and every such time.
fn waits(run: &Run, task: TaskId) -> Vec<u64> {
    let (mut since, mut waits) = (None, Vec::new());
    for event in run.events() {
        match event.kind {
            EventKind::Wakeup { task: woken, .. } if woken == task => {
                since = since.or(Some(event.time_ns));
            }
            EventKind::Switch { prev, prev_state, .. }
                if prev == task && prev_state == TaskState::Runnable =>
            {
                since = Some(event.time_ns);
            }
            EventKind::Switch { next, .. } if next == task => {
                waits.extend(since.take().map(|since| event.time_ns - since));
            }
            _ => {}
        }
    }
    waits
}

#[test]
fn law_04_no_task_waits_longer_than_the_others_epochs() {
    for mix in [
        "hogs:1:-20:-10:0:10:19",
        "hogs:1:0:19 + sleepers:3,run=31ms,sleep=17ms + sleepers:2,run=100us,sleep=900us,nice=-20",
    ] {
        let mut run = bench("sd").hz(1000).run(mix);
        run.until(30_000 * MS);
        let mut worst = 0;
        for (task, comm, _) in run.tasks() {
            let others = run.tasks().into_iter().filter(|t| t.0 != task);
            // Each slice may last to the next tick.
            let bound: u64 = others.map(|t| slots(t.2) * (QUOTA_NS + MS)).sum();
            let longest = waits(&run, task).into_iter().max().unwrap_or(0);
            assert!(longest <= bound, "{mix}: {comm} waited {longest} ns of at most {bound}");
            worst = worst.max(longest * 100 / bound);
        }
        assert!(worst > 50, "{mix}: no empty bound: at most {worst} % of it");
    }
}

/// The figure of the documentation: 19 of 20 slots of 8 ms, when another task of nice 0 has a fresh epoch. A hog on
/// its last level, which it shares with the other, waits for the 19 before it.
#[test]
fn law_04_the_worst_wait_for_one_fresh_epoch_is_152_ms() {
    let text = r#"
format = 1
name = "fresh"
duration = "1s"

[[task]]
name = "hog"
program = [{ run = "forever" }]

[[task]]
name = "fresh"
program = [{ loop = [{ run = "165ms" }, { sleep = "170ms..330ms" }] }]
"#;
    let mut run = bench("sd").hz(1000).run_toml(text);
    run.until(90_000 * MS);
    let hog = run.named("hog")[0];
    let longest = waits(&run, hog).into_iter().max().expect("it waits");
    let bound = (slots(0) - 1) * QUOTA_NS;
    assert!(longest <= bound + MS, "{longest} ns of at most {bound} and a tick");
    assert!(longest >= bound - 2 * MS, "no empty bound: {longest} of {bound}");
}

/// One on-CPU interval of a task, as the scheduler accounted for it.
#[derive(Clone, Copy, Debug)]
struct Stay {
    rotation: u64,
    level: u32,
    slice_ns: i64,
    start_ns: u64,
    ran_ns: u64,
}

/// On-CPU intervals of a task that runs for less than a tick and is not preempted. Those in which it descended a level
/// are left out.
fn stays(run: &mut Run, task: TaskId, until_ns: u64) -> Vec<Option<Stay>> {
    let mut booked: BTreeMap<u64, Option<Stay>> = BTreeMap::new();
    let pid = run.machine.trace().tasks()[task.index()].pid;
    let (mut on_cpu, mut open) = (false, None);
    run.step_ns = 10 * US;
    run.watch(until_ns, |run| {
        let (q, now) = (queue(run, 0), run.machine.now_ns());
        if q.curr_pid != pid {
            on_cpu = false;
            return;
        }
        let (rotation, level, slice_ns) = (q.curr_rotation, q.curr_level, q.curr_slice_ns);
        if !on_cpu {
            on_cpu = true;
            open = Some(now);
            booked.insert(now, Some(Stay { rotation, level, slice_ns, start_ns: now, ran_ns: 0 }));
        } else if let Some(stay) = open.and_then(|at| booked.get_mut(&at))
            && stay.is_some_and(|s| s.level != level || s.rotation != rotation)
        {
            *stay = None;
        }
    });
    let slices: Vec<_> = run.slices().into_iter().filter(|s| s.task == task).collect();
    let of = |(seen, stay): (u64, Option<Stay>)| {
        let slice = slices.iter().find(|s| s.start_ns <= seen && seen < s.end_ns)?;
        Some(stay.map(|s| Stay { start_ns: slice.start_ns, ran_ns: slice.ran_ns(), ..s }))
    };
    booked.into_iter().filter_map(of).collect()
}

#[test]
fn law_05_a_sleeper_finds_its_level_and_its_rest() {
    let mut run = bench("sd").hz(1000).run("hogs:2 + sleepers:1,run=710us,sleep=3305us");
    run.until(1_000 * MS);
    let sleeper = run.named("sleeper")[0];
    let stays = stays(&mut run, sleeper, 9_000 * MS);
    let (mut same, mut next, mut fresh) = (0, 0, 0);
    for pair in stays.windows(2) {
        let [Some(before), Some(after)] = pair else { continue };
        // A tick in the first microseconds would have been charged already.
        if after.start_ns / MS != (after.start_ns + 10 * US) / MS
            || before.start_ns / MS != (before.start_ns + 10 * US) / MS
        {
            continue;
        }
        let rest_ns = before.slice_ns - before.ran_ns as i64;
        if after.rotation != before.rotation {
            assert_eq!((after.level, after.slice_ns), (1, QUOTA_NS as i64), "a new epoch");
            fresh += 1;
        } else if rest_ns > 0 {
            assert_eq!((after.level, after.slice_ns), (before.level, rest_ns), "within an epoch");
            same += 1;
        } else {
            let next_level = allowed(0).into_iter().find(|l| *l > before.level);
            assert_eq!((Some(after.level), after.slice_ns), (next_level, QUOTA_NS as i64));
            next += 1;
        }
    }
    assert!(same > 500 && next > 10 && fresh > 10, "{same}, {next}, {fresh} of {}", stays.len());
}

#[test]
fn law_06_a_wakeup_preempts_from_a_better_level_only() {
    let mix =
        "hogs:2 + sleepers:2,run=1700us,sleep=2305us + sleepers:1,run=900us,sleep=1103us,nice=10";
    for set in ["sd", "sd@rsdl"] {
        let mut run = bench(set).hz(1000).run(mix);
        run.until(10 * MS);
        run.step_ns = 5 * US;
        let sleepers = run.named("sleeper");
        let mut before = queue(&run, 0);
        let mut asleep: Vec<bool> = Vec::new();
        let mut seen = [0; 2];
        // For each sleeper: the epoch and the level at which it was last seen on the CPU.
        let mut last: BTreeMap<TaskId, (u64, u32)> = BTreeMap::new();
        run.watch(3_000 * MS, |run| {
            let now: Vec<bool> = sleepers.iter().map(|s| !run.task(*s).runnable).collect();
            let woken: Vec<usize> = (0..now.len())
                .filter(|i| asleep.get(*i).copied().unwrap_or(false) && !now[*i])
                .collect();
            let after = queue(run, 0);
            let off_tick = run.machine.now_ns() % MS >= 5 * US;
            let slept = asleep.iter().zip(&now).any(|(was, is)| !was && *is);
            if let [one] = woken[..]
                && off_tick
                && !slept
            {
                // A task that ascended within an epoch has expired: its level is one of the next epoch.
                let level = level(run, sleepers[one]);
                let expired = last
                    .get(&sleepers[one])
                    .is_some_and(|(epoch, was)| *epoch == before.rotation && level < *was);
                let better = !expired && level < before.curr_level;
                let preempted = current(run, &after) == Some(sleepers[one]);
                assert_eq!(preempted, better, "{set}: {before:?}, {after:?}");
                seen[usize::from(better)] += 1;
            }
            if let Some(task) = current(run, &after) {
                last.insert(task, (after.curr_rotation, after.curr_level));
            }
            (asleep, before) = (now, after);
        });
        assert!(seen.iter().all(|n| *n > 40), "{set}: {seen:?}");
    }
}

/// A ledger of the levels' quotas, kept from the tasks' keys and the time alone.
#[test]
fn law_07_a_level_has_what_was_granted_less_what_was_run() {
    for (hz, mix) in
        [(1000, "hogs:3"), (250, "hogs:5"), (250, "hogs:2:0:5"), (100, "hogs:2:-8:0:19")]
    {
        let tick_ns = 1_000 * MS / u64::from(hz);
        let mut run = settled("sd@rsdl", hz, mix);
        let tasks = run.tasks();
        let quota = |nice: i8| {
            let grown = RSDL_QUOTA_NS * (1 + (-6 - i64::from(nice)).max(0) as u64);
            (if nice > 0 { RSDL_QUOTA_NS / 2 } else { grown }) as i64
        };
        let levels = |run: &Run| -> Vec<u32> { tasks.iter().map(|t| level(run, t.0)).collect() };
        let mut before = (queue(&run, 0), levels(&run));
        let mut ledger = [prio_quota(&run, 0, 0), prio_quota(&run, 0, 1)];
        // The epoch of each task, by the array that it waits in: the old one unless it has just ascended.
        let mut epoch: Vec<Option<u64>> = vec![None; tasks.len()];
        let mut checks = 0;
        run.watch(SETTLED_NS + 6_000 * MS, |run| {
            let after = (queue(run, 0), levels(run));
            let ran = current(run, &before.0).expect("a hog runs");
            let ran = tasks.iter().position(|t| t.0 == ran).expect("of ours");
            ledger[(before.0.curr_rotation & 1) as usize][before.0.curr_level as usize] -=
                tick_ns as i64;
            epoch[ran] = Some(before.0.curr_rotation);
            let changed: Vec<usize> =
                (0..tasks.len()).filter(|i| before.1[*i] != after.1[*i]).collect();
            for &i in &changed {
                let up = after.1[i] < before.1[i];
                let of = epoch[i].unwrap_or(before.0.rotation) + u64::from(up);
                epoch[i] = Some(of);
                ledger[(of & 1) as usize][after.1[i] as usize] += quota(tasks[i].2);
            }
            // Nice 19 has one level: it expires onto the one that it comes from.
            for i in (0..tasks.len()).filter(|i| tasks[*i].2 == 19) {
                let over = before.0.curr_slice_ns <= tick_ns as i64;
                if i == ran && over && !changed.contains(&i) {
                    let of = before.0.curr_rotation + 1;
                    epoch[i] = Some(of);
                    ledger[(of & 1) as usize][39] += quota(19);
                }
            }
            if after.0.rotation != before.0.rotation {
                ledger[(before.0.rotation & 1) as usize] = vec![0; 40];
            }
            for parity in [0, 1] {
                let got = prio_quota(run, 0, parity);
                assert_eq!(got, ledger[parity as usize], "{mix} at {hz} Hz: {before:?} {after:?}");
            }
            checks += 1;
            before = after;
        });
        assert!(checks > 500, "{mix}: {checks} looks");
        assert!(queue(&run, 0).minor_rotations > 20, "{mix}: {:?}", queue(&run, 0));
    }
}

#[test]
fn law_07_a_minor_rotation_empties_the_level_and_keeps_the_order() {
    // At 100 Hz a slice of 10 ms uses up more than 6 ms of the level: some tasks are pushed down at each level.
    let mut run = settled("sd@rsdl", 100, "hogs:7");
    let hogs = run.named("hog");
    let keys = |run: &Run| -> BTreeMap<TaskId, u64> {
        hogs.iter().map(|h| (*h, run.task(*h).dsq_vtime)).collect()
    };
    let (mut before, mut at) = (keys(&run), queue(&run, 0));
    let mut several = 0;
    run.watch(SETTLED_NS + 5_000 * MS, |run| {
        let (after, now) = (keys(run), queue(run, 0));
        if now.rotation == at.rotation && now.prio_level > at.prio_level {
            let ran = current(run, &at).expect("a hog runs");
            let mut pushed: Vec<TaskId> = hogs
                .iter()
                .copied()
                .filter(|h| *h != ran && (before[h] >> 56) < u64::from(now.prio_level))
                .filter(|h| after[h] != before[h])
                .collect();
            pushed.sort_by_key(|h| before[h]);
            let order: Vec<u64> = pushed.iter().map(|h| after[h]).collect();
            assert!(order.is_sorted(), "{pushed:?}: {order:?}");
            assert!(order.iter().all(|key| key >> 56 >= u64::from(now.prio_level)), "{order:?}");
            several += usize::from(pushed.len() > 1);
        }
        (before, at) = (after, now);
    });
    assert!(several > 10, "{several} times more than one task was pushed down");
}

#[test]
fn law_08_the_quota_grows_with_the_logarithm_of_the_cpus() {
    for (cpus, factor) in [(1, 1), (2, 2), (3, 2), (4, 3), (6, 3), (8, 4), (64, 7)] {
        let mut run = bench("sd").cpus(cpus).hz(1000).run("hogs:2,cpus=0");
        run.until(4_000 * MS);
        let slices: Vec<u64> =
            run.slices().iter().filter(|s| s.start_ns > 1_000 * MS).map(|s| s.ran_ns()).collect();
        assert!(
            slices.len() > 20 && slices.iter().all(|t| *t == factor * QUOTA_NS),
            "{cpus} CPUs: {slices:?}"
        );
    }
}

#[test]
fn law_09_a_sleeper_preempts_as_long_as_its_quota_lasts() {
    // A tenth of a CPU: always on a better level than the hogs. Four fifths: it descends the staircase as they do.
    for (times, modest) in [("run=100us,sleep=900us", true), ("run=800us,sleep=200us", false)] {
        let mut run = bench("sd").hz(1000).run(&format!("hogs:4 + sleepers:1,{times}"));
        run.until(1_000 * MS);
        run.step_ns = 10 * US;
        let sleeper = run.named("sleeper")[0];
        let pid = run.machine.trace().tasks()[sleeper.index()].pid;
        let mut ran: BTreeMap<(u64, u32), u64> = BTreeMap::new();
        run.watch(8_000 * MS, |run| {
            let q = queue(run, 0);
            if q.curr_pid == pid {
                *ran.entry((q.curr_rotation, q.curr_level)).or_default() += 10 * US;
            }
        });
        let most = ran.values().copied().max().expect("it ran");
        assert!(most <= QUOTA_NS + MS, "{times}: {most} ns on one step");
        assert!(most > QUOTA_NS - MS, "{times}: no empty bound: {most}");
        let time = run.cpu_time(1_000 * MS, 8_000 * MS);
        let share = time[&sleeper] * 1000 / (7_000 * MS);
        let waited = waits(&run, sleeper);
        let at_once = waited.iter().filter(|w| **w < 20 * US).count() * 100 / waited.len();
        if modest {
            assert!(at_once > 95 && share > 90, "{times}: {at_once} % at once, {share} of 1000");
        } else {
            // A fifth is its share. It may have a part of an epoch in advance.
            assert!((170..=230).contains(&share), "{times}: {share} of 1000");
        }
    }
}

#[test]
fn a_child_starts_on_its_parents_level_with_half_of_the_rest() {
    let text = r#"
format = 1
name = "fork"
duration = "1s"

[[task]]
name = "mother"
program = [{ run = "19ms" }, { fork = "child" }, { run = "forever" }]

[[task]]
name = "child"
program = [{ run = "forever" }]
"#;
    for (shares, expected) in [("on", (5, 5)), ("off", (1, 8))] {
        let mut run = bench("sd").hz(1000).set("rule_fork_shares_quota", shares).run_toml(text);
        run.until(19_100 * US);
        // 19 ms: two quotas of 8 ms, on levels 1 and 3, then 3 ms of level 5.
        let child = run.named("child")[0];
        assert_eq!(level(&run, child), expected.0, "{shares}");
        run.until(60 * MS);
        let mother = run.named("mother")[0];
        let of_child: Vec<u64> =
            run.slices().iter().filter(|s| s.task == child).map(|s| s.ran_ns()).collect();
        // Half of 5 ms ends at the following tick; a new task has two levels for itself.
        let first = if shares == "on" { 3 * MS } else { 2 * QUOTA_NS };
        assert_eq!(of_child[0], first, "{shares}: {of_child:?}, mother {mother:?}");
    }
}
