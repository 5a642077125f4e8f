//! Periodic and short-lived tasks: `periodic`, a load in per cent of a CPU, and `forkstorm`.

use super::parts::{COUNT_MAX, forked, looping, mark, run, seconds};
use super::spec::{CPUS, Call, Entry, NICE, parameter};
use crate::model::{Op, Timer, Workload};

/// Limit of the children of one fork.
const CHILDREN_MAX: u32 = 10_000;

/// Periodic tasks.
pub(super) const PERIODIC: Entry = Entry {
    name: "periodic",
    arguments: "N",
    summary: "N tasks that compute a part of each period, started by a timer",
    source: "rt-app's timer phases",
    limits: "all tasks start together",
    parameters: &[
        parameter("period", "10ms", "the timer's period"),
        parameter("load", "50", "how much of a period they compute, per cent"),
        NICE,
        CPUS,
    ],
    build: periodic,
};

/// Short-lived tasks.
pub(super) const FORKSTORM: Entry = Entry {
    name: "forkstorm",
    arguments: "N",
    summary: "N parents that fork a child, wait for its end, and fork the next",
    source: "what a shell script or a build does",
    limits: "a child is a process that runs and ends: it maps no file and executes no program",
    parameters: &[
        parameter("children", "1", "children that a parent forks at once"),
        parameter("run", "200us", "what a child computes, fixed or from..to"),
    ],
    build: forkstorm,
};

fn periodic(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of tasks", 1..=COUNT_MAX);
    let period_ns = call.positive("period");
    let load = call.integer("load", "the load in per cent", 1..=100_u64);
    let round = vec![Op::TimerWait(0, period_ns), run(period_ns * load / 100), mark("round")];
    let mut task = looping("periodic", count, round);
    (task.nice, task.cpus) = (call.nice(), call.cpus());
    Workload {
        timers: vec![Timer::new("period", period_ns)],
        ..seconds(10, format!("tasks that compute {load} % of each period"), vec![task])
    }
}

fn forkstorm(call: &mut Call<'_, '_>) -> Workload {
    let parents = call.count("the number of parents", 1..=CHILDREN_MAX);
    let children = call.integer("children", "the number of children", 1..=CHILDREN_MAX);
    let tasks = vec![
        looping("forker", parents, vec![Op::Fork(1), Op::WaitChildren]),
        forked("child", children, vec![Op::Run(call.duration("run"))]),
    ];
    seconds(1, "parents that fork children all the time", tasks)
}
