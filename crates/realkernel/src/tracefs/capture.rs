//! Reads each CPU's ring buffer as whole pages from `per_cpu/cpuN/trace_pipe_raw`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::RecordError;
use super::instance::Instance;
use super::spill::Spill;

/// Number of pages read before they are written at once.
const PAGES_AT_ONCE: usize = 32;
/// Polling interval of the thread that drains the buffers, ms, in case the kernel does not wake it.
const LOOK_MS: u16 = 250;

/// The buffer of one CPU.
#[derive(Debug)]
struct Buffer {
    cpu: u32,
    pipe: File,
    /// The pages drained during the recording: an anonymous file.
    spill: Option<Spill<File>>,
}

impl Buffer {
    /// Moves every page to the buffer's spill, which takes all of them.
    ///
    /// # Errors
    /// The pipe cannot be read.
    fn take(&mut self, page_bytes: usize) -> io::Result<()> {
        let Some(spill) = self.spill.as_mut() else { return Ok(()) };
        drain(&mut &self.pipe, page_bytes, spill).map(drop)
    }

    /// Whether pages stay in memory, which is too small for a recording: why, said once.
    fn spill_error(&mut self) -> io::Result<()> {
        self.spill.as_mut().map_or(Ok(()), Spill::error)
    }
}

/// Moves the pages that a buffer of the kernel has now, each read as a whole, to `out`; returns the number of bytes.
/// The pages that were read before an error are written, too.
fn drain(pipe: &mut impl Read, page_bytes: usize, out: &mut impl Write) -> io::Result<u64> {
    let mut pages = vec![0; page_bytes * PAGES_AT_ONCE];
    let (mut filled, mut moved) = (0, 0);
    loop {
        let page = match pipe.read(&mut pages[filled..filled + page_bytes]) {
            Ok(n) if n == page_bytes => Ok(true),
            Ok(0) => Ok(false),
            Ok(n) => Err(io::Error::other(format!("the kernel gave {n} bytes of a page"))),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => Err(e),
        };
        let goes_on = matches!(page, Ok(true));
        filled += if goes_on { page_bytes } else { 0 };
        if filled == pages.len() || !goes_on {
            out.write_all(&pages[..filled])?;
            moved += filled as u64;
            filled = 0;
        }
        if !page? {
            return Ok(moved);
        }
    }
}

/// The thread that drains the buffers during the recording.
#[derive(Debug)]
struct Thread {
    stop: Arc<EventFd>,
    /// Becomes readable when the thread ends with an error.
    failed: Arc<EventFd>,
    handle: JoinHandle<(Vec<Buffer>, io::Result<()>)>,
}

/// The buffers of all CPUs.
#[derive(Debug)]
pub(super) struct Capture {
    page_bytes: usize,
    buffers: Vec<Buffer>,
    thread: Option<Thread>,
    /// Space for the rest of the recording's file, in its folder.
    reserve: Option<File>,
}

