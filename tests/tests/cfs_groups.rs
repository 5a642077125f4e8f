//! Groups of tasks in `cfs` (docs/laws/cfs.md, law 13) and `eevdf` (docs/laws/eevdf.md, law 14): what a control group
//! gets, on one CPU and on several, by release.

use std::collections::BTreeMap;

use crate::rig::{Bench, MS, Run, US, bench};
use fairground_trace::{TaskId, TaskState};

/// One set of each family of rules for groups.
const FAMILIES: [&str; 4] = ["cfs@2.6.24", "cfs@2.6.26", "cfs@2.6.36", "cfs@6.5"];

/// The same and `eevdf`.
const ALL: [&str; 7] =
    ["cfs@2.6.24", "cfs@2.6.26", "cfs@2.6.36", "cfs@6.5", "eevdf@6.6", "eevdf@6.18", "eevdf@7.2"];

/// A workload of 30 s from cgroups (`path weight`) and tasks (`name count cgroup more keys`; cgroup `/`: the root).
fn tree(cgroups: &[(&str, u32)], tasks: &[(&str, u32, &str, &str)]) -> String {
    let mut text = "format = 1\nname = \"tree\"\nduration = \"30s\"\n".to_owned();
    for (path, weight) in cgroups {
        text += &format!("[cgroups.\"{path}\"]\nweight = {weight}\n");
    }
    for (name, count, cgroup, more) in tasks {
        text += &format!("[[task]]\nname = \"{name}\"\ncount = {count}\n");
        if *cgroup != "/" {
            text += &format!("cgroup = \"{cgroup}\"\n");
        }
        text += more;
        if !more.contains("program") {
            text += "program = [{ run = \"forever\" }]\n";
        }
    }
    text
}

/// CPU time of the tasks of each name between two times, in parts of one CPU.
fn shares(run: &Run, from_ns: u64, to_ns: u64) -> BTreeMap<String, f64> {
    let time = run.cpu_time(from_ns, to_ns);
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for (id, name, _) in run.tasks() {
        let name = name.split('-').next().unwrap_or_default().to_owned();
        let part = *time.get(&id).unwrap_or(&0) as f64 / (to_ns - from_ns) as f64;
        *shares.entry(name).or_default() += part;
    }
    shares
}

fn check(run: &mut Run, place: &str, expected: &[(&str, f64)], tolerance: f64) {
    run.until(10_500 * MS);
    let shares = shares(run, 500 * MS, 10_500 * MS);
    for (name, share) in expected {
        let got = shares.iter().filter(|(n, _)| n.starts_with(name)).map(|(_, s)| s).sum::<f64>();
        assert!((got - share).abs() <= tolerance, "{place}: {name} got {got:.4}, not {share}");
    }
}

#[test]
fn law_13_a_group_gets_what_one_task_of_its_shares_gets() {
    for set in ALL {
        for n in [1, 2, 7] {
            let text = tree(&[("box", 100)], &[("member", n, "box", ""), ("alone", 1, "/", "")]);
            let mut run = bench(set).hz(1000).run_toml(&text);
            let place = format!("{set}, {n} members");
            check(&mut run, &place, &[("member", 0.5), ("alone", 0.5)], 0.005);
        }
    }
}

#[test]
fn weights_of_groups_divide_the_cpu() {
    for set in ALL {
        let text = tree(
            &[("web", 300), ("batch", 100), ("idle", 1)],
            &[("web", 2, "web", ""), ("batch", 3, "batch", ""), ("idle", 1, "idle", "")],
        );
        let mut run = bench(set).hz(1000).run_toml(&text);
        let all = 401.0;
        let expected = [("web", 300.0 / all), ("batch", 100.0 / all), ("idle", 1.0 / all)];
        check(&mut run, set, &expected, 0.01);
    }
}

/// The root's hog has a half, `outer` the other; of that `x` two thirds; within `x` nice 0 and nice 5.
#[test]
fn groups_within_groups_multiply() {
    for set in ALL {
        let text = tree(
            &[("outer", 100), ("outer/x", 200), ("outer/y", 100)],
            &[
                ("root", 1, "/", ""),
                ("even", 1, "outer/x", ""),
                ("nice", 1, "outer/x", "nice = 5\n"),
                ("why", 2, "outer/y", ""),
            ],
        );
        let mut run = bench(set).hz(1000).run_toml(&text);
        let heavy = 1024.0 / (1024.0 + 335.0);
        let expected = [
            ("root", 0.5),
            ("even", heavy / 3.0),
            ("nice", (1.0 - heavy) / 3.0),
            ("why", 1.0 / 6.0),
        ];
        check(&mut run, set, &expected, 0.01);
    }
}

