//! ELF parsing for the initramfs: a program's interpreter, and the end of the part that the kernel maps.

use object::LittleEndian as LE;
use object::elf::{EM_X86_64, FileHeader64, PT_LOAD, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

/// Bytes of an ELF header.
const HEADER_BYTES: usize = size_of::<FileHeader64<LE>>();

/// The path of the program's interpreter; `None` for a static program.
pub(super) fn interpreter(file: &[u8]) -> Result<Option<String>, &'static str> {
    let segments = segments(file).ok_or("not an x86-64 ELF program")?;
    let path = segments.iter().find_map(|segment| segment.interpreter(LE, file).transpose());
    let path = path.transpose().map_err(|_| "its interpreter's name is outside of the file")?;
    path.map(|path| String::from_utf8(path.to_vec()))
        .transpose()
        .map_err(|_| "its interpreter's name is not UTF-8")
}

/// The file up to its last mapped byte, without section headers; unchanged if it is not an ELF file.
pub(super) fn loadable_part(mut file: Vec<u8>) -> Vec<u8> {
    let loaded = segments(&file).into_iter().flatten().filter(|s| s.p_type(LE) == PT_LOAD);
    let ends = loaded.map(|s| s.p_offset(LE).checked_add(s.p_filesz(LE)));
    let end = ends.max().flatten().and_then(|end| usize::try_from(end).ok());
    if let Some(end) = end.filter(|end| (HEADER_BYTES..=file.len()).contains(end)) {
        file.truncate(end);
        file[40..48].fill(0); // e_shoff
        file[60..64].fill(0); // e_shnum, e_shstrndx
    }
    file
}

fn segments(file: &[u8]) -> Option<&[ProgramHeader64<LE>]> {
    let header = FileHeader64::<LE>::parse(file).ok()?;
    let is_program = header.endian().is_ok() && header.e_machine(LE) == EM_X86_64;
    header.program_headers(LE, file).ok().filter(|_| is_program)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cut_program_still_runs() {
        let echo = std::fs::read("/bin/echo").expect("every Linux has it");
        let whole = echo.len();
        let cut = loadable_part(echo);
        assert!(cut.len() < whole);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("echo");
        std::fs::write(&path, &cut).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("made executable");
        let output = Command::new(&path).arg("still here").output().expect("it starts");
        assert_eq!(output.stdout, b"still here\n");
    }

    #[test]
    fn the_interpreter_of_a_dynamic_program_is_found() {
        let echo = std::fs::read("/bin/echo").expect("every Linux has it");
        assert_eq!(interpreter(&echo), Ok(Some("/lib64/ld-linux-x86-64.so.2".to_owned())));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = interpreter(&bytes);
            if bytes.len() > 20 {
                bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
                bytes[18..20].copy_from_slice(&[62, 0]);
            }
            let _ = interpreter(&bytes);
            let length = bytes.len();
            prop_assert!(loadable_part(bytes).len() <= length);
        }
    }
}
