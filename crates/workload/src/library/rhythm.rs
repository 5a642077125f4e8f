//! Periodic and short-lived tasks: `periodic`, a load in per cent of a CPU, and `forkstorm`.

use super::spec::Call;
use super::{COUNT_MAX, Entry, Parameter, group, independent};
use crate::model::{Duration, Op, Timer, Workload};

/// Limit of the children of one fork.
const CHILDREN_MAX: i64 = 10_000;

/// Periodic tasks.
pub(super) const PERIODIC: Entry = Entry {
    name: "periodic",
    arguments: "N",
    summary: "N tasks that compute a part of each period, started by a timer",
    source: "rt-app's timer phases",
    limits: "all tasks start together",
    parameters: &[
        Parameter { name: "period", default: "10ms", help: "the timer's period" },
        Parameter {
            name: "load",
            default: "50",
            help: "how much of a period they compute, per cent",
        },
        Parameter { name: "nice", default: "0", help: "their nice value, -20 to 19" },
        Parameter {
            name: "cpus",
            default: "any",
            help: "the CPUs on which they may run, as in 0-3",
        },
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
        Parameter { name: "children", default: "1", help: "children that a parent forks at once" },
        Parameter {
            name: "run",
            default: "200us",
            help: "what a child computes, fixed or from..to",
        },
    ],
    build: forkstorm,
};

fn periodic(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of tasks", COUNT_MAX);
    let period_ns = call.time("period", 10_000_000);
    if period_ns == 0
        && let Some(piece) = call.value("period")
    {
        let help = "write a time above 0, as in `period=10ms`".to_owned();
        call.problem(piece.span, "`period` is 0".to_owned(), help);
    }
    let load = match call.value("load") {
        Some(piece) => call.number("the load in per cent", &piece, 1, 100),
        None => 50,
    };
    let nice = match call.value("nice") {
        Some(piece) => i8::try_from(call.number("a nice value", &piece, -20, 19)).unwrap_or(0),
        None => 0,
    };
    let load = u64::try_from(load).unwrap_or(1);
    let period_ns = period_ns.max(1);
    let run_ns = (period_ns * load / 100).max(1);
    let round = vec![
        Op::TimerWait(0, period_ns),
        Op::Run(Duration::Fixed(run_ns)),
        Op::Mark("round".to_owned()),
    ];
    let mut task = group("periodic", count, vec![Op::Loop(None, round)]);
    task.nice = nice;
    task.cpus = call.cpus("cpus");
    let description = format!("tasks that compute {load} % of each period");
    let mut workload = independent(description, vec![task]);
    workload.timers.push(Timer::new("period", period_ns));
    workload
}

fn forkstorm(call: &mut Call<'_, '_>) -> Workload {
    let parents = call.count("the number of parents", CHILDREN_MAX);
    let children = match call.value("children") {
        Some(piece) => call.number("the number of children", &piece, 1, CHILDREN_MAX),
        None => 1,
    };
    let run = call.duration("run", 200_000);
    let parent = vec![Op::Loop(None, vec![Op::Fork(1), Op::WaitChildren])];
    let children = u32::try_from(children).unwrap_or(1);
    let mut child = group("child", children, vec![Op::Run(run)]);
    child.start_ns = None;
    let tasks = vec![group("forker", parents, parent), child];
    let mut workload = independent("parents that fork children all the time".to_owned(), tasks);
    workload.duration_ns = 1_000_000_000;
    workload
}
