//! A scheduler's own loader: a program that attaches the scheduler, and is its part in user space.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::captured::capture;
use super::{ATTACH_TRIES_MAX, DETACH_DEADLINE, KernelState, LoadError, exit, state};
use fairground_scratch::die_with_parent;

use crate::child::nameless_file;
use crate::job::{Captured, LoaderJob, LoaderReport, SchedulerExit};
use crate::kernel_log::KernelLog;

/// Maximum time from the start of a loader until the kernel has enabled its scheduler, on this kernel's clock. In a
/// guest whose clock counts instructions, the verifier takes two minutes for the largest schedulers (scx_lavd 1.1.4).
pub const LOADER_START_MAX: Duration = Duration::from_secs(300);
/// Maximum time from SIGINT until a loader has ended; then it is killed.
pub const LOADER_STOP_MAX: Duration = Duration::from_secs(10);
/// Polling interval while a loader starts and stops.
const LOADER_POLL: Duration = Duration::from_millis(20);
/// Maximum bytes at the end of a loader's output that are kept.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;
/// Maximum lines that are kept of them.
const OUTPUT_LINES_MAX: usize = 200;
/// Maximum characters of a line.
const LINE_CHARS_MAX: usize = 400;
/// Maximum lines in an error.
const ERROR_LINES_MAX: usize = 24;
/// Size from which the output is discarded while the loader runs, bytes.
const OUTPUT_FILE_MAX: u64 = 16 << 20;

/// A running loader. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Loader {
    child: Child,
    status: Option<ExitStatus>,
    output: Output,
    log: KernelLog,
    name: String,
    /// The scheduler when the kernel had enabled it.
    enabled: KernelState,
    exit: Option<SchedulerExit>,
    captured: Option<Captured>,
}

impl Loader {
    /// Starts a loader, and waits until the kernel has enabled its scheduler. Starts it again, up to
    /// [`ATTACH_TRIES_MAX`] times in all, if `init_task` fails for lack of memory.
    ///
    /// # Errors
    /// The kernel takes no scheduler, the program does not start, it ends before the scheduler is enabled, or that
    /// takes longer than [`LOADER_START_MAX`].
    pub(crate) fn start(job: &LoaderJob) -> Result<Loader, LoadError> {
        for _ in 1..ATTACH_TRIES_MAX {
            let mut log = KernelLog::from_now_on();
            match Self::start_once(job) {
                Err(LoadError::Loader { .. })
                    if exit::lacked_memory(&exit::from_log(&state::log_lines(&mut log), false)) => {
                }
                other => return other,
            }
        }
        Self::start_once(job)
    }

    fn start_once(job: &LoaderJob) -> Result<Loader, LoadError> {
        state::check(&job.name)?;
        let log = KernelLog::from_now_on();
        let failed = |error: io::Error| LoadError::Loader {
            name: job.name.clone(),
            problem: format!("cannot be started ({}): {error}", job.program),
            output: Vec::new(),
        };
        let output = Output::new().map_err(failed)?;
        let child = spawn(job, &output).map_err(failed)?;
        let name = job.name.clone();
        let mut loader = Loader {
            child,
            status: None,
            output,
            log,
            name,
            enabled: KernelState::default(),
            exit: None,
            captured: None,
        };
        loader.await_enabled()?;
        loader.captured = job.capture.then(capture);
        Ok(loader)
    }

    fn await_enabled(&mut self) -> Result<(), LoadError> {
        let begun = Instant::now();
        loop {
            if let Some(state) = KernelState::read().filter(|state| state.state == "enabled") {
                self.enabled = state;
                return Ok(());
            }
            if let Some(status) = self.ended() {
                return Err(self.failure(format!(
                    "ended before the kernel had enabled its scheduler: {}",
                    status_text(status)
                )));
            }
            if begun.elapsed() > LOADER_START_MAX {
                return Err(self.failure(format!(
                    "runs for {} s and the kernel has not enabled a scheduler",
                    LOADER_START_MAX.as_secs()
                )));
            }
            self.output.limit();
            thread::sleep(LOADER_POLL);
        }
    }

    /// The error with the last lines of the loader and of the kernel.
    fn failure(&mut self, problem: String) -> LoadError {
        let mut output = self.output.last_lines();
        output.extend(state::log_lines(&mut self.log));
        let surplus = output.len().saturating_sub(ERROR_LINES_MAX);
        output.drain(..surplus);
        LoadError::Loader { name: self.name.clone(), problem, output }
    }

    /// How the scheduler was disabled, if it is not the one that was enabled at the start.
    pub(crate) fn exited(&mut self) -> Option<SchedulerExit> {
        self.output.limit();
        if self.exit.is_none() {
            let is_here = KernelState::read().is_some_and(|state| state.is_still(&self.enabled));
            if !is_here {
                self.exit = Some(self.await_exit());
            }
        }
        self.exit.clone()
    }

    /// Stops the loader with SIGINT, after [`LOADER_STOP_MAX`] with SIGKILL; returns how its scheduler was disabled,
    /// and what is known of the loader.
    pub(crate) fn stop(mut self) -> (SchedulerExit, LoaderReport) {
        let before = self.exited();
        let (end, by_itself) = match self.ended() {
            Some(status) => (format!("{}, before it was stopped", status_text(status)), true),
            None => (self.interrupt(), false),
        };
        let exit = before.unwrap_or_else(|| self.await_exit());
        let report = LoaderReport {
            name: self.name.clone(),
            scheduler: self.enabled.ops.clone(),
            output: self.output.last_lines(),
            output_bytes: self.output.bytes(),
            end,
            by_itself,
            captured: self.captured.take(),
        };
        (exit, report)
    }

