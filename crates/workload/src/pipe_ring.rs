//! The pages of a pipe (`fs/pipe.c` of Linux 6.1 and 7.2).
//!
//! A write continues in the last page if all of it fits there; the rest, and every other write, begins a new page. So
//! a page holds 40 messages of 100 bytes, and a pipe of 16 pages 640 of them, although 65,536 bytes would be 655. A
//! pipe is full when all pages are in use, even if the last one has room: a writer that waits waits for a page, and a
//! writer that comes then may write.

use std::collections::VecDeque;

const PAGE_BYTES: u64 = 4_096;

/// The contents of one page.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// Offset of the unread bytes.
    offset: u64,
    bytes: u64,
}

/// The pages of a pipe.
#[derive(Clone, Debug)]
pub struct PipeRing {
    pages: VecDeque<Page>,
    pages_max: usize,
    page_bytes: u64,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Bytes that were read.
    pub bytes: u64,
    /// Whether a waiting writer is to be woken.
    pub wakes_writer: bool,
}

impl PipeRing {
    /// An empty pipe. A capacity below a page is one page of that size.
    pub fn new(capacity: u64) -> PipeRing {
        let page_bytes = capacity.clamp(1, PAGE_BYTES);
        let pages_max = usize::try_from(capacity / page_bytes).unwrap_or(usize::MAX).max(1);
        PipeRing { pages: VecDeque::new(), pages_max, page_bytes }
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether all pages are in use; the last one may still have room.
    pub fn is_full(&self) -> bool {
        self.pages.len() >= self.pages_max
    }

    /// Writes as much as there is room for; `begins`: not after a wait. Returns the number of bytes.
    pub fn put(&mut self, bytes: u64, begins: bool) -> u64 {
        let mut left = bytes;
        let small = bytes % self.page_bytes;
        if begins
            && let Some(last) = self.pages.back_mut()
            && last.offset + last.bytes + small <= self.page_bytes
        {
            last.bytes += small;
            left -= small;
        }
        while left > 0 && !self.is_full() {
            let bytes = left.min(self.page_bytes);
            self.pages.push_back(Page { offset: 0, bytes });
            left -= bytes;
        }
        bytes - left
    }

    /// The pages that a write of so many bytes begins which does not wait, were there room for all of it.
    pub fn new_pages(&self, bytes: u64) -> u64 {
        let small = bytes % self.page_bytes;
        let fits = self
            .pages
            .back()
            .is_some_and(|last| last.offset + last.bytes + small <= self.page_bytes);
        let pages = bytes.div_ceil(self.page_bytes);
        if fits && small > 0 { pages - 1 } else { pages }
    }

    /// Reads at most the requested bytes. A read that empties a page of a full pipe wakes a writer.
    pub fn take(&mut self, bytes: u64) -> Taken {
        let mut taken = Taken { bytes: 0, wakes_writer: false };
        while taken.bytes < bytes {
            let full = self.is_full();
            let Some(first) = self.pages.front_mut() else { break };
            let part = first.bytes.min(bytes - taken.bytes);
            (first.offset, first.bytes) = (first.offset + part, first.bytes - part);
            taken.bytes += part;
            if first.bytes == 0 {
                self.pages.pop_front();
                taken.wakes_writer |= full;
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_forty_messages_of_a_hundred_bytes() {
        let mut pipe = PipeRing::new(65_536);
        let written = (0..1_000).take_while(|_| pipe.put(100, true) == 100).count();
        assert_eq!((written, pipe.pages.len(), pipe.is_full()), (640, 16, true));
        // The last page has 96 bytes left: not enough for another message, enough for a smaller one.
        assert_eq!((pipe.put(100, true), pipe.put(96, true), pipe.put(1, true)), (0, 96, 0));
    }

    #[test]
    fn a_write_begins_the_pages_that_it_says() {
        for bytes in [1, 100, PAGE_BYTES, PAGE_BYTES + 1, 3 * PAGE_BYTES - 96] {
            let mut pipe = PipeRing::new(1 << 20);
            for _ in 0..50 {
                let (said, before) = (pipe.new_pages(bytes), pipe.pages.len() as u64);
                pipe.put(bytes, true);
                assert_eq!(pipe.pages.len() as u64 - before, said, "{bytes} bytes");
            }
        }
    }

    #[test]
    fn who_has_waited_needs_a_page_of_its_own() {
        let mut pipe = PipeRing::new(2 * PAGE_BYTES);
        assert_eq!((pipe.put(5_000, true), pipe.is_full()), (5_000, true));
        assert_eq!((pipe.put(100, false), pipe.put(100, true)), (0, 100));
    }

    #[test]
    fn a_writer_is_woken_when_a_page_of_a_full_pipe_is_empty() {
        let mut pipe = PipeRing::new(2 * PAGE_BYTES);
        pipe.put(2 * PAGE_BYTES, true);
        let mut wakes = |bytes| pipe.take(bytes).wakes_writer;
        assert_eq!((wakes(4_000), wakes(96)), (false, true));
        // One page is free: the pipe is not full, and no task can wait.
        assert!(!wakes(4_096));
    }

    #[test]
    fn a_small_pipe_has_one_small_page() {
        let mut pipe = PipeRing::new(10);
        assert_eq!((pipe.put(25, true), pipe.is_full()), (10, true));
        assert_eq!(pipe.take(25), Taken { bytes: 10, wakes_writer: true });
    }
}
