//! The control groups of a workload, below the root of the kernel's hierarchy: version 2 (`cpu.weight`), or version 1
//! (`cpu.shares`; a weight of 100 is 1,024 shares).
//!
//! Their names contain the process number and the start time of the runner, so that later runs can remove those whose
//! runner has died.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use fairground_workload::{Bandwidth, Cgroup, Workload};

use super::error::TaskError;
use super::text::Line;
use fairground_scratch::start_time;

/// Prefix of the groups' names.
const PREFIX: &str = "fairground-";
/// Attempts to remove a group, whose last process may still be exiting.
const REMOVE_TRIES: u32 = 100;
/// Shares (version 1) of a group of weight 100.
const SHARES_DEFAULT: u64 = 1_024;
/// The weight that corresponds to [`SHARES_DEFAULT`].
const WEIGHT_DEFAULT: u64 = 100;
/// Maximum nesting of groups in the search for leftovers.
const DEPTH_MAX: u32 = 32;

/// The version of the hierarchy that has the `cpu` controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The groups of one run. They are removed when this is dropped.
#[derive(Debug)]
pub(super) struct Cgroups {
    version: Version,
    /// By index in the workload; the first is the root.
    dirs: Vec<PathBuf>,
    /// Their paths below the root of the hierarchy.
    paths: Vec<String>,
    /// The files to enter each group.
    enter: Vec<OwnedFd>,
    /// The files to set the weight of each group except the root.
    weight: Vec<Option<OwnedFd>>,
    /// The process that created them; only it removes them.
    owner: u32,
}

impl Cgroups {
    /// Creates the groups of a workload; `None` if it has none.
    pub(super) fn new(workload: &Workload) -> Result<Option<Self>, TaskError> {
        if workload.cgroups.is_empty() {
            return Ok(None);
        }
        remove_leftovers();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let (version, base) = tree(&mounts).ok_or_else(|| TaskError::Unfit {
            problem: "the workload has control groups, but no cgroup hierarchy with the `cpu` \
                      controller is mounted"
                .to_owned(),
            help:
                "mount one (mount -t cgroup2 none /sys/fs/cgroup), or run it in a virtual machine"
                    .to_owned(),
        })?;
        let owner = std::process::id();
        let mut groups = Self {
            version,
            dirs: vec![base.clone()],
            paths: vec!["/".to_owned()],
            enter: Vec::new(),
            weight: vec![None],
            owner,
        };
        if version == Version::Two {
            enable(&base)?;
        }
        groups.enter.push(open(&base.join("cgroup.procs"))?);
        let nested =
            workload.cgroups.iter().any(|group| group.path.contains('/') && group.path.len() > 1);
        for group in workload.cgroups.iter().skip(1) {
            let path = format!("{}{}", prefix_of(owner), group.path);
            let dir = base.join(&path);
            groups.paths.push(format!("/{path}"));
            fs::create_dir(&dir)
                .map_err(|error| system(&format!("make {}", dir.display()), error))?;
            groups.dirs.push(dir.clone());
            if version == Version::Two && nested {
                // Only threaded groups may contain both groups and tasks.
                write(&dir.join("cgroup.type"), "threaded")?;
                enable(&dir)?;
            }
            groups.enter.push(open(&dir.join("cgroup.procs"))?);
            let file = if version == Version::Two { "cpu.weight" } else { "cpu.shares" };
            groups.weight.push(Some(open(&dir.join(file))?));
            let number = groups.weight.len() - 1;
            if !groups.set_weight(number, group.weight) {
                return Err(TaskError::last(format!("set the weight of {}", dir.display()), None));
            }
            limit(&dir, version, group)?;
        }
        Ok(Some(groups))
    }

    /// The descriptors that tasks need.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.enter.iter().chain(self.weight.iter().flatten()).map(AsRawFd::as_raw_fd)
    }

    /// Moves the calling process into a group. Allocates nothing.
    pub(super) fn enter(&self, cgroup: usize) -> bool {
        self.enter.get(cgroup).is_some_and(|file| write_to(file, b"0"))
    }

    /// A group's path below the root of the hierarchy.
    pub(super) fn path(&self, cgroup: usize) -> &str {
        self.paths.get(cgroup).map_or("/", String::as_str)
    }

    /// Sets a group's weight. Allocates nothing.
    pub(super) fn set_weight(&self, cgroup: usize, weight: u32) -> bool {
        let Some(Some(file)) = self.weight.get(cgroup) else { return false };
        let weight = u64::from(weight);
        let number = match self.version {
            Version::One => (weight * SHARES_DEFAULT + WEIGHT_DEFAULT / 2) / WEIGHT_DEFAULT,
            Version::Two => weight,
        };
        write_to(file, Line::of(format_args!("{number}")).bytes())
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            for dir in self.dirs.iter().skip(1).rev() {
                remove(dir);
            }
        }
    }
}

