//! Programs that compute and sleep in turn, as the fairness tests of 2007 do: `massive_intr` and `fairtest`.

use super::spec::Call;
use super::{COUNT_MAX, Entry, Parameter, group, independent};
use crate::model::{Duration, Op, Queue, TaskSpec, Workload};

/// Satoru Takeuchi's test of March 2007. N processes wait for a signal; then each computes for 8 ms, sleeps for 1 ms
/// and counts, until the end. The mark `round` is the counting.
pub(super) const MASSIVE_INTR: Entry = Entry {
    name: "massive_intr",
    arguments: "N",
    summary: "the fairness test of 2007: N processes that compute 8 ms, sleep 1 ms, and count the rounds",
    source: "Satoru Takeuchi's massive_intr, March 2007",
    limits: "the work is a time here, calibrated turns of an empty loop there",
    parameters: &[
        Parameter { name: "run", default: "8ms", help: "what a process computes in a round" },
        Parameter { name: "sleep", default: "1ms", help: "its sleep in a round" },
        Parameter { name: "nice", default: "0", help: "their nice value, -20 to 19" },
        Parameter {
            name: "start",
            default: "100ms",
            help: "how long the parent waits after the last fork before it lets them go",
        },
    ],
    build: massive_intr,
};

/// After M. Galbraith's tests: pairs of a hog and a task that runs and sleeps.
pub(super) const FAIRTEST: Entry = Entry {
    name: "fairtest",
    arguments: "N",
    summary: "N pairs of a hog and a task that runs and sleeps in turn: which of the two gets \
              more than its share?",
    source: "Mike Galbraith's tests of 2007, as the RFS thread tells of them; the program itself was not found",
    limits: "one pair is one point; a share says nothing about latency",
    parameters: &[
        Parameter { name: "run", default: "8ms", help: "what the second task computes in a round" },
        Parameter { name: "sleep", default: "12ms", help: "its sleep in a round" },
        Parameter {
            name: "asleep",
            default: "0s",
            help: "how long it sleeps before the first round",
        },
        Parameter { name: "nice", default: "0", help: "the nice value of all, -20 to 19" },
    ],
    build: fairtest,
};

fn nice(call: &mut Call<'_, '_>) -> i8 {
    let Some(piece) = call.value("nice") else { return 0 };
    i8::try_from(call.number("a nice value", &piece, -20, 19)).unwrap_or(0)
}

/// A duration that must not be 0.
fn positive(call: &mut Call<'_, '_>, key: &'static str, default_ns: u64) -> u64 {
    let ns = call.time(key, default_ns);
    if ns == 0
        && let Some(piece) = call.value(key)
    {
        let help = format!("write a time above 0, as in `{key}=1ms`");
        call.problem(piece.span, format!("`{key}` is 0"), help);
    }
    ns.max(1)
}

fn massive_intr(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of processes", COUNT_MAX / 2);
    let run_ns = positive(call, "run", 8_000_000);
    let sleep_ns = positive(call, "sleep", 1_000_000);
    let start_ns = positive(call, "start", 100_000_000);
    let nice = nice(call);

    let release = Op::Loop(Some(u64::from(count)), vec![Op::Send(0)]);
    let parent = vec![Op::Fork(1), Op::Sleep(Duration::Fixed(start_ns)), release, Op::WaitChildren];
    let round = vec![
        Op::Run(Duration::Fixed(run_ns)),
        Op::Sleep(Duration::Fixed(sleep_ns)),
        Op::Mark("round".to_owned()),
    ];
    let mut worker = group("worker", count, vec![Op::Receive(0, 1), Op::Loop(None, round)]);
    worker.start_ns = None;
    let mut tasks = vec![group("massive_intr", 1, parent), worker];
    for task in &mut tasks {
        task.nice = nice;
    }
    let description = format!("{count} processes that compute and sleep in turn (massive_intr)");
    let mut workload = independent(description, tasks);
    workload.queues.push(Queue { name: "start".to_owned(), capacity: None, initial: 0 });
    workload.duration_ns = 60_000_000_000;
    workload
}

fn fairtest(call: &mut Call<'_, '_>) -> Workload {
    let pairs = call.count("the number of pairs", COUNT_MAX / 2);
    let run_ns = positive(call, "run", 8_000_000);
    let sleep_ns = positive(call, "sleep", 12_000_000);
    let nice = nice(call);
    let round = vec![Op::Run(Duration::Fixed(run_ns)), Op::Sleep(Duration::Fixed(sleep_ns))];
    let mut program = vec![Op::Loop(None, round)];
    let asleep_ns = call.time("asleep", 0);
    if asleep_ns > 0 {
        program.insert(0, Op::Sleep(Duration::Fixed(asleep_ns)));
    }
    let mut tasks: Vec<TaskSpec> =
        vec![group("hog", pairs, vec![Op::RunForever]), group("sleeper", pairs, program)];
    for task in &mut tasks {
        task.nice = nice;
    }
    let description = "pairs of a hog and a task that runs and sleeps in turn (fairtest)";
    let mut workload = independent(description.to_owned(), tasks);
    workload.duration_ns = 30_000_000_000;
    workload
}
