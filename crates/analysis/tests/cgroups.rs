//! Control groups in the analysis: the fluid share goes down the tree, and figures follow a task that moves.

use crate::tape::{MS, Tape, round_robin};
use fairground_analysis::{Analysis, Options};
use fairground_trace::{CgroupId, CgroupInfo, EventKind, TaskId};

/// `/`, `web` (300), `web/front` (100), `batch` (100).
const TREE: [(&str, Option<u32>, u32); 4] =
    [("/", None, 100), ("web", Some(0), 300), ("web/front", Some(1), 100), ("batch", Some(0), 100)];

/// A tape of one CPU with the tree, and a task for each number of a cgroup.
fn tape(cgroups: &[u32]) -> (Tape, Vec<TaskId>) {
    let mut tape = Tape::new(1);
    for (path, parent, weight) in TREE {
        let weight = parent.map(|_| weight);
        let parent = parent.map(CgroupId);
        tape.trace.add_cgroup(CgroupInfo { path: path.to_owned(), parent, weight });
    }
    let task = |(index, cgroup): (usize, &u32)| {
        let id = tape.task(&format!("t{index}"));
        tape.trace.task_mut(id).cgroup = Some(CgroupId(*cgroup));
        id
    };
    let tasks = cgroups.iter().enumerate().map(task).collect();
    (tape, tasks)
}

fn fluid_ms(analysis: &Analysis, path: &str) -> f64 {
    analysis.cgroup(path).expect("there").figures.fluid_ns as f64 / MS as f64
}

#[test]
fn the_fluid_share_goes_down_the_tree() {
    // web has one task of its own beside web/front with two; batch has two. Each group of web counts as nice 0 does.
    let (mut tape, tasks) = tape(&[1, 2, 2, 3, 3]);
    round_robin(&mut tape, &tasks, MS, 1000 * MS);
    let analysis = Analysis::of(&tape.end(1000 * MS), &Options::simulated());
    let shares: Vec<f64> = analysis
        .tasks
        .iter()
        .map(|t| (t.figures.fluid_share_percent().expect("a window") * 1000.0).round() / 1000.0)
        .collect();
    assert_eq!(shares, [37.5, 18.75, 18.75, 12.5, 12.5]);
    for (path, ms) in [("/", 1000.0), ("web", 750.0), ("web/front", 375.0), ("batch", 250.0)] {
        assert!((fluid_ms(&analysis, path) - ms).abs() < 0.001, "{path}");
    }
    let front = analysis.cgroup("web/front").expect("there");
    assert_eq!((front.level, front.weight, front.figures.tasks), (2, Some(100), 2));
    assert_eq!(front.figures.run_ns, 400 * MS);
    assert!(front.jain_index.expect("due something") > 0.9999, "equal within");
    assert_eq!(analysis.cgroup("/").expect("there").figures.run_ns, 1000 * MS);
    assert_eq!(front.figures.fairness_error_on_cpu_percent(), None, "not measured");
}

#[test]
fn a_weight_counts_from_its_change_on() {
    let (mut tape, tasks) = tape(&[1, 3]);
    round_robin(&mut tape, &tasks, MS, 500 * MS);
    let kind = EventKind::CgroupWeight { cgroup: CgroupId(1), weight: 100 };
    tape.event(500 * MS, 0, kind);
    let analysis = Analysis::of(&tape.end(1000 * MS), &Options::simulated());
    assert!((fluid_ms(&analysis, "web") - (375.0 + 250.0)).abs() < 0.001);
    assert_eq!(analysis.cgroup("web").expect("there").weight, Some(100));
}

#[test]
fn the_figures_follow_a_task_that_moves() {
    // Both in web; the second goes to batch at 400 ms, while it waits.
    let (mut tape, tasks) = tape(&[2, 2]);
    round_robin(&mut tape, &tasks, MS, 400 * MS);
    let kind = EventKind::CgroupMove { task: tasks[0], from: CgroupId(2), to: CgroupId(3) };
    tape.event(400 * MS, 0, kind);
    let analysis = Analysis::of(&tape.end(1000 * MS), &Options::simulated());
    let moved = &analysis.tasks[0];
    assert_eq!(moved.cgroup, Some(CgroupId(3)));
    let f = &moved.figures;
    assert_eq!(f.tasks, 1);
    assert_eq!(f.run_ns + f.wait_ns + f.sleep_ns + f.absent_ns + f.unknown_ns, 1000 * MS);
    assert_eq!(f.fluid_ns.div_ceil(MS), 200 + 150, "half of web's, then batch's quarter");
    let batch = analysis.cgroup("batch").expect("there");
    assert_eq!(
        (batch.figures.tasks, batch.figures.run_ns, batch.figures.wait_ns),
        (1, 0, 600 * MS)
    );
    assert_eq!(batch.figures.fluid_ns.div_ceil(MS), 150);
    let web = analysis.cgroup("web").expect("there");
    assert_eq!((web.figures.tasks, web.figures.run_ns), (2, 1000 * MS));
    assert_eq!(web.figures.fluid_ns.div_ceil(MS), 400 + 450);
    assert_eq!(analysis.cgroup("/").expect("there").figures.tasks, 2);
}

/// A move within a subtree counts the task once above it.
#[test]
fn a_task_counts_once_in_each_group() {
    let (mut tape, tasks) = tape(&[1]);
    round_robin(&mut tape, &tasks, MS, MS);
    for (ms, from, to) in [(100, 1, 2), (200, 2, 1), (300, 1, 2)] {
        let (from, to) = (CgroupId(from), CgroupId(to));
        tape.event(ms * MS, 0, EventKind::CgroupMove { task: tasks[0], from, to });
    }
    let analysis = Analysis::of(&tape.end(1000 * MS), &Options::simulated());
    let of = |path: &str| {
        let figures = &analysis.cgroup(path).expect("there").figures;
        (figures.tasks, figures.run_ns / MS, figures.lag_max_ns)
    };
    assert_eq!((of("web"), of("web/front")), ((1, 1000, 0), (1, 800, 0)));
}
