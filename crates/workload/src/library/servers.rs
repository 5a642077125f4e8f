//! Programs that communicate over connections on one machine: `netperf-stream` and `volano`, two of the three
//! benchmarks that were 40 to 80 % slower on PREEMPT_RT in December 2006.

use super::spec::Call;
use super::{Entry, Parameter, group, independent, lock, run};
use crate::model::{
    Carrier, CpuList, Duration, Lock, LockKind, Op, Pipe, Program, Queue, TaskSpec, Workload,
};

/// Kernel memory for a socket's messages, bytes (`net.core.wmem_default`).
const SOCKET_BYTES: u64 = 212_992;
/// A message of netperf, bytes: its default where a socket buffer is that large.
const NETPERF_BYTES: u64 = 16_384;
/// Messages of netperf between two marks: a megabyte.
const MESSAGES_PER_MARK: u64 = 64;
/// A message of the chat, bytes.
const CHAT_BYTES: u64 = 100;
/// Messages that a receiver counts between two marks.
const CHAT_PER_MARK: u64 = 100;
/// Limit of the messages that a connection's sender may be behind.
const CHAT_BACKLOG: u64 = 1_000;
/// How long a futex system call holds the address space's semaphore: it wakes a task meanwhile.
const ADDRESS_SPACE_NS: u64 = 500;
/// How long each end of a connection holds its lock, for each message.
const CONNECTION_NS: u64 = 500;
/// Least and greatest cost of a message of netperf for each end.
const COPY: Duration = Duration::Uniform { low: 2_000, high: 6_000 };
/// Limit of the rooms.
const ROOMS_MAX: i64 = 40;

/// The entry `netperf-stream`.
pub(super) const NETPERF_STREAM: Entry = Entry {
    name: "netperf-stream",
    arguments: "[PAIRS]",
    summary: "netperf's TCP stream: a sender and a receiver, on CPUs of their own, 16 KiB a message, for ever",
    source: "netperf -t TCP_STREAM over the loopback, server and client each bound to a core: 40 % \
             slower on 2.6.19-rt14",
    limits: "a Unix stream socket in place of TCP; the lock of the socket is a `spin` of the \
             workload, held for a chosen time by both ends",
    parameters: &[
        Parameter {
            name: "copy",
            default: "2us..6us",
            help: "what a message costs each end beside the socket; never twice the same, or the \
                   two would keep out of each other's way for ever",
        },
        Parameter {
            name: "hold",
            default: "1us",
            help: "of it under the socket's lock, in addition; 0s: no such lock (a real kernel has its own)",
        },
        Parameter {
            name: "pin",
            default: "yes",
            help: "sender and receiver on CPUs of their own, or no",
        },
    ],
    build: netperf,
};

