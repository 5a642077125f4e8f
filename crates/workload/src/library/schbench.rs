//! `schbench`, after Chris Mason's program: message threads pass requests to workers, which do some input and output
//! and some arithmetic. It measures the tail: the wait of a woken worker for its CPU, and the time of a request that
//! is preempted.

use super::spec::Call;
use super::{COUNT_MAX, Entry, Parameter, group, independent};
use crate::model::{Duration, Op, Queue, TaskSpec, Workload};

/// A worker's memory, bytes (`-F 256`).
const FOOTPRINT_BYTES: u64 = 256 << 10;
/// Passes of a worker over it for a request (`-n 5`).
const OPERATIONS: u64 = 5;
/// Each of the two sleeps of a request, ns (`-s 100`).
const SLEEP_NS: u64 = 100_000;

/// The entry `schbench`.
pub(super) const SCHBENCH: Entry = Entry {
    name: "schbench",
    arguments: "WORKERS",
    summary: "message threads, and WORKERS for each, which sleep twice and compute for every request, for ever",
    source: "Chris Mason's schbench (24e32b8), its defaults: 256 KiB, 5 operations, 100 us",
    limits: "matrix arithmetic is a touch of memory and a run; the lock of a worker's CPU is left \
             out; workers of a message thread stand in one line",
    parameters: &[
        Parameter { name: "messages", default: "1", help: "message threads" },
        Parameter {
            name: "think",
            default: "50us",
            help: "what an operation computes beside going through its memory",
        },
    ],
    build: schbench,
};

fn schbench(call: &mut Call<'_, '_>) -> Workload {
    let workers = call.count("the number of workers", COUNT_MAX / 2);
    let threads = match call.value("messages") {
        Some(piece) => call.number("the number of message threads", &piece, 1, 1_000),
        None => 1,
    };
    let think_ns = call.time("think", 50_000).max(1);
    let (mut tasks, mut queues) = (Vec::new(), Vec::new());
    for thread in 0..usize::try_from(threads).unwrap_or(1) {
        let (idle, request) = (queues.len(), queues.len() + 1);
        for name in ["idle", "request"] {
            queues.push(Queue { name: format!("{name}-{thread}"), capacity: None, initial: 0 });
        }
        let hand_out = vec![Op::Receive(idle, 1), Op::Send(request)];
        let name = format!("message/m{thread}");
        tasks.push(group(&name, 1, vec![Op::Loop(None, hand_out)]));
        tasks.push(worker(&format!("worker/m{thread}"), workers, (idle, request), think_ns));
    }
    let mut workload =
        independent(format!("schbench with {threads} message threads of {workers} workers"), tasks);
    workload.queues = queues;
    workload
}

fn worker(name: &str, count: u32, (idle, request): (usize, usize), think_ns: u64) -> TaskSpec {
    let sleep = Op::Sleep(Duration::Fixed(SLEEP_NS));
    let operation = vec![Op::Touch(FOOTPRINT_BYTES), Op::Run(Duration::Fixed(think_ns))];
    let body = vec![
        Op::Send(idle),
        Op::Receive(request, 1),
        sleep.clone(),
        sleep,
        Op::Loop(Some(OPERATIONS), operation),
        Op::Mark("request".to_owned()),
    ];
    group(name, count, vec![Op::Loop(None, body)])
}
