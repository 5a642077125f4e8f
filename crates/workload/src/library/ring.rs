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

use super::parts::{forked, group, mark, pipe, seconds};
use super::spec::{Call, Entry, parameter};
use crate::model::{Op, Program, Workload};

/// Limit of the processes of a ring.
const MEMBERS_MAX: usize = 64;
/// Limit of the KiB of each process.
const SIZE_KB_MAX: u64 = 65_536;
/// Times that the parent passes the token through all pipes by itself.
const OVERHEAD_ROUNDS: u64 = 200;
/// The token, bytes.
const TOKEN: u64 = 4;

/// The entry `lat_ctx`.
pub(super) const LAT_CTX: Entry = Entry {
    name: "lat_ctx",
    arguments: "P",
    summary: "lmbench's context switches: P processes that pass a token round through pipes",
    source: "lmbench's lat_ctx",
    limits: "free on several CPUs unless pinned: then it measures wake-ups, not switches",
    parameters: &[
        parameter("size_kb", "0", "KiB that each process reads when it has the token"),
        parameter("cpu", "0", "the CPU that the ring is pinned to, or any"),
    ],
    build,
};

fn build(call: &mut Call<'_, '_>) -> Workload {
    let members = call.count("the number of processes", 2..=MEMBERS_MAX);
    let size_kb = call.integer("size_kb", "the size", 0..=SIZE_KB_MAX);
    let cpus = call.cpu();

    let sum = (size_kb > 0).then_some(Op::Touch(size_kb * 1024));
    let mut alone = Program::new();
    for pipe in 0..members {
        alone.extend([Op::PipeWrite(pipe, TOKEN), Op::PipeRead(pipe, TOKEN)]);
        alone.extend(sum.clone());
    }
    alone.push(mark(format!("lat_ctx overhead/{members}")));
    let mut round = vec![Op::PipeWrite(0, TOKEN), Op::PipeRead(members - 1, TOKEN)];
    round.extend(sum.clone());
    round.push(mark(format!("lat_ctx round/{members}")));
    let mut program = vec![Op::Loop(Some(OVERHEAD_ROUNDS), alone)];
    program.extend((1..members).map(Op::Fork));
    program.push(Op::Loop(None, round));

    let mut tasks = vec![group("lat_ctx", 1, program)];
    for member in 1..members {
        let mut pass = vec![Op::PipeRead(member - 1, TOKEN)];
        pass.extend(sum.clone());
        pass.push(Op::PipeWrite(member, TOKEN));
        tasks.push(forked(format!("member-{member}"), 1, vec![Op::Loop(None, pass)]));
    }
    for task in &mut tasks {
        task.cpus.clone_from(&cpus);
    }
    let description =
        format!("a ring of {members} processes with {size_kb} KiB each (lmbench's lat_ctx)");
    let pipes = (0..members).map(|at| pipe(format!("ring-{at}"))).collect();
    Workload { pipes, ..seconds(1, description, tasks) }
}
