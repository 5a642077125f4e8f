//! Third-party objects: the kernel's own examples, in the simulated machine and in a virtual one, from the
//! same bytes. `make third-party` builds them into the cache, `make kernels` fetches the kernel.

use std::path::{Path, PathBuf};

use fairground_testing::unavailable;

use crate::support::{Files, bootable, fairground, refusal, success};

const EXAMPLES: [&str; 4] = ["scx_simple", "scx_central", "scx_flatcg", "scx_qmap"];

/// The objects' folder; `None` where they were not built.
fn cache() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    let cache = base.join("fairground/third-party");
    if cache.join("version").is_file() {
        return Some(cache);
    }
    let reason = format!("{} holds no objects; run `make third-party`", cache.display());
    unavailable("third-party", reason);
    None
}

fn in_tree(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).display().to_string()
}

fn profile(example: &str) -> String {
    in_tree(&format!("experiments/profiles/{example}.toml"))
}

/// Arguments of a checked run of 4 CPUs with a profile.
fn arguments(cache: &Path, example: &str, workload: &str, more: &[&str]) -> Vec<String> {
    let object = cache.join(format!("{example}.bpf.o")).display().to_string();
    let fixed = ["run", workload, "--cpus", "4", "--check", "--quiet", "--sched", &object];
    let mut all: Vec<String> = fixed.iter().map(|word| (*word).to_owned()).collect();
    all.extend(["--profile".to_owned(), profile(example)]);
    all.extend(more.iter().map(|word| (*word).to_owned()));
    all
}

/// What such a run prints; it must end well.
fn run(cache: &Path, example: &str, workload: &str, more: &[&str]) -> String {
    let all = arguments(cache, example, workload, more);
    success(&all.iter().map(String::as_str).collect::<Vec<_>>())
}

/// CPU shares by task or group (`run,of,task,metric,value,unit`), % of one CPU.
fn shares(csv: &str, of: &str) -> Vec<(String, f64)> {
    let share = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let wanted = cells.len() == 6 && cells[1] == of && cells[3] == "cpu_share";
        wanted.then(|| (cells[2].to_owned(), cells[4].parse().expect("a number")))
    };
    csv.lines().filter_map(share).collect()
}

/// Eight equal hogs on four CPUs get equal shares under every one of them: half a CPU each.
#[test]
fn equal_hogs_get_equal_shares() {
    let Some(cache) = cache() else { return };
    for example in EXAMPLES {
        let more = ["--duration", "5s", "--per", "task", "--format", "csv"];
        let shares = shares(&run(&cache, example, "hogs:8", &more), "task");
        println!("{example}: {shares:?}");
        assert_eq!(shares.len(), 8, "{example}");
        for (name, share) in shares {
            assert!((share - 50.0).abs() < 1.5, "{example}: {name} has {share} %");
        }
    }
}

/// Every task sends and receives all and ends; no task is left behind.
#[test]
fn messages_arrive_to_the_last() {
    let Some(cache) = cache() else { return };
    let workload = in_tree("tests/tests/fixtures/hackbench.toml");
    let cases = [(workload.as_str(), 16), ("hackbench:2,rounds=2", 161)];
    for (example, (workload, tasks)) in EXAMPLES.iter().flat_map(|e| cases.map(|case| (e, case))) {
        let trace = run(&cache, example, workload, &["--trace", "-"]);
        let ends = trace.lines().filter(|line| line.contains("sched_process_exit:")).count();
        assert_eq!(ends, tasks, "{example}");
        let last = trace.lines().rfind(|line| line.contains("sched_process_exit:"));
        println!("{example}: {}", last.unwrap_or_default().trim());
    }
}

/// Both engines run the same bytes to the same trace.
#[test]
fn both_engines_agree() {
    let Some(cache) = cache() else { return };
    for example in EXAMPLES {
        let traces = ["jit", "interpreter"].map(|engine| {
            let more = ["--duration", "500ms", "--trace", "-", "--engine", engine];
            run(&cache, example, "hogs:3+sleepers:4", &more)
        });
        assert!(traces[0] == traces[1], "{example}");
        assert!(traces[0].lines().count() > 100, "{example}");
    }
}

/// scx_flatcg multiplies weights down the tree: its own opening example, B and C of weight 100 in A of 100, beside D
/// of 200.
#[test]
fn flatcg_shares_by_weights_down_the_tree() {
    let Some(cache) = cache() else { return };
    let workload = "containers:a=100 a/b=100:4 a/c=100:4 d=200:4";
    let more = ["--duration", "20s", "--per", "cgroup", "--format", "csv"];
    let shares = shares(&run(&cache, "scx_flatcg", workload, &more), "cgroup");
    println!("{shares:?}");
    for (path, expected) in [("a/b", 400.0 / 6.0), ("a/c", 400.0 / 6.0), ("d", 800.0 / 3.0)] {
        let share = shares.iter().find(|(name, _)| name == path).expect("the cgroup is there").1;
        assert!((share - expected).abs() < 0.05 * expected, "{path}: {share}, not {expected}");
    }
}

