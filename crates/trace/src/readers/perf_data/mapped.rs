//! A file that is looked at where the kernel keeps it, as long as nobody can change it.
//!
//! To read is to copy each byte, which is a fourth of all the work on a long recording. A mapping needs no copy and has two hazards: bytes
//! may change while somebody looks at them, and a page that cannot be had, since the file was cut or a disk failed, kills whoever touches
//! it (`SIGBUS`). Against the first there is a lease ([fcntl(2)], `F_SETLEASE`): the kernel grants it while nobody has the file open for
//! writing, and whoever wants to write or cut it then has to wait until it is given back, or until `/proc/sys/fs/lease-break-time` is
//! over (45 s). Against the second the pages are fetched before they are looked at, by a call that can fail. Where there is no lease, as
//! on a file of another user, or somebody waits for it, or a page does not come, the file is read. What is left is a process that was
//! stopped in the middle of a piece for longer than those 45 s while somebody cut the file.
//!
//! [fcntl(2)]: https://man7.org/linux/man-pages/man2/fcntl.2.html

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use memmap2::{Advice, Mmap, UncheckedAdvice};
use nix::libc::{self, c_int};

use super::input::ReadAt;
use crate::memory::PREFETCHES;

/// So much is let go at once: each time all processors are told.
const STRIDE_BYTES: usize = 8 << 20;
/// Threads are fewer strides than this behind each other: none has more than seven pieces of its own that wait.
const STRIDES_BEHIND: usize = 4;

/// `fcntl`: which signal tells that somebody waits for a lease (`asm-generic/fcntl.h`).
const F_SETSIG: c_int = 10;
/// A signal that does nothing to a process that does not ask for it; the usual one, `SIGIO`, ends it.
const SIGNAL: c_int = libc::SIGURG;
/// The usual one.
const SIGNAL_OF_KERNEL: c_int = 0;

/// The file.
#[derive(Debug)]
pub(in super::super) struct Mapped<'f> {
    file: &'f File,
    leased: Option<Leased>,
    /// The stride that was looked at last.
    stride: AtomicUsize,
}

/// What there is while the file is on lease.
#[derive(Debug)]
struct Leased {
    map: Mmap,
    /// Somebody waits for the lease: nothing is looked at any more.
    is_wanted: AtomicBool,
}

impl<'f> Mapped<'f> {
    /// `file` is read where it cannot be mapped.
    pub(in super::super) fn new(file: &'f File) -> Self {
        // A processor that looks at what it has not fetched ahead waits longer than a copy takes.
        let leased = if PREFETCHES { Leased::new(file) } else { None };
        Self { file, leased, stride: AtomicUsize::new(0) }
    }
}

impl Drop for Mapped<'_> {
    fn drop(&mut self) {
        if self.leased.take().is_some() {
            give_back(self.file);
        }
    }
}

impl ReadAt for Mapped<'_> {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn read_at(&self, at: u64, to: &mut [u8]) -> io::Result<usize> {
        ReadAt::read_at(self.file, at, to)
    }

    fn view(&self, at: u64, len: usize) -> Option<&[u8]> {
        let leased = self.leased.as_ref()?;
        let at = usize::try_from(at).ok()?;
        let view = leased.view(self.file, at, len)?;
        let stride = at / STRIDE_BYTES;
        if self.stride.swap(stride, Ordering::Relaxed) != stride {
            // Other threads look at the one before. One that is later still fetches its pages again, and they are let go of again.
            let behind = stride.saturating_sub(1);
            leased.let_go(behind.saturating_sub(STRIDES_BEHIND)..behind);
        }
        Some(view)
    }

    fn passed(&self, at: u64) {
        self.file.passed(at);
    }
}

impl Leased {
    fn new(file: &File) -> Option<Self> {
        control(file, F_SETSIG, SIGNAL)?;
        if control(file, libc::F_SETLEASE, libc::F_RDLCK).is_none() {
            control(file, F_SETSIG, SIGNAL_OF_KERNEL);
            return None;
        }
        // SAFETY: as long as the file is on lease nobody changes it, and nobody looks at it any longer.
        match unsafe { Mmap::map(file) } {
            Ok(map) => Some(Self { map, is_wanted: AtomicBool::new(false) }),
            Err(_) => {
                give_back(file);
                None
            }
        }
    }

