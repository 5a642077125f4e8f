//! What a test of the kernel is here: runs of its scheduler, and the workloads that stand for the tests' programs.

/// A test of the kernel.
pub(super) struct Selftest {
    pub(super) name: &'static str,
    pub(super) asserts: &'static str,
    pub(super) here: Here,
}

/// What becomes of a test in the simulated machine.
pub(super) enum Here {
    /// Its assertion holds in these runs. How, where that is not plain.
    Holds(&'static [Run], &'static str),
    /// It does not hold in them, and why.
    Fails(&'static [Run], &'static str),
    /// It means nothing here, and why.
    Without(&'static str),
}

/// A run of a test's scheduler, and what is asserted of it.
pub(super) struct Run {
    /// The object, `NAME.bpf.o`.
    pub(super) object: &'static str,
    /// The workload that stands for the test's program, in TOML.
    pub(super) workload: &'static str,
    /// Options of `run`.
    pub(super) words: &'static str,
    /// What the test's program sets and runs, as a profile.
    pub(super) profile: Option<&'static str>,
    /// The exit code.
    pub(super) code: i32,
    /// A part of the statement about its end; empty: the scheduler stays, and nothing is stated.
    pub(super) says: &'static str,
    /// What its variables hold at the end.
    pub(super) expect: &'static [&'static str],
    /// Variables that hold the same.
    pub(super) equal: &'static [&'static str],
    /// The least share of a group, % of one CPU.
    pub(super) share: Option<(&'static str, f64)>,
}

/// A run on four CPUs, to its end.
pub(super) const fn run(object: &'static str, workload: &'static str) -> Run {
    Run {
        object,
        workload,
        words: "--cpus 4",
        profile: None,
        code: 0,
        says: "",
        expect: &[],
        equal: &[],
        share: None,
    }
}

/// A run that ends with the scheduler's ejection, and `kind` as the kind of its exit.
pub(super) const fn ejected(
    object: &'static str,
    says: &'static str,
    expect: &'static [&'static str],
) -> Run {
    Run { code: 43, says, expect, ..run(object, BACKGROUND) }
}

/// A run in which a CPU comes or goes, which ends the scheduler.
pub(super) const fn hotplug(
    words: &'static str,
    profile: &'static str,
    says: &'static str,
    expect: &'static [&'static str],
) -> Run {
    Run { words, profile: Some(profile), code: 41, says, expect, ..run("hotplug", BACKGROUND) }
}

/// What a machine does while a test's program sleeps: tasks that sleep and yield, one that computes, one with one CPU.
pub(super) const BACKGROUND: &str = r#"
duration = "2s"

[[task]]
name = "sleeper"
count = 6
program = [{ loop = [{ sleep = "1ms" }, { run = "100us" }, "yield"] }]

[[task]]
name = "hog"
program = [{ run = "forever" }]

[[task]]
name = "pinned"
cpus = "1"
program = [{ loop = [{ run = "200us" }, { sleep = "2ms" }] }]
"#;

/// The program of the tests of CPU selection: 1028 children that sleep for a second.
pub(super) const CHILDREN: &str = r#"
duration = "3s"

[[task]]
name = "runner"
program = [{ loop = [{ fork = "select_cpu" }], times = 257 }, "wait"]

[[task]]
name = "select_cpu"
count = 4
program = [{ sleep = "1s" }, "exit"]
"#;

/// Four tasks on each of three CPUs that yield all the time.
pub(super) const YIELDERS: &str = r#"
duration = "1s"

[[task]]
name = "first"
count = 4
cpus = "0"
program = [{ loop = [{ run = "2us" }, "yield"] }]

[[task]]
name = "second"
count = 4
cpus = "1"
program = [{ loop = [{ run = "2us" }, "yield"] }]

[[task]]
name = "third"
count = 4
cpus = "2"
program = [{ loop = [{ run = "2us" }, "yield"] }]
"#;

/// Workers that compute and sleep, and one that changes its affinity.
pub(super) const WORKERS: &str = r#"
duration = "1500ms"

[cgroups.left]
[cgroups.right]

[[task]]
name = "worker"
count = 8
cgroup = "left"
program = [{ loop = [{ run = "300us" }, { sleep = "700us" }], times = 1000 }, "exit"]

[[task]]
name = "mover"
program = [{ loop = [{ sleep = "1ms" }, { cpus = "0-1" }, { run = "100us" }, { cpus = "0-2" }] }]
"#;

/// Options of a scenario of `dequeue`: all workers are moved to another control group, also those that wait.
macro_rules! scenario {
    ($number:literal) => {
        concat!(
            "--cpus 4 --set test_scenario=",
            $number,
            " --at 100us:task.worker.cgroup=right --at 200us:task.worker.cgroup=left \
              --at 300us:task.worker.cgroup=right --at 400us:task.worker.cgroup=left \
              --at 500us:task.worker.cgroup=right --at 1100us:task.worker.cgroup=left \
              --at 1200us:task.worker.cgroup=right --at 1300us:task.worker.cgroup=left"
        )
    };
}
pub(super) use scenario;

/// Three tasks, one after the other, alone on CPU 1.
pub(super) const ONE_BY_ONE: &str = r#"
duration = "1s"

[[task]]
name = "infinite"
cpus = "1"
program = [{ run = "100ms" }, "exit"]

[[task]]
name = "finite"
cpus = "1"
start = "300ms"
program = [{ run = "100ms" }, "exit"]

[[task]]
name = "second"
cpus = "1"
start = "600ms"
program = [{ run = "100ms" }, "exit"]
"#;

/// A real-time task and a task of the scheduler that compute on one CPU.
pub(super) const RT_AND_EXT: &str = r#"
duration = "5s"

[[task]]
name = "ext"
cpus = "0"
program = [{ run = "forever" }]

[[task]]
name = "rt"
cpus = "0"
policy = "fifo"
priority = 50
program = [{ run = "forever" }]
"#;

/// A task that moves itself between two CPUs: the one that it leaves has nothing to run.
pub(super) const MOVER: &str = r#"
duration = "1s"

[[task]]
name = "mover"
program = [{ loop = [{ cpus = "0" }, { run = "100us" }, { cpus = "1" }, { run = "100us" }] }]
"#;

/// The program that a test runs from user space, with the first task that there is.
pub(super) const FROM_USER: Option<&str> =
    Some("[run]\neach_second = [{ program = \"select_cpu_from_user\", args = { pid = 1000 } }]\n");

/// A scenario of `dequeue` in which the scheduler never has a task.
pub(super) const fn bypassing(words: &'static str) -> Run {
    Run {
        words,
        expect: &["uei.kind=64", "enqueue_cnt=0", "dequeue_cnt=0", "dispatch_dequeue_cnt=0"],
        ..run("dequeue", WORKERS)
    }
}

/// A scenario of `dequeue` in which it has every task.
pub(super) const fn keeping(words: &'static str) -> Run {
    Run {
        words,
        expect: &["uei.kind=64", "enqueue_cnt>0", "dispatch_dequeue_cnt>0", "change_dequeue_cnt>0"],
        equal: &["enqueue_cnt", "dequeue_cnt"],
        ..run("dequeue", WORKERS)
    }
}

/// `exit` leaves at one of its callbacks, with its number as code and message.
pub(super) const fn leaving(
    words: &'static str,
    expect: &'static [&'static str],
    says: &'static str,
) -> Run {
    Run { words, code: 41, says, expect, ..run("exit", BACKGROUND) }
}

pub(super) const STAYED: &[&str] = &["uei.kind=64"];
pub(super) const ERROR: &[&str] = &["uei.kind=1024"];
