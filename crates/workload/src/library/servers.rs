//! Programs that talk over connections on one machine: `netperf-stream` and `volano`, two of the three benchmarks that were 40 to 80 % slower
//! on PREEMPT_RT in December 2006.

use super::spec::Call;
use super::{Entry, Parameter, group, independent, lock, run};
use crate::model::{Carrier, CpuList, LockKind, Op, Pipe, Program, Queue, TaskSpec, Workload};

/// What a socket's messages may occupy, bytes (`net.core.wmem_default`).
const SOCKET_BYTES: u64 = 212_992;
/// A message of netperf, bytes: its default where a socket buffer is that large.
const NETPERF_BYTES: u64 = 16_384;
/// Messages of netperf between two marks: a megabyte.
const MESSAGES_PER_MARK: u64 = 64;
/// A message of the chat, bytes.
const CHAT_BYTES: u64 = 100;
/// Messages that a receiver counts between two marks.
const CHAT_PER_MARK: u64 = 100;
/// Messages that a connection's sender may be behind.
const CHAT_BACKLOG: u64 = 1_000;
/// Rooms at most.
const ROOMS_MAX: i64 = 40;

/// The stream.
pub(super) const NETPERF_STREAM: Entry = Entry {
    name: "netperf-stream",
    arguments: "[PAIRS]",
    summary: "netperf's TCP stream: a sender and a receiver, on CPUs of their own, 16 KiB a message, for ever",
    source: "netperf -t TCP_STREAM over the loopback, server and client each bound to a core: 40 % slower on 2.6.19-rt14",
    limits: "a Unix stream socket in place of TCP; the lock of the socket is a `spin` of the workload, held for a chosen time by both ends",
    parameters: &[
        Parameter {
            name: "copy",
            default: "4us",
            help: "what a message costs each end beside the socket",
        },
        Parameter {
            name: "hold",
            default: "1us",
            help: "of it under the socket's lock, in addition",
        },
        Parameter {
            name: "pin",
            default: "yes",
            help: "sender and receiver on CPUs of their own, or no",
        },
    ],
    build: netperf,
};

/// The chat.
pub(super) const VOLANO: Entry = Entry {
    name: "volano",
    arguments: "ROOMS",
    summary: "a chat server: rooms of 20 users, four tasks a connection, each message goes to the 19 others, for ever",
    source: "VolanoMark 2.1 as IBM's Linux Technology Center describes it: 80 % slower on 2.6.19-rt14, idle time from 1 to 60 %",
    limits: "no Java machine: its monitors are one lock a room, its threads are tasks; connections are Unix stream sockets",
    parameters: &[
        Parameter { name: "users", default: "20", help: "users of a room" },
        Parameter {
            name: "think",
            default: "5us",
            help: "what a server task computes for a message",
        },
        Parameter {
            name: "hold",
            default: "1us",
            help: "of it under the room's lock, for each user that it goes to",
        },
    ],
    build: volano,
};

fn socket(name: String) -> Pipe {
    Pipe { name, capacity: SOCKET_BYTES, carrier: Carrier::Socket }
}

fn pinned(mut task: TaskSpec, cpu: Option<u32>) -> TaskSpec {
    task.cpus = cpu.map(|cpu| CpuList(vec![(cpu, cpu)]));
    task
}

