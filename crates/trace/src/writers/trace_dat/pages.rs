//! The pages of a CPU's ring buffer (`include/linux/ring_buffer.h`): events with the time that passed before each.

/// A page begins with the time of its first event and the number of bytes that follow.
pub(super) const HEAD_BYTES: usize = 16;
/// `RB_MISSED_EVENTS` and `RB_MISSED_STORED`: events are missing before this page, and their number stands behind the
/// data.
const MISSED: u64 = (1 << 31) | (1 << 30);
const COUNT_BYTES: usize = 8;
/// `RINGBUF_TYPE_TIME_EXTEND`: the next word has the upper bits of the time that passed.
const TIME_EXTEND: u64 = 30;
const DELTA_BITS: u32 = 27;
/// Beyond it an event does not say how much time passed.
const DELTA_MAX: u64 = (1 << (DELTA_BITS + 32)) - 1;
/// `RINGBUF_TYPE_DATA_TYPE_LEN_MAX` words: longer events have a word with their length.
const SHORT_BYTES_MAX: usize = 4 * 28;
/// The words before an event's data, bytes: time extension, head, length.
const BEFORE_BYTES_MAX: usize = 16;

/// Bytes of a page that has room for an event of a size.
pub(super) fn page_bytes_for(event_bytes: usize) -> usize {
    let needed = HEAD_BYTES + BEFORE_BYTES_MAX + event_bytes + 3 + COUNT_BYTES;
    needed.next_power_of_two().max(4096)
}

/// The pages of one CPU so far.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuPages {
    pub(super) bytes: Vec<u8>,
    /// Where the last page begins.
    page_at: usize,
    last_ns: u64,
    /// Events that are missing before the next one.
    missed: Option<u64>,
}

impl CpuPages {
    /// Events are missing here.
    pub(super) fn lose(&mut self, count: u64) {
        self.missed = Some(count);
    }

    /// Adds an event, which must fit into a page. Times must not decrease.
    pub(super) fn push(&mut self, time_ns: u64, data: &[u8], page_bytes: usize) {
        let used = self.bytes.len() - self.page_at;
        let is_full = used + BEFORE_BYTES_MAX + data.len() + 3 + COUNT_BYTES > page_bytes;
        let passed_ns = time_ns.saturating_sub(self.last_ns);
        let missed = self.missed.take();
        if self.bytes.is_empty() || is_full || missed.is_some() || passed_ns > DELTA_MAX {
            self.end_page(page_bytes);
            self.begin_page(time_ns);
        }
        let passed_ns = time_ns.saturating_sub(self.last_ns);
        self.last_ns = time_ns.max(self.last_ns);
        let low = passed_ns & ((1 << DELTA_BITS) - 1);
        if low < passed_ns {
            self.word(TIME_EXTEND | (low << 5));
            self.word(passed_ns >> DELTA_BITS);
        }
        let delta = if low < passed_ns { 0 } else { low };
        let padded = data.len().next_multiple_of(4);
        match padded {
            4..=SHORT_BYTES_MAX => self.word((padded as u64 / 4) | (delta << 5)),
            _ => {
                self.word(delta << 5);
                self.word(padded as u64 + 4);
            }
        }
        self.bytes.extend_from_slice(data);
        self.bytes.resize(self.bytes.len() + padded - data.len(), 0);
        let commit = (self.bytes.len() - self.page_at - HEAD_BYTES) as u64;
        if let Some(count) = missed {
            // A page of its own: the count stands behind its only event.
            self.commit(commit | MISSED);
            self.bytes.extend(count.to_le_bytes());
            self.end_page(page_bytes);
        } else {
            self.commit(commit);
        }
    }

    /// The pages, the last one filled up.
    pub(super) fn finish(mut self, page_bytes: usize) -> Vec<u8> {
        self.end_page(page_bytes);
        self.bytes
    }

    fn begin_page(&mut self, time_ns: u64) {
        self.page_at = self.bytes.len();
        self.bytes.extend(time_ns.to_le_bytes());
        self.bytes.extend([0; 8]);
        self.last_ns = time_ns;
    }

    fn end_page(&mut self, page_bytes: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(page_bytes), 0);
    }

    /// The size of the page's data, with flags.
    fn commit(&mut self, commit: u64) {
        self.bytes[self.page_at + 8..self.page_at + HEAD_BYTES]
            .copy_from_slice(&commit.to_le_bytes());
    }

    fn word(&mut self, word: u64) {
        self.bytes.extend((word as u32).to_le_bytes());
    }
}
