//! The pairs of programs, the guest that runs them, and the results.

mod seen;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fairground_analysis::TaskMetrics;
use fairground_realkernel::job::RecordingJob;
use fairground_realkernel::packages::Cache;
use fairground_realkernel::stream::Stream;
use fairground_realkernel::vm::{GuestCommand, GuestFile, VmConfig, run_command};
use fairground_realkernel::{Job, Outcome};
use fairground_testing::unavailable;
use fairground_tests::debian::{DebianProgram, HACKBENCH, RT_APP, STRESS_NG};
use fairground_tests::originals::{COMMAND, KIB_PER_CPU, PLAN_FILE, Plan, Run, What};
use fairground_trace::Trace;
use fairground_workload::{Workload, from_spec, parse, parse_rt_app, to_toml};

pub(crate) use seen::{Seen, Verdict, run_ns, switches, wakeups};

/// The kernel that runs them.
const KERNEL: &str = "7.2";
/// Several CPUs of the deterministic machine share one clock, which counts the instructions of all of them: our tasks
/// keep their slices short and compute by the clock (`fairground_realkernel::guest::slices`), which other programs do
/// not.
const CPUS: u32 = 1;
/// Space for the recordings, bytes.
const ROOM: u64 = 256 << 20;
/// Limit of the guest time of all runs, s: the deadline follows from it.
const GUEST_S: u64 = 60;
/// Writes of `switch`.
pub(crate) const SWITCH_OPS: u32 = 20_000;
/// Duration of the runs that do not end by themselves, s.
pub(crate) const LENGTH_S: u64 = 2;

/// stress-ng's `--switch`: a pipe that holds one message. The original's pipe holds one packet of a byte; ours one
/// page.
const SWITCH: &str = r#"
format = 1
name = "switch"
duration = "5s"

[[pipe]]
name = "tight"
capacity = 4096

[[task]]
name = "writer"
program = [{ loop = [{ write = { pipe = "tight", bytes = 4096 } }], times = OPS }]

[[task]]
name = "reader"
program = [{ loop = [{ read = { pipe = "tight", bytes = 4096 } }], times = OPS }]
"#;

/// A periodic task that resumes another one, one that sleeps, and a hog. Its counts must not depend on chance: no job
/// is longer than a slice of this kernel (0.7 ms), no period a multiple of its tick (4 ms), and the resumed task is
/// too light to preempt the other, which still holds the mutex that `resume` takes and would have to be woken once
/// more.
const VIDEO_FILE: &str = "video.json";
const VIDEO: &str = r#"{
  "tasks": {
    "decoder": {
      "run": 500,
      "resume": "display",
      "timer": { "ref": "frames", "period": 5300 }
    },
    "display": { "priority": 5, "suspend": "display", "run": 300 },
    "effects": { "run": 500, "sleep": 4100 },
    "hog": { "run": 10000 }
  },
  "global": {
    "duration": 2,
    "calibration": "CPU0",
    "default_policy": "SCHED_OTHER",
    "lock_pages": false,
    "ftrace": false,
    "logdir": "/tmp",
    "log_basename": "video"
  }
}
"#;

/// A program of Debian and our workload.
struct Pair {
    name: &'static str,
    program: DebianProgram,
    arguments: &'static str,
    /// Prefix of the names of its tasks; those of rt-app are in its file.
    tasks: &'static [&'static str],
    workload: fn() -> Workload,
    /// Limit of the duration of ours, s: one that ends sooner idles.
    seconds: u64,
}

const PAIRS: [Pair; 5] = [
    Pair {
        name: "hackbench-pipes",
        program: HACKBENCH,
        arguments: "-p -P -g 1 -f 20 -l 100 -s 100",
        tasks: &["hackbench"],
        workload: || from_spec("hackbench:1,fds=20,loops=100,rounds=1").expect("good"),
        seconds: 5,
    },
    Pair {
        name: "hackbench-sockets",
        program: HACKBENCH,
        arguments: "-P -g 1 -f 20 -l 100 -s 100",
        tasks: &["hackbench"],
        workload: || from_spec("hackbench:1,fds=20,loops=100,rounds=1,over=sockets").expect("good"),
        seconds: 5,
    },
    Pair {
        name: "switch",
        program: STRESS_NG,
        arguments: "--switch 1 --switch-ops 20000 --timeout 30 --temp-path /tmp",
        tasks: &["stress-ng-switc"],
        workload: || {
            parse("switch", &SWITCH.replace("OPS", &SWITCH_OPS.to_string())).expect("good")
        },
        seconds: 5,
    },
    Pair {
        name: "cpu",
        program: STRESS_NG,
        arguments: "--cpu 3 --timeout 2 --temp-path /tmp",
        tasks: &["stress-ng-cpu"],
        workload: || from_spec("hogs:3").expect("good"),
        seconds: LENGTH_S,
    },
    Pair {
        name: "rt-app",
        program: RT_APP,
        arguments: VIDEO_FILE,
        tasks: &["decoder", "display", "effects", "hog"],
        workload: || parse_rt_app(VIDEO_FILE, VIDEO).expect("good").workload,
        seconds: LENGTH_S,
    },
];

