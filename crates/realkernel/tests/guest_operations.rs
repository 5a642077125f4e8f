//! Operations of workloads on real kernels in deterministic virtual machines, without other load: control groups,
//! slices, features that change during the run. Skipped if no kernel has been fetched.

use crate::rig::{Bench, RUNNER, library, ops, toml};
use fairground_realkernel::Outcome;
use fairground_realkernel::job::Knob;
use fairground_realkernel::packages::Cache;
use fairground_realkernel::vm::{VmConfig, run_in_vm};
use fairground_testing::unavailable;

/// Runs on a kernel of the catalogue, with 2 CPUs; `None` if there is none.
fn in_guest(bench: &Bench, kernel: &str) -> Option<Outcome> {
    let cache = Cache::open().ok()?;
    let found = cache.cached_qemu().and_then(|qemu| Ok((qemu, cache.cached_kernel(kernel)?)));
    let (qemu, kernel) = match found {
        Ok(found) => found,
        Err(error) => {
            unavailable("kernel", error);
            return None;
        }
    };
    let mut config = VmConfig::new(qemu, kernel, 2);
    config.program = Some(RUNNER.into());
    let outcome = run_in_vm(&bench.job, None, &config, bench.folder.path(), &mut |_| true);
    Some(outcome.unwrap_or_else(|error| panic!("{error}")))
}

/// CPU time of a group's tasks, ns.
fn used(outcome: &Outcome, group: &str) -> u64 {
    let tasks = outcome.tasks.iter().filter(|task| task.name.split('/').next() == Some(group));
    tasks.map(|task| task.run_ns.expect("the kernel accounts for it")).sum()
}

#[test]
fn control_groups_share_by_weight_and_inner_ones_may_have_tasks() {
    let bench = library("containers:a=300:2 a/in=200:2 b=100:2").millis(2_000);
    let Some(outcome) = in_guest(&bench, "6.1") else { return };
    assert_eq!(outcome.notes, Vec::<String>::new());
    // 300 of 400 to `a`; there, 100 to each of its two tasks and 200 to the inner group.
    let all = 2 * (outcome.end_ns - outcome.start_ns);
    let percent = |group: &str| (used(&outcome, group) * 1_000 / all).div_ceil(10);
    let shares = ["a", "a-in", "b"].map(percent);
    let near = |share: u64, ideal: u64| share.abs_diff(ideal) <= 2;
    assert!(near(shares[0], 38) && near(shares[1], 38) && near(shares[2], 25), "{shares:?}");
}

#[test]
fn a_slice_length_requires_a_kernel_that_supports_it() {
    let bench = toml(
        "[[task]]\nname = \"s\"\nprogram = [{ slice = \"5ms\" }, { run = \"1ms\" }, { slice = \"0s\" }]\n",
    )
    .millis(100);
    let Some(old) = in_guest(&bench, "6.1") else { return };
    assert!(
        old.notes[0].starts_with("1 times a slice length was rejected or ignored"),
        "{:?}",
        old.notes
    );
    let Some(new) = in_guest(&bench, "newest") else { return };
    assert_eq!(new.notes, Vec::<String>::new());
    assert_eq!(ops(&new, "s"), [3]);
}

#[test]
fn a_feature_is_switched_during_the_run() {
    let mut bench = library("hogs:3").millis(300);
    let feature =
        |name: &str, at_ns| Knob { name: name.to_owned(), value: "off".to_owned(), at_ns };
    bench.job.knobs =
        vec![feature("START_DEBIT", None), feature("GENTLE_FAIR_SLEEPERS", Some(100_000_000))];
    let Some(outcome) = in_guest(&bench, "6.1") else { return };
    let has = |word: &str| outcome.kernel.features.iter().any(|feature| feature == word);
    assert!(has("NO_START_DEBIT") && has("GENTLE_FAIR_SLEEPERS"), "{:?}", outcome.kernel.features);
    assert_eq!(outcome.changes.len(), 1);
    let late_ns = outcome.changes[0].time_ns - outcome.start_ns - 100_000_000;
    assert!(late_ns < 5_000_000, "the runner is above the hogs: {late_ns} ns late");
    let all: u64 = used(&outcome, "hog");
    let there_was = 2 * (outcome.end_ns - outcome.start_ns);
    // The hogs continue while the recorder is turned off, which waits for an RCU grace period: up to three ticks of 4
    // ms, on two CPUs.
    let pause_ns = 2 * 3 * 4_000_000;
    assert!(all <= there_was + pause_ns && all > there_was * 95 / 100, "{all} of {there_was} ns");
}

#[test]
fn computations_take_the_time_that_they_say() {
    let bench =
        library("periodic:1,period=10ms,load=40 + periodic:1,period=4ms,load=25").millis(1_000);
    let Some(outcome) = in_guest(&bench, "6.1") else { return };
    for (name, expected_us, rounds) in [("periodic", 400_000, 100), ("periodic-2", 250_000, 250)] {
        // Besides the computation, a round takes about 65 µs of kernel time (timer, system calls, marks, at 8 ns per
        // instruction), and up to twice that while the other CPU is busy, since the clock advances during its slices.
        let (us, most_us) = (used(&outcome, name) / 1_000, expected_us + rounds * 150);
        assert!((expected_us - 1_000..most_us).contains(&us), "{name}: {us} µs of {expected_us}");
    }
}
