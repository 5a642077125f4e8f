//! The context-switch benchmark of lmbench (L. McVoy, C. Staelin), `lat_ctx`.
//!
//! P processes form a ring of P pipes. A token of four bytes goes round: each process reads it, adds up an array of
//! its own, and writes it on. One process is the parent, which measures. First it passes the token through all pipes
//! by itself, with the same reads, writes and sums but without a switch: that is the overhead. A switch takes the time
//! of a round less the overhead, divided by P. The marks `lat_ctx overhead/P` and `lat_ctx round/P` let the analysis
//! compute it.
//!
//! lmbench leaves the placement to the scheduler; here the ring is pinned to one CPU unless `cpu=any`, since on
//! several CPUs it measures wake-ups of idle CPUs and no switches.

use super::spec::Call;
use super::{Entry, Parameter, group, independent};
use crate::limits::CPU_MAX;
use crate::model::{Carrier, CpuList, Op, Pipe, Program, Workload};

/// Limit of the processes of a ring.
const MEMBERS_MAX: i64 = 64;
/// Limit of the KiB of each process.
const SIZE_KB_MAX: i64 = 65_536;
/// Times that the parent passes the token through all pipes by itself.
const OVERHEAD_ROUNDS: u64 = 200;
/// The token, bytes.
const TOKEN: u64 = 4;
/// Capacity of a pipe, bytes.
const PIPE_BYTES: u64 = 65_536;

/// The entry `lat_ctx`.
pub(super) const LAT_CTX: Entry = Entry {
    name: "lat_ctx",
    arguments: "P",
    summary: "lmbench's context switches: P processes that pass a token round through pipes",
    source: "lmbench's lat_ctx",
    limits: "free on several CPUs unless pinned: then it measures wake-ups, not switches",
    parameters: &[
        Parameter {
            name: "size_kb",
            default: "0",
            help: "KiB that each process reads when it has the token",
        },
        Parameter { name: "cpu", default: "0", help: "the CPU that the ring is pinned to, or any" },
    ],
    build,
};

fn build(call: &mut Call<'_, '_>) -> Workload {
    let members = match call.arguments.clone() {
        Some(piece) => call.number("the number of processes", &piece, 2, MEMBERS_MAX),
        None => i64::from(call.count("the number of processes", MEMBERS_MAX)),
    };
    let members = usize::try_from(members).unwrap_or(2).max(2);
    let size_kb = match call.value("size_kb") {
        Some(piece) => call.number("the size", &piece, 0, SIZE_KB_MAX),
        None => 0,
    };
    let sum = (size_kb > 0).then(|| Op::Touch(u64::try_from(size_kb).unwrap_or(0) * 1024));
    let cpus = pinned(call);

    let pass = |from: usize, to: usize| {
        let mut pass = vec![Op::PipeRead(from, TOKEN)];
        pass.extend(sum.clone());
        pass.push(Op::PipeWrite(to, TOKEN));
        pass
    };
    let mut alone = Program::new();
    for pipe in 0..members {
        alone.extend([Op::PipeWrite(pipe, TOKEN), Op::PipeRead(pipe, TOKEN)]);
        alone.extend(sum.clone());
    }
    alone.push(Op::Mark(format!("lat_ctx overhead/{members}")));
    let mut round = vec![Op::PipeWrite(0, TOKEN), Op::PipeRead(members - 1, TOKEN)];
    round.extend(sum.clone());
    round.push(Op::Mark(format!("lat_ctx round/{members}")));
    let mut program = vec![Op::Loop(Some(OVERHEAD_ROUNDS), alone)];
    program.extend((1..members).map(Op::Fork));
    program.push(Op::Loop(None, round));

    let mut tasks = vec![group("lat_ctx", 1, program)];
    for member in 1..members {
        let body = vec![Op::Loop(None, pass(member - 1, member))];
        let mut child = group(&format!("member-{member}"), 1, body);
        child.start_ns = None;
        tasks.push(child);
    }
    for task in &mut tasks {
        task.cpus.clone_from(&cpus);
    }
    let description =
        format!("a ring of {members} processes with {size_kb} KiB each (lmbench's lat_ctx)");
    let mut workload = independent(description, tasks);
    workload.duration_ns = 1_000_000_000;
    workload.pipes = (0..members)
        .map(|pipe| Pipe {
            name: format!("ring-{pipe}"),
            capacity: PIPE_BYTES,
            carrier: Carrier::Pipe,
        })
        .collect();
    workload
}

fn pinned(call: &mut Call<'_, '_>) -> Option<CpuList> {
    let cpu = match call.value("cpu") {
        Some(piece) if piece.text == "any" => return None,
        Some(piece) => call.number("the CPU", &piece, 0, i64::from(CPU_MAX)),
        None => 0,
    };
    let cpu = u32::try_from(cpu).unwrap_or(0);
    Some(CpuList(vec![(cpu, cpu)]))
}
