//! The contents of pipes and sockets.
//!
//! A pipe's pages are those of [`fairground_workload::PipeRing`]. A socket is one direction of a connected pair on one
//! machine (`AF_UNIX`, `net/unix/af_unix.c` of Linux 6.12):
//!
//! * A write becomes messages of at most half the buffer (`unix_stream_sendmsg`). Each is charged to the writer's
//!   buffer with its `truesize`: 768 for 100 bytes. A writer sleeps while the buffer is full, that is, while the charge
//!   is not below `sk_sndbuf`; the message that crosses this limit is still sent.
//! * A reader takes bytes across messages, as many as there are, up to the requested number. A completely read message
//!   releases its charge.

use std::collections::VecDeque;

use fairground_workload::{Carrier, Pipe, PipeRing};

use crate::CostModel;

/// `sizeof(struct sk_buff)`, rounded up to cache lines.
const SKB_BYTES: u64 = 256;
/// `sizeof(struct skb_shared_info)`, rounded up to cache lines.
const SHARED_INFO_BYTES: u64 = 320;
const CACHE_LINE_BYTES: u64 = 64;
const PAGE_BYTES: u64 = 4_096;
/// The most bytes in one piece (`SKB_MAX_ALLOC`: four pages less the shared info); the rest is in pages.
const LINEAR_BYTES_MAX: u64 = 4 * PAGE_BYTES - SHARED_INFO_BYTES;

/// A pipe of the workload.
#[derive(Clone, Debug)]
pub(super) enum Channel {
    Pipe(PipeRing),
    Socket(SocketBuffer),
}

/// The messages of one direction of a socket.
#[derive(Clone, Debug)]
pub(super) struct SocketBuffer {
    /// `sk_sndbuf`.
    buffer: u64,
    /// The unread bytes of each, and its `truesize`.
    messages: VecDeque<(u64, u64)>,
    /// The sum of their sizes (`sk_wmem_alloc`).
    charged: u64,
}

/// Which of the actors that wait for a channel are woken to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wakes {
    None,
    First,
    All,
}

/// The result of a write or a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub(super) bytes: u64,
    /// Of those at the other end.
    pub(super) wakes: Wakes,
    /// Whether one that has waited wakes the next at its own end: there is something left for it.
    pub(super) wakes_next: bool,
    /// Messages of a socket that a read has read to their ends.
    pub(super) messages: u64,
}

impl Channel {
    pub(super) fn new(pipe: &Pipe) -> Channel {
        match pipe.carrier {
            Carrier::Pipe => Channel::Pipe(PipeRing::new(pipe.capacity)),
            Carrier::Socket => Channel::Socket(SocketBuffer {
                buffer: pipe.capacity,
                messages: VecDeque::new(),
                charged: 0,
            }),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Channel::Pipe(ring) => ring.is_empty(),
            Channel::Socket(stream) => stream.messages.is_empty(),
        }
    }

    /// Cost of a write of so many bytes beyond the call and the copying, ns: the pages of a pipe, the message of a
    /// socket.
    pub(super) fn write_ns(&self, bytes: u64, cost: &CostModel) -> u64 {
        match self {
            Channel::Pipe(ring) => {
                let kept = u64::from(ring.is_empty());
                ring.new_pages(bytes).saturating_sub(kept).saturating_mul(cost.pipe_page_ns)
            }
            Channel::Socket(_) => cost.socket_ns,
        }
    }

    /// Writes as much as there is room for; `begins`: not after a wait.
    pub(super) fn write(&mut self, bytes: u64, begins: bool) -> Moved {
        match self {
            Channel::Pipe(ring) => {
                let wakes = if ring.is_empty() && bytes > 0 { Wakes::First } else { Wakes::None };
                let bytes = ring.put(bytes, begins);
                Moved { bytes, wakes, wakes_next: !ring.is_full(), messages: 0 }
            }
            Channel::Socket(stream) => {
                let bytes = stream.put(bytes);
                let wakes = if bytes > 0 { Wakes::All } else { Wakes::None };
                Moved { bytes, wakes, wakes_next: false, messages: 0 }
            }
        }
    }

    /// Reads at most so many bytes.
    pub(super) fn read(&mut self, bytes: u64) -> Moved {
        match self {
            Channel::Pipe(ring) => {
                let taken = ring.take(bytes);
                let wakes = if taken.wakes_writer { Wakes::First } else { Wakes::None };
                Moved { bytes: taken.bytes, wakes, wakes_next: !ring.is_empty(), messages: 0 }
            }
            Channel::Socket(stream) => {
                let before = stream.messages.len();
                let (bytes, has_room) = stream.take(bytes);
                let wakes = if has_room { Wakes::All } else { Wakes::None };
                let messages = (before - stream.messages.len()) as u64;
                Moved { bytes, wakes, wakes_next: false, messages }
            }
        }
    }
}

impl SocketBuffer {
    fn put(&mut self, bytes: u64) -> u64 {
        let size_max = (self.buffer / 2).saturating_sub(CACHE_LINE_BYTES).max(1);
        let mut left = bytes;
        while left > 0 && self.charged < self.buffer {
            let size = left.min(size_max);
            let occupied = truesize(size);
            self.messages.push_back((size, occupied));
            self.charged += occupied;
            left -= size;
        }
        bytes - left
    }

    /// Returns the bytes, and whether at most a quarter of the buffer is charged after a message was read to its end.
    fn take(&mut self, bytes: u64) -> (u64, bool) {
        let (mut wanted, mut freed) = (bytes, false);
        while wanted > 0
            && let Some((left, occupied)) = self.messages.front_mut()
        {
            let taken = wanted.min(*left);
            (*left, wanted) = (*left - taken, wanted - taken);
            if *left == 0 {
                self.charged -= *occupied;
                self.messages.pop_front();
                freed = true;
            }
        }
        (bytes - wanted, freed && 4 * self.charged <= self.buffer)
    }
}

/// The `truesize` of a message (`__alloc_skb`).
fn truesize(bytes: u64) -> u64 {
    let linear = bytes.min(LINEAR_BYTES_MAX);
    let paged = (bytes - linear).next_multiple_of(PAGE_BYTES);
    let wanted = linear.next_multiple_of(CACHE_LINE_BYTES) + SHARED_INFO_BYTES;
    SKB_BYTES + wanted.next_power_of_two() + paged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_occupy_more_than_their_bytes() {
        // 100 → 128 + 320 = 448 → 512; 1 → 384 → 512; 4,096 + 320 → 8,192.
        assert_eq!([1, 100, 192, 193, 4_096].map(truesize), [768, 768, 768, 1_280, 8_448]);
        // One piece of 16,064 bytes and five pages for the 17,000 that are left.
        assert_eq!(truesize(16_064 + 17_000), 256 + 16_384 + 5 * 4_096);
    }
}
