//! Files that a user names: each is read up to a limit, since a device or a pipe may have no end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The longest text: a workload, a profile, a topology, an experiment, a kernel's configuration, bytes.
pub const TEXT_BYTES_MAX: u64 = 64 << 20;
/// The longest scheduler object, bytes.
pub const OBJECT_BYTES_MAX: u64 = 256 << 20;
/// The longest program or kernel image, bytes.
pub const PROGRAM_BYTES_MAX: u64 = 1 << 30;

/// Reads a whole file.
///
/// # Errors
/// It cannot be read, or is longer than `bytes_max`.
pub fn read_file(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("longer than {} MiB, the limit for such a file", bytes_max >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Reads a whole text of at most [`TEXT_BYTES_MAX`].
///
/// # Errors
/// As [`read_file`], or it is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let text = String::from_utf8(read_file(path, TEXT_BYTES_MAX)?);
    text.map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(ErrorKind::InvalidData, format!("byte {at} is not UTF-8: this is no text"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_an_error() {
        let error = read_file("/dev/zero", 1 << 20).expect_err("it has no end");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("longer than 1 MiB"), "{error}");
        assert_eq!(read_file("/dev/null", 0).expect("it is empty"), b"");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "abc").expect("it can be written");
        assert_eq!(read_text(file.path()).expect("a text"), "abc");
        assert_eq!(read_file(file.path(), 3).expect("as long as it may be"), b"abc");
        assert!(read_file(file.path(), 2).is_err());
        std::fs::write(file.path(), b"a\xff").expect("it can be written");
        let error = read_text(file.path()).expect_err("no text").to_string();
        assert!(error.contains("byte 1 is not UTF-8"), "{error}");
    }
}
