//! Ring buffers and perf events. A submitted record goes to the host at once.

/// Maximum bytes of records that the host has not taken. Further records are rejected, as by a full ring buffer.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Submitted records that the host has not taken.
#[derive(Debug, Default)]
pub(crate) struct Records {
    waiting: Vec<(usize, Vec<u8>)>,
    bytes: usize,
}

impl Records {
    /// Adds a record; false if the buffer is full.
    pub(crate) fn push(&mut self, map: usize, bytes: Vec<u8>) -> bool {
        let fits = self.bytes + bytes.len() <= MAX_WAITING_BYTES;
        if fits {
            self.bytes += bytes.len();
            self.waiting.push((map, bytes));
        }
        fits
    }

    pub(super) fn take(&mut self) -> Vec<(usize, Vec<u8>)> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}

/// The reservations of one ring buffer.
#[derive(Debug)]
pub(crate) struct Ring {
    addr: u64,
    bytes: u64,
    /// Offset of the next reservation.
    next: u64,
    /// Guest address and length of each open reservation.
    open: Vec<(u64, u64)>,
}

impl Ring {
    pub(super) fn new(addr: u64, bytes: u64) -> Ring {
        Ring { addr, bytes, next: 0, open: Vec::new() }
    }

    pub(super) fn is_open(&self, sample: u64) -> bool {
        self.open.iter().any(|(at, _)| *at == sample)
    }

    /// `bpf_ringbuf_reserve`: the guest address of `bytes` bytes, or 0. They hold the content of earlier records.
    pub(crate) fn reserve(&mut self, bytes: u64) -> u64 {
        if self.open.is_empty() {
            self.next = 0;
        }
        let end = self.next.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(8));
        match end.filter(|&end| bytes > 0 && end <= self.bytes) {
            Some(end) => {
                let at = self.addr + self.next;
                self.next = end;
                self.open.push((at, bytes));
                at
            }
            None => 0,
        }
    }

    /// Ends a reservation and returns its length.
    pub(crate) fn close(&mut self, sample: u64) -> Option<u64> {
        let at = self.open.iter().position(|(at, _)| *at == sample)?;
        Some(self.open.swap_remove(at).1)
    }
}