/// A task and a group in one queue: tasks of the root compete with groups, not with their members.
#[test]
fn tasks_beside_groups_are_weighed_one_by_one() {
    for set in ALL {
        let text = tree(
            &[("box", 100)],
            &[("three", 3, "/", ""), ("member", 3, "box", ""), ("low", 1, "/", "nice = 10\n")],
        );
        let mut run = bench(set).hz(1000).run_toml(&text);
        let all = 4.0 * 1024.0 + 110.0;
        let expected = [("three", 3072.0 / all), ("member", 1024.0 / all), ("low", 110.0 / all)];
        check(&mut run, set, &expected, 0.01);
    }
}

/// A hog on CPU 0 beside a group with a hog on each of two CPUs. In 2.6.24 all shares count on each CPU, so both get a
/// half of CPU 0; later half of them, so the group gets a third.
#[test]
fn shares_are_divided_among_cpus_by_release() {
    for (set, alone) in [
        ("cfs@2.6.24", 0.5),
        ("cfs@2.6.25", 0.5),
        ("cfs@2.6.26", 2.0 / 3.0),
        ("cfs@2.6.27-sle11", 2.0 / 3.0),
        ("cfs@2.6.36", 2.0 / 3.0),
        ("cfs@6.1", 2.0 / 3.0),
        ("cfs@6.5", 2.0 / 3.0),
        ("eevdf@6.6", 2.0 / 3.0),
        ("eevdf@7.2", 2.0 / 3.0),
    ] {
        let text = tree(
            &[("box", 100)],
            &[
                ("alone", 1, "/", "cpus = \"0\"\n"),
                ("here", 1, "box", "cpus = \"0\"\n"),
                ("there", 1, "box", "cpus = \"1\"\n"),
            ],
        );
        let mut run = bench(set).cpus(2).hz(1000).run_toml(&text);
        let expected = [("alone", alone), ("here", 1.0 - alone), ("there", 1.0)];
        check(&mut run, set, &expected, 0.015);
    }
}

/// The group's weight on a CPU whose task sleeps for a moment: the runnable weight there, or (4.x) its mean.
#[test]
fn the_mean_load_keeps_a_cpus_part_of_the_shares() {
    let alone = |set: &'static str| {
        let nap = "cpus = \"1\"\nprogram = [{ loop = [{ run = \"2ms\" }, { sleep = \"2ms\" }] }]\n";
        let text = tree(
            &[("box", 100)],
            &[
                ("alone", 1, "/", "cpus = \"0\"\n"),
                ("here", 1, "box", "cpus = \"0\"\n"),
                ("nap", 1, "box", nap),
            ],
        );
        let mut run = bench(set).cpus(2).hz(1000).run_toml(&text);
        run.until(10_500 * MS);
        shares(&run, 500 * MS, 10_500 * MS)["alone"]
    };
    // By mean load the napper counts for half a task: the group has 1024 * 1024 / 1536 = 683 on CPU 0.
    for set in ["cfs@6.5", "eevdf@6.18", "eevdf@7.2"] {
        let by_load = alone(set);
        assert!((by_load - 1024.0 / (1024.0 + 683.0)).abs() < 0.02, "{set}: {by_load}");
    }
}

#[test]
fn idle_cpus_take_tasks_out_of_groups() {
    for set in ALL {
        let text = tree(
            &[("box", 100), ("box/inner", 100)],
            &[("member", 2, "box/inner", ""), ("other", 2, "box", "")],
        );
        let mut run = bench(set).cpus(4).hz(250).run_toml(&text);
        run.until(3_000 * MS);
        let shares = shares(&run, 2_000 * MS, 3_000 * MS);
        let all: f64 = shares.values().sum();
        assert!(all > 3.99, "{set}: four hogs, four CPUs, {all:.3} in use");
    }
}

/// Wake-up latency of a sleeper, ns, the longest of the second half.
fn latency(run: &Run, name: &str) -> u64 {
    let task = run.named(name)[0];
    let mut woken = None;
    let mut longest = 0;
    for event in run.events() {
        match event.kind {
            fairground_trace::EventKind::Wakeup { task: t, .. } if t == task => {
                woken = Some(event.time_ns);
            }
            fairground_trace::EventKind::Switch { next, .. } if next == task => {
                if let Some(at_ns) = woken.take().filter(|at_ns| *at_ns > 1_000 * MS) {
                    longest = longest.max(event.time_ns - at_ns);
                }
            }
            _ => {}
        }
    }
    longest
}

