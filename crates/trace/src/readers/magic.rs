//! Inputs that are no recording, or one in a wrapping: what they are by their first bytes, and what to do instead.

use super::error::ReadError;

/// Bytes of the beginning that are examined.
pub(super) const START_BYTES: usize = 512;

/// The first bytes of gzip.
pub(super) const GZIP: &[u8] = b"\x1f\x8b";

/// An offset, the bytes there, what the input is, and what to do.
type Signature = (usize, &'static [u8], &'static str, &'static str);

const METADATA: &str = "the description of a CTF trace";
const GIVE_FOLDER: &str = "give the folder in which it is";
const GIVE_SAMPLES: &str = "give its perf.data, or the text of `report_sample.py \
    --show_tracing_data` (recorded with -e sched:sched_switch)";
const TAR: &str = "a tar archive";
const GIVE_TEXT: &str = "print the events with its own tool, and give that text";

/// Forms with bytes of their own, the longer ones first where one begins like another.
const KNOWN: [Signature; 35] = [
    (0, GZIP, "gzip within gzip", "decompress it with `gzip -dc FILE`"),
    (0, b"\x28\xb5\x2f\xfd", "zstd", "decompress it with `zstd -dc FILE`"),
    (0, b"\xfd7zXZ\0", "xz", "decompress it with `xz -dc FILE`"),
    (0, b"BZh", "bzip2", "decompress it with `bzip2 -dc FILE`"),
    (0, b"\x04\x22\x4d\x18", "lz4", "decompress it with `lz4 -dc FILE`"),
    (
        0,
        b"PK\x03\x04",
        "a zip archive",
        "unpack it and give the recording in it (in a bug report of Android, the .perfetto-trace)",
    ),
    (257, b"ustar", TAR, "unpack it with `tar -xf FILE` and give the recording in it"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it and give the recording in it"),
    (0, b"/* CTF 1.", METADATA, GIVE_FOLDER),
    (0, b"\x57\x1d\xd1\x75", METADATA, GIVE_FOLDER),
    (0, b"\x75\xd1\x1d\x57", METADATA, GIVE_FOLDER),
    (0, b"\xc1\x1f\xfc\xc1", "a stream of a CTF trace", GIVE_FOLDER),
    (0, b"\xc1\xfc\x1f\xc1", "a stream of a CTF trace", GIVE_FOLDER),
    (0, b"\x7fELF", "a program", "give the recording that was made of it"),
    (0, b"SIMPLEPERF", "a report of simpleperf, without CPUs", GIVE_SAMPLES),
    (0, b"sample:\n", "a report of simpleperf, without CPUs", GIVE_SAMPLES),
    (0, b"context_switch:\n", "a report of simpleperf, without CPUs", GIVE_SAMPLES),
    (
        0,
        b"magic: PERFILE2\n",
        "what `simpleperf dump` prints, without the fields of events",
        GIVE_SAMPLES,
    ),
    (0, b"Cmdline: ", "a profile of simpleperf, without events", GIVE_SAMPLES),
    (0, b"\x0a\x0d\x0d\x0a", "a capture of network packets", "give a recording of the scheduler"),
    (0, b"\xd4\xc3\xb2\xa1", "a capture of network packets", "give a recording of the scheduler"),
    (0, b"\xa1\xb2\xc3\xd4", "a capture of network packets", "give a recording of the scheduler"),
    (0, b"\x89PNG", "a picture", "give the recording that it shows"),
    (0, b"\xff\xd8\xff", "a picture", "give the recording that it shows"),
    (0, b"%PDF-", "a PDF document", "give the recording that it shows"),
    (0, b"SQLite format 3\0", "a database of SQLite", "give the recording from which it was made"),
    (0, b"LPKSHHRH", "a journal of systemd", "give a recording of the scheduler"),
    (0, b"PAR1", "a table of Parquet", "give the recording from which it was made"),
    (0, b"ARROW1", "a table of Arrow", "give the recording from which it was made"),
    (0, b"\x10\0\x04\x46\x78\x54\x16\0", "a trace of Fuchsia", GIVE_TEXT),
    (0, b"\xff\xfe", "text in UTF-16", "convert it: `iconv -f UTF-16 -t UTF-8 FILE`"),
    (0, b"\xfe\xff", "text in UTF-16", "convert it: `iconv -f UTF-16 -t UTF-8 FILE`"),
    (0, b"JAVA PROFILE", "a heap dump of Java", "give a recording of the scheduler"),
    (0, b"ID3", "a sound", "give a recording of the scheduler"),
    (0, b"MZ", "a program", "give the recording that was made of it"),
];

/// The share of bytes that no text has, above which an input is binary: one in this many.
const ONE_IN: usize = 8;
/// Fewer bytes are not judged.
const JUDGED_BYTES: usize = 64;

/// An input that is no recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    /// The name of the format.
    pub(super) format: &'static str,
    /// How to get a recording from it.
    pub(super) remedy: &'static str,
}

impl Foreign {
    /// Whether it is an archive that may hold a CTF trace.
    pub(super) fn is_tar(self) -> bool {
        self.format == TAR
    }

    /// The error that names it.
    pub(super) fn refuse(self, name: &str) -> ReadError {
        let Self { format, remedy } = self;
        ReadError::Binary { name: name.to_owned(), format, remedy }
    }
}

/// Recognises a form that has first bytes of its own.
pub(super) fn by_first_bytes(start: &[u8]) -> Option<Foreign> {
    let known = KNOWN.iter().find(|(at, magic, ..)| {
        start.get(*at..).is_some_and(|from_there| from_there.starts_with(magic))
    });
    known.map(|(_, _, format, remedy)| Foreign { format, remedy })
}

/// Recognises JSON, and what is no text.
pub(super) fn by_content(start: &[u8]) -> Option<Foreign> {
    let text = start.trim_ascii_start();
    // Text of babeltrace begins with a time in brackets.
    let list = text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    if text.starts_with(b"{") || list.is_some_and(|list| list.starts_with(b"{")) {
        return Some(Foreign {
            format: "JSON, as of Chrome's trace viewer",
            remedy: "its slices have lost the events: give the recording from which it was made",
        });
    }
    let is_foreign = |byte: &&u8| **byte < b' ' && !b"\t\n\r\x0c\x1b".contains(byte);
    let foreign = start.iter().filter(is_foreign).count();
    let is_binary = start.len() >= JUDGED_BYTES && foreign * ONE_IN > start.len();
    is_binary.then_some(Foreign {
        format: "binary data of an unknown kind",
        remedy: "print it as text with the tool that wrote it",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_what_it_is() {
        for (at, magic, format, remedy) in KNOWN {
            let mut bytes = vec![b'x'; START_BYTES];
            bytes[at..at + magic.len()].copy_from_slice(magic);
            assert_eq!(by_first_bytes(&bytes), Some(Foreign { format, remedy }));
        }
        let said = by_first_bytes(b"\x89PNG").map(|foreign| foreign.refuse("it").to_string());
        let wanted = "it: this is a picture, and a recording is expected here; give the recording that it shows";
        assert_eq!(said.as_deref(), Some(wanted));
        assert_eq!(by_first_bytes(b""), None);
    }

    #[test]
    fn what_is_no_text() {
        let format = |bytes: &[u8]| by_content(bytes).map(|foreign| foreign.format);
        assert!(format(b" {\"traceEvents\":[").is_some_and(|format| format.starts_with("JSON")));
        assert!(format(b"[\n{\"name\":1}").is_some_and(|format| format.starts_with("JSON")));
        assert_eq!(format(&[7; JUDGED_BYTES]), Some("binary data of an unknown kind"));
        assert_eq!(format(b"[17:00:01.5] (+?.?) host sched_switch: { 1 }"), None);
        assert_eq!(format(b"  cat-7 [000] 1.5: a\x01b\n"), None);
        assert_eq!(format(b""), None);
    }
}
