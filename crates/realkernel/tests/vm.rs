//! Real kernels in virtual machines: they boot and give the same bytes each time; failures of a guest give typed
//! errors. Skipped if no kernel has been fetched.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fairground_realkernel::channel::STDOUT_FILE;
use fairground_realkernel::job::{
    Job, KernelInfo, OUTCOME_FILE, Outcome, RecordingJob, TRACE_FILE,
};
use fairground_realkernel::packages::{Cache, PackageError};
use fairground_realkernel::run::INFO_COMMAND;
use fairground_realkernel::vm::{
    GuestAnswer, GuestCommand, Progress, VmConfig, VmError, VmMode, run_command, run_in_vm,
};
use fairground_testing::unavailable;

/// A machine with the kernel `name` and the runner as its program; `None`, with a message, if it is not available.
fn machine(name: &str, cpus: u32) -> Option<VmConfig> {
    let cache = Cache::open().ok()?;
    let found = cache.cached_qemu().and_then(|qemu| Ok((qemu, cache.cached_kernel(name)?)));
    match found {
        Ok((qemu, kernel)) => {
            let mut config = VmConfig::new(qemu, kernel, cpus);
            config.program = Some(env!("CARGO_BIN_EXE_fairground-runner").into());
            Some(config)
        }
        Err(error @ (PackageError::NotFetched { .. } | PackageError::NoQemu { .. })) => {
            unavailable("kernel", error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn run(config: &VmConfig, arguments: &[&str], folder: &Path) -> Result<GuestAnswer, VmError> {
    let command = GuestCommand {
        arguments: arguments.iter().map(|a| (*a).to_owned()).collect(),
        duration_ns: 1_000_000_000,
        room: 8 << 20,
        ..GuestCommand::default()
    };
    run_command(&command, config, folder, &mut |_| true)
}

fn misbehave(how: &str) -> Option<VmError> {
    let config = machine("6.1", 1)?;
    let folder = tempfile::tempdir().expect("a folder");
    Some(run(&config, &["__misbehave", how], folder.path()).expect_err("an error"))
}

fn info(name: &str, cpus: u32, mode: VmMode) -> Option<KernelInfo> {
    let mut config = machine(name, cpus)?;
    config.mode = mode;
    let folder = tempfile::tempdir().expect("a folder");
    let answer = run(&config, &[INFO_COMMAND], folder.path()).expect("it boots");
    assert_eq!(answer.exit_code, 0, "{}", answer.console);
    let text = fs::read(folder.path().join(STDOUT_FILE)).expect("it wrote");
    Some(serde_json::from_slice(&text).expect("a description"))
}

#[test]
fn the_kernel_with_cfs_has_its_features_and_the_requested_cpus() {
    let Some(info) = info("6.1", 3, VmMode::Deterministic) else { return };
    assert!(info.release.starts_with("6.1."), "{}", info.release);
    assert_eq!(info.cpus, 3);
    assert!(info.features.iter().any(|f| f == "GENTLE_FAIR_SLEEPERS"), "{:?}", info.features);
    assert!(!info.sched_ext);
}

#[test]
fn the_newest_kernel_has_sched_ext_in_the_fast_mode_too() {
    let Some(info) = info("newest", 2, VmMode::Fast) else { return };
    assert!(info.sched_ext, "{}", info.release);
    assert!(info.features.iter().any(|f| f == "PLACE_LAG"), "{:?}", info.features);
}

fn job() -> Job {
    let workload =
        fairground_workload::library::from_spec("hogs:3 + sleepers:2").expect("a workload");
    Job {
        workload: fairground_workload::to_toml(&workload),
        duration_ns: 200_000_000,
        hold_ns: 1_000_000,
        on_the_second: true,
        seed: 1,
        scheduler: None,
        loader: None,
        knobs: Vec::new(),
        recording: Some(RecordingJob { kib_per_cpu: 1 << 10, ..RecordingJob::default() }),
    }
}

/// The recording and the outcome of a run.
fn bytes_of_a_run(config: &VmConfig) -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut seen = Vec::new();
    let mut tell = |progress| {
        seen.extend(progress);
        true
    };
    run_in_vm(&job(), None, config, folder.path(), &mut tell).expect("it runs");
    assert_eq!(seen.first(), Some(&Progress::Booting));
    let read = |name: &str| fs::read(folder.path().join(name)).expect("it is there");
    let left = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 2, "the recording and the outcome, and nothing else");
    (read(TRACE_FILE), read(OUTCOME_FILE))
}

/// Two runs of the job on each number of CPUs are byte-identical.
fn same_bytes_twice(kernel: &str, cpus: &[u32]) {
    for &cpus in cpus {
        let Some(config) = machine(kernel, cpus) else { return };
        let (first, second) = (bytes_of_a_run(&config), bytes_of_a_run(&config));
        assert!(first.0.len() > 10_000, "a recording of {} bytes", first.0.len());
        assert!(first == second, "{kernel}, {cpus} CPUs: two runs differ");
        let outcome: Outcome = serde_json::from_slice(&first.1).expect("an outcome");
        let since_tick_ns = outcome.start_ns % 4_000_000;
        assert!((1_000_000..1_200_000).contains(&since_tick_ns), "{since_tick_ns} ns after a tick");
        println!("{kernel}, {cpus} CPUs: twice the same {} bytes", first.0.len());
    }
}

#[test]
fn the_same_job_gives_the_same_bytes() {
    same_bytes_twice("6.1", &[1, 4]);
}

#[test]
#[ignore = "sixteen boots"]
fn the_same_job_gives_the_same_bytes_on_1_to_8_cpus_of_both_kernels() {
    for kernel in ["6.1", "newest"] {
        same_bytes_twice(kernel, &[1, 2, 4, 8]);
    }
}

#[test]
fn a_panic_is_reported_with_its_reason() {
    let Some(error) = misbehave("panic") else { return };
    assert!(matches!(&error, VmError::Panic { reason, .. } if reason.contains("sysrq")), "{error}");
}

#[test]
fn a_guest_that_hangs_is_killed_at_its_deadline() {
    let Some(mut config) = machine("6.1", 1) else { return };
    config.deadline = Some(Duration::from_secs(40));
    let folder = tempfile::tempdir().expect("a folder");
    let error = run(&config, &["__misbehave", "hang"], folder.path()).expect_err("killed");
    assert!(matches!(&error, VmError::Hang { phase, .. } if phase == "running"), "{error}");
}

#[test]
fn a_failing_command_is_a_result() {
    let Some(config) = machine("6.1", 1) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let answer = run(&config, &["__misbehave", "fail"], folder.path()).expect("an answer");
    assert_eq!(answer.exit_code, 7);
    assert!(answer.console.contains("it went wrong"), "{}", answer.console);
}

#[test]
fn results_that_do_not_fit_are_reported() {
    let Some(error) = misbehave("fill") else { return };
    let VmError::GuestFailed { message, .. } = &error else { panic!("{error}") };
    assert!(message.contains("do not fit") && message.contains("everything"), "{message}");
}

#[test]
fn invalid_shared_memory_is_rejected() {
    let Some(error) = misbehave("garbage") else { return };
    assert!(matches!(error, VmError::Channel(_)), "{error}");
}

#[test]
fn an_invalid_machine_is_rejected() {
    let Some(mut config) = machine("6.1", 0) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for (cpus, memory_mib) in [(0, 1024), (1000, 1024), (1, 1), (1, 1 << 20)] {
        (config.cpus, config.memory_mib) = (cpus, memory_mib);
        let error = run(&config, &[INFO_COMMAND], folder.path()).expect_err("refused");
        assert!(matches!(error, VmError::Config(_)), "{error}");
    }
}

/// The environment variable that makes the test program the victim: the folder for its run.
const VICTIM: &str = "FAIRGROUND_TEST_VICTIM";

/// Not a test: the program that the next test kills.
#[test]
fn victim() {
    let Some(folder) = std::env::var_os(VICTIM) else { return };
    let mut config = machine("6.1", 1).expect("the killing test has checked");
    config.append = vec![format!("fairground.victim={}", std::process::id())];
    let _ = run_in_vm(&job(), None, &config, Path::new(&folder), &mut |_| true);
}

/// Processes whose command line contains `text`.
fn processes_with(text: &str) -> usize {
    let entries = fs::read_dir("/proc").expect("proc").filter_map(Result::ok);
    let lines = entries.filter_map(|e| fs::read(e.path().join("cmdline")).ok());
    lines.filter(|l| l.windows(text.len()).any(|w| w == text.as_bytes())).count()
}

#[test]
fn no_guest_outlives_a_program_that_is_killed_at_any_point() {
    if machine("6.1", 1).is_none() {
        return;
    }
    for after_ms in [20, 120, 400, 1500, 4000] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(std::env::current_exe().expect("a program"))
            .args(["--exact", "vm::victim"])
            .env(VICTIM, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        std::thread::sleep(Duration::from_millis(after_ms));
        // A boot takes seconds: a program that has ended by now has not run the victim.
        let ended = child.try_wait().expect("its status");
        assert!(after_ms > 400 || ended.is_none(), "{ended:?} after {after_ms} ms");
        child.kill().expect("killed");
        child.wait().expect("ended");
        let sign = format!("fairground.victim={}", child.id());
        let start = Instant::now();
        while processes_with(&sign) > 0 {
            assert!(start.elapsed() < Duration::from_secs(10), "a guest outlives the program");
            std::thread::sleep(Duration::from_millis(20));
        }
        // On a fast machine, the run may be over before a late kill: then its results are complete.
        if let Ok(outcome) = fs::read_to_string(folder.path().join(OUTCOME_FILE)) {
            let outcome: Outcome = serde_json::from_str(&outcome).expect("a complete outcome");
            assert!(
                outcome.not_recorded.is_some() || folder.path().join(TRACE_FILE).exists(),
                "an incomplete run has an outcome"
            );
        }
    }
}
