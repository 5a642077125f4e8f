//! Debian's programs for a guest, with their libraries.
//!
//! Installed programs are used as they are. Others are downloaded by apt into the cache and unpacked there, with the
//! missing libraries; nothing is installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fairground_realkernel::packages::{PackageError, verify_checksums, write_checksums};
use fairground_realkernel::vm::GuestFile;
use fairground_scratch::put_folder;

/// A program and the Debian package that it comes with.
#[derive(Clone, Copy, Debug)]
pub struct DebianProgram {
    /// The file's name.
    pub name: &'static str,
    /// The package's name.
    pub package: &'static str,
}

/// `hackbench`, `stress-ng` and `rt-app`.
pub const HACKBENCH: DebianProgram = DebianProgram { name: "hackbench", package: "rt-tests" };
/// See above.
pub const STRESS_NG: DebianProgram = DebianProgram { name: "stress-ng", package: "stress-ng" };
/// See above.
pub const RT_APP: DebianProgram = DebianProgram { name: "rt-app", package: "rt-app" };

/// Folders of programs and libraries in Debian, below a root.
const PROGRAM_FOLDER: &str = "usr/bin";
const LIBRARY_FOLDER: &str = "usr/lib/x86_64-linux-gnu";

/// A program that the guest can start.
#[derive(Clone, Debug)]
pub struct PackedProgram {
    /// Its path in the guest.
    pub path: String,
    /// The program and its libraries, with their paths in the guest.
    pub files: Vec<GuestFile>,
}

impl DebianProgram {
    /// Finds the program, or downloads it into `cache`, and collects its libraries.
    ///
    /// # Errors
    /// Why it is not available.
    pub fn pack(&self, cache: &Path) -> Result<PackedProgram, String> {
        let root = cache.join("load").join(self.package);
        let program = match self.installed() {
            Some(program) => program,
            None => self.fetched(&root)?,
        };
        if root.is_dir() {
            verify_checksums(&root).map_err(|e| damaged(&root, &e))?;
        }
        let guest_path = format!("/usr/bin/{}", self.name);
        let mut files = vec![packed(&guest_path, &program)?];
        for library in libraries(&program, &root.join(LIBRARY_FOLDER))? {
            // The guest's linker searches only its own folders: the cache's libraries get Debian's paths.
            let name = library.file_name().ok_or("a library without a name")?.to_string_lossy();
            let at_home = library.starts_with(&root);
            let path = if at_home { format!("/{LIBRARY_FOLDER}/{name}") } else { text(&library) };
            files.push(packed(&path, &library)?);
        }
        Ok(PackedProgram { path: guest_path, files })
    }

    fn installed(&self) -> Option<PathBuf> {
        let path = env::var_os("PATH")?;
        env::split_paths(&path).map(|folder| folder.join(self.name)).find(|p| p.is_file())
    }

    /// The program in the cache, downloaded first if it is missing.
    fn fetched(&self, root: &Path) -> Result<PathBuf, String> {
        let program = root.join(PROGRAM_FOLDER).join(self.name);
        if program.is_file() {
            return Ok(program);
        }
        eprintln!("{} is not installed: downloading the package {}", self.name, self.package);
        let folder = root.parent().ok_or("a cache without a name")?;
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let scratch = tempfile::Builder::new().prefix(".fetch-").tempdir_in(folder);
        let scratch = scratch.map_err(|e| format!("{}: {e}", folder.display()))?;
        let (archives, unpacked) = (scratch.path().join("archives"), scratch.path().join("root"));
        fs::create_dir_all(archives.join("partial")).map_err(|e| e.to_string())?;
        let mut apt = Command::new("apt-get");
        apt.args(["-qq", "-y", "--download-only", "--no-install-recommends"]);
        apt.args(["-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User="]);
        apt.args(["-o", &format!("Dir::Cache::archives={}", archives.display())]);
        run(apt.args(["install", self.package]))?;
        for entry in fs::read_dir(&archives).map_err(|e| e.to_string())?.flatten() {
            if entry.path().extension().is_some_and(|e| e == "deb") {
                run(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(&unpacked))?;
            }
        }
        write_checksums(&unpacked).map_err(|e| e.to_string())?;
        // Atomic: it is put there last.
        put_folder(&unpacked, root).map_err(|e| format!("{}: {e}", root.display()))?;
        if program.is_file() {
            Ok(program)
        } else {
            Err(format!("the package {} brings no {}", self.package, self.name))
        }
    }
}

/// The text of an error of checksums says how a kernel is fetched again.
fn damaged(root: &Path, error: &PackageError) -> String {
    let what = match error {
        PackageError::Damaged { path } => {
            format!("{} has changed since it was fetched", path.display())
        }
        other => other.to_string(),
    };
    format!("{what}: remove {}", root.display())
}

fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).env("LC_ALL", "C").output();
    let output = output.map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim_end()))
    }
}

/// The files that the dynamic linker would load for a program, itself included; `own` is searched first.
fn libraries(program: &Path, own: &Path) -> Result<Vec<PathBuf>, String> {
    let mut command = Command::new(program);
    command.env("LD_TRACE_LOADED_OBJECTS", "1").env("LD_LIBRARY_PATH", own);
    let listing = run(&mut command)?;
    let mut found = Vec::new();
    for line in listing.lines().map(str::trim) {
        let path = match line.split_once(" => ") {
            Some((name, "not found")) => {
                return Err(format!("{}: the library {name} is missing", program.display()));
            }
            Some((_, place)) => place,
            None => line,
        };
        let path = path.split(" (0x").next().unwrap_or_default();
        // The kernel's own part (`linux-vdso.so.1`) is no file.
        if path.starts_with('/') {
            found.push(PathBuf::from(path));
        }
    }
    Ok(found)
}

fn packed(guest_path: &str, file: &Path) -> Result<GuestFile, String> {
    let content = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(GuestFile { path: guest_path.to_owned(), executable: true, content })
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_the_cache_that_changed_is_refused() {
        let cache = tempfile::tempdir().expect("a folder");
        let program = DebianProgram { name: "no-such-program-here", package: "of-a-test" };
        let root = cache.path().join("load/of-a-test");
        let file = root.join(PROGRAM_FOLDER).join(program.name);
        fs::create_dir_all(root.join(PROGRAM_FOLDER)).expect("made");
        fs::copy("/bin/true", &file).expect("a program");
        // Fetched before there were checksums: it gets them.
        let packed = program.pack(cache.path()).expect("it is there");
        assert_eq!(packed.path, "/usr/bin/no-such-program-here");
        fs::copy("/bin/false", &file).expect("another one");
        let error = program.pack(cache.path()).expect_err("refused");
        let words =
            ["no-such-program-here has changed since it was fetched", "remove", "of-a-test"];
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}