impl Capture {
    /// Opens the buffers. The page size is from `events/header_page`.
    pub(super) fn open(instance: &Instance, header_page: &str) -> Result<Self, RecordError> {
        let page_bytes = page_bytes(header_page).ok_or_else(|| {
            let source = io::Error::other("it does not say how large a page is");
            RecordError::of(&instance.root().join("events/header_page"), "understand", source)
        })?;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let open = |cpu| {
            let pipe = instance.open(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"), &options)?;
            Ok(Buffer { cpu, pipe, spill: None })
        };
        let buffers = instance.cpus()?.into_iter().map(open).collect::<Result<_, RecordError>>()?;
        Ok(Self { page_bytes, buffers, thread: None, reserve: None })
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Starts the thread that drains the buffers to anonymous files in `folder`, and reserves as many bytes there.
    pub(super) fn stream(&mut self, folder: &Path, reserve_bytes: u64) -> Result<(), RecordError> {
        self.reserve = reserve(folder, reserve_bytes)?;
        for buffer in &mut self.buffers {
            let file = tempfile::tempfile_in(folder).map_err(|e| RecordError::output(folder, e))?;
            buffer.spill = Some(Spill::new(file, self.page_bytes));
        }
        let event = || {
            EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
                .map(Arc::new)
                .map_err(|e| RecordError::of(folder, "make an eventfd", e.into()))
        };
        let (stop, failed) = (event()?, event()?);
        let (buffers, page_bytes) = (std::mem::take(&mut self.buffers), self.page_bytes);
        let (stopped, told) = (Arc::clone(&stop), Arc::clone(&failed));
        let handle = thread::Builder::new()
            .name("fairground-rec".to_owned())
            .spawn(move || empty_until(&stopped, &told, buffers, page_bytes))
            .map_err(|e| RecordError::of(folder, "start a thread", e))?;
        self.thread = Some(Thread { stop, failed, handle });
        Ok(())
    }

    /// A descriptor that becomes readable when the buffers are drained no more because of an error.
    pub(super) fn failed(&self) -> Option<BorrowedFd<'_>> {
        self.thread.as_ref().map(|thread| thread.failed.as_fd())
    }

    /// Ends the thread, if there is one, and moves the rest of the pages. Recording must be off.
    ///
    /// # Errors
    /// Why the thread has ended before, or why a buffer cannot be read. What was read until then is there.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let Some(Thread { stop, handle, .. }) = self.thread.take() else { return Ok(()) };
        stop.write(1)?;
        let (buffers, mut ended) =
            handle.join().map_err(|_| io::Error::other("the reading thread failed"))?;
        self.buffers = buffers;
        for buffer in &mut self.buffers {
            let taken = buffer.take(self.page_bytes);
            ended = ended.and(taken);
        }
        ended
    }

    /// The CPUs with the pages that were drained; none without [`Capture::stream`]. The space that was reserved is free
    /// from here on.
    pub(super) fn spills(&mut self) -> (Vec<u32>, Vec<Spill<File>>) {
        self.reserve = None;
        let spills = self.buffers.iter_mut();
        spills.filter_map(|buffer| Some((buffer.cpu, buffer.spill.take()?))).unzip()
    }

    /// The CPUs, in order.
    pub(super) fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.buffers.iter().map(|buffer| buffer.cpu)
    }

    /// Moves all pages of a CPU that the kernel has to `out`; returns the number of bytes.
    pub(super) fn move_cpu(&mut self, cpu: u32, out: &mut impl Write) -> io::Result<u64> {
        let Some(buffer) = self.buffers.iter_mut().find(|buffer| buffer.cpu == cpu) else {
            return Ok(0);
        };
        drain(&mut &buffer.pipe, self.page_bytes, out)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // A dropped recording is discarded, but the thread must end.
        let _ = self.finish();
    }
}

/// Drains each buffer when it is half full (`buffer_percent`), until stopped or until an error.
fn empty_until(
    stop: &EventFd,
    failed: &EventFd,
    mut buffers: Vec<Buffer>,
    page_bytes: usize,
) -> (Vec<Buffer>, io::Result<()>) {
    loop {
        match empty(stop, &mut buffers, page_bytes) {
            Ok(true) => {}
            Ok(false) => return (buffers, Ok(())),
            Err(error) => {
                // Fails only if the count would overflow.
                let _ = failed.write(1);
                return (buffers, Err(error));
            }
        }
    }
}

/// Waits for a buffer that is half full and drains it; false: stopped.
fn empty(stop: &EventFd, buffers: &mut [Buffer], page_bytes: usize) -> io::Result<bool> {
    let pipes = buffers.iter().map(|buffer| PollFd::new(buffer.pipe.as_fd(), PollFlags::POLLIN));
    let mut waited: Vec<PollFd<'_>> =
        pipes.chain([PollFd::new(stop.as_fd(), PollFlags::POLLIN)]).collect();
    match poll(&mut waited, PollTimeout::from(LOOK_MS)) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(e) => return Err(e.into()),
    }
    let ready: Vec<bool> = waited.iter().map(|fd| fd.any().unwrap_or(false)).collect();
    if ready.last() == Some(&true) {
        return Ok(false);
    }
    drop(waited);
    let mut full = buffers.iter_mut().zip(&ready).filter(|(_, ready)| **ready);
    full.try_for_each(|(buffer, _)| {
        buffer.take(page_bytes)?;
        buffer.spill_error()
    })?;
    Ok(true)
}

