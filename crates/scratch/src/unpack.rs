//! Archives that others made, unpacked into a folder of our own.
//!
//! Nothing is written outside of the folder, and nothing but regular files and folders is made in it: a symbolic or
//! hard link becomes another name of the file that it leads to, if the archives have that file. Permissions are 0644, or
//! 0755 for programs. One [`Budget`] is for all archives that belong together, those within others included.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use tar::{Entry, EntryType};

/// Bytes of a path in an archive.
const PATH_BYTES_MAX: u64 = 4096;
/// Bytes at the start of an archive that say how it is compressed.
const MAGIC_BYTES: u64 = 4;
/// Links that lead to links, one after the other.
const LINKS_MAX: usize = 8;
/// Permissions of files.
const FILE_MODE: u32 = 0o644;
/// Permissions of programs.
const PROGRAM_MODE: u32 = 0o755;
/// One of these makes a file a program.
const EXECUTE: u32 = 0o111;

/// The limits of archives. Each archive spends from them, so that archives within archives share them.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Bytes, decompressed, that are left.
    pub bytes: u64,
    /// Files, folders and links that are left.
    pub members: u64,
}

/// Unpacks archives into a folder.
#[derive(Debug)]
pub struct Unpacker<'b> {
    folder: PathBuf,
    budget: &'b mut Budget,
    wanted: fn(&Path) -> bool,
    /// Links, and what they lead to, below the folder.
    links: Vec<(PathBuf, PathBuf)>,
    /// Links that lead out of it.
    outside: Vec<PathBuf>,
}

impl<'b> Unpacker<'b> {
    /// Unpacks into `folder`, which no other program writes to meanwhile.
    pub fn new(folder: &Path, budget: &'b mut Budget) -> Unpacker<'b> {
        let folder = folder.to_owned();
        Unpacker { folder, budget, wanted: |_| true, links: Vec::new(), outside: Vec::new() }
    }

    /// Leaves out the files whose path is not `wanted`.
    pub fn only(self, wanted: fn(&Path) -> bool) -> Unpacker<'b> {
        Unpacker { wanted, ..self }
    }

    /// Unpacks a tar archive, plain, or compressed by gzip or zstd.
    ///
    /// # Errors
    /// It is damaged, exceeds the budget, or has a path that leads out of the folder or a member that is no file, folder
    /// or link. What was unpacked until then is there.
    pub fn archive(&mut self, input: impl Read) -> io::Result<()> {
        let mut input = BufReader::new(input);
        let mut magic = Vec::new();
        input.by_ref().take(MAGIC_BYTES).read_to_end(&mut magic)?;
        let input = magic.chain(input);
        match magic[..] {
            [0x1f, 0x8b, ..] => self.tar(MultiGzDecoder::new(input)),
            [0x28, 0xb5, 0x2f, 0xfd] => {
                self.tar(StreamingDecoder::new(input).map_err(|error| damaged(&error))?)
            }
            _ => self.tar(input),
        }
    }

    fn tar(&mut self, input: impl Read) -> io::Result<()> {
        let limit = self.budget.bytes;
        let mut metered = Metered { input, left: limit };
        let unpacked = self.members(&mut tar::Archive::new(&mut metered));
        // A program that writes the archive ends when the padding after its end has been read, too.
        let unpacked = unpacked.and_then(|()| io::copy(&mut metered, &mut io::sink()).map(drop));
        self.budget.bytes = metered.left;
        unpacked
    }

