//! Programs that communicate over connections on one machine: `netperf-stream` and `volano`, two of the three
//! benchmarks that were 40 to 80 % slower on PREEMPT_RT in December 2006.

use super::parts::{Section, looping, mark, run, seconds, socket};
use super::spec::{Call, Entry, parameter};
use crate::model::{Lock, LockKind, Op, Queue, Workload};
use crate::units::CpuList;

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
/// Limit of the rooms.
const ROOMS_MAX: usize = 40;

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
        parameter(
            "copy",
            "2us..6us",
            "what a message costs each end beside the socket; never twice the same, or the \
                   two would keep out of each other's way for ever",
        ),
        parameter(
            "hold",
            "1us",
            "of it under the socket's lock, in addition; 0s: no such lock (a real kernel has its own)",
        ),
        parameter("pin", "yes", "sender and receiver on CPUs of their own, or no"),
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
        parameter("users", "20", "users of a room"),
        parameter("think", "5us", "what a server task computes for a message"),
        parameter("hold", "1us", "of it under the room's lock, for each user that it goes to"),
        parameter(
            "connection",
            "500ns",
            "work under a connection's `spin` lock, at each end and for each message; 0s: no \
                   such locks (a real kernel has its own)",
        ),
        parameter(
            "mm",
            "500ns",
            "work under the semaphore of the server's address space, an rwlock that is read, \
                   in each futex call, as before Linux 2.6.22; 0s: none",
        ),
    ],
    build: volano,
};

fn netperf(call: &mut Call<'_, '_>) -> Workload {
    let pairs = call.count_or("the number of pairs", 1..=64_u32, 1);
    let (copy, hold_ns) = (call.duration("copy"), call.time("hold"));
    let pins = call.choice("pin", &[("yes", true), ("no", false)]);
    let (mut tasks, mut pipes, mut locks) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let at = pair as usize;
        pipes.push(socket(format!("stream-{pair}")));
        let name = format!("socket-{pair}");
        let section = Section::new(&mut locks, &name, LockKind::Spin, hold_ns).ops();
        let (write, read) = (Op::PipeWrite(at, NETPERF_BYTES), Op::PipeRead(at, NETPERF_BYTES));
        let send = [vec![Op::Run(copy)], section.clone(), vec![write]].concat();
        let receive = [vec![read], section, vec![Op::Run(copy)]].concat();
        let messages = Op::Loop(Some(MESSAGES_PER_MARK), receive);
        let mut ends = [
            looping(format!("netperf/s{pair}"), 1, send),
            looping(format!("netserver/s{pair}"), 1, vec![messages, mark("1 MiB")]),
        ];
        for (end, cpu) in ends.iter_mut().zip(2 * pair..) {
            end.cpus = pins.then(|| CpuList::one(cpu));
        }
        tasks.extend(ends);
    }
    let description = format!("netperf: {pairs} streams over sockets");
    Workload { pipes, locks, ..seconds(1, description, tasks) }
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
    let rooms = call.count("the number of rooms", 1..=ROOMS_MAX);
    let users = call.integer("users", "the users of a room", 2..=50_usize);
    let (think_ns, hold_ns) = (call.time("think"), call.time("hold"));
    let (connection_ns, mm_ns) = (call.time("connection"), call.time("mm"));
    let description = format!("VolanoMark: {rooms} rooms of {users} users");
    let mut workload = seconds(1, description, Vec::new());
    let room = |room| Lock::new(format!("room-{room}"), LockKind::Mutex);
    workload.locks.extend((0..rooms).map(room));
    let mm = Section::new(&mut workload.locks, "server-mm", LockKind::RwLock, mm_ns);
    for number in 0..rooms {
        let room = Room { number, users, think_ns, hold_ns, connection_ns, mm };
        for user in 0..users {
            room.connect(&mut workload, user);
        }
    }
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
        let out = Queue::unlimited(format!("out-{name}"));
        queues.push(Queue { capacity: Some(CHAT_BACKLOG), ..out });
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
        let hear = vec![hear, mark(format!("{CHAT_PER_MARK} messages"))];
        let parts = [
            ("client-send", say),
            ("server-receive", forward),
            ("server-send", answer),
            ("client-receive", hear),
        ];
        for (part, program) in parts {
            workload.tasks.push(looping(format!("{part}/{name}"), 1, program));
        }
    }
}
