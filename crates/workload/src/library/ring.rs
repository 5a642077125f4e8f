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
//!
//! `lat_ctx:matrix` is the seven rings of lmbench's summary, one after the other, each for a seventh of the duration.

use super::parts::{forked, group, mark, pipe, seconds, sleep};
use super::spec::{Call, Entry, parameter};
use crate::model::{Op, Program, Role, TaskSpec, Workload};
use crate::units::CpuList;

/// Limit of the processes of a ring.
const MEMBERS_MAX: usize = 64;
/// Limit of the KiB of each process.
const SIZE_KB_MAX: u64 = 65_536;
/// Times that the parent passes the token through all pipes by itself.
const OVERHEAD_ROUNDS: u64 = 200;
/// The token, bytes.
const TOKEN: u64 = 4;
/// The argument for all rings of lmbench's summary.
const MATRIX: &str = "matrix";
/// The rings of lmbench's summary, in its order: processes, and KiB that each reads.
pub const LAT_CTX_MATRIX: [(usize, u64); 7] =
    [(2, 0), (2, 16), (2, 64), (8, 16), (8, 64), (16, 16), (16, 64)];
/// The length of a run of the matrix, unless one is given, ns: each ring goes round for a second, as one alone does.
const MATRIX_NS: u64 = 7_000_000_000;

/// The entry `lat_ctx`.
pub(super) const LAT_CTX: Entry = Entry {
    name: "lat_ctx",
    arguments: "P|matrix",
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
    let cpus = call.cpu();
    if call.arguments.as_ref().is_some_and(|argument| argument.text == MATRIX) {
        if let Some(size) = call.value("size_kb") {
            let help = "leave it out: the matrix has sizes of its own".to_owned();
            call.problem(size.span, "`size_kb` beside `matrix`".to_owned(), help);
        }
        let given = call.value("duration").is_some();
        let ns = if given { call.time("duration") } else { MATRIX_NS };
        return matrix(cpus, ns);
    }
    let members = call.count("the number of processes, or `matrix`,", 2..=MEMBERS_MAX);
    let size_kb = call.integer("size_kb", "the size", 0..=SIZE_KB_MAX);
    let ring = Ring { members, size_kb, first_pipe: 0, label: members.to_string() };
    let mut tasks = vec![group("lat_ctx", 1, ring.parent(1))];
    tasks.extend((1..members).map(|member| ring.member(format!("member-{member}"), member)));
    let description =
        format!("a ring of {members} processes with {size_kb} KiB each (lmbench's lat_ctx)");
    whole(description, tasks, members, cpus)
}

/// The rings of lmbench's summary, one after the other. A process forks the parent of each, and ends it by a signal
/// after its time; the other members of that ring wait for the token from then on.
fn matrix(cpus: Option<CpuList>, duration_ns: u64) -> Workload {
    let ring_ns = duration_ns / LAT_CTX_MATRIX.len() as u64;
    let (mut program, mut tasks) = (Program::new(), Vec::new());
    let mut pipes = 0;
    for (members, size_kb) in LAT_CTX_MATRIX {
        let (label, parent) = (format!("{members}p/{size_kb}K"), tasks.len() + 1);
        let ring = Ring { members, size_kb, first_pipe: pipes, label };
        let name = |what: &str| format!("{members}p-{size_kb}K-{what}");
        let on_signal = vec![Op::Exit];
        let program_of_parent = ring.parent(parent + 1);
        tasks.push(TaskSpec { on_signal, ..forked(name("lat_ctx"), 1, program_of_parent) });
        tasks.extend((1..members).map(|member| ring.member(name(&member.to_string()), member)));
        let end = Op::Signal(Role::All(parent));
        program.extend([Op::Fork(parent), sleep(ring_ns), end, Op::WaitChildren]);
        pipes += members;
    }
    tasks.insert(0, group("lat_ctx", 1, program));
    let description = "the rings of lmbench's summary of context switches".to_owned();
    Workload { duration_ns, ..whole(description, tasks, pipes, cpus) }
}

fn whole(
    description: String,
    mut tasks: Vec<TaskSpec>,
    pipes: usize,
    cpus: Option<CpuList>,
) -> Workload {
    for task in &mut tasks {
        task.cpus.clone_from(&cpus);
    }
    let pipes = (0..pipes).map(|at| pipe(format!("ring-{at}"))).collect();
    Workload { pipes, ..seconds(1, description, tasks) }
}

/// One ring of processes.
struct Ring {
    members: usize,
    size_kb: u64,
    /// The number of its first pipe.
    first_pipe: usize,
    /// The suffix of its marks.
    label: String,
}

impl Ring {
    fn sum(&self) -> Option<Op> {
        (self.size_kb > 0).then_some(Op::Touch(self.size_kb * 1024))
    }

    /// The parent: overhead, forks, rounds for ever. The other members are the groups from `first_member` on.
    fn parent(&self, first_member: usize) -> Program {
        let pipes = self.first_pipe..self.first_pipe + self.members;
        let last = pipes.end - 1;
        let mut alone = Program::new();
        for pipe in pipes {
            alone.extend([Op::PipeWrite(pipe, TOKEN), Op::PipeRead(pipe, TOKEN)]);
            alone.extend(self.sum());
        }
        alone.push(mark(format!("lat_ctx overhead/{}", self.label)));
        let mut round = vec![Op::PipeWrite(self.first_pipe, TOKEN), Op::PipeRead(last, TOKEN)];
        round.extend(self.sum());
        round.push(mark(format!("lat_ctx round/{}", self.label)));
        let mut program = vec![Op::Loop(Some(OVERHEAD_ROUNDS), alone)];
        program.extend((1..self.members).map(|member| Op::Fork(first_member + member - 1)));
        program.push(Op::Loop(None, round));
        program
    }

    /// The member of that number, from 1.
    fn member(&self, name: String, member: usize) -> TaskSpec {
        let before = self.first_pipe + member - 1;
        let mut pass = vec![Op::PipeRead(before, TOKEN)];
        pass.extend(self.sum());
        pass.push(Op::PipeWrite(before + 1, TOKEN));
        forked(name, 1, vec![Op::Loop(None, pass)])
    }
}
