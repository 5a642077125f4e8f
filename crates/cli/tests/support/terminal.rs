//! A program in a terminal: keys go in, a screen comes out. Nothing here sleeps: a wait ends when an
//! expected text is on the screen.

#![allow(dead_code)] // Each test file uses a part of it.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::Pid;

/// How long something may take to be seen: the machine may be busy.
const DEADLINE: Duration = Duration::from_secs(120);

/// What a program writes before and after a picture that is to be seen as a whole (synchronized update).
const PICTURE_BEGINS: &[u8] = b"\x1b[?2026h";
const PICTURE_ENDS: &[u8] = b"\x1b[?2026l";

/// A program on a terminal of its own; killed when dropped.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    /// The program's side of the terminal: kept open, so that its state can be asked for when the program is gone.
    inside: OwnedFd,
    before: Termios,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// What was written since the last picture was whole.
    unseen: Vec<u8>,
}

impl Terminal {
    /// Starts a program on a terminal of that size: stdin, stdout and stderr.
    pub(crate) fn start(command: Command, lines: u16, columns: u16) -> Terminal {
        Self::start_into(command, lines, columns, None)
    }

    /// The same with stdout in a file, where one is given.
    pub(crate) fn start_into(
        mut command: Command,
        lines: u16,
        columns: u16,
        stdout: Option<File>,
    ) -> Terminal {
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).expect("a terminal");
        let before = tcgetattr(&pty.slave).expect("it has a state");
        let side = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
        command.stdin(side()).stdout(stdout.map_or_else(side, Stdio::from)).stderr(side());
        command.env("TERM", "xterm-256color");
        let child = command.spawn().expect("the program starts");
        let keys = File::from(pty.master);
        let mut from = keys.try_clone().expect("a descriptor");
        let (send, output) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = from.read(&mut bytes) {
                if count == 0 || send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let cells = |count| NonZero::new(count).expect("a screen has room");
        let screen = vt100::Parser::new(cells(lines), cells(columns), 0);
        let unseen = Vec::new();
        Terminal { child, keys, inside: pty.slave, before, output, screen, unseen }
    }

    /// Shows what was written; a picture as a whole only.
    fn show(&mut self, bytes: &[u8]) {
        self.unseen.extend_from_slice(bytes);
        let last =
            |marker: &[u8]| self.unseen.windows(marker.len()).rposition(|part| part == marker);
        let cut_off = |count: &usize| self.unseen.ends_with(&PICTURE_BEGINS[..*count]);
        let whole = match (last(PICTURE_BEGINS), last(PICTURE_ENDS)) {
            (Some(begin), end) if end.is_none_or(|end| end < begin) => begin,
            // The marker itself may have come half.
            _ => self.unseen.len() - (1..PICTURE_BEGINS.len()).rev().find(cut_off).unwrap_or(0),
        };
        self.screen.process(&self.unseen[..whole]);
        self.unseen.drain(..whole);
    }

    /// What is on the screen.
    pub(crate) fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until the screen is such, and returns it.
    pub(crate) fn until(&mut self, what: &str, is_seen: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let text = self.text();
            if is_seen(&text) {
                return text;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.show(&bytes),
                Err(error) => panic!("never seen: {what} ({error}); the screen:\n{text}"),
            }
        }
    }

    /// Waits until the screen shows a text.
    pub(crate) fn shows(&mut self, wanted: &str) -> String {
        self.until(wanted, |text| text.contains(wanted))
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("keys can be pressed");
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("the program is there");
    }

    /// Waits for the end of the program, which must leave the terminal as it was; returns what is on the screen then.
    pub(crate) fn ends(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end; the screen:\n{}", self.text());
            // What it still says must be read, or it could not say it.
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(20)) {
                self.show(&bytes);
            }
        };
        let after = tcgetattr(&self.inside).expect("it has a state");
        assert_eq!(after.local_flags, self.before.local_flags, "echo, lines, signals");
        assert_eq!(after.input_flags, self.before.input_flags);
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(200)) {
            self.show(&bytes);
        }
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "the other screen is left");
        assert!(!screen.hide_cursor(), "the cursor is back");
        let text = self.text();
        (status, text)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