    fn members(&mut self, archive: &mut tar::Archive<impl Read>) -> io::Result<()> {
        // Of the next member, where its head has no room for them.
        let (mut path, mut target) = (None, None);
        for member in archive.entries()?.raw(true) {
            let mut member = member?;
            let Some(left) = self.budget.members.checked_sub(1) else {
                return Err(refused("it has more files than are unpacked"));
            };
            self.budget.members = left;
            match member.header().entry_type() {
                EntryType::GNULongName => path = Some(name_in(&mut member)?),
                EntryType::GNULongLink => target = Some(name_in(&mut member)?),
                EntryType::XHeader => {
                    let text = content(&mut member)?;
                    for pair in tar::PaxExtensions::new(&text) {
                        let pair = pair?;
                        let place = match pair.key_bytes() {
                            b"path" => &mut path,
                            b"linkpath" => &mut target,
                            _ => continue,
                        };
                        *place = Some(path_of(pair.value_bytes()));
                    }
                }
                EntryType::XGlobalHeader => {}
                _ => self.member(&mut member, path.take(), target.take())?,
            }
        }
        Ok(())
    }

    fn member(
        &mut self,
        member: &mut Entry<'_, impl Read>,
        path: Option<PathBuf>,
        target: Option<PathBuf>,
    ) -> io::Result<()> {
        let named = path.unwrap_or_else(|| path_of(&member.path_bytes()));
        let Some(path) = within(Path::new(""), &named) else {
            return Err(refused(format_args!("`{}` leads out of its folder", named.display())));
        };
        if path.as_os_str().is_empty() || !(self.wanted)(&path) {
            return Ok(());
        }
        let place = self.folder.join(&path);
        match member.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(&place),
            EntryType::Regular | EntryType::Continuous => self.file(&place, member),
            kind @ (EntryType::Symlink | EntryType::Link) => {
                let target = target.or_else(|| Some(path_of(&member.link_name_bytes()?)));
                let base = match kind {
                    EntryType::Symlink => path.parent().unwrap_or(Path::new("")),
                    _ => Path::new(""),
                };
                match within(base, &target.unwrap_or_default()) {
                    Some(target) => self.links.push((path, target)),
                    None => self.outside.push(path),
                }
                Ok(())
            }
            _ => Err(refused(format_args!("`{}` is no file", path.display()))),
        }
    }

    fn file(&self, place: &Path, member: &mut Entry<'_, impl Read>) -> io::Result<()> {
        if let Some(above) = place.parent() {
            fs::create_dir_all(above)?;
        }
        // The last of several members of one name counts.
        match fs::remove_file(place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let is_program = member.header().mode()? & EXECUTE != 0;
        let mode = if is_program { PROGRAM_MODE } else { FILE_MODE };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(place)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        let size = member.header().entry_size()?;
        if io::copy(member, &mut file)? != size {
            return Err(refused(format_args!("it ends within `{}`", place.display())));
        }
        Ok(())
    }

    /// Makes the links, after the last archive. Those whose file is not there are left out. Returns those that lead out
    /// of the folder, which are left out, too.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(self) -> io::Result<Vec<PathBuf>> {
        let mut links = self.links;
        for _ in 0..LINKS_MAX {
            let before = links.len();
            let mut waiting = Vec::new();
            for (path, target) in links {
                let (place, file) = (self.folder.join(&path), self.folder.join(&target));
                if place.symlink_metadata().is_ok() {
                    continue;
                }
                if !file.symlink_metadata().is_ok_and(|known| known.is_file()) {
                    waiting.push((path, target));
                    continue;
                }
                if let Some(above) = place.parent() {
                    fs::create_dir_all(above)?;
                }
                fs::hard_link(file, place)?;
            }
            links = waiting;
            if links.len() == before {
                break;
            }
        }
        Ok(self.outside)
    }
}

/// Unpacks those files of one archive file that are `wanted`.
///
/// # Errors
/// As [`Unpacker::archive`]; a link that leads out of the folder is an error, too.
pub fn unpack_only(
    archive: &Path,
    folder: &Path,
    wanted: fn(&Path) -> bool,
    budget: &mut Budget,
) -> io::Result<()> {
    let mut unpacker = Unpacker::new(folder, budget).only(wanted);
    unpacker.archive(File::open(archive)?)?;
    match unpacker.finish()?.first() {
        None => Ok(()),
        Some(path) => {
            Err(refused(format_args!("the link `{}` leads out of its folder", path.display())))
        }
    }
}

