//! The guest's initramfs: the program as `/init`, and its libraries.
//!
//! A static program needs no libraries. For a dynamic one (a debug build), the archive contains its interpreter and the
//! libraries that the interpreter loads on this machine, at the same paths. Executables are cut after the part that the
//! kernel maps, without symbols and debug information.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::VmError;
use super::cpio::Archive;
use super::elf;
use crate::channel::INIT;

/// A file for the guest besides the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestFile {
    /// Its path in the guest.
    pub path: String,
    /// Whether it is executable.
    pub executable: bool,
    /// Its content.
    pub content: Vec<u8>,
}

/// The archive for `program` and `files`.
///
/// # Errors
///
/// The program or a library cannot be read, or is not an ELF file for this machine.
pub(crate) fn build(program: &Path, files: &[GuestFile]) -> Result<Vec<u8>, VmError> {
    let mut archive = Archive::default();
    for folder in ["/dev", "/proc", "/sys", "/tmp", "/run"] {
        archive.folder(folder);
    }
    archive.device("/dev/console", 5, 1);
    let content = read(program)?;
    let needs = elf::interpreter(&content)
        .map_err(|e| VmError::Config(format!("{}: {e}", program.display())))?;
    if let Some(interpreter) = needs {
        for path in libraries(program)?.into_iter().chain([PathBuf::from(&interpreter)]) {
            archive.file(&path.to_string_lossy(), true, &elf::loadable_part(read(&path)?));
        }
    }
    archive.file(INIT, true, &elf::loadable_part(content));
    for file in files {
        if u32::try_from(file.content.len()).is_err() {
            return Err(VmError::Config(format!("{}: a file of 4 GiB or more", file.path)));
        }
        archive.file(&file.path, file.executable, &file.content);
    }
    Ok(archive.finish())
}

/// The libraries that the interpreter loads for `program` on this machine, in load order.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, VmError> {
    let output = Command::new(program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .stdin(Stdio::null())
        .output()
        .map_err(VmError::io(format!("list the libraries of {}", program.display())))?;
    Ok(library_paths(&String::from_utf8_lossy(&output.stdout)))
}

/// The paths in lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`.
fn library_paths(listing: &str) -> Vec<PathBuf> {
    listing
        .lines()
        .filter_map(|line| line.split_once(" => ")?.1.split_once(" (0x"))
        .map(|(path, _)| PathBuf::from(path.trim()))
        .filter(|path| path.is_absolute())
        .collect()
}

fn read(path: &Path) -> Result<Vec<u8>, VmError> {
    fs::read(path).map_err(VmError::io(format!("read {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_the_paths_of_the_listing() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibelf.so.1 => /lib/x/libelf.so.1 (0x00007f1)\n\
                       \tlibgone.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f2)\n";
        assert_eq!(library_paths(listing), [PathBuf::from("/lib/x/libelf.so.1")]);
    }

    #[test]
    fn the_same_program_gives_the_same_archive() {
        let program = std::env::current_exe().expect("a test has a program");
        let first = build(&program, &[]).expect("packed");
        assert_eq!(first, build(&program, &[]).expect("packed"));
        assert!(
            first.windows(6).any(|w| w == b"\0init\0") || first.windows(5).any(|w| w == b"init\0")
        );
    }

    #[test]
    fn a_text_is_no_program() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "#!/bin/sh\n").expect("written");
        let error = build(file.path(), &[]).expect_err("refused").to_string();
        assert!(error.contains("not an x86-64 ELF program"), "{error}");
    }
}
