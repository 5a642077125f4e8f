//! The laws of `rfs` (docs/laws/rfs.md) that concern its arithmetic and its code, on the compiled object: the test
//! takes the kernel's part and checks the scheduler's state after each callback. `rfs_laws.rs` has those of whole
//! runs.

use std::collections::BTreeSet;

use crate::rig::callbacks::{Callbacks, Loaded, Task, load};
use crate::rig::rfs::{ACCURATE, LITERAL, Member, Queue, inv, shift};
use crate::rig::{MS, diff};
use fairground_bpf::{Callee, Fixup, Insn, Linked};

fn queue(rfs: &Callbacks) -> Queue {
    Queue::read(|word| rfs.word("cpu_queues", word))
}

#[test]
fn law_01_inverse_and_shift_of_all_nice_values() {
    let loaded = load("rfs");
    for (settings, fraction_bits) in [(LITERAL, 16), (ACCURATE, 24)] {
        let mut rfs = Callbacks::new(&loaded, &settings);
        for nice in -20..=19 {
            let task = rfs.task(nice);
            rfs.restore(task);
            let seen_shift = queue(&rfs).weight_sum_app.ilog2();
            assert_eq!(queue(&rfs).weight_sum_app, 1 << shift(nice), "nice {nice}");
            rfs.schedule();
            let before = queue(&rfs).curr_time_norm;
            rfs.pass(1);
            rfs.tick();
            let seen_inv = diff(queue(&rfs).curr_time_norm, before) as u64;
            assert_eq!(seen_inv, inv(nice, fraction_bits), "S = {fraction_bits}, nice {nice}");
            rfs.sleep();
            // The error of a task's share in the average.
            let product = (seen_inv << seen_shift) as f64 / (1u64 << fraction_bits) as f64;
            let within = (1.0 / 1.42..=1.42).contains(&product);
            let rounded_badly = fraction_bits == 16 && matches!(nice, -17 | -14);
            assert_eq!(within, !rounded_badly, "S = {fraction_bits}, nice {nice}: {product}");
        }
    }
}

#[test]
fn law_06_who_joins_and_leaves_leaves_no_trace() {
    let loaded = load("rfs");
    for (settings, max_log2) in [(LITERAL, 46), (ACCURATE, 54)] {
        let mut rfs = Callbacks::new(&loaded, &settings);
        let mut members = Vec::new();
        for (nice, ran_ns) in [(0, 4 * MS), (5, 1234567), (-5, 9 * MS), (19, 77)] {
            let task = rfs.task(nice);
            rfs.restore(task);
            rfs.schedule();
            rfs.pass(ran_ns);
            rfs.put_back();
            members.push((task, shift(nice)));
        }
        let members: Vec<Member> =
            members.into_iter().map(|(task, shift)| (rfs.dsq_vtime(task), shift)).collect();
        let (before, average) = (queue(&rfs), queue(&rfs).average());
        let mut visitor = rfs.task(0);
        rfs.restore(visitor);
        for nice in -20..=19 {
            for distance in [-640_000_000i64, -1, 0, 3, 1 << 33] {
                rfs.take_out(visitor);
                let q = queue(&rfs);
                q.check(&members, max_log2).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!((q.weight_sum_app, q.total()), (before.weight_sum_app, before.total()));
                assert_eq!(q.average(), average, "nice {nice}, {distance} from the average");
                rfs.set_nice(visitor, nice);
                rfs.set_dsq_vtime(visitor, average.wrapping_add_signed(distance));
                rfs.restore(visitor);
                assert_ne!(queue(&rfs).weight_sum_app, before.weight_sum_app);
            }
        }
        rfs.take_out(visitor);
        // A new task is placed exactly at the average: the object's own division.
        visitor = rfs.task(3);
        rfs.restore(visitor);
        assert_eq!(rfs.dsq_vtime(visitor), average);
    }
}