/// A file of so many bytes; `None` where the file system cannot promise them.
fn reserve(folder: &Path, bytes: u64) -> Result<Option<File>, RecordError> {
    let file = tempfile::tempfile_in(folder).map_err(|e| RecordError::output(folder, e))?;
    let length = libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
    match fallocate(&file, FallocateFlags::empty(), 0, length) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(None),
        Err(error) => {
            let (path, source) = (folder.to_owned(), error.into());
            Err(RecordError::NoRoom { path, bytes, source })
        }
    }
}

/// The end of the data in a page: offset plus size of the field `data` in `events/header_page`.
fn page_bytes(header_page: &str) -> Option<usize> {
    /// Maximum page size (`buffer_subbuf_size_kb`).
    const PAGE_BYTES_MAX: usize = 1 << 22;
    let line = header_page.lines().find(|line| line.contains(" data;"))?;
    let number = |key: &str| {
        let (_, rest) = line.split_once(key)?;
        rest.split(';').next()?.trim().parse::<usize>().ok()
    };
    let bytes = number("offset:")?.checked_add(number("size:")?)?;
    (bytes > 0 && bytes <= PAGE_BYTES_MAX).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_scratch::faults::{Faults, Faulty};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn a_page_is_as_large_as_the_kernel_says() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        assert_eq!(page_bytes(text), Some(4096));
        assert_eq!(page_bytes(""), None);
        assert_eq!(page_bytes("field: char data; offset:1; size:99999999999999999999;"), None);
    }

    /// A kernel's buffer: whole pages, with interruptions, ends and errors between them.
    struct Pages {
        next: u64,
        given: u64,
        faults: Rc<RefCell<Faults>>,
    }

    impl Read for Pages {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let mut faults = self.faults.borrow_mut();
            match faults.below(16) {
                0 => return Err(io::ErrorKind::Interrupted.into()),
                1 => return Err(io::ErrorKind::WouldBlock.into()),
                _ if self.next == self.given => return Ok(0),
                _ => faults.happen()?,
            }
            bytes.fill(self.next as u8);
            self.next += 1;
            Ok(bytes.len())
        }
    }

    /// Whatever fails, the pages that left the kernel are written whole and in order, or the writing itself failed.
    #[test]
    fn ten_thousand_seeds_of_faults_lose_no_page() {
        const PAGE: usize = 64;
        let (mut failed, mut whole) = (0, 0);
        for seed in 0..10_000 {
            let faults = Faults::of(seed);
            let given = faults.borrow_mut().below(100);
            let mut pages = Pages { next: 0, given, faults: Rc::clone(&faults) };
            let writes_fail = seed % 2 == 0;
            let (mut sound, mut faulty) = (Vec::new(), Faulty { inner: Vec::new(), faults });
            let mut written_failed = false;
            for _ in 0..8 {
                let before = pages.next;
                let drained = match writes_fail {
                    true => drain(&mut pages, PAGE, &mut faulty),
                    false => drain(&mut pages, PAGE, &mut sound),
                };
                match drained {
                    Ok(moved) => {
                        assert_eq!(moved, (pages.next - before) * PAGE as u64, "seed {seed}")
                    }
                    Err(_) => written_failed = writes_fail,
                }
                failed += u32::from(drained.is_err());
                if written_failed {
                    break;
                }
            }
            let out = if writes_fail { faulty.inner } else { sound };
            let expected: Vec<u8> = (0..pages.next).flat_map(|page| [page as u8; PAGE]).collect();
            assert!(expected.starts_with(&out), "seed {seed}: pages are out of order");
            assert!(written_failed || out == expected, "seed {seed}: a page is lost");
            whole += u32::from(out == expected);
        }
        assert!(failed > 1_000 && whole > 1_000, "{failed} calls failed, {whole} files are whole");
    }
}
