//! Programs that alternately compute and sleep, as the fairness tests of 2007 do: `massive_intr` and `fairtest`.

use super::parts::{COUNT_MAX, forked, group, mark, run, seconds, sleep};
use super::spec::{Call, Entry, NICE, parameter};
use crate::model::{Op, Queue, Workload};

/// Satoru Takeuchi's test of March 2007. N processes wait for a signal; then each computes for 8 ms, sleeps for 1 ms
/// and counts, until the end. The mark `round` is the counting.
pub(super) const MASSIVE_INTR: Entry = Entry {
    name: "massive_intr",
    arguments: "N",
    summary: "the fairness test of 2007: N processes that compute 8 ms, sleep 1 ms, and count the rounds",
    source: "Satoru Takeuchi's massive_intr, March 2007",
    limits: "the work is a time; the original executes calibrated iterations of an empty loop",
    parameters: &[
        parameter("run", "8ms", "what a process computes in a round"),
        parameter("sleep", "1ms", "its sleep in a round"),
        NICE,
        parameter(
            "start",
            "100ms",
            "how long the parent waits after the last fork before it lets them go",
        ),
    ],
    build: massive_intr,
};

/// After M. Galbraith's tests: pairs of a hog and a task that runs and sleeps.
pub(super) const FAIRTEST: Entry = Entry {
    name: "fairtest",
    arguments: "N",
    summary: "N pairs of a hog and a task that alternately runs and sleeps: which of the two gets \
              more than its share?",
    source: "Mike Galbraith's tests of 2007, as the RFS thread describes them; the program was not found",
    limits: "one pair is one point; a share says nothing about latency",
    parameters: &[
        parameter("run", "8ms", "what the second task computes in a round"),
        parameter("sleep", "12ms", "its sleep in a round"),
        parameter("asleep", "0s", "how long it sleeps before the first round"),
        parameter("nice", "0", "the nice value of all, -20 to 19"),
    ],
    build: fairtest,
};

fn massive_intr(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of processes", 1..=COUNT_MAX / 2);
    let (run_ns, sleep_ns) = (call.positive("run"), call.positive("sleep"));
    let start_ns = call.positive("start");
    let nice = call.nice();

    let release = Op::Loop(Some(u64::from(count)), vec![Op::Send(0)]);
    let parent = vec![Op::Fork(1), sleep(start_ns), release, Op::WaitChildren];
    let round = vec![run(run_ns), sleep(sleep_ns), mark("round")];
    let work = vec![Op::Receive(0, 1), Op::Loop(None, round)];
    let mut tasks = vec![group("massive_intr", 1, parent), forked("worker", count, work)];
    for task in &mut tasks {
        task.nice = nice;
    }
    let description =
        format!("{count} processes that alternately compute and sleep (massive_intr)");
    Workload { queues: vec![Queue::unlimited("start")], ..seconds(60, description, tasks) }
}

fn fairtest(call: &mut Call<'_, '_>) -> Workload {
    let pairs = call.count("the number of pairs", 1..=COUNT_MAX / 2);
    let (run_ns, sleep_ns) = (call.positive("run"), call.positive("sleep"));
    let nice = call.nice();
    let mut program = vec![Op::Loop(None, vec![run(run_ns), sleep(sleep_ns)])];
    let asleep_ns = call.time("asleep");
    if asleep_ns > 0 {
        program.insert(0, sleep(asleep_ns));
    }
    let mut tasks =
        vec![group("hog", pairs, vec![Op::RunForever]), group("sleeper", pairs, program)];
    for task in &mut tasks {
        task.nice = nice;
    }
    seconds(30, "pairs of a hog and a task that alternately runs and sleeps (fairtest)", tasks)
}
