//! Runs on this machine's kernel: a workload, its outcome, and checks for leftovers.

#![allow(dead_code, reason = "each file of tests uses a part of the rig")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fairground_realkernel::run::{Limits, RUNNER_COMMAND, on_host_by, write_job};
use fairground_realkernel::{Job, Outcome, TargetError};
use fairground_workload::{Workload, from_spec, parse, to_toml};

/// The runner's program.
pub(crate) const RUNNER: &str = env!("CARGO_BIN_EXE_fairground-runner");
/// Time limit of a run on a loaded machine.
const DEADLINE: Duration = Duration::from_secs(60);
/// Time limit for killed processes to exit.
const GONE_LIMIT: Duration = Duration::from_secs(10);

/// Builder of a run.
pub(crate) struct Bench {
    pub(crate) job: Job,
    pub(crate) folder: tempfile::TempDir,
}

/// A run of a workload of the library.
pub(crate) fn library(spec: &str) -> Bench {
    bench(&from_spec(spec).expect("a workload of the library"))
}

/// A run of a workload in TOML, without its header.
pub(crate) fn toml(body: &str) -> Bench {
    let text = format!("format = 1\nname = \"test\"\nduration = \"1s\"\n{body}");
    bench(&parse("test.toml", &text).unwrap_or_else(|error| panic!("{error}")))
}

fn bench(workload: &Workload) -> Bench {
    let job = Job {
        workload: to_toml(workload),
        duration_ns: 1_000_000_000,
        hold_ns: 0,
        on_the_second: false,
        seed: 1,
        scheduler: None,
        loader: None,
        knobs: Vec::new(),
        recording: None,
    };
    Bench { job, folder: tempfile::tempdir().expect("a folder") }
}

impl Bench {
    pub(crate) fn millis(mut self, ms: u64) -> Self {
        self.job.duration_ns = ms * 1_000_000;
        self
    }

    pub(crate) fn try_run(&self, deadline: Duration) -> Result<Outcome, TargetError> {
        self.try_run_within(Limits::of(deadline))
    }

    pub(crate) fn try_run_within(&self, limits: Limits<'_>) -> Result<Outcome, TargetError> {
        on_host_by(Path::new(RUNNER), &self.job, None, self.folder.path(), limits)
    }

    pub(crate) fn run(&self) -> Outcome {
        self.try_run(DEADLINE).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn error(&self) -> String {
        self.try_run(DEADLINE).expect_err("the run fails").to_string()
    }

    /// Starts the runner below a shell, as a program would.
    pub(crate) fn start_below_shell(&self) -> Child {
        write_job(&self.job, None, self.folder.path()).expect("a job");
        let mut shell = Command::new("sh");
        // A command after the runner prevents the shell from replacing itself with it.
        shell.args(["-c", "\"$0\" \"$1\" \"$2\"; exit 3", RUNNER, RUNNER_COMMAND]);
        shell.arg(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        shell.spawn().expect("a shell")
    }
}

/// Processes by name.
pub(crate) fn processes(comm: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").expect("/proc").flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim_end() == comm
        })
        .collect()
}

/// The parent of a process.
pub(crate) fn parent(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < GONE_LIMIT, "within 10 s: {what}");
        sleep(Duration::from_millis(5));
    }
}

pub(crate) fn kill(pid: u32) {
    let done = Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill");
    assert!(done.success());
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// The values of each task's marks of each label, in order of time.
pub(crate) fn marks(outcome: &Outcome) -> BTreeMap<(u32, String), Vec<u64>> {
    let mut all = BTreeMap::<_, Vec<u64>>::new();
    for mark in &outcome.marks {
        all.entry((mark.tid, mark.label.clone())).or_default().push(mark.value);
    }
    all
}

/// Completed operations of the tasks of a group.
pub(crate) fn ops(outcome: &Outcome, group: &str) -> Vec<u64> {
    let of_group =
        |name: &str| name == group || name.strip_prefix(group).is_some_and(|n| n.starts_with('/'));
    outcome.tasks.iter().filter(|task| of_group(&task.name)).map(|task| task.ops).collect()
}

/// The cgroup hierarchy with the `cpu` controller, if there is one.
pub(crate) fn cgroup_tree() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let dir = PathBuf::from(words.get(1)?);
        let controllers = fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
        let one = words[2] == "cgroup" && words[3].split(',').any(|option| option == "cpu");
        let two = words[2] == "cgroup2" && controllers.split_whitespace().any(|name| name == "cpu");
        (one || two).then_some(dir)
    })
}

/// The control groups of runs in the hierarchy.
pub(crate) fn cgroups(tree: &Path) -> Vec<String> {
    let entries = fs::read_dir(tree).expect("the tree").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("fairground-")).collect()
}
