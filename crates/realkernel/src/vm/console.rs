//! The guest's console: read while the guest runs; the last part is kept.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Maximum bytes kept.
const KEPT: usize = 64 << 10;
/// Maximum lines in an error, and maximum characters of a line.
const SHOWN_LINES: usize = 20;
const SHOWN_WIDTH: usize = 200;

/// The last part of the console, read by a thread until QEMU closes it.
#[derive(Debug)]
pub(super) struct Console {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Console {
    /// Starts to read `from`.
    pub(super) fn follow(mut from: impl Read + Send + 'static) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let filled = Arc::clone(&kept);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                push(&mut filled.lock().unwrap_or_else(PoisonError::into_inner), &buffer[..count]);
            }
        });
        Self { kept, reader: Some(reader) }
    }

    /// Waits until the console is read to its end. QEMU must have ended.
    pub(super) fn finish(&mut self) {
        if let Some(reader) = self.reader.take() {
            // After a panic of the reader, the text so far remains.
            let _ = reader.join();
        }
    }

    /// The kept text, without control characters and the sequences for a terminal that firmware writes.
    pub(super) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = anstream::adapter::strip_str(&String::from_utf8_lossy(&bytes)).to_string();
        text.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
    }

    /// The last lines, for an error.
    pub(super) fn last_lines(&self) -> Vec<String> {
        last_lines(&self.text())
    }

    /// The lines that say what was wrong when the kernel panicked: from its first report of a fault, or else the last.
    pub(super) fn fault_lines(&self) -> Vec<String> {
        fault_lines(&self.text())
    }
}

fn push(kept: &mut VecDeque<u8>, bytes: &[u8]) {
    kept.extend(bytes);
    let surplus = kept.len().saturating_sub(KEPT);
    kept.drain(..surplus);
}

fn last_lines(text: &str) -> Vec<String> {
    shown(text, |lines| lines.len().saturating_sub(SHOWN_LINES))
}

/// A fault is reported before the registers and the calls, and these are often more than [`SHOWN_LINES`].
fn fault_lines(text: &str) -> Vec<String> {
    const FAULTS: [&str; 4] = ["BUG: ", "Oops: ", "kernel BUG at ", PANIC];
    let is_fault = |line: &&str| FAULTS.iter().any(|words| line.contains(words));
    shown(text, |lines| lines.iter().position(is_fault).unwrap_or(0))
}

/// At most [`SHOWN_LINES`] lines of `text`, from the line at `first`.
fn shown(text: &str, first: impl FnOnce(&[&str]) -> usize) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let shown = lines[first(&lines)..].iter().take(SHOWN_LINES);
    shown.map(|l| l.chars().take(SHOWN_WIDTH).collect()).collect()
}

/// How a kernel says that it panicked.
const PANIC: &str = "Kernel panic - not syncing: ";

/// The reason of a kernel panic, if the console contains one.
pub(super) fn panic_reason(console: &str) -> Option<String> {
    let line = console.lines().find_map(|l| l.split_once(PANIC))?.1;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_panic_is_found() {
        let console = "[    1.0] VFS: x\n\
                       [    1.5] Kernel panic - not syncing: No working init found.  Try\n[ 1.6] CPU: 0\n";
        assert_eq!(panic_reason(console).as_deref(), Some("No working init found.  Try"));
        assert_eq!(panic_reason("all is well\n"), None);
        assert_eq!(fault_lines(console).len(), 2, "from the panic on");
    }

    #[test]
    fn a_fault_is_shown_from_its_first_line() {
        let calls = "[ 7.3] a_function+0x1/0x2\n".repeat(2 * SHOWN_LINES);
        let console = format!(
            "[ 1.0] VFS: x\n[ 7.2] Oops: int3: 0000 [#1] SMP\n{calls}[ 7.4] {PANIC}Fatal exception\n"
        );
        let lines = fault_lines(&console);
        assert_eq!(
            (lines.len(), lines[0].as_str()),
            (SHOWN_LINES, "[ 7.2] Oops: int3: 0000 [#1] SMP")
        );
    }

    #[test]
    fn the_end_is_kept_whatever_the_guest_writes() {
        // SeaBIOS clears the screen and moves the cursor before it says anything.
        let mut bios = Console::follow("\x1bc\x1b[?7l\x1b[2J\x1b[0mSeaBIOS\r\n".as_bytes());
        bios.finish();
        assert_eq!(bios.text(), "SeaBIOS\n");
        let mut noise = vec![b'x'; 3 * KEPT];
        noise.extend_from_slice(b"\n\x1b[31mred\x07\r\nlast \xff\n");
        let mut console = Console::follow(std::io::Cursor::new(noise));
        console.finish();
        let lines = console.last_lines();
        assert_eq!(lines[lines.len() - 2..], ["red".to_owned(), "last \u{fffd}".to_owned()]);
        assert!(lines[0].len() <= SHOWN_WIDTH);
    }
}
