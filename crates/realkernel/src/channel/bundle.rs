//! Bundles: files in one stream. A count is followed by each file's name and content, with their lengths.

use std::io::{self, Read, Write};

/// Maximum files of a bundle.
const MAX_FILES: u32 = 256;
/// Maximum bytes of a file name.
const MAX_NAME: u32 = 96;

/// A file to write to a bundle.
pub(crate) struct Entry<'a> {
    /// Its name, without a folder.
    pub name: &'a str,
    /// The length of `content`, bytes.
    pub length: u64,
    /// Its content.
    pub content: Box<dyn Read + 'a>,
}

/// Why a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BundleError {
    /// Reading the bundle or writing a file failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Too many files.
    #[error("it claims {0} files; the maximum is {MAX_FILES}")]
    TooMany(u32),
    /// An invalid name: with a slash, a leading dot, other characters, or too long.
    #[error("its file {0} has an invalid name")]
    Name(u32),
    /// A file that exceeds the rest of the bundle.
    #[error("its file `{name}` claims {length} bytes, and {left} are left")]
    Length {
        /// The file.
        name: String,
        /// Its claimed length.
        length: u64,
        /// The remaining bytes.
        left: u64,
    },
}

/// Bytes of a file in a bundle, besides its content.
pub(crate) fn entry_size(name: &str, length: u64) -> u64 {
    4 + name.len() as u64 + 8 + length
}

/// Writes a bundle.
pub(crate) fn write_bundle(to: &mut impl Write, entries: Vec<Entry<'_>>) -> io::Result<u64> {
    let count = u32::try_from(entries.len()).ok().filter(|c| *c <= MAX_FILES);
    let count = count.ok_or_else(|| io::Error::other(format!("more than {MAX_FILES} files")))?;
    to.write_all(&count.to_le_bytes())?;
    let mut written = 4;
    for mut entry in entries {
        let name = entry.name.as_bytes();
        to.write_all(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes())?;
        to.write_all(name)?;
        to.write_all(&entry.length.to_le_bytes())?;
        let copied = io::copy(&mut entry.content.by_ref().take(entry.length), to)?;
        if copied != entry.length {
            return Err(io::Error::other(format!("{} became shorter meanwhile", entry.name)));
        }
        written += entry_size(entry.name, entry.length);
    }
    Ok(written)
}