/// What the loader sets is what makes an object run: without it, it fails, and what is required is named.
#[test]
fn a_setting_that_is_missing_is_named() {
    let Some(cache) = cache() else { return };
    let object = cache.join("scx_qmap.bpf.o").display().to_string();
    let bare = fairground(&["run", "hogs:2", "--quiet", "--sched", &object]);
    assert_eq!(bare.status.code(), Some(43), "it ejects itself");
    let said = String::from_utf8_lossy(&bare.stdout).into_owned();
    assert!(said.contains("max_tasks must be > 0"), "{said}");
    assert!(said.contains("were not set: `slice_ns`") && !said.contains("dump_len"), "{said}");
    let files = Files::new();
    let text = std::fs::read_to_string(profile("scx_qmap")).expect("the profile is there");
    let short = files.write("short.toml", text.replace("max_tasks = 16384", ""));
    let run = ["run", "hogs:2", "--sched", &object, "--profile", &short];
    let said = refusal(&run);
    assert!(said.contains("cannot run without `max_tasks`"), "{said}");
    success(&[&run[..], &["--set", "max_tasks=64", "--duration", "50ms"]].concat());
}

/// On a kernel, too: the kernel says why it ends the object, and the program which setting is missing.
#[test]
fn a_setting_that_a_kernel_misses_is_named() {
    let Some(cache) = cache() else { return };
    let Some(vm) = bootable() else { return };
    let object = cache.join("scx_qmap.bpf.o").display().to_string();
    let run = ["run", "hogs:1", "--on", vm, "--quiet", "--sched", &object];
    let said = refusal(&run);
    assert!(said.contains("max_tasks must be > 0"), "{said}");
    assert!(said.contains("were not set: `slice_ns`"), "{said}");
}

/// Shares of the groups of a workload in what its tasks got together, %, and how many of its tasks came to their end.
struct Seen {
    shares: Vec<(String, f64)>,
    ends: usize,
}

/// A run of 4 CPUs with a profile on one target. Of the groups only those that are named count.
fn on(target: &str, cache: &Path, example: &str, workload: &str, groups: &[&str]) -> Seen {
    let files = Files::new();
    let object = cache.join(format!("{example}.bpf.o")).display().to_string();
    let (profile, trace) = (profile(example), files.path("trace.txt").display().to_string());
    let csv = success(&[
        "run",
        workload,
        "--on",
        target,
        "--cpus",
        "4",
        "--quiet",
        "--duration",
        "4s",
        "--sched",
        &object,
        "--profile",
        &profile,
        "--format",
        "csv",
        "--trace",
        &trace,
    ]);
    let mut shares = shares(&csv, "group");
    shares.retain(|(group, _)| groups.contains(&group.as_str()));
    assert_eq!(shares.len(), groups.len(), "{example} on {target}: {csv}");
    let all: f64 = shares.iter().map(|(_, share)| share).sum();
    shares.iter_mut().for_each(|(_, share)| *share *= 100.0 / all);
    let trace = std::fs::read_to_string(&trace).expect("a trace");
    let end = |line: &&str| {
        line.split_once("sched_process_exit: comm=")
            .is_some_and(|(_, who)| groups.iter().any(|group| who.starts_with(group)))
    };
    Seen { shares, ends: trace.lines().filter(end).count() }
}

/// Each task may be a whole slice ahead or behind at the end, 20 ms and the rest of a tick of 4 ms: eight tasks' are
/// 1.2 % of what 4 CPUs have in 4 s, on each of the two targets.
const HOGS_POINTS: f64 = 2.0 * 8.0 * 24.0 / (4.0 * 4000.0) * 100.0;
/// A sender writes as often as a receiver reads. A kernel's write and read differ in length, the simulator's do not;
/// a tenth is 2.5 % of both together.
const MESSAGES_POINTS: f64 = 2.5;

/// The same bytes, the same settings, the same workloads in the simulator and on a kernel: the same shares.
fn agrees(example: &str) {
    let Some(cache) = cache() else { return };
    let Some(vm) = bootable() else { return };
    let hogs = in_tree("tests/tests/fixtures/near_hogs.toml");
    // What it takes to fork is not modelled unless `--cost fork_ns` says it: the parent's share is not compared.
    for (workload, groups, ends, points) in [
        (hogs.as_str(), ["nice0", "nice5"], 0, HOGS_POINTS),
        ("hackbench:2,fds=10,loops=400,rounds=1", ["receiver", "sender"], 40, MESSAGES_POINTS),
    ] {
        let [simulated, real] =
            ["sim", vm].map(|target| on(target, &cache, example, workload, &groups));
        println!("{example}, {}: {:?} {:?}", groups.join(" "), simulated.shares, real.shares);
        assert_eq!((simulated.ends, real.ends), (ends, ends), "{example}, {workload}: ends");
        for ((group, here), (_, there)) in simulated.shares.iter().zip(&real.shares) {
            let message =
                format!("{example}, {workload}: {group} {here:.2} % simulated, {there:.2} % real");
            assert!((here - there).abs() < points, "{message}; {points} points are allowed");
        }
    }
}

#[test]
fn simple_gives_the_same_shares_on_a_kernel() {
    agrees("scx_simple");
}

#[test]
fn central_gives_the_same_shares_on_a_kernel() {
    agrees("scx_central");
}

#[test]
fn flatcg_gives_the_same_shares_on_a_kernel() {
    agrees("scx_flatcg");
}

#[test]
fn qmap_gives_the_same_shares_on_a_kernel() {
    agrees("scx_qmap");
}