/// A sleeper in one group preempts hogs in another as without groups. In 2.6.24 a group has no credit: it is placed at
/// its own vruntime, and waits.
#[test]
fn a_sleeper_preempts_across_groups() {
    let nap = "program = [{ loop = [{ sleep = \"40300us\" }, { run = \"100us\" }] }]\n";
    for (set, at_once) in
        [("cfs@2.6.24", false), ("cfs@2.6.26", true), ("cfs@2.6.36", true), ("cfs@6.5", true)]
    {
        let text = tree(
            &[("web", 100), ("batch", 100), ("batch/deep", 100)],
            &[("nap", 1, "web", nap), ("hog", 3, "batch/deep", "")],
        );
        let mut run = bench(set).hz(250).run_toml(&text);
        run.until(3_000 * MS);
        let longest = latency(&run, "nap");
        assert_eq!(longest < 100 * US, at_once, "{set}: {longest} ns");
        assert!(longest <= 24 * MS, "{set}: {longest} ns");
    }
}

/// The slices of the two members of a group beside one hog: the parent's slices, divided by the group's own.
#[test]
fn a_slice_is_the_product_of_the_hierarchy_since_2_6_26() {
    // 20 ms for two: 10 ms for the group. Of 20 ms again each member has 10 (2.6.24), or 10 of the group's half: 5.
    // 6.5: three tasks on the CPU, 6 ms, so 1.5 ms.
    for (set, slice_ns) in [("cfs@2.6.24", 11 * MS), ("cfs@2.6.28", 6 * MS), ("cfs@6.5", 2 * MS)] {
        let text = tree(&[("box", 100)], &[("member", 2, "box", ""), ("alone", 1, "/", "")]);
        let mut run = bench(set).hz(1000).run_toml(&text);
        run.until(4_000 * MS);
        let members = run.named("member");
        let slices = run.slices();
        let slices = slices.iter().filter(|s| {
            members.contains(&s.task) && s.start_ns > 500 * MS && s.state == TaskState::Runnable
        });
        let mut often: BTreeMap<u64, u32> = BTreeMap::new();
        slices.for_each(|s| *often.entry(s.ran_ns()).or_default() += 1);
        let most = often.iter().max_by_key(|(_, times)| **times).expect("some slices");
        assert_eq!(*most.0, slice_ns, "{set}: {often:?}");
    }
}

#[test]
fn a_weight_counts_from_when_it_is_set() {
    for set in ALL {
        let text = tree(
            &[("web", 100), ("batch", 100)],
            &[("web", 1, "web", ""), ("batch", 2, "batch", "")],
        );
        let bench: Bench = bench(set).hz(1000).at(5_000 * MS, "cgroup.web.weight", "300");
        let mut run = bench.run_toml(&text);
        run.until(10_000 * MS);
        let before = shares(&run, 500 * MS, 5_000 * MS)["web"];
        let after = shares(&run, 5_200 * MS, 10_000 * MS)["web"];
        assert!((before - 0.5).abs() < 0.01, "{set}: {before} before");
        assert!((after - 0.75).abs() < 0.01, "{set}: {after} after");
    }
}

/// A task that moves is a member of the new group from then on, neither ahead nor behind.
#[test]
fn a_task_moves_between_groups() {
    for set in FAMILIES {
        let text = tree(
            &[("web", 100), ("batch", 100)],
            &[("mover", 1, "web", ""), ("web", 1, "web", ""), ("batch", 1, "batch", "")],
        );
        let bench: Bench = bench(set).hz(1000).at(5_000 * MS, "task.mover.cgroup", "batch");
        let mut run = bench.run_toml(&text);
        run.until(10_000 * MS);
        let before = shares(&run, 500 * MS, 5_000 * MS);
        let after = shares(&run, 5_000 * MS, 5_500 * MS);
        for (name, was, is) in [("mover", 0.25, 0.25), ("web", 0.25, 0.5), ("batch", 0.5, 0.25)] {
            assert!((before[name] - was).abs() < 0.01, "{set}: {name} before: {before:?}");
            assert!((after[name] - is).abs() < 0.06, "{set}: {name} after: {after:?}");
        }
    }
}

/// Too deep: the lowest groups are merged into the last one that has room. No task is lost.
#[test]
fn groups_without_room_are_merged_upwards() {
    let paths: Vec<String> = (1..=12).map(|depth| vec!["d"; depth].join("/")).collect();
    let cgroups: Vec<(&str, u32)> = paths.iter().map(|path| (path.as_str(), 100)).collect();
    let deepest = paths.last().expect("twelve").as_str();
    let text = tree(&cgroups, &[("deep", 2, deepest, ""), ("alone", 1, "/", "")]);
    let mut run = bench("cfs@6.5").hz(1000).run_toml(&text);
    check(&mut run, "depth 12", &[("deep", 0.5), ("alone", 0.5)], 0.01);
    let merged = run.machine.variable("groups_merged").expect("a variable");
    assert_eq!(merged, 4_u32.to_le_bytes());
}

