//! Where CTF traces lie: in folders with `metadata` and the files of their streams, or in a tar archive of such.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use super::super::binary::Why;
use super::description::Metadata;
use super::packets::{Source, StreamFile};

/// The file with a trace's description.
const METADATA: &str = "metadata";
/// The most bytes of a description.
const METADATA_BYTES_MAX: u64 = 64 << 20;
/// Folders within a folder in which traces are looked for: `SESSION/ust/uid/1000/64-bit` of a rotated session has two
/// more in front (`archives/CHUNK`).
const DEPTH_MAX: u32 = 7;
/// Files of a trace, or of an archive.
const FILES_MAX: usize = 1 << 16;
/// Traces of a folder or an archive.
const TRACES_MAX: usize = 256;
/// Folders that are searched.
const FOLDERS_MAX: usize = 1 << 14;

/// A trace whose streams have not been opened.
#[derive(Debug)]
pub(super) struct Found {
    /// The path of its folder within the place that was searched; `.` for the place itself.
    pub(super) name: String,
    /// The error says what is wrong, and in which file.
    pub(super) metadata: Result<Metadata, Why>,
}

impl Found {
    /// Whether it is of a kernel.
    pub(super) fn is_of_kernel(&self) -> bool {
        self.metadata.as_ref().is_ok_and(Metadata::is_of_kernel)
    }
}

/// A folder or an archive in which there are traces.
#[derive(Debug)]
pub(super) enum Place<'b> {
    Folder(&'b Path),
    /// Path and content of its files.
    Archive(Vec<(String, &'b [u8])>),
}

impl<'b> Place<'b> {
    /// An archive of these bytes.
    pub(super) fn of_tar(bytes: &'b [u8]) -> Self {
        Self::Archive(tar_files(bytes).take(FILES_MAX).collect())
    }

    /// All traces, by name.
    pub(super) fn traces(&self) -> Vec<Found> {
        let mut found = Vec::new();
        match self {
            Self::Folder(root) => found = in_folder(root),
            Self::Archive(files) => {
                let of_file = |(path, content): &(String, &[u8])| {
                    let (folder, file) = split(path);
                    let found =
                        || Found { name: folder.to_owned(), metadata: Metadata::parse(content) };
                    (file == METADATA).then(found)
                };
                found.extend(files.iter().filter_map(of_file).take(TRACES_MAX));
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// The files of a trace's streams, by name.
    pub(super) fn streams(&self, trace: &str) -> Result<Vec<StreamFile>, Why> {
        let mut files = Vec::new();
        match self {
            Self::Folder(root) => {
                let folder = root.join(trace);
                for entry in fs::read_dir(&folder).map_err(failed(&folder))?.take(FILES_MAX) {
                    let path = entry.map_err(failed(&folder))?.path();
                    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    if path.is_file() && name != METADATA && !name.starts_with('.') {
                        let source = Source::File(File::open(&path).map_err(failed(&path))?);
                        files.push(StreamFile { name, source });
                    }
                }
            }
            Self::Archive(all) => {
                let of_file = |(path, content): &(String, &[u8])| {
                    let (folder, name) = split(path);
                    let is_stream = folder == trace && name != METADATA;
                    let source = || Source::Bytes(content.to_vec());
                    is_stream.then(|| StreamFile { name: name.to_owned(), source: source() })
                };
                files.extend(all.iter().filter_map(of_file));
            }
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }
}

/// The folder and the name of a file in an archive.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or((".", path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Why + use<'_> {
    move |e| format!("{}: {e}", path.display())
}

/// Searches a folder and those in it for descriptions.
fn in_folder(root: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    let mut pending = vec![(root.to_owned(), DEPTH_MAX)];
    for _ in 0..FOLDERS_MAX {
        let Some((folder, depth)) = pending.pop() else { break };
        let path = folder.join(METADATA);
        if path.is_file() && found.len() < TRACES_MAX {
            let name = folder.strip_prefix(root).unwrap_or(&folder).to_string_lossy();
            let name = if name.is_empty() { ".".to_owned() } else { name.into_owned() };
            found.push(Found { name, metadata: described(&path) });
        }
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        // Links could lead around in a circle.
        let folders = entries.flatten().take(FILES_MAX).filter(|_| depth > 0);
        let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        pending.extend(folders.map(|entry| (entry.path(), depth - 1)));
    }
    found
}

fn described(path: &Path) -> Result<Metadata, Why> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed(path))?;
    file.take(METADATA_BYTES_MAX).read_to_end(&mut bytes).map_err(failed(path))?;
    Metadata::parse(&bytes)
}

/// The plain files of an archive: name and content (POSIX `ustar`, and GNU's long names).
fn tar_files(bytes: &[u8]) -> impl Iterator<Item = (String, &[u8])> {
    const BLOCK: usize = 512;
    let mut at = 0;
    let mut long_name: Option<String> = None;
    let text = |field: &[u8]| {
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).into_owned()
    };
    std::iter::from_fn(move || {
        loop {
            let head = bytes.get(at..at + BLOCK)?;
            let size = text(&head[124..136]);
            let size = usize::from_str_radix(size.trim(), 8).ok()?;
            let from = at + BLOCK;
            let content = bytes.get(from..from.checked_add(size)?.min(bytes.len()))?;
            at = from.checked_add(size.checked_next_multiple_of(BLOCK)?)?;
            match head[156] {
                b'L' => long_name = Some(text(content)),
                b'0' | 0 => {
                    let (name, prefix) = (text(&head[..100]), text(&head[345..500]));
                    let whole = if prefix.is_empty() { name } else { prefix + "/" + &name };
                    return Some((long_name.take().unwrap_or(whole), content));
                }
                _ => {}
            }
        }
    })
}
