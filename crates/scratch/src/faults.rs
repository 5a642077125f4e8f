//! Streams that fail, tear and are interrupted, as a seed says: for the tests of what writes and reads.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

/// Of 256 operations, so many fail at most.
const RATE_MAX: u64 = 36;
/// The last operation of a program that is killed comes before this one.
const KILLED_MAX: u64 = 40;

/// The faults of a test's operations. The same seed gives the same faults.
#[derive(Debug)]
pub struct Faults {
    state: u64,
    /// Of 256 operations, so many fail.
    rate: u64,
    /// After so many operations nothing works any more.
    left: u64,
}

impl Faults {
    /// The faults of a seed: none, some, or the end of everything after some operations.
    pub fn of(seed: u64) -> Rc<RefCell<Faults>> {
        let mut faults = Faults { state: seed, rate: 0, left: u64::MAX };
        faults.rate = faults.below(4) * (RATE_MAX / 3);
        if faults.below(3) == 0 {
            faults.left = 1 + faults.below(KILLED_MAX);
        }
        Rc::new(RefCell::new(faults))
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        // splitmix64
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % limit.max(1)
    }

    /// Whether an operation succeeds.
    ///
    /// # Errors
    /// It does not.
    pub fn happen(&mut self) -> io::Result<()> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || self.below(256) < self.rate {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// Of so many bytes, how many are read or written: all, or a part but not nothing.
    fn part(&mut self, bytes: usize) -> usize {
        match self.below(4) {
            0 if bytes > 1 => 1 + self.below(bytes as u64 - 1) as usize,
            _ => bytes,
        }
    }

    fn interrupt(&mut self) -> io::Result<()> {
        if self.below(8) == 0 { Err(ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}

/// A stream with faults. Reads and writes are short and interrupted; a write that fails may have written a part.
#[derive(Debug)]
pub struct Faulty<T> {
    /// The stream without them.
    pub inner: T,
    /// The faults of its operations.
    pub faults: Rc<RefCell<Faults>>,
}

impl<T: Read> Read for Faulty<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut faults = self.faults.borrow_mut();
        faults.interrupt()?;
        faults.happen()?;
        let count = faults.part(bytes.len());
        self.inner.read(&mut bytes[..count])
    }
}

impl<T: Write> Write for Faulty<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut faults = self.faults.borrow_mut();
        faults.interrupt()?;
        let count = faults.part(bytes.len());
        let happened = faults.happen();
        self.inner.write_all(&bytes[..count])?;
        happened.map(|()| count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.faults.borrow_mut().happen()?;
        self.inner.flush()
    }
}

impl<T: Seek> Seek for Faulty<T> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.faults.borrow_mut().happen()?;
        self.inner.seek(to)
    }
}
