//! Stream sockets of one machine (`AF_UNIX`, `net/unix/af_unix.c` of Linux 6.12): one direction of a connected pair.
//!
//! * A write becomes messages of at most half the buffer (`unix_stream_sendmsg`). Each is charged to the writer's
//!   buffer with what it occupies, its `truesize`: 100 bytes occupy 768. A writer sleeps while the buffer is full, that
//!   is, while what is charged is not below `sk_sndbuf`; the message that crosses the line still goes.
//! * Each message wakes all readers that sleep (`sock_def_readable`).
//! * A reader takes bytes across messages, as many as there are up to what it asked for. A message that is read to its
//!   end gives its charge back, and when at most a quarter of the buffer is charged then, all writers that sleep are
//!   woken (`unix_write_space`).
//!
//! All of these wake-ups are synchronous ones.

use std::collections::VecDeque;

use super::engine::Actors;
use super::sync::ListId;
use super::{Effect, Need};

/// `sizeof(struct sk_buff)`, rounded up to cache lines.
const SKB_BYTES: u64 = 256;
/// `sizeof(struct skb_shared_info)`, rounded up to cache lines.
const SHARED_INFO_BYTES: u64 = 320;
const CACHE_LINE_BYTES: u64 = 64;
const PAGE_BYTES: u64 = 4_096;
/// The most that lies in one piece (`SKB_MAX_ALLOC`: four pages less the shared info); the rest lies in pages.
const LINEAR_BYTES_MAX: u64 = 4 * PAGE_BYTES - SHARED_INFO_BYTES;

/// The messages of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    /// Bytes that are left of each, and what it occupies.
    messages: VecDeque<(u64, u64)>,
    /// What all of them occupy (`sk_wmem_alloc`).
    charged: u64,
}

/// What a message of so many bytes occupies (`__alloc_skb`).
fn truesize(bytes: u64) -> u64 {
    let linear = bytes.min(LINEAR_BYTES_MAX);
    let paged = (bytes - linear).next_multiple_of(PAGE_BYTES);
    let wanted = linear.next_multiple_of(CACHE_LINE_BYTES) + SHARED_INFO_BYTES;
    SKB_BYTES + wanted.next_power_of_two() + paged
}

impl Actors {
    /// Wakes all actors of a list, to look again.
    fn wake_all(&mut self, list: ListId, effects: &mut Vec<Effect>) {
        // No actor joins the list meanwhile.
        while self.wake_first(list, effects) {}
    }

    pub(super) fn stream_write(
        &mut self,
        id: u32,
        pipe: u32,
        bytes: u64,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        let buffer = self.shared.pipes[pipe as usize].capacity();
        // Each turn charges something, and a full buffer ends it.
        loop {
            let frame = self.actors[id as usize].frame();
            let left = bytes - frame.progress;
            if left == 0 {
                return self.finish(id);
            }
            let size = left.min((buffer / 2).saturating_sub(CACHE_LINE_BYTES).max(1));
            let Some(stream) = &mut self.shared.streams[pipe as usize] else {
                return self.finish(id);
            };
            if stream.charged >= buffer {
                return self.block(id, self.shared.writers(pipe));
            }
            let occupied = truesize(size);
            stream.messages.push_back((size, occupied));
            stream.charged += occupied;
            frame.progress += size;
            self.wake_all(self.shared.readers(pipe), effects);
        }
    }

    pub(super) fn stream_read(
        &mut self,
        id: u32,
        pipe: u32,
        bytes: u64,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        let buffer = self.shared.pipes[pipe as usize].capacity();
        let Some(stream) = &mut self.shared.streams[pipe as usize] else { return self.finish(id) };
        if stream.messages.is_empty() {
            return self.block(id, self.shared.readers(pipe));
        }
        let (mut wanted, mut freed) = (bytes, false);
        while wanted > 0
            && let Some((left, occupied)) = stream.messages.front_mut()
        {
            let taken = wanted.min(*left);
            (*left, wanted) = (*left - taken, wanted - taken);
            if *left == 0 {
                stream.charged -= *occupied;
                stream.messages.pop_front();
                freed = true;
            }
        }
        let wakes_writers = freed && 4 * stream.charged <= buffer;
        self.owe_copy(id, bytes - wanted);
        if wakes_writers {
            self.wake_all(self.shared.writers(pipe), effects);
        }
        self.finish(id)
    }
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