/// The functions that can be reached from one by calls, itself included.
fn reachable(linked: &Linked, from: usize) -> BTreeSet<usize> {
    let (mut found, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(function) = open.pop() {
        for fixup in linked.functions[function].fixups.values() {
            let (Fixup::Call(Callee::Function(to)) | Fixup::Function(to)) = fixup else { continue };
            if found.insert(*to) {
                open.push(*to);
            }
        }
    }
    found
}

/// Class ALU (4) or ALU64 (7), operation DIV (0x30) or MOD (0x90).
fn divides(insn: &&Insn) -> bool {
    matches!(insn.code & 7, 4 | 7) && matches!(insn.code & 0xf0, 0x30 | 0x90)
}

#[test]
fn law_13_no_division_on_the_way_of_the_tick() {
    let loaded = load("rfs");
    let linked = loaded.image.linked();
    let divisions = |functions: BTreeSet<usize>| {
        let insns = functions.iter().flat_map(|f| &linked.functions[*f].insns);
        (insns.clone().count(), insns.filter(divides).count())
    };
    let function = |callback: &str| loaded.image.function(callback).expect("the object has it");
    // All of these have the accounting in them; the decision after a tick is dispatch's. Their other callee is the load
    // balancer, which divides, but only when it is due (and never on one CPU: tests/policy_cost.rs counts).
    let account = reachable(linked, function("sums_turn"));
    for callback in ["rfs_tick", "rfs_stopping", "rfs_dispatch", "rfs_yield"] {
        let called = reachable(linked, function(callback));
        assert!(called.is_superset(&account), "{callback} does not account");
        let mut functions = account.clone();
        functions.insert(function(callback));
        let (insns, divisions) = divisions(functions);
        assert!(insns > 100, "{callback}: {insns} instructions");
        assert_eq!(divisions, 0, "{callback}");
    }
    // The test does detect a division: a placement needs the average, directly or over a migration.
    assert!(divisions(reachable(linked, function("average_of"))).1 > 0);
    for callback in ["rfs_enqueue", "rfs_running"] {
        assert!(divisions(reachable(linked, function(callback))).1 > 0, "{callback}");
    }
}

/// One line of the worked example: the task that runs for 4 ms, or another event.
#[derive(Clone, Copy, Debug)]
enum Event {
    Enqueue(usize),
    Runs(usize),
    Sleeps(usize),
    Wakes(usize),
}

/// Plays events on a new queue of three tasks of nice 0, 5 and -5.
fn play(loaded: &Loaded, events: &[Event]) -> (Callbacks, [Task; 3]) {
    let mut rfs = Callbacks::new(loaded, &[("fraction_bits", 16), ("max_timesum_log2", 40)]);
    let tasks = [0, 5, -5].map(|nice| rfs.task(nice));
    for (n, event) in events.iter().enumerate() {
        match *event {
            Event::Enqueue(t) => rfs.restore(tasks[t]),
            Event::Runs(t) => {
                assert_eq!(rfs.schedule(), Some(tasks[t]), "event {n}: the object's own decision");
                rfs.pass(4 * MS);
                rfs.tick();
            }
            Event::Sleeps(t) => {
                if rfs.current() == Some(tasks[t]) {
                    rfs.sleep()
                } else {
                    rfs.take_out(tasks[t])
                }
            }
            Event::Wakes(t) => rfs.wake(tasks[t]),
        }
    }
    (rfs, tasks)
}

/// base, off, log2 of inc, max, sum of weights, average; then the times of A, B and C.
type Row = ([u64; 6], [u64; 3]);

fn row(loaded: &Loaded, events: &[Event]) -> Row {
    let (mut rfs, tasks) = play(loaded, events);
    let q = queue(&rfs);
    let time = |task| {
        if rfs.current() == Some(task) { q.curr_time_norm } else { rfs.dsq_vtime(task) }
    };
    let times = tasks.map(time);
    // The object's own average: its placement of a new task, without a running parent.
    rfs.put_back();
    let newborn = rfs.task(0);
    rfs.restore(newborn);
    let sums = [
        q.time_norm_base,
        q.time_sum_off as u64,
        u64::from(q.time_norm_inc.ilog2()),
        q.time_sum_max,
        q.weight_sum_app,
        rfs.dsq_vtime(newborn),
    ];
    (sums, times)
}

/// The worked example's table: the row after this many events.
const EXAMPLE: [(usize, Row); 11] = [
    (1, ([0, 0, 29, 549_755_813_888, 1024, 0], [0, 0, 0])),
    (2, ([0, 0, 29, 687_194_767_360, 1280, 0], [0, 0, 0])),
    (3, ([0, 0, 27, 721_554_505_728, 5376, 0], [0, 0, 0])),
    (4, ([0, 262_144_000_000, 27, 721_554_505_728, 5376, 48_761_904], [256_000_000, 0, 0])),
    (
        5,
        (
            [0, 462_848_000_000, 27, 721_554_505_728, 5376, 86_095_238],
            [256_000_000, 784_000_000, 0],
        ),
    ),
    (
        6,
        (
            [134_217_728, 85_357_494_272, 27, 721_554_505_728, 5376, 150_095_238],
            [256_000_000, 784_000_000, 84_000_000],
        ),
    ),
    (
        7,
        (
            [134_217_728, 429_421_494_272, 27, 721_554_505_728, 5376, 214_095_238],
            [256_000_000, 784_000_000, 168_000_000],
        ),
    ),
    (
        8,
        (
            [268_435_456, 51_930_988_544, 27, 721_554_505_728, 5376, 278_095_238],
            [256_000_000, 784_000_000, 252_000_000],
        ),
    ),
    (
        9,
        (
            [134_217_728, 607_141_232_640, 27, 687_194_767_360, 5120, 252_800_000],
            [256_000_000, 784_000_000, 252_000_000],
        ),
    ),
    (
        24,
        (
            [1_073_741_824, 630_057_861_120, 27, 687_194_767_360, 5120, 1_196_800_000],
            [1_280_000_000, 784_000_000, 1_176_000_000],
        ),
    ),
    (
        25,
        (
            [1_073_741_824, 555_883_954_176, 27, 721_554_505_728, 5376, 1_177_142_857],
            [1_280_000_000, 784_000_000, 1_176_000_000],
        ),
    ),
];

#[test]
fn law_14_worked_example() {
    use Event::{Enqueue, Runs, Sleeps, Wakes};
    let (a, b, c) = (0, 1, 2);
    let mut events = vec![Enqueue(a), Enqueue(b), Enqueue(c)];
    events.extend([a, b, c, c, c].map(Runs));
    events.push(Sleeps(b));
    events.extend([c, a, c, c, c, a, c, c, c, a, c, c, c, a, c].map(Runs));
    events.push(Wakes(b));
    let loaded = load("rfs");
    for (count, expected) in EXAMPLE {
        let event = events[count - 1];
        assert_eq!(row(&loaded, &events[..count]), expected, "event {count}, {event:?}");
    }
    let (mut rfs, tasks) = play(&loaded, &events);
    assert_eq!(rfs.kicks(), 1, "B is far behind C, and preempts it");
    assert_eq!(rfs.schedule(), Some(tasks[b]));
}
