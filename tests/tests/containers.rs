//! "Renice users or containers, with fair scheduling within each": from the workload to the row of the table, with a
//! small scheduler that knows cgroups, and one that does not as the negative control.

use std::path::Path;
use std::process::Command;

use fairground_analysis::{Analysis, Options};
use fairground_bpf::Object;
use fairground_machine::{CostModel, Engine, ExitKind, Machine, MachineConfig, Policy, Setting};
use fairground_workload::from_spec;

const S: u64 = 1_000_000_000;

/// The weighted fair queueing of `fixtures/containers.bpf.c`.
fn containers() -> Policy {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("containers-{:?}.o", std::thread::current().id()));
    let clang = fairground_policies::find_clang().unwrap_or_else(|e| panic!("{e}"));
    let done = Command::new(clang)
        .args(fairground_policies::CLANG_FLAGS)
        .arg("-I")
        .arg(dir.join("../policies/include"))
        .arg("-c")
        .arg(dir.join("tests/fixtures/containers.bpf.c"))
        .arg("-o")
        .arg(&out)
        .output()
        .expect("clang runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = std::fs::read(&out).expect("clang wrote the object");
    let object = Object::parse("containers.bpf.o", &bytes).unwrap_or_else(|e| panic!("{e}"));
    Policy::load(&object, Engine::Jit).unwrap_or_else(|e| panic!("{e}"))
}

fn analyse(
    policy: &Policy,
    cpus: u32,
    spec: &str,
    settings: &[Setting],
    options: Options,
) -> Analysis {
    let workload = from_spec(spec).unwrap_or_else(|e| panic!("{e}"));
    let mut config = MachineConfig::new(cpus);
    config.cost = CostModel::preset("zero").expect("the preset exists");
    config.check = true;
    let mut machine =
        Machine::new(&config, policy, settings, &workload).unwrap_or_else(|e| panic!("{e}"));
    machine.run_until(10 * S).unwrap_or_else(|e| panic!("{e}"));
    let result = machine.finish().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
    Analysis::of(&result.trace, &options)
}

/// Shares in % of one CPU, to a tenth; each within 1 % of the fluid schedule, and even within.
fn shares(analysis: &Analysis) -> Vec<(String, f64)> {
    let of = |cgroup: &fairground_analysis::CgroupMetrics| {
        let error = cgroup.figures.fairness_error_percent().expect("due something");
        assert!(error.abs() < 1.0, "{}: {error} %", cgroup.path);
        let share = cgroup.figures.cpu_share_percent().expect("a window");
        (cgroup.path.clone(), (share * 10.0).round() / 10.0)
    };
    analysis.cgroups.iter().skip(1).map(of).collect()
}

fn named(list: &[(&str, f64)]) -> Vec<(String, f64)> {
    list.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect()
}

#[test]
fn weights_of_containers_and_fairness_within() {
    let analysis =
        analyse(&containers(), 1, "containers:web=300:4 batch=100:8", &[], Options::simulated());
    assert_eq!(shares(&analysis), named(&[("batch", 25.0), ("web", 75.0)]));
    for cgroup in &analysis.cgroups[1..] {
        assert!(cgroup.jain_index.expect("due something") > 0.9999, "{}", cgroup.path);
    }
}

#[test]
fn nested_containers() {
    let spec = "containers:alice=300 alice/build=100:6 alice/mail=50:1 bob=100:2";
    let analysis = analyse(&containers(), 1, spec, &[], Options::simulated());
    let expected = [("alice", 75.0), ("alice/build", 50.0), ("alice/mail", 25.0), ("bob", 25.0)];
    assert_eq!(shares(&analysis), named(&expected));
}

/// On two CPUs a container with one task can use one; the rest goes to its sibling.
#[test]
fn a_container_with_one_task_on_two_cpus() {
    let spec = "containers:web=10000:1 batch=1:5";
    let analysis = analyse(&containers(), 2, spec, &[], Options::simulated());
    assert_eq!(shares(&analysis), named(&[("batch", 100.0), ("web", 100.0)]));
}

#[test]
fn a_container_is_reniced_while_it_runs() {
    let settings = [Setting::at(5 * S, "cgroup.web.weight", "100")];
    let spec = "containers:web=300:2 batch=100:2";
    for (window, expected) in [((0, 5 * S), 75.0), ((5 * S, 10 * S), 50.0)] {
        let options = Options { window: Some(window), ..Options::simulated() };
        let analysis = analyse(&containers(), 1, spec, &settings, options);
        assert_eq!(shares(&analysis), named(&[("batch", 100.0 - expected), ("web", expected)]));
    }
}

#[test]
fn tasks_change_containers_while_they_run() {
    let settings = [Setting::at(5 * S, "task.web.cgroup", "batch")];
    let spec = "containers:web=300:2 batch=100:2";
    let options = Options { window: Some((5 * S, 10 * S)), ..Options::simulated() };
    let analysis = analyse(&containers(), 1, spec, &settings, options);
    let batch = analysis.cgroup("batch").expect("there");
    assert_eq!(batch.figures.tasks, 4);
    assert!(batch.figures.fairness_error_percent().expect("due").abs() < 1.0);
    assert!(batch.jain_index.expect("due") > 0.999);
}

/// A scheduler that does not know cgroups shares by tasks, and the table says so.
#[test]
fn a_scheduler_without_cgroups_is_seen_to_be_one() {
    let object = fairground_policies::get("fifo").expect("there is one").object;
    let object = Object::parse("fifo", object).unwrap_or_else(|e| panic!("{e}"));
    let fifo = Policy::load(&object, Engine::Jit).unwrap_or_else(|e| panic!("{e}"));
    let analysis = analyse(&fifo, 1, "containers:web=300:4 batch=100:8", &[], Options::simulated());
    let web = &analysis.cgroup("web").expect("there").figures;
    assert!((web.cpu_share_percent().expect("a window") - 33.3).abs() < 0.5);
    assert!((web.fairness_error_percent().expect("due") + 55.6).abs() < 0.5);
}