/// Writes a group's limit and whether it is idle, where they are not as in a new group.
fn limit(dir: &Path, version: Version, group: &Cgroup) -> Result<(), TaskError> {
    let Bandwidth { quota_us, period_us, burst_us } = group.max;
    if group.max != Bandwidth::NO_LIMIT {
        let burst = match version {
            Version::One => {
                let quota = quota_us.map_or("-1".to_owned(), |us| us.to_string());
                write(&dir.join("cpu.cfs_period_us"), &period_us.to_string())?;
                write(&dir.join("cpu.cfs_quota_us"), &quota)?;
                "cpu.cfs_burst_us"
            }
            Version::Two => {
                let quota = quota_us.map_or("max".to_owned(), |us| us.to_string());
                write(&dir.join("cpu.max"), &format!("{quota} {period_us}"))?;
                "cpu.max.burst"
            }
        };
        if burst_us > 0 {
            write(&dir.join(burst), &burst_us.to_string())?;
        }
    }
    if group.idle { write(&dir.join("cpu.idle"), "1") } else { Ok(()) }
}

fn write_to(file: &OwnedFd, bytes: &[u8]) -> bool {
    // SAFETY: the kernel reads so many bytes.
    unsafe { libc::write(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) > 0 }
}

fn system(what: &str, error: io::Error) -> TaskError {
    let help = "control groups require root: use sudo, or run in a virtual machine";
    TaskError::System { what: what.to_owned(), error, help: Some(help.to_owned()) }
}

fn open(path: &Path) -> Result<OwnedFd, TaskError> {
    let file = fs::OpenOptions::new().write(true).open(path);
    Ok(file.map_err(|error| system(&format!("write {}", path.display()), error))?.into())
}

fn write(path: &Path, text: &str) -> Result<(), TaskError> {
    fs::write(path, text)
        .map_err(|error| system(&format!("write `{text}` into {}", path.display()), error))
}

/// Enables the controller for child groups.
fn enable(dir: &Path) -> Result<(), TaskError> {
    let file = dir.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&file).unwrap_or_default();
    if enabled.split_whitespace().any(|controller| controller == "cpu") {
        return Ok(());
    }
    write(&file, "+cpu")
}

/// The mounted hierarchy that has the `cpu` controller.
fn tree(mounts: &str) -> Option<(Version, PathBuf)> {
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(dir), Some(kind), Some(options)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let dir = PathBuf::from(dir);
        if kind == "cgroup" && options.split(',').any(|option| option == "cpu") {
            return Some((Version::One, dir));
        }
        let controllers = fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
        if kind == "cgroup2" && controllers.split_whitespace().any(|name| name == "cpu") {
            return Some((Version::Two, dir));
        }
    }
    None
}

fn prefix_of(pid: u32) -> String {
    format!("{PREFIX}{pid}-{}-", start_time(pid).unwrap_or(0))
}

/// Whether the runner that created a group of this name has died.
fn abandoned(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else { return false };
    let mut parts = rest.splitn(3, '-');
    let numbers = (parts.next().map(str::parse::<u32>), parts.next().map(str::parse::<u64>));
    let (Some(Ok(pid)), Some(Ok(start))) = numbers else { return false };
    start_time(pid) != Some(start)
}

/// Removes the groups of runs whose runner has died.
pub(crate) fn remove_leftovers() {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let Some((_, base)) = tree(&mounts) else { return };
    for entry in fs::read_dir(&base).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(abandoned) {
            remove_below(&entry.path(), 0);
        }
    }
}

fn remove_below(dir: &Path, depth: u32) {
    if depth == DEPTH_MAX {
        return;
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path(), depth + 1);
        }
    }
    remove(dir);
}

fn remove(dir: &Path) {
    for _ in 0..REMOVE_TRIES {
        match fs::remove_dir(dir) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                sleep(Duration::from_millis(10));
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_with_the_controller_is_found() {
        let mounts = "none /proc proc rw 0 0\ncgroup /cg/mem cgroup rw,memory 0 0\n\
                      cgroup /cg/cpu cgroup rw,relatime,cpu 0 0\n";
        assert_eq!(tree(mounts), Some((Version::One, PathBuf::from("/cg/cpu"))));
        assert_eq!(tree("none /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn only_groups_of_dead_runners_are_abandoned() {
        let own = std::process::id();
        assert!(!abandoned(&format!("{}web", prefix_of(own))));
        assert!(abandoned(&format!("fairground-{own}-1-web")), "an earlier process of this number");
        assert!(!abandoned("user.slice"));
        assert!(!abandoned("fairground-x-y"));
    }
}