/// Fairness bound. In one queue of hogs the vruntimes stay within D = max (ideal + tick) * 1024 / w of each other (law
/// 14), so in any window an entity's service differs from its fair part of what the queue got by at most 2 D w / 1024.
/// Below, a queue gets its parent entity's service, of which an entity's fair part is w / W; the errors of the levels
/// add:
///
/// error(task) <= 2 D_leaf w / 1024 + (w / W) error(group)
#[test]
fn service_stays_within_the_sum_of_the_levels_bounds() {
    let text = tree(
        &[("box", 100)],
        &[("member", 2, "box", ""), ("light", 1, "box", "nice = 5\n"), ("alone", 1, "/", "")],
    );
    for (set, latency_ns, least_ns) in [
        ("cfs@2.6.24", 20 * MS, 4 * MS),
        ("cfs@2.6.28", 20 * MS, 4 * MS),
        ("cfs@6.5", 6 * MS, 750 * US),
    ] {
        let mut run = bench(set).hz(1000).run_toml(&text);
        run.until(6_000 * MS);
        let load = 2.0 * 1024.0 + 335.0;
        let bound_of = |weight: f64, lightest: f64, share: f64| {
            let ideal = (latency_ns as f64 * share).max(least_ns as f64);
            2.0 * (ideal + 1e6) * weight / lightest
        };
        let group = bound_of(1024.0, 1024.0, 0.5);
        for window_ns in [50 * MS, 300 * MS, 1_000 * MS] {
            for from_ns in (1_000 * MS..5_000 * MS).step_by(130_000_000) {
                let time = run.cpu_time(from_ns, from_ns + window_ns);
                for (id, name, nice) in run.tasks() {
                    let got = *time.get(&id).unwrap_or(&0) as f64;
                    let weight = if nice == 0 { 1024.0 } else { 335.0 };
                    let (fair, bound) = if name.starts_with("alone") {
                        (0.5, group)
                    } else {
                        let part = weight / load;
                        (0.5 * part, bound_of(weight, 335.0, 1024.0 / load) + part * group)
                    };
                    let error = (got - fair * window_ns as f64).abs();
                    assert!(error <= bound, "{set} {name}: off by {error} ns of {bound}");
                }
            }
        }
    }
}

/// While no task is in a group, groups change nothing: not one event.
#[test]
fn empty_groups_change_nothing() {
    for set in FAMILIES {
        let tasks = [("hog", 3, "/", ""), ("low", 1, "/", "nice = 5\n")];
        let trace = |cgroups: &[(&str, u32)]| {
            let mut run = bench(set).cpus(2).hz(250).run_toml(&tree(cgroups, &tasks));
            run.until(1_000 * MS);
            let switches = run.slices();
            switches
                .iter()
                .map(|s| (s.task, s.start_ns, s.end_ns))
                .collect::<Vec<(TaskId, u64, u64)>>()
        };
        assert_eq!(trace(&[]), trace(&[("a", 100), ("a/b", 300)]), "{set}");
    }
}

/// Of two members of a group that take turns at sleeping, beside a hog: how often one that goes to sleep is followed by
/// the hog though the other could run.
fn leaves_to_hog(set: &'static str) -> usize {
    let nap = "program = [{ loop = [{ run = \"300us\" }, { sleep = \"200us\" }] }]\n";
    let text = tree(&[("pair", 100)], &[("nap", 2, "pair", nap), ("hog", 1, "/", "")]);
    let mut run = bench(set).hz(250).run_toml(&text);
    run.until(2_000 * MS);
    let (naps, hog) = (run.named("nap"), run.named("hog")[0]);
    let mut waits: BTreeMap<TaskId, bool> = naps.iter().map(|task| (*task, false)).collect();
    let mut left = 0;
    for event in run.events() {
        match event.kind {
            fairground_trace::EventKind::Wakeup { task, .. } => {
                waits.entry(task).and_modify(|waits| *waits = true);
            }
            fairground_trace::EventKind::Switch { prev, prev_state, next } => {
                waits.entry(prev).and_modify(|waits| *waits = prev_state.is_runnable());
                let sleeps = naps.contains(&prev) && !prev_state.is_runnable();
                left += usize::from(sleeps && next == hog && waits.values().any(|waits| *waits));
            }
            _ => {}
        }
    }
    left
}

/// Since 2.6.39 a task that goes to sleep leaves its group as the next buddy.
#[test]
fn a_group_goes_on_with_another_member() {
    let (before, since) = (leaves_to_hog("cfs@2.6.36"), leaves_to_hog("cfs@6.5"));
    assert!(before > 100 && since < before / 4, "{before} before, {since} since");
}
