//! Why an input gives no trace at all.

use std::io;

/// An input that cannot be read as a recording. (One that can be read in part is a trace with [`crate::Loss`].)
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The input itself failed before the first event.
    #[error("{name}: cannot be read: {source}")]
    Io {
        /// The input's name.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{name}: the recording is empty\n{HOW_TO_RECORD}")]
    Empty {
        /// The input's name.
        name: String,
    },
    /// It is a known binary format that is no recording, or one in a wrapping.
    #[error("{name}: this is {format}, and a recording is expected here; {remedy}")]
    Binary {
        /// The input's name.
        name: String,
        /// The name of the format.
        format: &'static str,
        /// How to get a recording from it.
        remedy: &'static str,
    },
    /// A binary recording that is damaged.
    #[error("{name}: {format} that cannot be read: {why}\n  help: {remedy}")]
    Damaged {
        /// The input's name.
        name: String,
        /// The name of the format.
        format: &'static str,
        /// The damage, and its byte.
        why: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// A binary recording that would fill the memory.
    #[error(
        "{name}: a binary recording of more than {bytes_max} bytes\n  help: record a shorter time, \
         or print it as text, which is read line by line"
    )]
    TooLarge {
        /// The input's name.
        name: String,
        /// The most that is read.
        bytes_max: u64,
    },
    /// A compressed input that becomes far too long.
    #[error(
        "{name}: it becomes more than {times_max} times as long when it is decompressed, which no \
         recording does; nothing of it was used\n  help: decompress it with `gzip -dc FILE`, and \
         give the result"
    )]
    Expands {
        /// The input's name.
        name: String,
        /// The most that a byte may become.
        times_max: u64,
    },
    /// It has no such machine or buffer.
    #[error("{name}: the recording has no machine or buffer `{machine}`\n  help: {}", .known.help())]
    NoMachine {
        /// The input's name.
        name: String,
        /// The machine or buffer that was asked for.
        machine: String,
        /// The machines or buffers of the recording.
        known: Machines,
    },
    /// It has no scheduling event.
    #[error(
        "{name}: no scheduling event in {read} {units} ({unreadable} not readable, {skipped} of \
         kinds that say nothing of scheduling){}\n{HOW_TO_RECORD}",
        .first.as_ref().map_or_else(String::new, |first| format!("; the first: {first}"))
    )]
    NoEvents {
        /// The input's name.
        name: String,
        /// Lines or records in all.
        read: u64,
        /// `lines` or `records`.
        units: &'static str,
        /// Those that are unreadable.
        unreadable: u64,
        /// Events of other kinds.
        skipped: u64,
        /// The first problem.
        first: Option<String>,
    },
}

/// The machines or buffers of a recording, by name; of one that has several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machines(pub Vec<String>);

/// Names that a message lists.
const MACHINES_SHOWN_MAX: usize = 16;

impl Machines {
    /// Their names, with commas.
    pub(super) fn text(&self) -> String {
        let more = self.0.len().saturating_sub(MACHINES_SHOWN_MAX);
        let shown = self.0.iter().take(MACHINES_SHOWN_MAX).map(String::as_str);
        let more = (more > 0).then(|| format!("and {more} more"));
        shown.map(str::to_owned).chain(more).collect::<Vec<_>>().join(", ")
    }

    fn help(&self) -> String {
        match self.0.len() {
            0 | 1 => "leave out --machine: it has one alone".to_owned(),
            _ => format!("it has {}", self.text()),
        }
    }
}

const HOW_TO_RECORD: &str = "\
expected: trace.dat, perf.data, a Perfetto or CTF trace, or text of `perf sched script`, `perf script`, ftrace (trace, \
trace_pipe) or `trace-cmd report`, with at least sched_switch
to record two seconds of this machine, as root:
  fairground record --duration 2s -o recording.dat
or: perf sched record -o perf.data -- sleep 2
or: trace-cmd record -e sched_switch -e sched_waking -e sched_wakeup_new -e sched_process_fork -e \
sched_process_exit sleep 2";
