//! Where a CTF trace lies: a folder with `metadata` and the files of its streams, or a tar archive of one.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::super::binary::Why;
use super::packets::{Source, StreamFile};

/// The most bytes of a description.
const METADATA_BYTES_MAX: u64 = 64 << 20;
/// Folders within a folder in which a trace is looked for: `SESSION/kernel`.
const DEPTH_MAX: u32 = 3;
/// Files of a trace.
const FILES_MAX: usize = 1 << 16;

/// The parts of a trace.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) metadata: Vec<u8>,
    /// By name.
    pub(super) files: Vec<StreamFile>,
    /// Other traces in the same place, which are left out.
    pub(super) others: usize,
}

/// The folders with a `metadata`, those of the kernel first.
fn traces(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    if folder.join("metadata").is_file() {
        found.push(folder.to_owned());
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().take(FILES_MAX).filter(|_| depth > 0) {
        // Links could lead around in a circle.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            traces(&entry.path(), depth - 1, found);
        }
    }
}

/// Opens the trace in a folder; `None` where there is none.
pub(super) fn of_folder(folder: &Path) -> Result<Option<Parts>, Why> {
    let mut found = Vec::new();
    traces(folder, DEPTH_MAX, &mut found);
    let is_of_kernel = |path: &Path| path.file_name().is_some_and(|name| name == "kernel");
    found.sort_by_key(|path| (!is_of_kernel(path), path.clone()));
    let Some(trace) = found.first() else { return Ok(None) };
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let path = trace.join("metadata");
    let mut metadata = Vec::new();
    let file = File::open(&path).map_err(|e| failed(&path, e))?;
    file.take(METADATA_BYTES_MAX).read_to_end(&mut metadata).map_err(|e| failed(&path, e))?;
    let mut files = Vec::new();
    for entry in fs::read_dir(trace).map_err(|e| failed(trace, e))?.take(FILES_MAX) {
        let path = entry.map_err(|e| failed(trace, e))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && name != "metadata" && !name.starts_with('.') {
            let source = Source::File(File::open(&path).map_err(|e| failed(&path, e))?);
            files.push(StreamFile { name, source });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(Parts { metadata, files, others: found.len() - 1 }))
}

/// Finds the trace in a tar archive; `None` where there is none.
pub(super) fn of_tar(bytes: &[u8]) -> Option<Parts> {
    let files: Vec<_> = tar_files(bytes).take(FILES_MAX).collect();
    let folder = |path: &str| path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let named = |path: &str| path.rsplit('/').next() == Some("metadata");
    let mut found: Vec<String> =
        files.iter().filter(|(path, _)| named(path)).map(|(path, _)| folder(path)).collect();
    found.sort_by_key(|folder| (folder.rsplit('/').next() != Some("kernel"), folder.clone()));
    let trace = found.first()?;
    let (mut metadata, mut streams) = (Vec::new(), Vec::new());
    for (path, content) in files.iter().filter(|(path, _)| folder(path) == *trace) {
        if named(path) {
            metadata = content.to_vec();
        } else {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            streams.push(StreamFile { name, source: Source::Bytes(content.to_vec()) });
        }
    }
    streams.sort_by(|a, b| a.name.cmp(&b.name));
    Some(Parts { metadata, files: streams, others: found.len() - 1 })
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
