//! Where tasks of a replay wait for each other's progress.

use std::collections::BTreeMap;

use crate::model::Queue;

/// Characters of a task's name that go into the name of a queue; its number makes it unique.
const NAME_CHARS: usize = 24;

/// How a message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Received {
    /// The receiver was blocked until it came: both must be there.
    Blocked,
    /// It came before the receiver could block: the receiver waits for it, the sender does not wait.
    Early,
    /// It was without effect; it is not sent.
    No,
}

/// A wake-up of one task by another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// The tasks, by index: waker and woken.
    pub(super) ends: (usize, usize),
    pub(super) received: Received,
    /// The waker blocked right after it.
    pub(super) sync: bool,
}

/// The wake-ups between two tasks, which are in order on both sides.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    messages: u64,
    sync: u64,
}

/// A queue for each pair of tasks and each way of receiving.
#[derive(Debug)]
pub(super) struct Meetings {
    pub(super) queues: Vec<Queue>,
    /// The queue of each message.
    of_message: Vec<Option<usize>>,
}

impl Meetings {
    /// The queues of these messages; `names` are those of the tasks.
    pub(super) fn of(messages: &[Message], names: &[String]) -> Self {
        let received = |message: &&Message| message.received != Received::No;
        let mut pairs: BTreeMap<_, Pair> = BTreeMap::new();
        for message in messages.iter().filter(received) {
            let pair = pairs.entry((message.ends, message.received)).or_default();
            pair.messages += 1;
            pair.sync += u64::from(message.sync);
        }
        let numbers: BTreeMap<_, usize> = pairs.keys().copied().zip(0..).collect();
        let of_message = messages.iter().map(|m| numbers.get(&(m.ends, m.received)).copied());
        let queues = pairs.iter().zip(0..).map(|((((from, to), received), pair), number)| {
            let end = |task: usize| names[task].chars().take(NAME_CHARS).collect::<String>();
            Queue {
                name: format!("{number}: {} > {}", end(*from), end(*to)),
                capacity: (*received == Received::Blocked).then_some(0),
                initial: 0,
                sync: 2 * pair.sync > pair.messages,
            }
        });
        Self { queues: queues.collect(), of_message: of_message.collect() }
    }

    /// The queue of a message, by number; `None`: no task receives it.
    pub(super) fn queue(&self, message: usize) -> Option<usize> {
        self.of_message[message]
    }
}
