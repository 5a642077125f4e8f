//! Every scheduler on a real kernel, in a virtual machine: the verifier's verdict and price, attaching, load, reloading, CPUs
//! that go and come, detaching. Where QEMU or the kernel cannot be had, the tests say so and check nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fairground_kernel::catalogue::Cache;
use fairground_kernel::vm::{GuestCommand, VmConfig, VmMode, run_command};
use fairground_tests::soak::{
    COMMAND, PLAN_FILE, Plan, REPORT_FILE, Report, SchedulerReport, WORKLOAD,
};

/// The kernel with sched_ext.
const KERNEL: &str = "7.2";
const CPUS: u32 = 2;
/// Room for the report, bytes.
const ROOM: u64 = 4 << 20;
/// How long the machine may take for one scheduler, wall time.
const SHORT_DEADLINE: Duration = Duration::from_secs(3 * 60);
const LONG_DEADLINE: Duration = Duration::from_secs(3600);
/// Packages of programs that make load, in the long form: where their binaries are on this machine, when they are.
const HACKBENCH: &str = "/usr/bin/hackbench";
const STRESS_NG: &str = "/usr/bin/stress-ng";

/// The machine; `None` where there is none, with the reason on stderr. A thread for each of its CPUs: in turns by counted
/// instructions the load and a CPU that goes did not come to an end within minutes.
fn machine(deadline: Duration) -> Option<VmConfig> {
    let say = &mut |text: &str| eprintln!("{text}");
    let cache = Cache::open();
    let found = cache.and_then(|cache| Ok((cache.qemu(say)?, cache.kernel(KERNEL, say)?)));
    match found {
        Ok((qemu, kernel)) => Some(VmConfig {
            mode: VmMode::Fast,
            deadline: Some(deadline),
            program: Some(env!("CARGO_BIN_EXE_soak").into()),
            ..VmConfig::new(qemu, kernel, CPUS)
        }),
        Err(error) => {
            eprintln!("skipped: no virtual machine with Linux {KERNEL} here: {error}");
            None
        }
    }
}

/// Each scheduler in a machine of its own: one that hangs it is a problem of that one.
fn run(plan: &Plan, config: &VmConfig) -> Report {
    let mut report = Report::default();
    for policy in fairground_policies::all() {
        let plan = Plan { schedulers: vec![policy.name.to_owned()], ..plan.clone() };
        match run_one(&plan, config) {
            Ok(seen) => report.schedulers.extend(seen.schedulers),
            Err(problem) => report.schedulers.push(SchedulerReport {
                name: policy.name.to_owned(),
                problems: vec![problem],
                ..SchedulerReport::default()
            }),
        }
    }
    report
}

fn run_one(plan: &Plan, config: &VmConfig) -> Result<Report, String> {
    let command = GuestCommand {
        arguments: vec![COMMAND.to_owned()],
        duration_ns: 0,
        files: vec![(PLAN_FILE.to_owned(), serde_json::to_vec(plan).expect("plain data"))],
        packed: Vec::new(),
        room: ROOM,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let answer = run_command(&command, config, folder.path(), &mut |_| ())
        .map_err(|error| format!("{error:?}"))?;
    if answer.exit_code != 0 {
        return Err(format!("it ended with {}: {}", answer.exit_code, answer.console));
    }
    let report = std::fs::read(folder.path().join(REPORT_FILE)).expect("a report");
    Ok(serde_json::from_slice(&report).expect("a report is JSON"))
}

/// What must hold whatever the plan.
fn check(report: &Report, plan: &Plan) {
    assert_eq!(report.schedulers.len(), fairground_policies::all().len());
    for seen in &report.schedulers {
        eprintln!("{}", serde_json::to_string(seen).expect("plain data"));
    }
    for seen in &report.schedulers {
        let name = &seen.name;
        assert_eq!(seen.problems, Vec::<String>::new(), "{name}");
        assert!(seen.workers > 10 && seen.least_ops > 0, "{name}: {seen:?}");
        assert_eq!((seen.reloads, seen.hotplugs), (plan.reloads, plan.hotplugs), "{name}");
        // The kernel asks for a restart when the CPU goes, and when it comes.
        assert_eq!(seen.restarts, 2 * plan.hotplugs, "{name}");
        let exit = seen.exit.as_ref().expect("it was taken off");
        assert_eq!((exit.kind, exit.code), (Some(64), Some(0)), "{name}");
        assert_eq!(exit.reason, "unregistered from user space", "{name}");
    }
}

/// The most instructions that the verifier may have to look at, by scheduler.
fn budgets() -> BTreeMap<String, u64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/verifier.toml");
    let text = std::fs::read_to_string(&path).expect("policies/verifier.toml");
    toml::from_str(&text).expect("a table of numbers")
}

/// The kernel refuses a program at a million; each scheduler states how near it comes (policies/verifier.toml).
fn check_budgets(report: &Report) {
    let budgets = budgets();
    for seen in &report.schedulers {
        let counts = seen.programs.iter().map(|(_, count)| count.map(u64::from));
        let total: u64 = counts.map(|count| count.expect("this kernel counts them")).sum();
        let budget = budgets.get(&seen.name).copied().unwrap_or(0);
        assert!(
            total <= budget,
            "{}: the verifier looks at {total} instructions; policies/verifier.toml allows {budget}",
            seen.name
        );
    }
}

#[test]
fn every_scheduler_has_a_budget_for_the_verifier() {
    let names: Vec<&str> = fairground_policies::all().iter().map(|policy| policy.name).collect();
    assert_eq!(budgets().keys().map(String::as_str).collect::<Vec<_>>(), names);
}

#[test]
fn the_load_is_a_workload() {
    let workload = fairground_workload::parse("the load", WORKLOAD).expect("it can be read");
    assert!(workload.tasks.len() > 10);
}

#[test]
#[ignore = "minutes, and eevdf hangs the machine: make soak"]
fn every_scheduler_loads_works_and_leaves() {
    let Some(config) = machine(SHORT_DEADLINE) else { return };
    let plan = Plan { schedulers: vec![], load_s: 5, reloads: 5, hotplugs: 1, programs: vec![] };
    let report = run(&plan, &config);
    check(&report, &plan);
    check_budgets(&report);
}

#[test]
#[ignore = "hours: make soak"]
fn every_scheduler_survives_a_long_load() {
    let Some(config) = machine(LONG_DEADLINE) else { return };
    let programs = [
        (HACKBENCH, vec!["-g", "2", "-l", "200"]),
        (STRESS_NG, vec!["--cpu", "1", "--fork", "1", "--pipe", "1", "--switch", "1", "-t", "5"]),
    ];
    let mut plan =
        Plan { schedulers: vec![], load_s: 45, reloads: 100, hotplugs: 3, programs: vec![] };
    for (program, arguments) in programs {
        if !Path::new(program).exists() {
            eprintln!("left out: {program} is not installed");
            continue;
        }
        let words = std::iter::once(program).chain(arguments).map(str::to_owned);
        plan.programs.push(words.collect());
    }
    check(&run(&plan, &config), &plan);
}
