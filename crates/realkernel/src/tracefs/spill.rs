//! The pages that were moved out of the kernel during a recording, and how they get into its file.
//!
//! A full disk loses nothing that was recorded before: what an anonymous file does not take is kept in memory, pages
//! are copied in the order of their time, and the space of those that were copied is given back when it is needed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use nix::fcntl::{FallocateFlags, fallocate};

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 128 << 10;

/// A file that can give its space back.
pub(super) trait Storage: Read + Write + Seek {
    /// Gives back the space of the first bytes. Where the file system cannot, nothing happens.
    fn release(&mut self, bytes: u64);
}

impl Storage for File {
    fn release(&mut self, bytes: u64) {
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        if let Ok(bytes) = libc::off_t::try_from(bytes)
            && bytes > 0
        {
            let _ = fallocate(self, flags, 0, bytes);
        }
    }
}

/// The pages of a CPU: written during the recording, then read in the same order.
#[derive(Debug)]
pub(super) struct Spill<F> {
    file: F,
    page_bytes: usize,
    /// Bytes of whole pages in the file.
    filed: u64,
    /// Pages that the file did not take.
    kept: Vec<u8>,
    /// The file takes no more.
    is_full: bool,
    /// Why, until it was asked for.
    error: Option<io::Error>,
    /// Bytes of the file that were read.
    read: u64,
    /// The block read last, and how much of it was used.
    chunk: Vec<u8>,
    used: usize,
}

impl<F: Storage> Spill<F> {
    /// An empty file for pages of this size.
    pub(super) fn new(file: F, page_bytes: usize) -> Self {
        Self {
            file,
            page_bytes,
            filed: 0,
            kept: Vec::new(),
            is_full: false,
            error: None,
            read: 0,
            chunk: Vec::new(),
            used: 0,
        }
    }

