//! Instances of tracefs: separate buffers and settings.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::RecordError;
use fairground_scratch::{Guard, is_left, name_of_own};

/// Prefix of the instances' names; process number and start time follow.
const PREFIX: &str = "fairground-";
/// Maximum number of instances of a process.
const INSTANCES_MAX: u32 = 64;
/// Attempts to remove an instance that is busy, and the pause between them: two seconds, for a process that was killed
/// may wait for a CPU of a loaded machine before it closes its files.
const REMOVALS_MAX: u32 = 400;
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);

/// A folder `instances/fairground-PID-START-N`. Dropping this removes it, and a guard does when the program is killed.
#[derive(Debug)]
pub(super) struct Instance {
    /// The root folder of tracefs.
    root: PathBuf,
    dir: PathBuf,
    // Dropped after the folder is removed.
    _guard: Option<Guard>,
}

impl Instance {
    /// Creates an instance, and removes those of killed processes.
    pub(super) fn make(root: &Path) -> Result<Self, RecordError> {
        let folder = root.join("instances");
        remove_stale(&folder);
        for number in 0..INSTANCES_MAX {
            let dir = folder.join(name_of_own(PREFIX, number));
            if dir.exists() {
                continue;
            }
            // Before there is anything to remove.
            let guard = Guard::of_instance(&dir);
            match fs::create_dir(&dir) {
                Ok(()) => return Ok(Self { root: root.to_owned(), dir, _guard: guard }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(RecordError::of(&dir, "make the instance", e)),
            }
        }
        let full = io::Error::other(format!("this process has {INSTANCES_MAX} recordings already"));
        Err(RecordError::of(&folder, "make an instance", full))
    }

    /// The root folder of tracefs.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A file of the instance.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    pub(super) fn has(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    pub(super) fn read(&self, file: &str) -> Result<String, RecordError> {
        read_text(&self.path(file))
    }

    pub(super) fn write(&self, file: &str, text: &str) -> Result<(), RecordError> {
        let path = self.path(file);
        fs::write(&path, text).map_err(|e| RecordError::of(&path, "write", e))
    }

    /// Opens a file, closed on exec.
    pub(super) fn open(&self, file: &str, options: &OpenOptions) -> Result<File, RecordError> {
        let path = self.path(file);
        options.open(&path).map_err(|e| RecordError::of(&path, "open", e))
    }

    /// The numbers of the CPUs that have buffers, in order.
    pub(super) fn cpus(&self) -> Result<Vec<u32>, RecordError> {
        let path = self.path("per_cpu");
        let entries = fs::read_dir(&path).map_err(|e| RecordError::of(&path, "read", e))?;
        let number = |name: &str| name.strip_prefix("cpu")?.parse().ok();
        let mut cpus: Vec<u32> =
            entries.filter_map(|entry| number(entry.ok()?.file_name().to_str()?)).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Disable events first, so that an instance that is in use and cannot be removed at least stops recording.
        let _ = fs::write(self.path("tracing_on"), "0");
        let _ = fs::write(self.path("events/enable"), "0");
        // A process that was just forked or killed may still have a file of it open.
        for _ in 0..REMOVALS_MAX {
            match fs::remove_dir(&self.dir) {
                Err(e) if e.kind() == io::ErrorKind::ResourceBusy => thread::sleep(REMOVAL_PAUSE),
                _ => return,
            }
        }
    }
}

/// Reads a file of tracefs. Some return data to the first read only, whatever its size (`show_header` in
/// `kernel/trace/trace_events.c`), so the buffer is large.
pub(super) fn read_text(path: &Path) -> Result<String, RecordError> {
    const AT_ONCE: usize = 64 << 10;
    let read = || {
        let mut file = File::open(path)?;
        let (mut bytes, mut part) = (Vec::new(), vec![0; AT_ONCE]);
        loop {
            match file.read(&mut part) {
                Ok(0) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                Ok(n) => bytes.extend_from_slice(&part[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    };
    read().map_err(|e| RecordError::of(path, "read", e))
}

/// Removes the instances of processes that have ended.
fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_name().to_str().is_some_and(|name| is_left(name, PREFIX)) {
            drop(Instance { root: folder.to_owned(), dir: entry.path(), _guard: None });
        }
    }
}