    /// Sends SIGINT, later SIGKILL; returns how the loader ended.
    fn interrupt(&mut self) -> String {
        self.signal(Signal::SIGINT);
        let begun = Instant::now();
        while begun.elapsed() < LOADER_STOP_MAX {
            if let Some(status) = self.ended() {
                return format!("{} after SIGINT", status_text(status));
            }
            thread::sleep(LOADER_POLL);
        }
        self.kill();
        format!("killed: it did not end within {} s of SIGINT", LOADER_STOP_MAX.as_secs())
    }

    fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        // Fails only if it has already been reaped.
        let _ = self.child.wait();
    }

    /// Signals the loader and the processes that it started.
    fn signal(&self, signal: Signal) {
        // Fails only if all of them have ended.
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), signal);
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Waits until the kernel has disabled the scheduler; returns how, from the kernel's log.
    fn await_exit(&mut self) -> SchedulerExit {
        let begun = Instant::now();
        let is_leaving = || KernelState::read().is_some_and(|state| state.state == "disabling");
        while is_leaving() && begun.elapsed() < DETACH_DEADLINE {
            thread::sleep(LOADER_POLL);
        }
        exit::from_log(&state::log_lines(&mut self.log), begun.elapsed() >= DETACH_DEADLINE)
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.kill();
        }
    }
}

fn spawn(job: &LoaderJob, output: &Output) -> io::Result<Child> {
    let mut command = Command::new(&job.program);
    command.args(&job.arguments).stdin(Stdio::null());
    command.stdout(output.file.try_clone()?).stderr(output.file.try_clone()?);
    if !job.library_path.is_empty() {
        command.env("LD_LIBRARY_PATH", job.library_path.join(":"));
    }
    command.process_group(0);
    die_with_parent(&mut command);
    command.spawn()
}

fn status_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// The output of a loader, in an anonymous file.
#[derive(Debug)]
struct Output {
    file: File,
    /// Bytes that were discarded.
    discarded: u64,
}

impl Output {
    fn new() -> io::Result<Output> {
        let file = nameless_file()?;
        // Without it, the loader would go on at its offset after the file was emptied.
        fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
        Ok(Output { file, discarded: 0 })
    }

    fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// All bytes that were printed.
    fn bytes(&self) -> u64 {
        self.discarded + self.length()
    }

    /// Discards the output if it has become too long.
    fn limit(&mut self) {
        let length = self.length();
        if length > OUTPUT_FILE_MAX && self.file.set_len(0).is_ok() {
            self.discarded += length;
        }
    }

    /// The last lines, without control characters.
    fn last_lines(&self) -> Vec<String> {
        let length = self.length();
        let start = length.saturating_sub(OUTPUT_BYTES_MAX);
        let mut bytes = vec![0; (length - start) as usize];
        let count = self.file.read_at(&mut bytes, start).unwrap_or(0);
        last_lines(&String::from_utf8_lossy(&bytes[..count]))
    }
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = &lines[lines.len().saturating_sub(OUTPUT_LINES_MAX)..];
    shown.iter().map(|line| plain(line)).collect()
}

/// A line without control characters and terminal sequences (`ESC [ … letter`), cut at [`LINE_CHARS_MAX`].
fn plain(line: &str) -> String {
    const FINAL_BYTES: std::ops::RangeInclusive<char> = '@'..='~';
    let mut kept = String::new();
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\x1b' && characters.next_if_eq(&'[').is_some() {
            let _ = characters.by_ref().find(|c| FINAL_BYTES.contains(c));
        } else if !c.is_control() {
            kept.push(c);
        }
    }
    kept.chars().take(LINE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn of_what_a_loader_prints_the_end_is_kept() {
        let mut output = Output::new().expect("an anonymous file");
        let mut writer = output.file.try_clone().expect("a descriptor");
        for number in 0..20_000 {
            writeln!(writer, "\x1b[1mline {number}\x1b[0m\n").expect("written");
        }
        let lines = output.last_lines();
        assert_eq!(lines.len(), OUTPUT_LINES_MAX);
        assert_eq!(lines.last().map(String::as_str), Some("line 19999"));
        let all = output.bytes();
        output.limit();
        assert_eq!((output.discarded, output.bytes()), (0, all), "short enough");
        let long = vec![b'x'; OUTPUT_FILE_MAX as usize];
        writer.write_all(&long).expect("written");
        output.limit();
        writer.write_all(b"after\n").expect("written");
        assert_eq!(output.last_lines(), ["after"]);
        assert_eq!(output.bytes(), all + OUTPUT_FILE_MAX + 6);
    }

    #[test]
    fn a_long_line_is_cut() {
        let lines = last_lines(&"x".repeat(3 * LINE_CHARS_MAX));
        assert_eq!(lines, ["x".repeat(LINE_CHARS_MAX)]);
        assert!(last_lines("\n \n").is_empty());
    }

    #[test]
    fn colours_of_a_terminal_are_left_out() {
        let text = "\x1b[2m2026-01-01\x1b[0m \x1b[38;5;9mWARN\x1b[0m [a] done\r\n\x1b]odd\x07 \x1b";
        assert_eq!(last_lines(text), ["2026-01-01 WARN [a] done", "]odd "]);
        assert_eq!(plain("\x1b[12"), "");
    }
}
