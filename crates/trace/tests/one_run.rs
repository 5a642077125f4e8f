//! One run in every format: each task ran as long in all of them.

use std::collections::BTreeMap;

use fairground_trace::{EventKind, TaskState, Trace, read, write_ftrace, write_perfetto};

use crate::support::ctf_file::{self, CtfStream};
use crate::support::perf_file::PerfFile;
use crate::support::proto::{Proto, bundle, compact, file};
use crate::support::{Dat, recording};

/// A switch: time, CPU, who left in which state, who came.
type Switch = (u64, u32, (u32, String), TaskState, (u32, String));

/// The switches of a real recording. Names fit into the fields of all formats.
fn switches(ours: &Trace) -> Vec<Switch> {
    let task = |id: fairground_trace::TaskId| {
        let info = &ours.tasks()[id.index()];
        (info.pid, info.comm.chars().take(15).collect::<String>())
    };
    let switch = |event: fairground_trace::Event| match event.kind {
        EventKind::Switch { prev, prev_state, next } => {
            Some((event.time_ns, event.cpu, task(prev), prev_state, task(next)))
        }
        _ => None,
    };
    ours.events().filter_map(switch).collect()
}

/// The nanoseconds that each pid ran between two switches of a CPU.
fn ran(trace: &Trace) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    let mut since: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
    for event in trace.events() {
        let EventKind::Switch { prev, next, .. } = event.kind else { continue };
        let pid = |id: fairground_trace::TaskId| trace.tasks()[id.index()].pid;
        if let Some((from_ns, running)) = since.insert(event.cpu, (event.time_ns, pid(next))) {
            assert_eq!(running, pid(prev), "at {}", event.time_ns);
            *sums.entry(running).or_default() += event.time_ns - from_ns;
        }
    }
    sums
}

fn bits(state: TaskState) -> u64 {
    match state {
        TaskState::Runnable => 0,
        TaskState::Sleeping => 1,
        TaskState::Uninterruptible => 2,
        TaskState::Dead => 16,
        TaskState::Zombie => 32,
        TaskState::Parked => 64,
        TaskState::Idle => 128,
        TaskState::Preempted => 256,
        other => panic!("no {other:?} in this recording"),
    }
}

fn as_columns(all: &[Switch]) -> Vec<u8> {
    let names = Proto::default().bytes(3, "6.1.0");
    let mut packets = vec![Proto::default().bytes(45, Proto::default().bytes(1, names))];
    for cpu in 0..2 {
        let of_cpu: Vec<_> = all.iter().filter(|switch| switch.1 == cpu).collect();
        for part in of_cpu.chunks(500) {
            let rows = part.iter().map(|(time_ns, _, _, state, (pid, comm))| {
                (*time_ns, bits(*state), u64::from(*pid), 120, comm.as_str())
            });
            let columns = compact(&rows.collect::<Vec<_>>(), &[]);
            packets.push(bundle(Proto::default().number(1, cpu.into()).bytes(4, columns)));
        }
    }
    file(&packets)
}

fn as_ctf(all: &[Switch]) -> Vec<u8> {
    let mut files = vec![("metadata".to_owned(), ctf_file::metadata(false).into_bytes())];
    for cpu in 0..2 {
        let mut stream = CtfStream::new(cpu, false);
        for (number, (time_ns, _, prev, state, next)) in
            all.iter().filter(|switch| switch.1 == cpu).enumerate()
        {
            stream.switch(*time_ns, (prev.0, &prev.1), bits(*state), (next.0, &next.1));
            if number % 100 == 99 {
                stream.packet();
            }
        }
        stream.packet();
        files.push((format!("channel0_{cpu}"), stream.bytes()));
    }
    ctf_file::tar("session", &files)
}

/// One page for each switch; the names in its fields have four bytes.
fn as_trace_dat(all: &[Switch]) -> Vec<u8> {
    let mut dat = Dat { clock: "local [mono]".to_owned(), cpus: vec![vec![]; 2], ..Dat::default() };
    for (time_ns, cpu, prev, state, next) in all {
        let state = if *state == TaskState::Uninterruptible { 2 } else { 1 };
        let event = dat.switch(0, (prev.0, b"prev", state), (next.0, b"next"));
        let page = dat.page(*time_ns, &[event], 0, 0);
        dat.add(*cpu as usize, page);
    }
    dat.bytes()
}

fn as_perf_data(all: &[Switch]) -> Vec<u8> {
    let mut file = PerfFile::default();
    for (number, (time_ns, cpu, prev, state, next)) in all.iter().enumerate() {
        let state = if *state == TaskState::Uninterruptible { 2 } else { 1 };
        file.switch(*time_ns, *cpu, (prev.0, b"prev", state), (next.0, b"next"));
        if number % 100 == 99 {
            file.round();
        }
    }
    file.bytes()
}

#[test]
fn each_task_ran_as_long() {
    let ours = recording("mixed-2cpu-whole.perf-sched.txt.gz");
    let all = switches(&ours);
    assert!(all.len() > 4_000 && ours.cpus == 2);
    let wanted = ran(&ours);
    let (mut text, mut events) = (Vec::new(), Vec::new());
    write_ftrace(&ours, &mut text).unwrap();
    write_perfetto(&ours, &[], &mut events).unwrap();
    for (format, bytes) in [
        ("ftrace text", text),
        ("Perfetto, whole events", events),
        ("Perfetto, columns", as_columns(&all)),
        ("trace.dat", as_trace_dat(&all)),
        ("perf.data", as_perf_data(&all)),
        ("CTF", as_ctf(&all)),
    ] {
        let trace = read(format, &bytes[..]).expect(format);
        assert_eq!(ran(&trace), wanted, "{format}");
        assert_eq!(trace.loss.unreadable, 0, "{format}");
    }
}
