//! `schbench`, after Chris Mason's program: message threads pass requests to workers, which do some input and output
//! and some arithmetic. It measures the tail: the wait of a woken worker for its CPU, and the time of a request that
//! is preempted.

use super::parts::{COUNT_MAX, looping, mark, run, seconds, sleep};
use super::spec::{Call, Entry, parameter};
use crate::model::{Op, Queue, Workload};

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
        parameter("messages", "1", "message threads"),
        parameter("think", "50us", "what an operation computes beside going through its memory"),
    ],
    build: schbench,
};

fn schbench(call: &mut Call<'_, '_>) -> Workload {
    let workers = call.count("the number of workers", 1..=COUNT_MAX / 2);
    let threads = call.integer("messages", "the number of message threads", 1..=1_000_usize);
    let operation = vec![Op::Touch(FOOTPRINT_BYTES), run(call.time("think"))];
    let (mut tasks, mut queues) = (Vec::new(), Vec::new());
    for thread in 0..threads {
        let (idle, request) = (queues.len(), queues.len() + 1);
        queues.extend(["idle", "request"].map(|name| Queue::unlimited(format!("{name}-{thread}"))));
        let hand_out = vec![Op::Receive(idle, 1), Op::Send(request)];
        let work = vec![
            Op::Send(idle),
            Op::Receive(request, 1),
            sleep(SLEEP_NS),
            sleep(SLEEP_NS),
            Op::Loop(Some(OPERATIONS), operation.clone()),
            mark("request"),
        ];
        tasks.push(looping(format!("message/m{thread}"), 1, hand_out));
        tasks.push(looping(format!("worker/m{thread}"), workers, work));
    }
    let description = format!("schbench with {threads} message threads of {workers} workers");
    Workload { queues, ..seconds(10, description, tasks) }
}
