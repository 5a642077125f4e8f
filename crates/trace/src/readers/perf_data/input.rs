//! What a `perf.data` is read from: any place of it, from several threads at once.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// An input of which every place can be read.
pub(in super::super) trait ReadAt: Sync {
    /// How long it is, bytes.
    fn bytes(&self) -> io::Result<u64>;

    /// Reads from a place on; gives how many bytes there were, 0 at the end.
    fn read_at(&self, at: u64, to: &mut [u8]) -> io::Result<usize>;

    /// The bytes from a place on, where they can be looked at without reading them. `None` where not so many can.
    fn view(&self, _at: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    /// All before a place was taken over, for whoever watches.
    fn passed(&self, _at: u64) {}
}

impl ReadAt for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, at: u64, to: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, to, at)
    }

    fn passed(&self, at: u64) {
        // The file's own place is what progress is drawn of; nothing is read from there.
        let mut file = self;
        let _ = file.seek(SeekFrom::Start(at));
    }
}

impl ReadAt for Vec<u8> {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, at: u64, to: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(self.len());
        let mut rest = &self[from..];
        rest.read(to)
    }

    fn view(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.get(usize::try_from(at).ok()?..)?.get(..len)
    }
}

/// An input from a place on.
#[derive(Debug)]
pub(super) struct From<'a, I> {
    pub(super) input: &'a I,
    pub(super) at: u64,
}

impl<I: ReadAt> Read for From<'_, I> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read_at(self.at, to)?;
        self.at = self.at.saturating_add(read as u64);
        self.input.passed(self.at);
        Ok(read)
    }
}