/// The entry `volano`.
pub(super) const VOLANO: Entry = Entry {
    name: "volano",
    arguments: "ROOMS",
    summary: "a chat server: rooms of 20 users, four tasks a connection, each message goes to the 19 others, for ever",
    source: "VolanoMark 2.1 as IBM's Linux Technology Center describes it: 80 % slower on \
             2.6.19-rt14, idle time from 1 to 60 %",
    limits: "no Java machine: its monitors are one lock a room, its threads are tasks; each wait \
             and notify of the server is a futex call; connections are Unix stream sockets",
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
        Parameter {
            name: "connection",
            default: "500ns",
            help: "work under a connection's `spin` lock, at each end and for each message; 0s: no \
                   such locks (a real kernel has its own)",
        },
        Parameter {
            name: "mm",
            default: "500ns",
            help: "work under the semaphore of the server's address space, an rwlock that is read, \
                   in each futex call, as before Linux 2.6.22; 0s: none",
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
    let copy = call.duration_or("copy", COPY);
    let hold_ns = call.time("hold", 1_000);
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
        let name = format!("socket-{pair}");
        let section = Section::new(&mut locks, &name, LockKind::Spin, hold_ns).ops();
        let send: Program = [Op::Run(copy)]
            .into_iter()
            .chain(section.clone())
            .chain([Op::PipeWrite(at, NETPERF_BYTES)])
            .collect();
        let receive: Program = [Op::PipeRead(at, NETPERF_BYTES)]
            .into_iter()
            .chain(section)
            .chain([Op::Run(copy)])
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

/// A lock that represents one of the kernel's, and the work under it.
#[derive(Clone, Copy)]
pub(super) struct Section {
    lock: Option<usize>,
    kind: LockKind,
    ns: u64,
}

impl Section {
    /// Without work there is no lock.
    pub(super) fn new(locks: &mut Vec<Lock>, name: &str, kind: LockKind, ns: u64) -> Section {
        let lock = (ns > 0).then_some(locks.len());
        locks.extend(lock.map(|_| super::lock(name, kind)));
        Section { lock, kind, ns }
    }

    pub(super) fn ops(self) -> Vec<Op> {
        let take = if self.kind == LockKind::RwLock { Op::ReadLock } else { Op::Lock };
        let ops = |lock| vec![take(lock), run(self.ns), Op::Unlock(lock)];
        self.lock.map_or(Vec::new(), ops)
    }
}

/// The objects that the tasks of a room share.
struct Room {
    number: usize,
    users: usize,
    think_ns: u64,
    hold_ns: u64,
    connection_ns: u64,
    /// The semaphore of the server's address space.
    mm: Section,
}

fn volano(call: &mut Call<'_, '_>) -> Workload {
    let rooms = call.count("the number of rooms", ROOMS_MAX) as usize;
    let users = match call.value("users") {
        Some(piece) => call.number("the users of a room", &piece, 2, 50),
        None => 20,
    };
    let users = usize::try_from(users).unwrap_or(2);
    let (think_ns, hold_ns) = (call.time("think", 5_000), call.time("hold", 1_000));
    let connection_ns = call.time("connection", CONNECTION_NS);
    let mm_ns = call.time("mm", ADDRESS_SPACE_NS);
    let mut workload =
        independent(format!("VolanoMark: {rooms} rooms of {users} users"), Vec::new());
    for room in 0..rooms {
        workload.locks.push(lock(&format!("room-{room}"), LockKind::Mutex));
    }
    let mm = Section::new(&mut workload.locks, "server-mm", LockKind::RwLock, mm_ns);
    for number in 0..rooms {
        let room = Room { number, users, think_ns, hold_ns, connection_ns, mm };
        for user in 0..users {
            room.connect(&mut workload, user);
        }
    }
    workload.duration_ns = 1_000_000_000;
    workload
}

impl Room {
    /// A user's connection: its buffers, its locks, and its four tasks.
    fn connect(&self, workload: &mut Workload, user: usize) {
        let name = format!("r{}-{user}", self.number);
        let (pipes, queues) = (&mut workload.pipes, &mut workload.queues);
        let (up, down, queue) = (pipes.len(), pipes.len() + 1, queues.len());
        pipes.push(socket(format!("up-{name}")));
        pipes.push(socket(format!("down-{name}")));
        queues.push(Queue {
            name: format!("out-{name}"),
            capacity: Some(CHAT_BACKLOG),
            initial: 0,
        });
        let mut end = |way: &str| {
            let name = format!("{way}-{name}");
            Section::new(&mut workload.locks, &name, LockKind::Spin, self.connection_ns).ops()
        };
        let (up_lock, down_lock) = (end("up"), end("down"));
        let write = |pipe, lock: &[Op]| [lock, &[Op::PipeWrite(pipe, CHAT_BYTES)]].concat();
        let read = |pipe, lock: &[Op]| [&[Op::PipeRead(pipe, CHAT_BYTES)], lock].concat();
        let think = [run(self.think_ns)];

        let first = self.number * self.users;
        let others = (first..first + self.users).filter(|other| *other != queue);
        let notify = |other| [vec![run(self.hold_ns)], self.mm.ops(), vec![Op::Send(other)]];
        let mut forward = [&read(up, &up_lock), &think[..], &[Op::Lock(self.number)]].concat();
        forward.extend(others.flat_map(notify).flatten());
        forward.push(Op::Unlock(self.number));
        let wait = [self.mm.ops(), vec![Op::Receive(queue, 1)]].concat();
        let answer = [&wait, &think[..], &write(down, &down_lock)].concat();
        let say = [&think[..], &write(up, &up_lock)].concat();
        let hear = Op::Loop(Some(CHAT_PER_MARK), read(down, &down_lock));
        let hear = vec![hear, Op::Mark(format!("{CHAT_PER_MARK} messages"))];
        let parts = [
            ("client-send", say),
            ("server-receive", forward),
            ("server-send", answer),
            ("client-receive", hear),
        ];
        for (part, program) in parts {
            let task = group(&format!("{part}/{name}"), 1, vec![Op::Loop(None, program)]);
            workload.tasks.push(task);
        }
    }
}