    fn view(&self, file: &File, at: usize, len: usize) -> Option<&[u8]> {
        let view = self.map.get(at..)?.get(..len)?;
        if self.is_wanted.load(Ordering::Relaxed) {
            return None;
        }
        self.map.advise_range(Advice::PopulateRead, at, len).ok()?;
        // While somebody waits this says what he leaves of the lease.
        if control(file, libc::F_GETLEASE, 0) != Some(libc::F_RDLCK) {
            self.is_wanted.store(true, Ordering::Relaxed);
            return None;
        }
        Some(view)
    }

    /// Lets go of the memory of some strides that were looked at.
    fn let_go(&self, strides: Range<usize>) {
        let (at, len) = (strides.start * STRIDE_BYTES, strides.len() * STRIDE_BYTES);
        // SAFETY: the map is one of a file that nobody writes to: the same bytes come back where they are looked at again.
        let _ = unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, at, len) };
    }
}

fn give_back(file: &File) {
    control(file, libc::F_SETLEASE, libc::F_UNLCK);
    control(file, F_SETSIG, SIGNAL_OF_KERNEL);
}

/// `None` when it fails.
fn control(file: &File, command: c_int, value: c_int) -> Option<c_int> {
    // SAFETY: the descriptor is open, and the commands that are given here take a number each.
    let said = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    (said >= 0).then_some(said)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::{ErrorKind, Write};
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;

    use super::*;

    const PAGE_BYTES: usize = 4096;

    /// A file in which each page begins with its number.
    fn numbered(pages: usize) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut page = [7; PAGE_BYTES];
        for number in 0..pages {
            page[..8].copy_from_slice(&number.to_le_bytes());
            file.write_all(&page).unwrap();
        }
        file
    }

    /// Opened for reading alone; `None`, with the reason printed, where this file system lends nothing.
    fn to_read(path: &Path) -> Option<File> {
        let file = File::open(path).unwrap();
        if control(&file, libc::F_SETLEASE, libc::F_RDLCK).is_none() {
            println!("skipped: no lease on {}: {}", path.display(), io::Error::last_os_error());
            return None;
        }
        give_back(&file);
        Some(file)
    }

    /// Whoever cannot write at once goes away.
    fn to_write(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path)
    }

    #[test]
    fn what_is_seen_is_what_is_read() {
        let pages = 4 * STRIDE_BYTES / PAGE_BYTES;
        let path = numbered(pages).into_temp_path();
        let Some(file) = to_read(&path) else { return };
        let mapped = Mapped::new(&file);
        // Twice, as a file is read whose order was not what its recorder said.
        for _ in 0..2 {
            for page in (0..pages).step_by(100) {
                let view = mapped.view((page * PAGE_BYTES) as u64, 9).unwrap();
                assert_eq!((&view[..8], view[8]), (&page.to_le_bytes()[..], 7));
            }
        }
        let bytes = mapped.bytes().unwrap();
        assert_eq!(bytes, (pages * PAGE_BYTES) as u64);
        assert_eq!(mapped.view(bytes - 9, 9), Some(&[7; 9][..]));
        for (at, len) in [(bytes - 8, 9), (bytes, 1), (u64::MAX, 1), (0, usize::MAX)] {
            assert_eq!(mapped.view(at, len), None, "{at} {len}");
        }
    }

    #[test]
    fn who_wants_to_write_ends_the_looking() {
        let path = numbered(3).into_temp_path();
        let Some(file) = to_read(&path) else { return };
        let mapped = Mapped::new(&file);
        assert!(mapped.view(0, 8).is_some());
        let refused = to_write(&path).map_err(|e| e.kind());
        assert_eq!(refused.err(), Some(ErrorKind::WouldBlock));
        assert_eq!(mapped.view(0, 8), None);
        let mut read = [0; 8];
        assert_eq!(mapped.read_at(PAGE_BYTES as u64, &mut read).unwrap(), 8);
        assert_eq!(read, 1_u64.to_le_bytes());
        drop(mapped);
        let writer = to_write(&path).unwrap();
        // As long as somebody writes it there is no lease, and so no map.
        let mapped = Mapped::new(&file);
        assert!(mapped.leased.is_none());
        writer.set_len(PAGE_BYTES as u64).unwrap();
        assert_eq!(mapped.view(0, 8), None);
        assert_eq!(mapped.read_at(0, &mut read).unwrap(), 8);
        assert_eq!(mapped.bytes().unwrap(), PAGE_BYTES as u64);
    }
}