/// The path below the top folder to which `path` leads from `base`, without `.` and `..`; `None`: it leads out of it.
fn within(base: &Path, path: &Path) -> Option<PathBuf> {
    let mut found = base.to_owned();
    for component in path.components() {
        match component {
            Component::Normal(name) => found.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !found.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(found)
}

fn path_of(bytes: &[u8]) -> PathBuf {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    PathBuf::from(std::ffi::OsStr::from_bytes(&bytes[..end]))
}

fn name_in(member: &mut Entry<'_, impl Read>) -> io::Result<PathBuf> {
    content(member).map(|bytes| path_of(&bytes))
}

/// The content of a member that names others.
fn content(member: &mut Entry<'_, impl Read>) -> io::Result<Vec<u8>> {
    if member.header().entry_size()? > 2 * PATH_BYTES_MAX {
        return Err(refused(format_args!("a path has more than {PATH_BYTES_MAX} bytes")));
    }
    let mut bytes = Vec::new();
    member.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn refused(problem: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.to_string())
}

fn damaged(error: &dyn std::fmt::Display) -> io::Error {
    refused(format_args!("it does not decompress: {error}"))
}

/// A reader of so many bytes at most.
struct Metered<R> {
    input: R,
    left: u64,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(bytes)?;
        self.left = self
            .left
            .checked_sub(count as u64)
            .ok_or_else(|| refused("it decompresses to more than is unpacked"))?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const PLENTY: Budget = Budget { bytes: 1 << 24, members: 1000 };

    /// A member as it is: kind, path, target of a link, permissions, content.
    type Member<'a> = (EntryType, &'a str, &'a str, u32, &'a [u8]);

    fn file<'a>(path: &'a str, content: &'a [u8]) -> Member<'a> {
        (EntryType::Regular, path, "", 0o644, content)
    }

    fn link<'a>(path: &'a str, target: &'a str) -> Member<'a> {
        (EntryType::Symlink, path, target, 0o777, b"")
    }

    fn tar_of(members: &[Member<'_>]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (kind, path, target, mode, content) in members {
            let mut head = tar::Header::new_gnu();
            // As it stands: the crate's own setters refuse what is tested here.
            head.as_gnu_mut().expect("GNU").name[..path.len()].copy_from_slice(path.as_bytes());
            head.as_gnu_mut().expect("GNU").linkname[..target.len()]
                .copy_from_slice(target.as_bytes());
            head.set_entry_type(*kind);
            head.set_mode(*mode);
            head.set_size(content.len() as u64);
            head.set_cksum();
            builder.append(&head, *content).expect("in memory");
        }
        builder.into_inner().expect("in memory")
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("in memory");
        encoder.finish().expect("in memory")
    }

    /// Unpacks into `in` of a folder that has nothing else; what is wrong, or the links that lead out.
    fn unpacked(
        archive: &[u8],
        mut budget: Budget,
    ) -> (tempfile::TempDir, io::Result<Vec<PathBuf>>) {
        let folder = tempfile::tempdir().expect("a folder");
        let inside = folder.path().join("in");
        fs::create_dir(&inside).expect("made");
        let mut unpacker = Unpacker::new(&inside, &mut budget);
        let done = unpacker.archive(archive).and_then(|()| unpacker.finish());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing outside");
        (folder, done)
    }

    #[test]
    fn files_are_unpacked_with_plain_permissions() {
        let long = format!("p/{}/c.txt", "d".repeat(120));
        let mut builder = tar::Builder::new(Vec::new());
        let mut head = tar::Header::new_gnu();
        head.set_size(4);
        head.set_mode(0o6755);
        head.set_entry_type(EntryType::Regular);
        builder.append_data(&mut head, &long, &b"text"[..]).expect("in memory");
        let tar = builder.into_inner().expect("in memory");
        for archive in [tar.clone(), gzip(&tar)] {
            let (folder, done) = unpacked(&archive, PLENTY);
            assert!(done.expect("unpacked").is_empty());
            let place = folder.path().join("in").join(&long);
            assert_eq!(fs::read(&place).expect("a file"), b"text");
            let mode = fs::metadata(&place).expect("a file").permissions().mode();
            assert_eq!(mode & 0o7777, PROGRAM_MODE, "no setuid bit");
        }
    }

    #[test]
    fn links_become_files_and_none_leads_out() {
        let members = [
            link("p/late.h", "sub/real.h"),
            link("p/chain.h", "late.h"),
            (EntryType::Link, "p/hard.h", "p/sub/real.h", 0o644, b""),
            file("p/sub/real.h", b"text"),
            link("p/gone.h", "nowhere.h"),
            link("p/zero.h", "/dev/zero"),
            link("p/up.h", "../../other"),
            link("p/own", "."),
        ];
        let (folder, done) = unpacked(&tar_of(&members), PLENTY);
        let outside = done.expect("unpacked");
        assert_eq!(outside, ["p/zero.h", "p/up.h"].map(PathBuf::from));
        let place = |name: &str| folder.path().join("in/p").join(name);
        for name in ["late.h", "chain.h", "hard.h"] {
            assert!(place(name).symlink_metadata().is_ok_and(|known| known.is_file()), "{name}");
            assert_eq!(fs::read(place(name)).expect("a file"), b"text");
        }
        for name in ["gone.h", "zero.h", "up.h", "own"] {
            assert!(place(name).symlink_metadata().is_err(), "{name}");
        }
    }

    #[test]
    fn what_leads_out_or_is_no_file_is_refused() {
        let refused: [&[Member<'_>]; 5] = [
            &[file("../out.txt", b"x")],
            &[file("/tmp/out.txt", b"x")],
            &[file("a/../../out.txt", b"x")],
            &[(EntryType::Char, "zero", "", 0o666, b"")],
            &[(EntryType::Fifo, "pipe", "", 0o666, b"")],
        ];
        for members in refused {
            let (_folder, done) = unpacked(&tar_of(members), PLENTY);
            assert_eq!(done.expect_err("refused").kind(), io::ErrorKind::InvalidData);
        }
        // A folder that is a link first: the files below it are in the folder that is made in its place.
        let (folder, done) =
            unpacked(&tar_of(&[link("p", "/tmp"), file("p/in.txt", b"x")]), PLENTY);
        assert_eq!(done.expect("unpacked"), [PathBuf::from("p")]);
        assert!(folder.path().join("in/p/in.txt").is_file());
    }

    #[test]
    fn a_budget_is_for_all_archives() {
        let zeros = vec![0; 1 << 20];
        let bomb = gzip(&tar_of(&[file("a", &zeros), file("b", &zeros)]));
        assert!(bomb.len() < zeros.len() / 100);
        let (_folder, done) = unpacked(&bomb, Budget { bytes: 3 << 19, members: 10 });
        assert!(done.expect_err("too large").to_string().contains("more than is unpacked"));
        let folder = tempfile::tempdir().expect("a folder");
        let mut budget = Budget { bytes: 3 << 20, members: 5 };
        let mut unpacker = Unpacker::new(folder.path(), &mut budget);
        unpacker.archive(&bomb[..]).expect("within the budget");
        unpacker.archive(&bomb[..]).expect_err("the second is not");
        let many: Vec<_> = ["a", "b", "c"].map(|name| file(name, b"")).to_vec();
        let (_folder, done) = unpacked(&tar_of(&many), Budget { bytes: 1 << 20, members: 2 });
        assert!(done.expect_err("too many").to_string().contains("more files"));
    }

    #[test]
    fn a_path_without_an_end_is_refused() {
        let name = vec![b'x'; 1 << 20];
        let long = (EntryType::GNULongName, "././@LongLink", "", 0o644, &name[..]);
        let (_folder, done) = unpacked(&tar_of(&[long, file("a", b"")]), PLENTY);
        assert!(done.expect_err("refused").to_string().contains("bytes"));
        let (_folder, done) = unpacked(&tar_of(&[file("a", &[7; 2000])])[..1024], PLENTY);
        done.expect_err("it ends early");
    }
}
