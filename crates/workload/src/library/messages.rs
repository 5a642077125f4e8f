//! Tasks that pass messages through pipes: `pipe`, after perf's `bench sched pipe`, and `hackbench`, after Ingo
//! Molnar's program as rt-tests has it.

use super::spec::Call;
use super::{Entry, Parameter, group, independent};
use crate::limits::CPU_MAX;
use crate::model::{Carrier, CpuList, Op, Pipe, Program, Queue, TaskSpec, Workload};

/// The message of the ping-pong, an `int`, bytes.
const INT_BYTES: u64 = 4;
/// Round trips of the ping-pong between two marks, since a mark has a cost.
const TRIPS_PER_MARK: u64 = 100;
/// Capacity of a pipe of the ping-pong, bytes.
const PIPE_BYTES: u64 = 65_536;
/// Default number of senders, and of receivers, of a group of hackbench.
const FDS_DEFAULT: u32 = 20;
/// Limit of the senders, and of the receivers, of a group.
const FDS_MAX: i64 = 100;
/// Limit of the groups of hackbench.
const GROUPS_MAX: i64 = 500;
/// Limit of the messages from each sender to each receiver.
const LOOPS_MAX: i64 = 1_000_000;
/// A message of hackbench, bytes.
const MESSAGE_BYTES: u64 = 100;
/// Bytes of a pipe's page. A message is written to one page, or to the next.
const PAGE_BYTES: u64 = 4_096;
/// Kernel memory for the messages in a socket, bytes (`net.core.wmem_default`).
const SOCKET_BYTES: u64 = 212_992;
/// Pages of a pipe.
const PIPE_PAGES: u64 = 16;

/// The entry `pipe`.
pub(super) const PIPE: Entry = Entry {
    name: "pipe",
    arguments: "[PAIRS]",
    summary: "perf's bench sched pipe: pairs of tasks that pass an int there and back through two pipes, for ever",
    source: "`perf bench sched pipe`, Linux 6.12",
    limits: "one round trip is two switches where both share a CPU, and two wake-ups of idle CPUs where they do not",
    parameters: &[Parameter {
        name: "cpu",
        default: "any",
        help: "the CPU that all are pinned to, or any",
    }],
    build: pipe,
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
        Parameter {
            name: "loops",
            default: "100",
            help: "messages of 100 bytes from each sender to each receiver in a round",
        },
        Parameter {
            name: "over",
            default: "pipes",
            help: "what the messages go through: pipes, or sockets as in the original",
        },
        Parameter { name: "fds", default: "20", help: "senders, and receivers, of a group" },
        Parameter { name: "rounds", default: "0", help: "how many rounds; 0: for ever" },
    ],
    build: hackbench,
};

fn pipe(call: &mut Call<'_, '_>) -> Workload {
    let pairs = match call.arguments.clone() {
        Some(piece) => call.number("the number of pairs", &piece, 1, GROUPS_MAX),
        None => 1,
    };
    let cpu = match call.value("cpu") {
        Some(piece) if piece.text != "any" => {
            Some(call.number("the CPU", &piece, 0, i64::from(CPU_MAX)))
        }
        _ => None,
    };
    let cpus = cpu.and_then(|cpu| u32::try_from(cpu).ok()).map(|cpu| CpuList(vec![(cpu, cpu)]));
    let pairs = usize::try_from(pairs).unwrap_or(1);
    let (mut tasks, mut pipes) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let name = |text: &str| if pairs == 1 { text.to_owned() } else { format!("{text}-{pair}") };
        let (there, back) = (2 * pair, 2 * pair + 1);
        for end in ["there", "back"] {
            pipes.push(Pipe { name: name(end), capacity: PIPE_BYTES, carrier: Carrier::Pipe });
        }
        let trip = vec![Op::PipeWrite(there, INT_BYTES), Op::PipeRead(back, INT_BYTES)];
        let trips = Op::Loop(Some(TRIPS_PER_MARK), trip);
        let mark = Op::Mark(format!("{TRIPS_PER_MARK} round trips"));
        let answer = vec![Op::PipeRead(there, INT_BYTES), Op::PipeWrite(back, INT_BYTES)];
        tasks.push(group(&name("ping"), 1, vec![Op::Loop(None, vec![trips, mark])]));
        tasks.push(group(&name("pong"), 1, vec![Op::Loop(None, answer)]));
    }
    for task in &mut tasks {
        task.cpus.clone_from(&cpus);
    }
    let description = "pairs of tasks that pass an int there and back (perf bench sched pipe)";
    let mut workload = independent(description.to_owned(), tasks);
    workload.pipes = pipes;
    workload.duration_ns = 1_000_000_000;
    workload
}