fn netperf(call: &mut Call<'_, '_>) -> Workload {
    let pairs = match call.arguments.clone() {
        Some(piece) => call.number("the number of pairs", &piece, 1, 64),
        None => 1,
    };
    let pairs = u32::try_from(pairs).unwrap_or(1);
    let (copy_ns, hold_ns) = (call.time("copy", 4_000), call.time("hold", 1_000));
    let pins = match call.value("pin") {
        None => true,
        Some(piece) if piece.text == "yes" => true,
        Some(piece) if piece.text == "no" => false,
        Some(piece) => {
            let message = format!("`pin` is {:?}", piece.text);
            call.problem(piece.span, message, "write yes or no".to_owned());
            false
        }
    };
    let (mut tasks, mut pipes, mut locks) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let at = pair as usize;
        pipes.push(socket(format!("stream-{pair}")));
        locks.push(lock(&format!("socket-{pair}"), LockKind::Spin));
        let section = [Op::Lock(at), run(hold_ns), Op::Unlock(at)];
        let send: Program = [run(copy_ns)]
            .into_iter()
            .chain(section.clone())
            .chain([Op::PipeWrite(at, NETPERF_BYTES)])
            .collect();
        let receive: Program = [Op::PipeRead(at, NETPERF_BYTES)]
            .into_iter()
            .chain(section)
            .chain([run(copy_ns)])
            .collect();
        let mark = Op::Mark("1 MiB".to_owned());
        let messages = Op::Loop(Some(MESSAGES_PER_MARK), receive);
        let cpu = |end: u32| pins.then_some(2 * pair + end);
        let sender = group(&format!("netperf/s{pair}"), 1, vec![Op::Loop(None, send)]);
        let receiver =
            group(&format!("netserver/s{pair}"), 1, vec![Op::Loop(None, vec![messages, mark])]);
        tasks.push(pinned(sender, cpu(0)));
        tasks.push(pinned(receiver, cpu(1)));
    }
    let mut workload = independent(format!("netperf: {pairs} streams over sockets"), tasks);
    (workload.pipes, workload.locks) = (pipes, locks);
    workload.duration_ns = 1_000_000_000;
    workload
}

fn volano(call: &mut Call<'_, '_>) -> Workload {
    let rooms = call.count("the number of rooms", ROOMS_MAX) as usize;
    let users = match call.value("users") {
        Some(piece) => call.number("the users of a room", &piece, 2, 50),
        None => 20,
    };
    let users = usize::try_from(users).unwrap_or(2);
    let (think_ns, hold_ns) = (call.time("think", 5_000), call.time("hold", 1_000));
    let (mut tasks, mut pipes, mut queues, mut locks) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for room in 0..rooms {
        locks.push(lock(&format!("room-{room}"), LockKind::Mutex));
        for user in 0..users {
            let name = format!("r{room}-{user}");
            let (up, down, queue) = (pipes.len(), pipes.len() + 1, queues.len());
            pipes.push(socket(format!("up-{name}")));
            pipes.push(socket(format!("down-{name}")));
            queues.push(Queue {
                name: format!("out-{name}"),
                capacity: Some(CHAT_BACKLOG),
                initial: 0,
            });
            let others = (room * users..(room + 1) * users).filter(|other| *other != queue);
            let mut forward = vec![Op::PipeRead(up, CHAT_BYTES), run(think_ns), Op::Lock(room)];
            forward.extend(others.flat_map(|other| [run(hold_ns), Op::Send(other)]));
            forward.push(Op::Unlock(room));
            let answer =
                vec![Op::Receive(queue, 1), run(think_ns), Op::PipeWrite(down, CHAT_BYTES)];
            let say = vec![run(think_ns), Op::PipeWrite(up, CHAT_BYTES)];
            let hear = Op::Loop(Some(CHAT_PER_MARK), vec![Op::PipeRead(down, CHAT_BYTES)]);
            let hear = vec![hear, Op::Mark(format!("{CHAT_PER_MARK} messages"))];
            let parts = [
                ("client-send", say),
                ("server-receive", forward),
                ("server-send", answer),
                ("client-receive", hear),
            ];
            for (part, program) in parts {
                tasks.push(group(&format!("{part}/{name}"), 1, vec![Op::Loop(None, program)]));
            }
        }
    }
    let mut workload = independent(format!("VolanoMark: {rooms} rooms of {users} users"), tasks);
    (workload.pipes, workload.queues, workload.locks) = (pipes, queues, locks);
    workload.duration_ns = 1_000_000_000;
    workload
}