/// Reads a bundle of `length` bytes; `file` opens the target of each file. Returns the names.
///
/// # Errors
///
/// Any invalid input gives a typed error. Never reads beyond `length`.
pub(crate) fn read_bundle<W: Write>(
    from: impl Read,
    length: u64,
    mut file: impl FnMut(&str) -> io::Result<W>,
) -> Result<Vec<String>, BundleError> {
    let mut from = from.take(length);
    let count = u32::from_le_bytes(read_array(&mut from)?);
    if count > MAX_FILES {
        return Err(BundleError::TooMany(count));
    }
    let mut names = Vec::new();
    for index in 0..count {
        let name_len = u32::from_le_bytes(read_array(&mut from)?);
        if name_len > MAX_NAME {
            return Err(BundleError::Name(index));
        }
        let mut name = vec![0; name_len as usize];
        from.read_exact(&mut name)?;
        let name = proper_name(name).ok_or(BundleError::Name(index))?;
        let length = u64::from_le_bytes(read_array(&mut from)?);
        if length > from.limit() {
            return Err(BundleError::Length { name, length, left: from.limit() });
        }
        let mut to = file(&name)?;
        if io::copy(&mut from.by_ref().take(length), &mut to)? != length {
            return Err(BundleError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        to.flush()?;
        names.push(name);
    }
    Ok(names)
}

/// Whether a name is valid: letters, digits, `.`, `-`, `_`, and no leading dot.
fn proper_name(bytes: Vec<u8>) -> Option<String> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let good = bytes.first().is_some_and(|b| *b != b'.') && bytes.iter().all(plain);
    if good { String::from_utf8(bytes).ok() } else { None }
}

fn read_array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::rc::Rc;

    use fairground_scratch::faults::{Faults, Faulty};
    use proptest::prelude::*;

    use super::*;

    type Files = BTreeMap<String, Vec<u8>>;

    /// Writes go to the file of their name.
    struct Sink(Rc<RefCell<Files>>, String);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().get_mut(&self.1).expect("made before").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn unpack(bytes: &[u8]) -> Result<Files, BundleError> {
        let files = Rc::new(RefCell::new(Files::new()));
        read_bundle(bytes, bytes.len() as u64, |name| {
            files.borrow_mut().insert(name.to_owned(), Vec::new());
            Ok(Sink(Rc::clone(&files), name.to_owned()))
        })?;
        let files = files.borrow().clone();
        Ok(files)
    }

    fn pack(files: &Files) -> Vec<u8> {
        let mut bytes = Vec::new();
        let entries = files
            .iter()
            .map(|(name, content)| Entry {
                name,
                length: content.len() as u64,
                content: Box::new(content.as_slice()),
            })
            .collect();
        let length = write_bundle(&mut bytes, entries).expect("to memory");
        assert_eq!(length, bytes.len() as u64);
        bytes
    }

    #[test]
    fn a_name_cannot_lead_out_of_the_folder() {
        for name in ["../x", "a/b", ".hidden", "", "a\0b", "..", "ä"] {
            let bytes = pack(&Files::from([(name.to_owned(), Vec::new())]));
            assert!(matches!(unpack(&bytes), Err(BundleError::Name(0))), "{name:?}");
        }
    }

    #[test]
    fn a_length_beyond_the_end_is_refused_before_anything_is_allocated() {
        let mut bytes = pack(&Files::from([("a".to_owned(), vec![1; 8])]));
        bytes[9..17].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(unpack(&bytes), Err(BundleError::Length { left: 8, .. })));
    }

    /// Files through a channel whose both ends fail, tear and are interrupted: they arrive whole, or there is an error.
    #[test]
    fn ten_thousand_seeds_of_faults_give_whole_files_or_an_error() {
        let (mut arrived, mut failed) = (0, 0);
        for seed in 0..10_000_u64 {
            let faults = Faults::of(seed);
            let size = |limit| faults.borrow_mut().below(limit) as usize;
            let files: Files = (0..1 + size(4))
                .map(|number| (format!("file-{number}"), vec![number as u8 + 1; size(3_000)]))
                .collect();
            let mut channel = Faulty { inner: Vec::new(), faults: Rc::clone(&faults) };
            let entries = files.iter().map(|(name, content)| Entry {
                name,
                length: content.len() as u64,
                content: Box::new(Faulty { inner: content.as_slice(), faults: Rc::clone(&faults) }),
            });
            let written = write_bundle(&mut channel, entries.collect());
            let bytes = channel.inner;
            let Ok(length) = written else {
                failed += 1;
                // What the guest had written until then is no bundle.
                assert!(unpack(&bytes).map_or(true, |half| half == files), "seed {seed}");
                continue;
            };
            assert_eq!(length, bytes.len() as u64, "seed {seed}");
            let sink = Rc::new(RefCell::new(Files::new()));
            let from = Faulty { inner: bytes.as_slice(), faults: Rc::clone(&faults) };
            let read = read_bundle(from, length, |name| {
                sink.borrow_mut().insert(name.to_owned(), Vec::new());
                let inner = Sink(Rc::clone(&sink), name.to_owned());
                Ok(Faulty { inner, faults: Rc::clone(&faults) })
            });
            match read {
                Ok(names) => {
                    assert!(*sink.borrow() == files, "seed {seed}: a file is half");
                    assert!(names.iter().eq(files.keys()), "seed {seed}");
                    arrived += 1;
                }
                Err(_) => failed += 1,
            }
        }
        assert!(arrived > 1_000 && failed > 1_000, "{arrived} arrived, {failed} failed");
    }

    proptest! {
        #[test]
        fn files_arrive(
            files in proptest::collection::btree_map(
                "[a-z][a-z0-9._-]{0,20}",
                proptest::collection::vec(any::<u8>(), 0..200),
                0..6,
            ),
        ) {
            prop_assert_eq!(unpack(&pack(&files)).expect("whole"), files);
        }

        #[test]
        fn a_cut_bundle_is_an_error(cut in 0_usize..60) {
            let bytes = pack(&Files::from([("one".to_owned(), vec![7; 30]), ("two".to_owned(), vec![8; 11])]));
            prop_assert!(unpack(&bytes[..cut.min(bytes.len() - 1)]).is_err());
        }

        #[test]
        fn garbage_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), few: bool) {
            if few && bytes.len() > 8 {
                bytes[1..4].fill(0);
                bytes[5..8].fill(0);
            }
            let _ = unpack(&bytes);
        }
    }
}
