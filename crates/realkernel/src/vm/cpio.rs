//! The archive that a kernel unpacks as its initramfs: cpio in the "newc" format.
//!
//! Each entry is a header of hexadecimal digits, the name and the content, both padded to four bytes
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`). Times and owners are zero: the same files give the
//! same bytes.

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive under construction.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    folders: Vec<String>,
}

impl Archive {
    /// Adds a folder and its parents, unless it exists.
    pub(crate) fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.folders.iter().any(|f| f == path) {
            return;
        }
        self.folders.push(path.to_owned());
        self.entry(path, FOLDER, (0, 0), &[]);
    }

    /// Adds a file of less than 4 GiB and its parent folders.
    pub(crate) fn file(&mut self, path: &str, executable: bool, content: &[u8]) {
        self.entry(path, if executable { PROGRAM } else { FILE }, (0, 0), content);
    }

    /// Adds a character device and its parent folders.
    pub(crate) fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, CHARACTER_DEVICE, (major, minor), &[]);
    }

    /// The complete archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let name = path.trim_matches('/');
        if let Some((above, _)) = name.rsplit_once('/') {
            self.folder(above);
        }
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("the caller refuses files of 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("a path has less than 4 GiB");
        let (links, root, time, checksum) = (1, 0, 0, 0);
        let (major, minor) = device;
        let file = [self.entries, mode, root, root, links, time, size];
        let fields = file.into_iter().chain([0, 0, major, minor, name_size, checksum]);
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn an_entry_is_110_digits_a_name_and_a_content_padded_to_four() {
        let mut archive = Archive::default();
        archive.file("a", true, b"hello");
        let bytes = archive.finish();
        let expected = concat!(
            "070701",
            "00000001",
            "000081ED",
            "00000000",
            "00000000",
            "00000001",
            "00000000",
            "00000005",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000002",
            "00000000",
            "a\0hello\0\0\0"
        );
        assert_eq!(std::str::from_utf8(&bytes[..expected.len()]), Ok(expected));
        assert_eq!(bytes.len() % 4, 0);
        assert!(bytes[expected.len()..].starts_with(b"070701"));
        assert!(bytes.windows(10).any(|w| w == b"TRAILER!!!"));
    }

    #[test]
    fn folders_come_before_what_they_hold_and_once() {
        let mut archive = Archive::default();
        archive.file("/lib/x/one", false, b"");
        archive.file("/lib/x/two", false, b"");
        archive.device("/dev/console", 5, 1);
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let at = |name: &str| text.find(&format!("{name}\0"));
        assert!(at("lib") < at("lib/x") && at("lib/x") < at("lib/x/one"));
        assert_eq!(text.matches("lib/x\0").count(), 1);
        assert!(
            text.contains("00000005000000010000000C00000000"),
            "major, minor, name's size, checksum"
        );
    }

    /// If the `cpio` program is installed, it lists the entries.
    #[test]
    fn cpio_reads_it() {
        use fairground_testing::unavailable;
        use std::io::Write as _;
        let mut archive = Archive::default();
        archive.file("/a/b/c", false, b"123456789");
        let Ok(mut child) = std::process::Command::new("cpio")
            .args(["-t", "--quiet"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
        else {
            return unavailable("archive-tool", "no program `cpio`");
        };
        child.stdin.take().expect("piped").write_all(&archive.finish()).expect("cpio reads");
        let output = child.wait_with_output().expect("cpio ends");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a\na/b\na/b/c\n");
    }
}
