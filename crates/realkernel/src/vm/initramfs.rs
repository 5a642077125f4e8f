//! The guest's initramfs: the program as `/init`, its libraries, and other programs with theirs.
//!
//! A static program needs no libraries. For a dynamic one (a debug build), the archive contains its interpreter and the
//! libraries that the interpreter loads on this machine, at the same paths. Executables are cut after the part that the
//! kernel maps, without symbols and debug information.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::VmError;
use super::cpio::Archive;
use super::elf;
use crate::channel::INIT;
use crate::files::{PROGRAM_BYTES_MAX, read_file};

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
    let Packed { files: own, .. } = pack(program, INIT)?;
    // Programs share libraries.
    let mut paths = BTreeSet::new();
    for file in own.iter().chain(files).filter(|file| paths.insert(&file.path)) {
        if u32::try_from(file.content.len()).is_err() {
            return Err(VmError::Config(format!("{}: a file of 4 GiB or more", file.path)));
        }
        archive.file(&file.path, file.executable, &file.content);
    }
    Ok(archive.finish())
}

/// A program of the host for the guest.
#[derive(Debug)]
pub(crate) struct Packed {
    /// Its interpreter and libraries at the host's paths, and the program itself.
    pub(crate) files: Vec<GuestFile>,
    /// The folders of its libraries, in load order.
    pub(crate) library_path: Vec<String>,
}

/// Reads `program`, which becomes `path` in the guest, and the libraries that it loads on this machine.
///
/// # Errors
///
/// The program or a library cannot be read, is not an ELF file for this machine, or is missing.
pub(crate) fn pack(program: &Path, path: &str) -> Result<Packed, VmError> {
    let content = read(program)?;
    let needs = elf::interpreter(&content)
        .map_err(|e| VmError::Config(format!("{}: {e}", program.display())))?;
    let mut packed = Packed { files: Vec::new(), library_path: Vec::new() };
    let mut add = |path: &str, content| {
        let content = elf::loadable_part(content);
        packed.files.push(GuestFile { path: path.to_owned(), executable: true, content });
    };
    if let Some(interpreter) = needs {
        for library in libraries(program)? {
            add(&library.to_string_lossy(), read(&library)?);
            let folder = library.parent().map(|folder| folder.to_string_lossy().into_owned());
            packed.library_path.extend(folder.filter(|new| !packed.library_path.contains(new)));
        }
        add(&interpreter, read(Path::new(&interpreter))?);
    }
    add(path, content);
    Ok(packed)
}

/// The libraries that the interpreter loads for `program` on this machine, in load order.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, VmError> {
    let output = Command::new(program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .stdin(Stdio::null())
        .output()
        .map_err(VmError::io(format!("list the libraries of {}", program.display())))?;
    library_paths(&String::from_utf8_lossy(&output.stdout)).map_err(|missing| {
        VmError::Config(format!(
            "{} needs the library {missing}, which this machine does not have: install it, or name its folder in \
             LD_LIBRARY_PATH",
            program.display()
        ))
    })
}

/// The paths in lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`, or the name of a library that
/// is missing.
fn library_paths(listing: &str) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for (name, found) in listing.lines().filter_map(|line| line.split_once(" => ")) {
        match found.split_once(" (0x") {
            Some((path, _)) => paths.push(PathBuf::from(path.trim())),
            None if found.trim() == "not found" => return Err(name.trim().to_owned()),
            None => {}
        }
    }
    paths.retain(|path| path.is_absolute());
    Ok(paths)
}

fn read(path: &Path) -> Result<Vec<u8>, VmError> {
    read_file(path, PROGRAM_BYTES_MAX).map_err(VmError::io(format!("read {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_the_paths_of_the_listing() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibelf.so.1 => /lib/x/libelf.so.1 (0x00007f1)\n\
                       \t/lib64/ld-linux-x86-64.so.2 (0x00007f2)\n";
        assert_eq!(library_paths(listing), Ok(vec![PathBuf::from("/lib/x/libelf.so.1")]));
        let without = format!("{listing}\tlibgone.so => not found\n");
        assert_eq!(library_paths(&without), Err("libgone.so".to_owned()));
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
    fn a_program_comes_with_its_interpreter_and_its_libraries_once() {
        let echo = pack(Path::new("/bin/echo"), "/loader/echo").expect("packed");
        let paths: Vec<&str> = echo.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths.last(), Some(&"/loader/echo"));
        assert!(paths.contains(&"/lib64/ld-linux-x86-64.so.2"), "{paths:?}");
        let libc = paths.iter().find(|path| path.ends_with("/libc.so.6")).expect("the C library");
        let folder = libc.strip_suffix("/libc.so.6").expect("a folder");
        assert!(echo.library_path.iter().any(|known| known == folder), "{:?}", echo.library_path);
        let twice = [echo.files.clone(), echo.files].concat();
        let archive = build(Path::new("/bin/echo"), &twice).expect("packed");
        let name = b"loader/echo\0";
        assert_eq!(archive.windows(name.len()).filter(|window| window == name).count(), 1);
    }

    #[test]
    fn a_text_is_no_program() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "#!/bin/sh\n").expect("written");
        let error = build(file.path(), &[]).expect_err("refused").to_string();
        assert!(error.contains("not an x86-64 ELF program"), "{error}");
    }
}
