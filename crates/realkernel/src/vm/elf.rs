//! ELF parsing for the initramfs: a program's interpreter, and the end of the part that the kernel maps.

const EHDR_SIZE: usize = 64;
const PHDR_SIZE: usize = 56;
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const X86_64: u16 = 62;
/// Maximum number of program headers.
const MAX_PROGRAM_HEADERS: u16 = 256;

/// A program header: its type and its range in the file.
struct Segment {
    kind: u32,
    start: u64,
    end: u64,
}

/// The path of the program's interpreter; `None` for a static program.
pub(super) fn interpreter(file: &[u8]) -> Result<Option<String>, &'static str> {
    let segments = segments(file).ok_or("not an x86-64 ELF program")?;
    let Some(found) = segments.iter().find(|s| s.kind == PT_INTERP) else { return Ok(None) };
    let path = range(file, found).ok_or("its interpreter's name is outside of the file")?;
    let path = std::str::from_utf8(path.strip_suffix(b"\0").unwrap_or(path));
    path.map(|p| Some(p.to_owned())).map_err(|_| "its interpreter's name is not UTF-8")
}

/// The file up to its last mapped byte, without section headers; unchanged if it is not an ELF file.
pub(super) fn loadable_part(mut file: Vec<u8>) -> Vec<u8> {
    let end = segments(&file)
        .and_then(|s| s.iter().filter(|s| s.kind == PT_LOAD).map(|s| s.end).max())
        .and_then(|end| usize::try_from(end).ok())
        .filter(|end| (EHDR_SIZE..=file.len()).contains(end));
    if let Some(end) = end {
        file.truncate(end);
        file[40..48].fill(0); // e_shoff
        file[60..64].fill(0); // e_shnum, e_shstrndx
    }
    file
}

fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    let is_elf64_little = file.len() >= EHDR_SIZE && file.starts_with(b"\x7fELF\x02\x01");
    if !is_elf64_little || u16_at(file, 18)? != X86_64 {
        return None;
    }
    let table = usize::try_from(u64_at(file, 32)?).ok()?;
    let count = u16_at(file, 56)?.min(MAX_PROGRAM_HEADERS);
    (0..usize::from(count))
        .map(|i| {
            let at = table.checked_add(i * PHDR_SIZE)?;
            let start = u64_at(file, at.checked_add(8)?)?;
            let end = start.checked_add(u64_at(file, at.checked_add(32)?)?)?;
            Some(Segment { kind: u32_at(file, at)?, start, end })
        })
        .collect()
}

fn range<'a>(file: &'a [u8], segment: &Segment) -> Option<&'a [u8]> {
    file.get(usize::try_from(segment.start).ok()?..usize::try_from(segment.end).ok()?)
}

fn bytes_at<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(file: &[u8], at: usize) -> Option<u16> {
    bytes_at(file, at).map(u16::from_le_bytes)
}

fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    bytes_at(file, at).map(u32::from_le_bytes)
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    bytes_at(file, at).map(u64::from_le_bytes)
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
