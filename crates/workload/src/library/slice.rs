//! The measuring program of the report on CFS of 2009-05-28 (A. Gruenbacher's `slice`).
//!
//! A parent forks N workers, each an endless loop, then (N+7)/8 sleepers. Once a second it signals every worker and
//! receives N messages. A worker answers from its signal handler, when it is next scheduled: the reporting interval is
//! a second and the time until all have run. The marks `answer` (in each handler, before the message) and `report`
//! (when all answers are in) let the analysis compute the program's own figure.

use super::parts::{COUNT_MAX, forked, group, mark, seconds, sleep};
use super::spec::{Call, Entry, parameter};
use crate::limits::CPU_MAX;
use crate::model::{Op, Queue, Role, TaskSpec, Workload};
use crate::units::{CpuList, Duration};

/// The `slice` program. The CPU time of a sleeper in each round (`sleeper_run`) is the system call and the wake-up path
/// that the task itself pays, a few thousand instructions. The costs of switching and waking are the machine's, not the
/// workload's.
pub(super) const SLICE: Entry = Entry {
    name: "slice",
    arguments: "N",
    summary: "the time-slice program of 2009: N hogs that report each second, (N+7)/8 sleepers of 1 ms",
    source: "Andreas Gruenbacher's program of 28 May 2009",
    limits: "the length of a report is the program's, not exactly a second",
    parameters: &[
        parameter("report", "1s", "the parent's sleep between two reports"),
        parameter("sleep", "1ms", "the sleepers' sleep"),
        parameter(
            "sleeper_run",
            "2us",
            "CPU time of a sleeper in each round, fixed or from..to; 0s: none",
        ),
        parameter(
            "sleepers",
            "free",
            "where they run: free, shared (all on one CPU) or spread (the k-th on CPU k)",
        ),
        parameter(
            "sleepers_cpu",
            "0",
            "the CPU that shared sleepers are pinned to; implies sleepers=shared",
        ),
        parameter(
            "workers",
            "free",
            "where they run: free, or how many are pinned to each CPU, as in 7/9",
        ),
    ],
    build,
};

/// The CPUs of the sleepers.
enum Placement {
    Free,
    Shared(u32),
    Spread,
}

fn build(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of workers", 1..=COUNT_MAX / 2);
    let (report_ns, sleep_ns) = (call.time("report"), call.time("sleep"));
    let run = call.duration("sleeper_run");
    if sleep_ns == 0 || report_ns == 0 {
        let help = "write a time above 0, as in `sleep=1ms`".to_owned();
        call.problem(call.name.span.clone(), "a sleep of 0 is no sleep".to_owned(), help);
    }
    let workers = workers(call, count);
    let sleepers = sleepers(call, count.div_ceil(8), run, sleep_ns);

    // The groups: 0 the parent, then the workers, then the sleepers.
    let mut program: Vec<Op> = (1..=workers.len() + sleepers.len()).map(Op::Fork).collect();
    let mut round = vec![sleep(report_ns)];
    round.extend((1..=workers.len()).map(|index| Op::Signal(Role::All(index))));
    round.extend([Op::Receive(0, count), mark("report")]);
    program.push(Op::Loop(None, round));
    let tasks = [vec![group("slice", 1, program)], workers, sleepers].concat();
    let description = "the time-slice program of 2009-05-28: hogs that report, and sleepers";
    Workload { queues: vec![Queue::unlimited("answers")], ..seconds(20, description, tasks) }
}

/// The hogs: one group, or one for each CPU with pinned ones.
fn workers(call: &mut Call<'_, '_>, count: u32) -> Vec<TaskSpec> {
    let worker = |name: &str, count: u32, cpu: Option<u32>| TaskSpec {
        on_signal: vec![mark("answer"), Op::Send(0)],
        cpus: cpu.map(CpuList::one),
        ..forked(name, count, vec![Op::RunForever])
    };
    let free = vec![worker("worker", count, None)];
    let Some(piece) = call.value("workers").filter(|piece| piece.text != "free") else {
        return free;
    };
    let shares: Option<Vec<u32>> = piece.text.split('/').map(|n| n.parse().ok()).collect();
    let shares = shares.filter(|shares| {
        let sum: u64 = shares.iter().map(|n| u64::from(*n)).sum();
        sum == u64::from(count) && shares.len() as u64 <= u64::from(CPU_MAX) + 1
    });
    let Some(shares) = shares else {
        let message = format!("`workers={}` does not place {count} workers", piece.text);
        let help =
            "write free, or one number for each CPU that add up to them, as in 7/9".to_owned();
        call.problem(piece.span, message, help);
        return free;
    };
    let pinned = (0..).zip(shares).filter(|(_, n)| *n > 0);
    pinned.map(|(cpu, n)| worker(&format!("worker-{cpu}"), n, Some(cpu))).collect()
}

/// (N+7)/8 sleepers: one group, or one each when each has a CPU of its own.
fn sleepers(call: &mut Call<'_, '_>, count: u32, run: Duration, sleep_ns: u64) -> Vec<TaskSpec> {
    let mut body = vec![sleep(sleep_ns)];
    if run != Duration::Fixed(0) {
        body.push(Op::Run(run));
    }
    let sleeper = |name: &str, count: u32, cpu: Option<u32>| TaskSpec {
        cpus: cpu.map(CpuList::one),
        ..forked(name, count, vec![Op::Loop(None, body.clone())])
    };
    match placement(call, count) {
        Placement::Free => vec![sleeper("sleeper", count, None)],
        Placement::Shared(cpu) => vec![sleeper("sleeper", count, Some(cpu))],
        Placement::Spread => {
            (0..count).map(|k| sleeper(&format!("sleeper-{k}"), 1, Some(k))).collect()
        }
    }
}

fn placement(call: &mut Call<'_, '_>, count: u32) -> Placement {
    let word = call.value("sleepers");
    let cpu = call
        .value("sleepers_cpu")
        .map(|piece| (call.number("the CPU", &piece, 0..=CPU_MAX), piece));
    match (word.as_ref().map(|piece| piece.text), cpu) {
        (None | Some("shared"), Some((cpu, _))) => Placement::Shared(cpu),
        (None | Some("free"), None) => Placement::Free,
        (Some("shared"), None) => Placement::Shared(0),
        (Some("spread"), None) if count <= CPU_MAX + 1 => Placement::Spread,
        (Some("spread" | "free"), Some((_, piece))) => {
            let help = "write `sleepers=shared,sleepers_cpu=1`, or leave `sleepers_cpu` out";
            let message = "`sleepers_cpu` is for shared sleepers only".to_owned();
            call.problem(piece.span, message, help.to_owned());
            Placement::Free
        }
        _ => {
            if let Some(piece) = word {
                let message = format!("`sleepers={}` is not possible here", piece.text);
                let help = "write free, shared, or spread (at most one sleeper a CPU)".to_owned();
                call.problem(piece.span, message, help);
            }
            Placement::Free
        }
    }
}