/// The guest's results, or why there are none, with the reasons for missing programs.
struct Guest {
    folder: PathBuf,
    left_out: Vec<(&'static str, String)>,
}

static GUEST: LazyLock<Result<Guest, String>> = LazyLock::new(run_all);

fn run_all() -> Result<Guest, String> {
    let cache = Cache::open().map_err(|error| error.to_string())?;
    let machine = cache
        .cached_qemu()
        .and_then(|qemu| Ok(VmConfig::new(qemu, cache.cached_kernel(KERNEL)?, CPUS)));
    let mut config = machine.map_err(|error| error.to_string())?;
    config.program = Some(env!("CARGO_BIN_EXE_originals").into());
    let (mut plan, mut left_out) = (Plan::default(), Vec::new());
    let mut packed = Vec::<GuestFile>::new();
    for pair in &PAIRS {
        let program = match pair.program.pack(cache.root()) {
            Ok(program) => program,
            Err(reason) => {
                left_out.push((pair.name, reason));
                continue;
            }
        };
        let words = std::iter::once(program.path.as_str()).chain(pair.arguments.split(' '));
        let words = words.map(str::to_owned).collect();
        let known = |path: &str| packed.iter().any(|file| file.path == path);
        let new: Vec<_> = program.files.into_iter().filter(|file| !known(&file.path)).collect();
        packed.extend(new);
        plan.runs.push(Run { name: format!("{}-real", pair.name), what: What::Program(words) });
        plan.runs.push(Run {
            name: format!("{}-ours", pair.name),
            what: What::Workload(Box::new(pair.job())),
        });
    }
    let command = GuestCommand {
        arguments: vec![COMMAND.to_owned()],
        duration_ns: GUEST_S * 1_000_000_000,
        files: vec![
            (PLAN_FILE.to_owned(), serde_json::to_vec(&plan).expect("plain data")),
            (VIDEO_FILE.to_owned(), VIDEO.into()),
        ],
        packed,
        room: ROOM,
    };
    // No static is dropped, so the folder is not a temporary one.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("beside");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let answer = run_command(&command, &config, &folder, &mut |_| true)
        .unwrap_or_else(|error| panic!("the guest: {error:#?}"));
    assert_eq!(answer.exit_code, 0, "{}", answer.console);
    Ok(Guest { folder, left_out })
}

impl Pair {
    fn job(&self) -> Job {
        Job {
            workload: to_toml(&(self.workload)()),
            duration_ns: self.seconds * 1_000_000_000,
            hold_ns: 0,
            on_the_second: false,
            seed: 1,
            scheduler: None,
            loader: None,
            knobs: Vec::new(),
            recording: Some(RecordingJob { kib_per_cpu: KIB_PER_CPU, ..RecordingJob::default() }),
        }
    }
}

/// Both sides of a pair: the program's and ours. `None`: not available, with the reason noted.
pub(crate) fn pair(name: &str) -> Option<(Seen, Seen)> {
    let guest = match &*GUEST {
        Ok(guest) => guest,
        Err(reason) => {
            unavailable("kernel", reason);
            return None;
        }
    };
    if let Some((_, reason)) = guest.left_out.iter().find(|(pair, _)| *pair == name) {
        unavailable("originals", reason);
        return None;
    }
    let pair = PAIRS.iter().find(|pair| pair.name == name).expect("a pair of the table");
    let folder = guest.folder.as_path();
    let real = format!("{name}-real");
    let text = fs::read_to_string(folder.join(format!("{real}.txt"))).expect("what it printed");
    let is_its = |task: &TaskMetrics| pair.tasks.iter().any(|start| task.name.starts_with(start));
    let real = Seen::of(recording(folder, &real), text, is_its);

    let ours = format!("{name}-ours");
    let outcome = fs::read(folder.join(format!("{ours}.json"))).expect("an outcome");
    let outcome: Outcome = serde_json::from_slice(&outcome).expect("an outcome is JSON");
    assert_eq!(outcome.notes, Vec::<String>::new());
    let stream = Stream::of(&outcome, &recording(folder, &ours));
    let of_workload = |task: &TaskMetrics| !task.name.starts_with("other");
    Some((real, Seen::of(stream.trace, String::new(), of_workload)))
}

fn recording(folder: &Path, name: &str) -> Trace {
    let path = folder.join(format!("{name}.dat"));
    let bytes = fs::read(&path).expect("a recording");
    fairground_trace::read(name, &bytes[..]).expect("a whole recording")
}
