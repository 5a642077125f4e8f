//! Workloads drawn at random: what holds for each of them, and what they cover together.

use std::collections::BTreeMap;

use fairground_workload::{
    DRAWN_CPUS, DRAWN_TASKS_MAX, Op, Program, Role, Workload, check, draw, drawn_cpus, from_spec,
    parse, to_toml,
};
use proptest::prelude::{Strategy, any, proptest};
use proptest::sample::select;
use proptest::test_runner::Config;

fn cpus() -> impl Strategy<Value = u32> {
    select(&DRAWN_CPUS[..])
}

/// Tasks that exist at the start.
fn started(workload: &Workload) -> u32 {
    workload.tasks.iter().filter(|task| task.start_ns.is_some()).map(|task| task.count).sum()
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    #[test]
    fn each_is_valid_and_its_file_reads_back(seed in any::<u64>(), index in 0u32..1_000_000, cpus in cpus()) {
        let workload = draw(seed, index, cpus);
        check(&workload).unwrap_or_else(|error| panic!("{error}\n{}", to_toml(&workload)));
        let text = to_toml(&workload);
        assert_eq!(parse("drawn.toml", &text).as_ref(), Ok(&workload), "{text}");
        assert_eq!(text, to_toml(&draw(seed, index, cpus)));
        assert!((1..=DRAWN_TASKS_MAX).contains(&started(&workload)), "{text}");
        let on_cpus = workload.tasks.iter().filter_map(|task| task.cpus.as_ref());
        assert!(on_cpus.flat_map(|list| &list.0).all(|(_, last)| *last < cpus), "{text}");
    }
}

#[test]
fn indexes_seeds_and_numbers_of_cpus_draw_different_workloads() {
    let texts = (0..60).flat_map(|index| {
        [to_toml(&draw(1, index, 2)), to_toml(&draw(2, index, 2)), to_toml(&draw(1, index, 4))]
    });
    let without_names = |text: String| text.split_once("duration").map(|(_, rest)| rest.to_owned());
    let texts: Vec<String> = texts.collect();
    assert!(texts.iter().enumerate().all(|(nth, text)| !texts[..nth].contains(text)));
    let mut bodies: Vec<_> = texts.into_iter().map(without_names).collect();
    bodies.sort();
    bodies.dedup();
    // The smallest ones, a hog or two, come up again.
    assert!(bodies.len() >= 176, "{} of 180", bodies.len());
}

#[test]
fn one_is_reached_by_its_name() {
    let named = |spec: &str| from_spec(spec).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(to_toml(&named("drawn:7.5,cpus=2")), to_toml(&draw(7, 5, 2)));
    assert_eq!(named("drawn:7.5").tasks, draw(7, 5, drawn_cpus(5)).tasks);
    for bad in ["drawn", "drawn:7", "drawn:7.", "drawn:x.1", "drawn:1.9999999", "drawn:1.1,cpus=0"]
    {
        assert!(from_spec(bad).is_err(), "{bad}");
    }
}

/// Names what a workload has, each name once.
fn features(workload: &Workload) -> Vec<&'static str> {
    let mut features = Vec::new();
    for task in &workload.tasks {
        for program in [&task.program, &task.on_signal] {
            operations(program, &mut features);
        }
        features.extend(task.cpus.as_ref().map(|_| "affinity"));
        features.extend(task.cgroup.map(|_| "in a cgroup"));
        features.extend((task.nice != 0).then_some("nice value"));
        features.extend(task.start_ns.is_some_and(|ns| ns > 0).then_some("late start"));
    }
    features.extend(workload.locks.iter().map(|lock| lock.kind.word()));
    features
        .extend(workload.timers.iter().map(|t| if t.shared { "shared timer" } else { "timer" }));
    features.extend(workload.timers.iter().filter(|t| t.relative).map(|_| "relative timer"));
    features.extend(workload.queues.iter().filter(|q| q.initial > 0).map(|_| "semaphore"));
    features.extend(workload.queues.iter().filter_map(|q| q.capacity.map(|_| "bounded queue")));
    features.sort_unstable();
    features.dedup();
    features
}

fn operations(program: &Program, features: &mut Vec<&'static str>) {
    for op in program {
        let feature = match op {
            Op::Run(length) if length.bounds().0 < length.bounds().1 => "random run",
            Op::Sleep(length) if length.bounds().0 < length.bounds().1 => "random sleep",
            Op::RunForever => "run forever",
            Op::Signal(Role::All(_)) => "signal all",
            Op::Signal(Role::One(..)) => "signal one",
            Op::Signal(Role::Parent) => "signal parent",
            Op::WaitChildren => "wait for children",
            Op::Loop(times, body) => {
                operations(body, features);
                if times.is_none() { "endless loop" } else { "counted loop" }
            }
            op => op.word(),
        };
        features.push(feature);
    }
}

#[test]
fn every_operation_that_a_real_task_has_is_drawn() {
    let mut counts: BTreeMap<&'static str, u32> = BTreeMap::new();
    let (mut smallest, mut largest) = (u32::MAX, 0);
    for index in 0..600 {
        let workload = draw(11, index, drawn_cpus(index));
        (smallest, largest) = (smallest.min(started(&workload)), largest.max(started(&workload)));
        for feature in features(&workload) {
            *counts.entry(feature).or_default() += 1;
        }
    }
    insta::assert_snapshot!(counts.keys().copied().collect::<Vec<_>>().join("\n"));
    let rare: Vec<_> = counts.iter().filter(|(_, count)| **count < 12).collect();
    assert!(rare.is_empty(), "in fewer than 2 % of the workloads: {rare:?}");
    assert!(smallest <= 2 && largest >= 18, "{smallest} to {largest} tasks");
}

#[test]
fn one_that_the_check_refuses_is_drawn_again() {
    let workload = draw(5, 1806, drawn_cpus(1806));
    assert_eq!(check(&workload), Ok(()), "{}", to_toml(&workload));
}

/// The history of the seeds in the reports means these workloads.
#[test]
fn a_seed_keeps_its_workload() {
    insta::assert_snapshot!(to_toml(&draw(7, 4, 2)));
}
