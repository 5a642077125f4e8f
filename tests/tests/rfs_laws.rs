//! The laws of `rfs`: exact sums, exact service, bounded spread, placement.
//!
//! Each test bears the number of its law. Laws 1, 6 and 14, and 2, 3, 5, 7 over random histories, are checked on the arithmetic
//! alone in `policies/tests/arithmetic.rs`. Law 11 is about a 32-bit variant, which does not exist here.

mod rig;

use fairground_bpf::Object;
use fairground_trace::{EventKind, TaskId};
use rig::{MS, Run, US, bench, diff, weight};

const SETS: [(&str, u32, u32); 2] = [("rfs@literal", 16, 46), ("rfs@accurate", 24, 54)];

/// `inv` of equation (8).
fn inv(nice: i8, fraction_bits: u32) -> u64 {
    ((1 << fraction_bits) + weight(nice) / 2) / weight(nice)
}

fn shift(nice: i8) -> u32 {
    (weight(nice) as f64).log2().round() as u32
}

/// The fields of `struct rfs_queue` that the laws speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Queue {
    weight_sum_app: u64,
    time_norm_base: u64,
    time_sum_off: i64,
    time_sum_max: u64,
    time_norm_inc: u64,
    rotations: u64,
    curr_time_norm: u64,
    curr_pid: u32,
}

fn queue(run: &Run, cpu: usize) -> Queue {
    let word = |word| run.queue_u64(cpu, word);
    Queue {
        weight_sum_app: word(0),
        time_norm_base: word(1),
        time_sum_off: word(2) as i64,
        time_sum_max: word(3),
        time_norm_inc: word(4),
        rotations: word(6),
        curr_time_norm: word(10),
        curr_pid: run.queue_field(cpu, 128, 4) as u32,
    }
}

/// Each runnable task's normalised time and nice value; the running task's from its queue.
fn runnable(run: &Run, queue: &Queue) -> Vec<(TaskId, u64, i8)> {
    let infos = run.machine.trace().tasks();
    let views =
        run.tasks().into_iter().filter_map(|(id, _, nice)| Some((id, run.machine.task(id)?, nice)));
    let of_task = views.filter(|(_, view, _)| view.runnable).map(|(id, view, nice)| {
        let is_current = infos[id.index()].pid == queue.curr_pid;
        (id, if is_current { queue.curr_time_norm } else { view.dsq_vtime }, nice)
    });
    of_task.collect()
}

fn check_sums(run: &Run, cpu: usize, max_log2: u32) {
    let q = queue(run, cpu);
    let mut tasks = runnable(run, &q);
    tasks.retain(|t| run.task(t.0).cpu as usize == cpu);
    assert_eq!(q.weight_sum_app, tasks.iter().map(|t| 1 << shift(t.2)).sum::<u64>(), "(16)");
    if tasks.is_empty() {
        return;
    }
    assert!(q.time_norm_inc.is_power_of_two());
    assert_eq!(
        u128::from(q.time_sum_max),
        u128::from(q.time_norm_inc) * u128::from(q.weight_sum_app),
        "(21)"
    );
    assert!((1 << (max_log2 - 1)..1 << max_log2).contains(&q.time_sum_max), "invariant N: {q:?}");
    assert!((0..q.time_sum_max as i64).contains(&q.time_sum_off), "invariant O: {q:?}");
    let sum: i128 =
        tasks.iter().map(|t| i128::from(diff(t.1, q.time_norm_base)) << shift(t.2)).sum();
    assert_eq!(i128::from(q.time_sum_off), sum, "(25)");
}

const MIXED: &str = "hogs:1:-5:0:5 + sleepers:2,run=300us,sleep=2ms + sleepers:1,run=1ms,sleep=40ms,nice=10 + sleepers:1,run=5ms,sleep=7ms,nice=-20";

#[test]
fn laws_02_03_sums_are_exact_at_every_look() {
    for (set, _, max_log2) in SETS {
        let mut run = bench(set).hz(1000).run(MIXED);
        let mut looks = 0;
        run.watch(1_500 * MS, |run| {
            check_sums(run, 0, max_log2);
            looks += 1;
        });
        assert!(
            looks > 20_000 && queue(&run, 0).rotations > 0,
            "{set}: {looks} looks, {:?}",
            queue(&run, 0)
        );
    }
    // A smaller bound, so that the base turns often.
    let mut run = bench("rfs@literal").hz(1000).set("max_timesum_log2", 40).run(MIXED);
    run.watch(1_500 * MS, |run| check_sums(run, 0, 40));
    assert!(queue(&run, 0).rotations > 100, "{:?}", queue(&run, 0));
}