fn hackbench(call: &mut Call<'_, '_>) -> Workload {
    let groups = call.count("the number of groups", GROUPS_MAX) as usize;
    let mut option = |key: &str, what: &str, low: i64, high: i64, default: i64| {
        let value = call.value(key).map(|piece| call.number(what, &piece, low, high));
        u64::try_from(value.unwrap_or(default)).unwrap_or(1)
    };
    let loops = option("loops", "the number of messages", 1, LOOPS_MAX, 100);
    let fds = option("fds", "the number of senders", 1, FDS_MAX, i64::from(FDS_DEFAULT));
    let rounds = option("rounds", "the number of rounds", 0, LOOPS_MAX, 0);
    let carrier = match call.value("over") {
        None => Carrier::Pipe,
        Some(piece) if piece.text == "pipes" => Carrier::Pipe,
        Some(piece) if piece.text == "sockets" => Carrier::Socket,
        Some(piece) => {
            let message = format!("messages go over {:?}", piece.text);
            call.problem(piece.span, message, "write pipes or sockets".to_owned());
            Carrier::Pipe
        }
    };
    let members = groups * 2 * fds as usize;

    // The groups: 0 the parent; then, group by group, each receiver and all senders.
    let mut round: Program = (1..=groups * (fds as usize + 1)).map(Op::Fork).collect();
    round.push(Op::Receive(0, u32::try_from(members).unwrap_or(u32::MAX)));
    round.push(Op::Mark("hackbench start".to_owned()));
    round.push(Op::Loop(Some(members as u64), vec![Op::Send(1)]));
    round.extend([Op::WaitChildren, Op::Mark("hackbench round".to_owned())]);
    let rounds = (rounds > 0).then_some(rounds);
    let mut tasks = vec![group("hackbench", 1, vec![Op::Loop(rounds, round)])];
    let mut pipes = Vec::new();
    for number in 0..groups {
        let first = pipes.len();
        for fd in 0..fds {
            let name = format!("{number}-{fd}");
            let read = vec![Op::PipeRead(pipes.len(), MESSAGE_BYTES)];
            tasks.push(member(&format!("receiver/g{name}"), 1, Op::Loop(Some(loops * fds), read)));
            pipes.push(Pipe { name, capacity: capacity(carrier), carrier });
        }
        let write = (first..pipes.len()).map(|pipe| Op::PipeWrite(pipe, MESSAGE_BYTES)).collect();
        let senders = u32::try_from(fds).unwrap_or(1);
        tasks.push(member(&format!("sender/g{number}"), senders, Op::Loop(Some(loops), write)));
    }
    let description = format!(
        "hackbench: groups of {fds} senders and {fds} receivers, {loops} messages from each to each"
    );
    let mut workload = independent(description, tasks);
    workload.pipes = pipes;
    workload.queues = ["ready", "start"]
        .map(|name| Queue { name: name.to_owned(), capacity: None, initial: 0 })
        .to_vec();
    workload
}

/// A task that reports ready, waits for the start, and passes its messages.
fn member(name: &str, count: u32, messages: Op) -> TaskSpec {
    let mut member = group(name, count, vec![Op::Send(0), Op::Receive(1, 1), messages]);
    member.start_ns = None;
    member
}

/// Whole messages that fit into the 16 pages of a pipe.
fn capacity(carrier: Carrier) -> u64 {
    match carrier {
        Carrier::Pipe => PIPE_PAGES * (PAGE_BYTES / MESSAGE_BYTES) * MESSAGE_BYTES,
        Carrier::Socket => SOCKET_BYTES,
    }
}