    /// Why pages are kept in memory; said once.
    pub(super) fn error(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Bytes of the pages that were not used yet.
    pub(super) fn left(&self) -> u64 {
        (self.chunk.len() - self.used + self.kept.len()) as u64 + (self.filed - self.read)
    }

    /// Reads the first page. The pages are complete.
    fn begin(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.fill()
    }

    /// The next page.
    fn page(&self) -> Option<&[u8]> {
        self.chunk.get(self.used..self.used + self.page_bytes)
    }

    /// The time of the first event of the next page, ns (`timestamp` of `events/header_page`).
    fn time(&self) -> Option<u64> {
        let stamp = self.page()?.first_chunk()?;
        Some(u64::from_ne_bytes(*stamp))
    }

    fn advance(&mut self) -> io::Result<()> {
        self.used += self.page_bytes;
        if self.used < self.chunk.len() { Ok(()) } else { self.fill() }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.used = 0;
        let left = self.filed - self.read;
        if left == 0 {
            self.chunk = std::mem::take(&mut self.kept);
            return Ok(());
        }
        let pages = (CHUNK_BYTES / self.page_bytes).max(1);
        let bytes = left.min((pages * self.page_bytes) as u64);
        self.chunk.resize(bytes as usize, 0);
        let read = self.file.read_exact(&mut self.chunk);
        if read.is_err() {
            self.chunk.clear();
        }
        read?;
        self.read += bytes;
        Ok(())
    }

    /// Gives back the space of the pages that were read.
    fn release(&mut self) {
        self.file.release(self.read);
    }
}

/// Takes whole pages, always: what the file does not take stays in memory.
impl<F: Storage> Write for Spill<F> {
    fn write(&mut self, pages: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while !self.is_full && written < pages.len() {
            match self.file.write(&pages[written..]) {
                Ok(count) if count > 0 => written += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => {
                    self.is_full = true;
                    self.error = Some(other.err().unwrap_or(io::ErrorKind::WriteZero.into()));
                }
            }
        }
        let whole = written - written % self.page_bytes;
        self.filed += whole as u64;
        self.kept.extend_from_slice(&pages[whole..]);
        Ok(pages.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The contents of a recording's file.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Bytes of each CPU's pages.
    pub(super) bytes: Vec<u64>,
    /// Why it did not get all of them.
    pub(super) error: Option<io::Error>,
    /// Bytes of the pages that it did not get.
    pub(super) missing_bytes: u64,
    /// The time from which pages are missing, ns of the recording's clock; unknown where they cannot be read.
    pub(super) missing_from_ns: Option<u64>,
}

/// Copies pages of all CPUs in the order of their time, those of a CPU from its `place` on. When `out` is full, the
/// space of what was copied is given back; when that does not help, the newest pages are missing.
pub(super) fn copy<F: Storage>(
    out: &mut (impl Write + Seek),
    spills: &mut [Spill<F>],
    places: &[u64],
) -> Copied {
    let mut copied = Copied { bytes: vec![0; spills.len()], ..Copied::default() };
    if let Err(error) = copy_all(out, spills, places, &mut copied.bytes) {
        copied.error = Some(error);
        copied.missing_bytes = spills.iter().map(Spill::left).sum();
        let begun = spills.iter().filter(|spill| spill.left() > 0).map(Spill::time);
        copied.missing_from_ns =
            begun.collect::<Option<Vec<_>>>().and_then(|t| t.into_iter().min());
        // Lost anyway, and the rest of the file may need space.
        for spill in spills {
            spill.read = spill.filed;
            spill.release();
        }
    }
    copied
}

fn copy_all<F: Storage>(
    out: &mut (impl Write + Seek),
    spills: &mut [Spill<F>],
    places: &[u64],
    bytes: &mut [u64],
) -> io::Result<()> {
    spills.iter_mut().try_for_each(Spill::begin)?;
    // Bytes that were copied and whose space has not been given back.
    let mut held = 0;
    let oldest = |spills: &[Spill<F>]| {
        let times = spills.iter().enumerate();
        times.filter_map(|(cpu, spill)| Some((spill.time()?, cpu))).min()
    };
    while let Some((_, cpu)) = oldest(spills) {
        let at = places[cpu] + bytes[cpu];
        let mut put = |page: &[u8]| {
            out.seek(SeekFrom::Start(at))?;
            out.write_all(page)
        };
        let written = spills[cpu].page().map_or(Ok(()), &mut put);
        if written.is_err() {
            if held == 0 {
                return written;
            }
            spills.iter_mut().for_each(Spill::release);
            held = 0;
            spills[cpu].page().map_or(Ok(()), &mut put)?;
        }
        let page_bytes = spills[cpu].page_bytes as u64;
        bytes[cpu] += page_bytes;
        held += page_bytes;
        spills[cpu].advance()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_scratch::faults::{Faults, Faulty};
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;
    use std::io::Cursor;
    use std::rc::Rc;

    const PAGE: usize = 64;

    /// A disk of so many blocks of a page.
    #[derive(Clone, Debug)]
    struct Disk {
        free: Rc<Cell<u64>>,
    }

    /// A file on it.
    #[derive(Debug)]
    struct OnDisk {
        disk: Disk,
        bytes: Cursor<Vec<u8>>,
        blocks: BTreeSet<u64>,
    }

    impl Disk {
        fn of(blocks: u64) -> Self {
            Self { free: Rc::new(Cell::new(blocks)) }
        }

        fn file(&self) -> OnDisk {
            OnDisk { disk: self.clone(), bytes: Cursor::default(), blocks: BTreeSet::new() }
        }
    }

    impl Read for OnDisk {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.bytes.read(bytes)
        }
    }

    impl Seek for OnDisk {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.bytes.seek(to)
        }
    }

    impl Write for OnDisk {
        /// Up to the end of a block.
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let at = self.bytes.position();
            let block = at / PAGE as u64;
            if !self.blocks.contains(&block) {
                let free = self.disk.free.get().checked_sub(1);
                self.disk.free.set(free.ok_or(io::ErrorKind::StorageFull)?);
                self.blocks.insert(block);
            }
            let room = ((block + 1) * PAGE as u64 - at) as usize;
            self.bytes.write(&bytes[..bytes.len().min(room)])
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Storage for OnDisk {
        fn release(&mut self, bytes: u64) {
            let kept = self.blocks.split_off(&(bytes / PAGE as u64));
            let released = std::mem::replace(&mut self.blocks, kept).len() as u64;
            self.disk.free.set(self.disk.free.get() + released);
        }
    }

    impl<F: Storage> Storage for Faulty<F> {
        fn release(&mut self, bytes: u64) {
            if self.faults.borrow_mut().happen().is_ok() {
                self.inner.release(bytes);
            }
        }
    }

    fn page(time: u64, cpu: usize) -> Vec<u8> {
        [&time.to_ne_bytes()[..], &[cpu as u8; PAGE - 8]].concat()
    }

    /// Records so many pages, of which each CPU has some; returns the times of each CPU's pages.
    fn record<F: Storage>(
        spills: &mut [Spill<F>],
        pages: u64,
        faults: &RefCell<Faults>,
    ) -> Vec<Vec<u64>> {
        let mut times = vec![Vec::new(); spills.len()];
        for time in 0..pages {
            let cpu = faults.borrow_mut().below(spills.len() as u64) as usize;
            spills[cpu].write_all(&page(time, cpu)).expect("it always takes them");
            times[cpu].push(time);
        }
        times
    }

    /// Places behind one another with a block between them, and the space for all.
    fn places<F: Storage>(spills: &[Spill<F>]) -> Vec<u64> {
        let mut at = PAGE as u64;
        let mut place = |spill: &Spill<F>| {
            let here = at;
            at += spill.left() + PAGE as u64;
            here
        };
        spills.iter().map(&mut place).collect()
    }

    /// The file has what happened before a time, of all CPUs, and the rest is counted.
    fn check(out: &[u8], times: &[Vec<u64>], places: &[u64], copied: &Copied, what: &str) {
        let end = copied.missing_from_ns.unwrap_or(u64::MAX);
        let mut missing = 0;
        for (cpu, times) in times.iter().enumerate() {
            let whole = times.iter().filter(|time| **time < end);
            let expected: Vec<u8> = whole.flat_map(|time| page(*time, cpu)).collect();
            assert_eq!(copied.bytes[cpu], expected.len() as u64, "{what}, CPU {cpu}");
            let at = places[cpu] as usize;
            let found = out.get(at..at + expected.len()).unwrap_or_default();
            assert!(found == expected, "{what}, CPU {cpu}");
            missing += times.len() * PAGE - expected.len();
        }
        assert_eq!(copied.missing_bytes, missing as u64, "{what}");
        assert_eq!(copied.error.is_some(), missing > 0, "{what}");
    }

    #[test]
    fn a_full_disk_loses_nothing_that_fits_and_else_the_newest_pages() {
        let (mut whole, mut cut) = (0, 0);
        for seed in 0..5_000 {
            let faults = Faults::of(seed);
            let below = |limit| faults.borrow_mut().below(limit);
            let (cpus, pages, size) = (1 + below(4), below(300), 4 + below(400));
            let disk = Disk::of(size);
            let mut spills: Vec<_> = (0..cpus).map(|_| Spill::new(disk.file(), PAGE)).collect();
            let times = record(&mut spills, pages, &faults);
            let is_full = spills.iter_mut().any(|spill| spill.error().is_err());
            assert!(!is_full || pages > size, "seed {seed}");
            // What was reserved for the head.
            disk.free.set(disk.free.get() + 1);
            let places = places(&spills);
            let mut out = disk.file();
            let copied = copy(&mut out, &mut spills, &places);
            check(out.bytes.get_ref(), &times, &places, &copied, &format!("seed {seed}"));
            // The space of the pages that are read ahead is given back, too.
            assert!(copied.error.is_none() || pages > size, "seed {seed}: {copied:?}");
            (whole, cut) =
                (whole + usize::from(!is_full), cut + usize::from(copied.error.is_some()));
        }
        assert!(whole > 500 && cut > 500, "{whole} had room, {cut} are cut");
    }

    /// Files that fail at any operation.
    #[test]
    fn whatever_fails_the_file_has_what_happened_before_a_time() {
        let mut cut = 0;
        for seed in 0..5_000 {
            let faults = Faults::of(seed);
            let cpus = 1 + faults.borrow_mut().below(4);
            let file = || Faulty { inner: Disk::of(10_000).file(), faults: Rc::clone(&faults) };
            let mut spills: Vec<_> = (0..cpus).map(|_| Spill::new(file(), PAGE)).collect();
            let times = record(&mut spills, 100, &faults);
            let places = places(&spills);
            let mut out = file();
            let copied = copy(&mut out, &mut spills, &places);
            if copied.missing_from_ns.is_some() || copied.error.is_none() {
                let what = format!("seed {seed}");
                check(out.inner.bytes.get_ref(), &times, &places, &copied, &what);
            }
            cut += usize::from(copied.error.is_some());
        }
        assert!(cut > 500, "{cut} are cut");
    }
}