/// What other CPUs have pulled is taken off a queue's sums at its own next step; until then the sums are those of before.
#[test]
fn law_02_sums_are_exact_while_tasks_move() {
    for (set, _, max_log2) in SETS {
        let mut run = bench(set)
            .cpus(4)
            .hz(1000)
            .run("hogs:1 + sleepers:5,run=700us,sleep=900us + sleepers:3,run=3ms,sleep=5ms,nice=3");
        let mut settled = 0;
        run.watch(1_000 * MS, |run| {
            for cpu in 0..4 {
                let (pulled, seen) = (run.queue_field(cpu, 160, 8), run.queue_field(cpu, 184, 8));
                if pulled == seen {
                    check_sums(run, cpu, max_log2);
                    settled += usize::from(seen > 0);
                }
            }
        });
        let moves = run.machine.counters().migrations;
        assert!(
            moves > 100 && settled > 10_000,
            "{set}: {moves} moves, {settled} looks at a queue that lost tasks"
        );
    }
}

#[test]
fn law_04_service_is_accounted_exactly() {
    for (set, fraction_bits, _) in SETS {
        let mut run =
            bench(set).hz(250).run("hogs:1:-15:-5:0:5:19 + sleepers:3,run=33us,sleep=901us");
        run.until(300 * US);
        let hogs: Vec<_> = run.tasks().into_iter().filter(|t| t.1.starts_with("hog")).collect();
        let start: Vec<_> = hogs.iter().map(|h| run.task(h.0)).collect();
        run.until(5_000 * MS);
        for (hog, start) in hogs.iter().zip(&start) {
            // Key and CPU time are booked at the same moments.
            let now = run.task(hog.0);
            let ran_ns = now.sum_exec_ns - start.sum_exec_ns;
            let advance = diff(now.dsq_vtime, start.dsq_vtime);
            assert_eq!(
                advance as u64,
                ran_ns * inv(hog.2, fraction_bits),
                "{set} nice {}: {ran_ns} ns",
                hog.2
            );
        }
        let q = queue(&run, 0);
        assert!(runnable(&run, &q).len() >= 5);
    }
}

#[test]
fn law_05_average_is_the_exact_mean() {
    for (set, ..) in SETS {
        let mut run = bench(set).hz(1000).run(MIXED);
        run.watch(600 * MS, |run| {
            let q = queue(run, 0);
            if q.weight_sum_app == 0 {
                return;
            }
            let average = q.time_norm_base.wrapping_add(q.time_sum_off as u64 / q.weight_sum_app);
            let tasks = runnable(run, &q);
            let first = tasks[0].1;
            let sum: i128 = tasks.iter().map(|t| i128::from(diff(t.1, first)) << shift(t.2)).sum();
            let mean = sum.div_euclid(i128::from(q.weight_sum_app));
            assert_eq!(i128::from(diff(average, first)), mean, "{set}");
        });
    }
}

#[test]
fn law_07_wrapping_changes_no_decision() {
    let decisions = |start: u64| {
        let mut run =
            bench("rfs@accurate").cpus(2).hz(1000).set("time_norm_start", start).run(MIXED);
        run.until(2_000 * MS);
        run.events()
    };
    let from_zero = decisions(0);
    assert!(from_zero.iter().filter(|e| matches!(e.kind, EventKind::Switch { .. })).count() > 1000);
    for start in [(1u64 << 63) - (1 << 40), u64::MAX - (1 << 40), u64::MAX - 1_000_000_000] {
        assert!(decisions(start) == from_zero, "from {start} another run than from 0");
    }
}

/// The most that a task can be ahead of another when both always want to run: (G + tick) * inv.
fn spread_bound(nices: &[i8], fraction_bits: u32, granularity_ns: u64, tick_ns: u64) -> u64 {
    let bounds = nices.iter().map(|n| (granularity_ns + tick_ns) * inv(*n, fraction_bits));
    bounds.max().expect("some task")
}

#[test]
fn laws_08_09_spread_is_bounded_and_no_error_grows() {
    for (set, fraction_bits, _) in SETS {
        for nices in [[-5i8, 0, 5], [-10, 0, 10], [0, 5, 19]] {
            let mut run =
                bench(set).hz(1000).run(&format!("hogs:1:{}:{}:{}", nices[0], nices[1], nices[2]));
            let bound = spread_bound(&nices, fraction_bits, 4 * MS, MS);
            run.until(2 * MS);
            run.step_ns = 500 * US;
            let mut bases: Vec<Vec<u64>> = Vec::new();
            run.watch(20_000 * MS, |run| {
                let tasks = runnable(run, &queue(run, 0));
                let offsets: Vec<i64> = tasks.iter().map(|t| diff(t.1, tasks[0].1)).collect();
                let spread =
                    offsets.iter().max().expect("three") - offsets.iter().min().expect("three");
                assert!(spread as u64 <= bound, "law 9, {set} {nices:?}: {spread} of {bound}");
                bases.push(tasks.iter().map(|t| t.1).collect());
            });
            // Law 8: over any interval the services differ by at most 2 D, however long it is.
            for interval in [1usize, 10, 100, 1000, 10_000, 39_000] {
                for from in (0..bases.len() - interval).step_by(257) {
                    let served: Vec<i64> = bases[from]
                        .iter()
                        .zip(&bases[from + interval])
                        .map(|(a, b)| diff(*b, *a))
                        .collect();
                    let apart =
                        served.iter().max().expect("three") - served.iter().min().expect("three");
                    assert!(
                        apart as u64 <= 2 * bound,
                        "law 8, {set} {nices:?}: {apart} over {interval} looks"
                    );
                }
            }
        }
    }
}

