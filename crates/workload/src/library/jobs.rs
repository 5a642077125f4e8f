//! Job mixes of a time-sharing machine: `aim7`, after AIM's Multiuser Benchmark VII as reworked in re-aim, and
//! `dbench`, the load of a file server.

use super::parts::{Section, forked, looping, mark, run, seconds};
use super::spec::{Call, Entry, parameter};
use crate::model::{Lock, LockKind, Op, Program, Workload};

/// Limit of the tasks of AIM7: each has two groups.
const TASKS_MAX: u32 = 1_000;
/// The megabyte of a copy, bytes.
const COPY_BYTES: u64 = 1 << 20;
/// File operations of a job.
const FILES: u64 = 20;
/// A write of a file server's client, bytes.
const WRITE_BYTES: u64 = 64 << 10;
/// Operations of a client between two marks.
const OPERATIONS: u64 = 16;

/// The entry `aim7`.
pub(super) const AIM7: Entry = Entry {
    name: "aim7",
    arguments: "TASKS",
    summary: "TASKS that do kinds of jobs one after the other, each beginning with another one: compute, copy, \
              make a process, files, for ever",
    source: "AIM Multiuser Benchmark VII, reworked as re-aim: 40 % slower on 2.6.19-rt14, idle time from 0 to 20 %",
    limits: "5 kinds of jobs out of 53; files are work under two locks of the kernel (`spin`), not \
             a file system; the order goes round and is not drawn",
    parameters: &[
        parameter(
            "hold",
            "5us",
            "work under each of the kernel's locks in a file operation; 0s: no such locks (a \
                   real kernel has its own)",
        ),
        parameter("work", "20us", "work outside of them"),
    ],
    build: aim7,
};

/// The entry `dbench`.
pub(super) const DBENCH: Entry = Entry {
    name: "dbench",
    arguments: "CLIENTS",
    summary: "clients of a file server: look-ups under a directory's lock, writes of 64 KiB, a \
              journal that all share, for ever",
    source: "dbench (Andrew Tridgell), which replays a day of NetBench against a local directory",
    limits: "the recorded script is a loop of equal operations; no disk: what it would wait for is left out",
    parameters: &[
        parameter("hold", "4us", "work under the directory's lock in an operation"),
        parameter("journal", "30us", "work under the journal's lock after 16 operations"),
    ],
    build: dbench,
};

fn aim7(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of tasks", 1..=TASKS_MAX) as usize;
    let (hold_ns, work_ns) = (call.time("hold"), call.time("work"));
    let mut locks = Vec::new();
    let [dcache, inode] = ["dcache", "inode"]
        .map(|name| Section::new(&mut locks, name, LockKind::Spin, hold_ns).ops());
    let file = [dcache, vec![run(work_ns)], inode].concat();
    let mut tasks = Vec::new();
    for number in 0..count {
        let mut jobs: Vec<Program> = vec![
            vec![run(2_000_000)],
            vec![Op::Touch(COPY_BYTES)],
            vec![Op::Fork(count + number), Op::WaitChildren],
            vec![Op::Loop(Some(FILES), file.clone())],
            vec![Op::Loop(Some(FILES), vec![Op::Yield, run(work_ns)])],
        ];
        let first = number % jobs.len();
        jobs.rotate_left(first);
        let jobs = jobs.into_iter().flat_map(|job| [job, vec![mark("job")]].concat());
        tasks.push(looping(format!("aim7/t{number}"), 1, jobs.collect()));
    }
    let child = |number| forked(format!("child/t{number}"), 1, vec![run(100_000)]);
    tasks.extend((0..count).map(child));
    Workload { locks, ..seconds(10, format!("AIM7: {count} tasks with jobs of five kinds"), tasks) }
}

fn dbench(call: &mut Call<'_, '_>) -> Workload {
    let clients = call.count("the number of clients", 1..=TASKS_MAX);
    let section = |lock, ns| vec![Op::Lock(lock), run(ns), Op::Unlock(lock)];
    let directory = section(0, call.time("hold"));
    let operation = [directory, vec![Op::Touch(WRITE_BYTES), run(10_000)]].concat();
    let operations = vec![Op::Loop(Some(OPERATIONS), operation)];
    let round = [operations, section(1, call.time("journal")), vec![mark("1 MiB")]].concat();
    let description = format!("dbench: {clients} clients of a file server");
    Workload {
        locks: ["directory", "journal"].map(|name| Lock::new(name, LockKind::Mutex)).to_vec(),
        ..seconds(10, description, vec![looping("client", clients, round)])
    }
}
