//! Tasks that pass messages through pipes: `pipe`, after perf's `bench sched pipe`, and `hackbench`, after Ingo
//! Molnar's program as rt-tests has it.

use super::parts::{forked, group, looping, mark, pipe, seconds, socket};
use super::spec::{Call, Entry, parameter};
use crate::model::{Carrier, Op, Pipe, Program, Queue, TaskSpec, Workload};

/// The message of the ping-pong, an `int`, bytes.
const INT_BYTES: u64 = 4;
/// Round trips of the ping-pong between two marks, since a mark has a cost.
const TRIPS_PER_MARK: u64 = 100;
/// Limit of the senders, and of the receivers, of a group.
const FDS_MAX: u32 = 100;
/// Limit of the groups of hackbench.
const GROUPS_MAX: usize = 500;
/// Limit of the messages from each sender to each receiver.
const LOOPS_MAX: u64 = 1_000_000;
/// A message of hackbench, bytes.
const MESSAGE_BYTES: u64 = 100;
/// Bytes of a pipe's page. A message is written to one page, or to the next.
const PAGE_BYTES: u64 = 4_096;
/// Pages of a pipe.
const PIPE_PAGES: u64 = 16;

/// The entry `pipe`.
pub(super) const PIPE: Entry = Entry {
    name: "pipe",
    arguments: "[PAIRS]",
    summary: "perf's bench sched pipe: pairs of tasks that pass an int there and back through two pipes, for ever",
    source: "`perf bench sched pipe`, Linux 6.12",
    limits: "one round trip is two switches where both share a CPU, and two wake-ups of idle CPUs where they do not",
    parameters: &[parameter("cpu", "any", "the CPU that all are pinned to, or any")],
    build: ping_pong,
};

/// The entry `hackbench`.
pub(super) const HACKBENCH: Entry = Entry {
    name: "hackbench",
    arguments: "GROUPS",
    summary: "groups of 20 senders and 20 receivers, each sender writes to each receiver of its \
              group, round after round",
    source: "Ingo Molnar's program, as rt-tests has it: `hackbench -p`, or with over=sockets `hackbench`",
    limits: "its time is decided by the lock of a pipe that many write to; tasks do nothing with what they read",
    parameters: &[
        parameter(
            "loops",
            "100",
            "messages of 100 bytes from each sender to each receiver in a round",
        ),
        parameter(
            "over",
            "pipes",
            "what the messages go through: pipes, or sockets as in the original",
        ),
        parameter("fds", "20", "senders, and receivers, of a group"),
        parameter("rounds", "0", "how many rounds; 0: for ever"),
    ],
    build: hackbench,
};

fn ping_pong(call: &mut Call<'_, '_>) -> Workload {
    let pairs = call.count_or("the number of pairs", 1..=GROUPS_MAX, 1);
    let cpus = call.cpu();
    let (mut tasks, mut pipes) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let name = |text: &str| if pairs == 1 { text.to_owned() } else { format!("{text}-{pair}") };
        let (there, back) = (2 * pair, 2 * pair + 1);
        pipes.extend(["there", "back"].map(|end| pipe(name(end))));
        let trip = vec![Op::PipeWrite(there, INT_BYTES), Op::PipeRead(back, INT_BYTES)];
        let trips = Op::Loop(Some(TRIPS_PER_MARK), trip);
        let mark = mark(format!("{TRIPS_PER_MARK} round trips"));
        let answer = vec![Op::PipeRead(there, INT_BYTES), Op::PipeWrite(back, INT_BYTES)];
        tasks.push(looping(name("ping"), 1, vec![trips, mark]));
        tasks.push(looping(name("pong"), 1, answer));
    }
    for task in &mut tasks {
        task.cpus.clone_from(&cpus);
    }
    let description = "pairs of tasks that pass an int there and back (perf bench sched pipe)";
    Workload { pipes, ..seconds(1, description, tasks) }
}

fn hackbench(call: &mut Call<'_, '_>) -> Workload {
    let groups = call.count("the number of groups", 1..=GROUPS_MAX);
    let loops = call.integer("loops", "the number of messages", 1..=LOOPS_MAX);
    let fds = call.integer("fds", "the number of senders", 1..=FDS_MAX);
    let rounds = call.integer("rounds", "the number of rounds", 0..=LOOPS_MAX);
    let carrier = call.choice("over", &[("pipes", Carrier::Pipe), ("sockets", Carrier::Socket)]);
    let members = groups * 2 * fds as usize;

    // The groups: 0 the parent; then, group by group, each receiver and all senders.
    let mut round: Program = (1..=groups * (fds as usize + 1)).map(Op::Fork).collect();
    round.push(Op::Receive(0, u32::try_from(members).unwrap_or(u32::MAX)));
    round.push(mark("hackbench start"));
    round.push(Op::Loop(Some(members as u64), vec![Op::Send(1)]));
    round.extend([Op::WaitChildren, mark("hackbench round")]);
    let rounds = (rounds > 0).then_some(rounds);
    let mut tasks = vec![group("hackbench", 1, vec![Op::Loop(rounds, round)])];
    let mut pipes = Vec::new();
    for number in 0..groups {
        let first = pipes.len();
        for fd in 0..fds {
            let name = format!("{number}-{fd}");
            let read = vec![Op::PipeRead(pipes.len(), MESSAGE_BYTES)];
            let reads = Op::Loop(Some(loops * u64::from(fds)), read);
            tasks.push(member(format!("receiver/g{name}"), 1, reads));
            pipes.push(channel(name, carrier));
        }
        let write = (first..pipes.len()).map(|pipe| Op::PipeWrite(pipe, MESSAGE_BYTES)).collect();
        tasks.push(member(format!("sender/g{number}"), fds, Op::Loop(Some(loops), write)));
    }
    let description = format!(
        "hackbench: groups of {fds} senders and {fds} receivers, {loops} messages from each to each"
    );
    let queues = ["ready", "start"].map(Queue::unlimited).to_vec();
    Workload { pipes, queues, ..seconds(10, description, tasks) }
}

/// A task that reports ready, waits for the start, and passes its messages.
fn member(name: String, count: u32, messages: Op) -> TaskSpec {
    forked(name, count, vec![Op::Send(0), Op::Receive(1, 1), messages])
}

/// A pipe for whole messages, as many as fit into its 16 pages; or a socket.
fn channel(name: String, carrier: Carrier) -> Pipe {
    let capacity = PIPE_PAGES * (PAGE_BYTES / MESSAGE_BYTES) * MESSAGE_BYTES;
    match carrier {
        Carrier::Pipe => Pipe { capacity, ..pipe(name) },
        Carrier::Socket => socket(name),
    }
}