#[test]
fn law_10_wakeups_are_placed_at_the_bonus_or_kept() {
    for (set, fraction_bits, _) in SETS {
        let bonus = 10 * MS * inv(0, fraction_bits);
        // One hog: while the sleeper is away, the average is the hog's time.
        for (times, long) in [("run=1ms,sleep=800us", false), ("run=100us,sleep=200ms", true)] {
            let mut run = bench(set).hz(1000).run(&format!("hogs:1 + sleepers:1,{times}"));
            run.until(100 * US);
            run.step_ns = 10 * US;
            let sleeper = run.named("sleeper")[0];
            let mut asleep = None;
            let mut seen = 0;
            run.watch(2_000 * MS, |run| {
                let view = run.task(sleeper);
                let Some((key, exec_ns)) = asleep else {
                    asleep = (!view.runnable).then_some((view.dsq_vtime, view.sum_exec_ns));
                    return;
                };
                if !view.runnable || view.sum_exec_ns != exec_ns {
                    asleep = (!view.runnable).then_some((view.dsq_vtime, view.sum_exec_ns));
                    return;
                }
                asleep = None;
                let hog = run.task(run.named("hog")[0]).dsq_vtime;
                if !long && diff(hog, key) < bonus as i64 {
                    assert_eq!(view.dsq_vtime, key, "{set}: a short sleep changes nothing");
                    seen += 1;
                } else if long {
                    // The hog's own time, published when it was preempted at this moment.
                    assert_eq!(
                        diff(hog, view.dsq_vtime),
                        bonus as i64,
                        "{set}: a long sleep earns the bonus"
                    );
                    seen += 1;
                }
            });
            assert!(seen >= if long { 8 } else { 100 }, "{set}, {times}: {seen} wake-ups seen");
        }
    }
}

#[test]
fn law_12_the_base_turns_as_often_as_the_average_moves() {
    let mut run = bench("rfs@literal").hz(1000).set("max_timesum_log2", 40).run("hogs:1:-5:0:5");
    run.until(2 * MS);
    let before = queue(&run, 0);
    run.until(10_002 * MS);
    let after = queue(&run, 0);
    let moved = diff(after.time_norm_base, before.time_norm_base) as u64;
    assert_eq!(after.rotations - before.rotations, moved / after.time_norm_inc);
    // X * 2^S * m / time_sum_max, m within 1.42 of 1.
    let expected = 10e9 * 65536.0 / after.time_sum_max as f64;
    let turns = (after.rotations - before.rotations) as f64;
    assert!((1.0 / 1.42..=1.42).contains(&(turns / expected)), "{turns} turns for {expected:.0}");
}

/// The instructions of a section of an object, as (opcode, offset).
fn opcodes(object: &[u8], section: &str) -> Vec<u8> {
    let u16_at = |at: usize| {
        usize::from(u16::from_le_bytes(object[at..at + 2].try_into().expect("two bytes")))
    };
    let u32_at =
        |at: usize| u32::from_le_bytes(object[at..at + 4].try_into().expect("four bytes")) as usize;
    let u64_at = |at: usize| {
        u64::from_le_bytes(object[at..at + 8].try_into().expect("eight bytes")) as usize
    };
    let (table, entry, count, names) = (u64_at(40), u16_at(58), u16_at(60), u16_at(62));
    let names = u64_at(table + names * entry + 24);
    let header = (0..count).map(|n| table + n * entry).find(|header| {
        let name = &object[names + u32_at(*header)..];
        name.starts_with(section.as_bytes()) && name[section.len()] == 0
    });
    let header = header.unwrap_or_else(|| panic!("the object has a section {section}"));
    let (from, size) = (u64_at(header + 24), u64_at(header + 32));
    object[from..from + size].chunks(8).map(|insn| insn[0]).collect()
}

#[test]
fn law_13_no_division_on_the_way_of_the_tick() {
    let object = fairground_policies::get("rfs").expect("a scheduler of this house").object;
    Object::parse("rfs", object).expect("it parses");
    // Class ALU (4) or ALU64 (7), operation DIV (0x30) or MOD (0x90).
    let divides = |opcode: &u8| matches!(opcode & 7, 4 | 7) && matches!(opcode & 0xf0, 0x30 | 0x90);
    for callback in ["rfs_tick", "rfs_stopping", "rfs_dispatch", "rfs_yield"] {
        let code = opcodes(object, &format!("struct_ops/{callback}"));
        assert!(code.len() > 30, "{callback}: {} instructions", code.len());
        assert_eq!(code.iter().filter(|o| divides(o)).count(), 0, "{callback}");
    }
    let wakes = opcodes(object, "struct_ops/rfs_runnable");
    assert!(
        wakes.iter().any(divides),
        "a placement needs the average: the test can see a division"
    );
}
