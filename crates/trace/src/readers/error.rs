//! Why an input gives no trace at all, for people.

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
    /// It is a known binary format, and this reader takes text.
    #[error("{name}: this is {format}, and a text is expected here; {remedy}")]
    Binary {
        /// The input's name.
        name: String,
        /// What it is.
        format: &'static str,
        /// How to make a text of it.
        remedy: &'static str,
    },
    /// Text, and no line of it is a scheduling event.
    #[error(
        "{name}: no scheduling event in {lines} lines ({unreadable} not readable, {skipped} of kinds that say nothing of scheduling){}\n{HOW_TO_RECORD}",
        .first.as_ref().map_or_else(String::new, |first| format!("; the first: {first}"))
    )]
    NoEvents {
        /// The input's name.
        name: String,
        /// Lines in all.
        lines: u64,
        /// Lines that have not the form of an event.
        unreadable: u64,
        /// Events of other kinds.
        skipped: u64,
        /// The first line that was not understood, and why.
        first: Option<String>,
    },
}

const HOW_TO_RECORD: &str = "\
expected: text of `perf sched script`, `perf script`, ftrace (trace, trace_pipe) or `trace-cmd report` with at least sched_switch
to record two seconds of this machine, as root:
  perf sched record -- sleep 2 && perf sched script --ns > recording.txt
or: trace-cmd record -e sched_switch -e sched_waking -e sched_wakeup_new -e sched_process_fork -e sched_process_exit sleep 2 && trace-cmd report > recording.txt";

/// Bytes of the beginning that [`known_binary`] wants to see.
pub(super) const MAGIC_BYTES: usize = 12;

/// Recognises the binary relatives of the texts by their first bytes: what it is, and the remedy.
pub(super) fn known_binary(start: &[u8]) -> Option<(&'static str, &'static str)> {
    const KNOWN: [(&[u8], &str, &str); 8] = [
        (b"PERFILE2", "perf.data", "print it with `perf sched script --ns -i FILE`"),
        (b"2ELIFREP", "perf.data", "print it with `perf sched script --ns -i FILE`"),
        (b"\x17\x08\x44tracing", "trace.dat", "print it with `trace-cmd report FILE`"),
        (b"\x1f\x8b", "gzip", "decompress it with `gzip -dc FILE`"),
        (b"\x28\xb5\x2f\xfd", "zstd", "decompress it with `zstd -dc FILE`"),
        (b"\xfd7zXZ\0", "xz", "decompress it with `xz -dc FILE`"),
        (b"BZh", "bzip2", "decompress it with `bzip2 -dc FILE`"),
        (b"\x7fELF", "a program", "give the recording that was made of it"),
    ];
    let found = KNOWN.iter().find(|(magic, ..)| start.starts_with(magic));
    found.map(|(_, format, remedy)| (*format, *remedy))
}
