//! The load: tasks of every kind, as a job of a runner; and programs beside it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairground_realkernel::job::{ERROR_FILE, JOB_FILE, Job, OUTCOME_FILE, Outcome};
use fairground_realkernel::run::RUNNER_COMMAND;

use super::SchedulerReport;
use super::beside::Beside;

/// Time by which a runner may exceed its job before it counts as stuck.
const GRACE: Duration = Duration::from_secs(60);

/// Hogs of several nice values, sleepers, a pair with a pipe, a pair with queues, forks, yields, and a task that
/// changes its nice value and its affinity. None of them may wait forever.
pub const WORKLOAD: &str = r#"
format = 1
name = "soak"
duration = "10s"

[[pipe]]
name = "there"
[[pipe]]
name = "back"
[[queue]]
name = "question"
[[queue]]
name = "answer"

[[task]]
name = "hog"
count = 2
program = [{ loop = [{ run = "3ms" }] }]

[[task]]
name = "nice-hog"
nice = 5
program = [{ loop = [{ run = "3ms" }] }]

[[task]]
name = "sleeper"
count = 3
program = [{ loop = [{ run = "50us..200us" }, { sleep = "1ms..3ms" }] }]

[[task]]
name = "ping"
program = [{ loop = [{ write = "there" }, { read = "back" }] }]
[[task]]
name = "pong"
program = [{ loop = [{ read = "there" }, { write = "back" }] }]

[[task]]
name = "client"
program = [{ loop = [{ send = "question" }, { receive = "answer" }, { run = "100us" }] }]
[[task]]
name = "server"
program = [{ loop = [{ receive = "question" }, { run = "50us" }, { send = "answer" }] }]

[[task]]
name = "forker"
program = [{ loop = [{ fork = "child" }, "wait", { sleep = "2ms" }], times = 2000 },
  { loop = [{ run = "1ms" }, { sleep = "5ms" }] }]
[[task]]
name = "child"
program = [{ run = "100us" }, "exit"]

[[task]]
name = "polite"
program = [{ loop = [{ run = "100us" }, "yield", { sleep = "500us" }] }]

[[task]]
name = "changer"
program = [{ loop = [
  { nice = 10 }, { run = "1ms" }, { cpus = "0" }, { run = "1ms" },
  { nice = 0 }, { run = "1ms" }, { cpus = "0-1" }, { sleep = "1ms" },
] }]
"#;

/// A running load. Dropping it ends it.
pub(super) struct Load {
    runner: Child,
    folder: PathBuf,
    deadline: Instant,
    beside: Vec<Beside>,
}

impl Load {
    /// Starts it with a duration.
    pub(super) fn start(
        folder: &Path,
        length: Duration,
        programs: &[Vec<String>],
    ) -> io::Result<Load> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        let job = Job {
            workload: WORKLOAD.to_owned(),
            duration_ns: length.as_nanos() as u64,
            hold_ns: 0,
            on_the_second: false,
            seed: 1,
            scheduler: None,
            loader: None,
            knobs: Vec::new(),
            recording: None,
        };
        fs::write(folder.join(JOB_FILE), serde_json::to_vec(&job)?)?;
        let runner = Command::new(std::env::current_exe()?)
            .arg(RUNNER_COMMAND)
            .arg(folder)
            .stdin(Stdio::null())
            .spawn()?;
        let deadline = Instant::now() + length + GRACE;
        let mut load = Load { runner, folder: folder.to_owned(), deadline, beside: Vec::new() };
        for program in programs {
            load.beside.push(Beside::start(program)?);
        }
        Ok(load)
    }

    /// Whether the job still runs. Restarts programs beside it that have ended.
    pub(super) fn is_running(&mut self, report: &mut SchedulerReport) -> bool {
        self.beside.iter_mut().for_each(Beside::keep_going);
        if Instant::now() > self.deadline {
            report
                .problems
                .push(format!("the load did not end {} s after its time", GRACE.as_secs()));
            return false;
        }
        matches!(self.runner.try_wait(), Ok(None))
    }

    /// Takes the progress of each task and each worker of a program into the report, and returns those without any.
    pub(super) fn finish(mut self, report: &mut SchedulerReport) -> Vec<String> {
        let mut ops: BTreeMap<String, u64> = BTreeMap::new();
        for beside in &mut self.beside {
            ops.extend(beside.finish());
            report.program_runs += beside.runs;
            report.problems.append(&mut beside.problems);
        }
        match self.outcome() {
            // Children of the forks count together, since each lives shortly.
            Ok(outcome) => outcome.tasks.iter().for_each(|task| {
                let child = task.name.starts_with("child");
                let name = if child { "child" } else { task.name.as_str() };
                *ops.entry(name.to_owned()).or_default() += task.ops;
            }),
            Err(problem) => report.problems.push(problem),
        }
        let idle: Vec<String> =
            ops.iter().filter(|(_, ops)| **ops == 0).map(|(name, _)| name.clone()).collect();
        if !idle.is_empty() {
            return idle;
        }
        report.workers = report.workers.max(ops.len());
        let least = ops.values().copied().min().unwrap_or(0);
        report.least_ops = if report.least_ops == 0 { least } else { report.least_ops.min(least) };
        idle
    }

    fn outcome(&self) -> Result<Outcome, String> {
        let bytes = fs::read(self.folder.join(OUTCOME_FILE)).map_err(|error| {
            let said = fs::read_to_string(self.folder.join(ERROR_FILE)).unwrap_or_default();
            format!("the load left no outcome: {error}; {}", said.trim_end())
        })?;
        serde_json::from_slice(&bytes).map_err(|error| format!("the load's outcome: {error}"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // The runner's tasks exit with it.
        let _ = self.runner.kill();
        let _ = self.runner.wait();
    }
}
