//! Job mixes of a time-sharing machine: `aim7`, after AIM's Multiuser Benchmark VII as reworked in re-aim, and
//! `dbench`, the load of a file server.

use super::servers::Section;
use super::spec::Call;
use super::{Entry, Parameter, group, independent, lock, run};
use crate::model::{LockKind, Op, Program, Workload};

/// Limit of the tasks of AIM7: each has two groups.
const TASKS_MAX: i64 = 1_000;
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
    summary: "TASKS that do kinds of jobs in turn, each beginning with another one: compute, copy, \
              make a process, files, for ever",
    source: "AIM Multiuser Benchmark VII, reworked as re-aim: 40 % slower on 2.6.19-rt14, idle time from 0 to 20 %",
    limits: "5 kinds of jobs out of 53; files are work under two locks of the kernel (`spin`), not \
             a file system; the order goes round and is not drawn",
    parameters: &[
        Parameter {
            name: "hold",
            default: "5us",
            help: "work under each of the kernel's locks in a file operation; 0s: no such locks (a \
                   real kernel has its own)",
        },
        Parameter { name: "work", default: "20us", help: "work outside of them" },
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
        Parameter {
            name: "hold",
            default: "4us",
            help: "work under the directory's lock in an operation",
        },
        Parameter {
            name: "journal",
            default: "30us",
            help: "work under the journal's lock after 16 operations",
        },
    ],
    build: dbench,
};

fn section(lock: usize, ns: u64) -> [Op; 3] {
    [Op::Lock(lock), run(ns), Op::Unlock(lock)]
}

fn aim7(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of tasks", TASKS_MAX) as usize;
    let (hold_ns, work_ns) = (call.time("hold", 5_000), call.time("work", 20_000));
    let mut file = Program::new();
    let mut locks = Vec::new();
    let [dcache, inode] = ["dcache", "inode"]
        .map(|name| Section::new(&mut locks, name, LockKind::Spin, hold_ns).ops());
    file.extend(dcache);
    file.push(run(work_ns));
    file.extend(inode);
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
        let jobs =
            jobs.into_iter().flat_map(|job| job.into_iter().chain([Op::Mark("job".to_owned())]));
        tasks.push(group(&format!("aim7/t{number}"), 1, vec![Op::Loop(None, jobs.collect())]));
    }
    for number in 0..count {
        let mut child = group(&format!("child/t{number}"), 1, vec![run(100_000)]);
        child.start_ns = None;
        tasks.push(child);
    }
    let mut workload = independent(format!("AIM7: {count} tasks with jobs of five kinds"), tasks);
    workload.locks = locks;
    workload
}

fn dbench(call: &mut Call<'_, '_>) -> Workload {
    let clients = call.count("the number of clients", TASKS_MAX);
    let (hold_ns, journal_ns) = (call.time("hold", 4_000), call.time("journal", 30_000));
    let mut operation = Program::new();
    operation.extend(section(0, hold_ns));
    operation.extend([Op::Touch(WRITE_BYTES), run(10_000)]);
    let mut round = vec![Op::Loop(Some(OPERATIONS), operation)];
    round.extend(section(1, journal_ns));
    round.push(Op::Mark("1 MiB".to_owned()));
    let client = group("client", clients, vec![Op::Loop(None, round)]);
    let mut workload =
        independent(format!("dbench: {clients} clients of a file server"), vec![client]);
    workload.locks = vec![lock("directory", LockKind::Mutex), lock("journal", LockKind::Mutex)];
    workload
}
