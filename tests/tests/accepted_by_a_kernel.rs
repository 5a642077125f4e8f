//! Every scheduler on a real kernel, in a virtual machine: the verifier's verdict and instruction count, attaching,
//! load, reloading, CPU hotplug, detaching. Where QEMU or the kernel is missing, the tests say so and check nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use fairground_realkernel::packages::Cache;
use fairground_realkernel::vm::{GuestCommand, GuestFile, VmConfig, VmMode, run_command};
use fairground_testing::unavailable;
use fairground_tests::soak::{
    COMMAND, LOAD_PROGRAMS, PLAN_FILE, Plan, REPORT_FILE, Report, SchedulerReport, WORKLOAD,
};

/// The kernel with sched_ext.
const KERNEL: &str = "7.2";
const CPUS: u32 = 2;
/// Room for the report, bytes.
const ROOM: u64 = 4 << 20;
/// Limit of a machine's wall time: for all schedulers in the short form, for one in the long form.
const SHORT_DEADLINE: Duration = Duration::from_secs(20 * 60);
const LONG_DEADLINE: Duration = Duration::from_secs(3600);
/// The schedulers of the long form, separated by commas; without it all of them.
const CHOICE: &str = "FAIRGROUND_SOAK";
/// `khugepaged`, a kernel thread of nice 19, copies the 512 pages of a huge page within one section that RCU waits
/// for. That takes long in an emulator, and beside such a load a fair scheduler, the kernel's own as well, gives nice
/// 19 a thousandth of a CPU. The kernel ejects any sched_ext scheduler when RCU has stalled for 21 s.
const NO_HUGE_PAGES: &str = "transparent_hugepage=never";
/// Tasks of the own load.
const OWN_WORKERS: usize = 13;

/// The machine; `None` where there is none, with the reason on stderr. Its CPUs share one thread, since
/// schedulers are attached repeatedly; with a clock of counted instructions the load and the removal of a CPU did not
/// end within minutes.
fn machine(deadline: Duration) -> Option<VmConfig> {
    let say = &mut |text: &str| eprintln!("{text}");
    let cache = Cache::open();
    let found = cache.and_then(|cache| Ok((cache.qemu(say)?, cache.kernel(KERNEL, say)?)));
    match found {
        Ok((qemu, kernel)) => Some(VmConfig {
            mode: VmMode::OneThread,
            deadline: Some(deadline),
            append: vec![NO_HUGE_PAGES.to_owned()],
            program: Some(env!("CARGO_BIN_EXE_soak").into()),
            ..VmConfig::new(qemu, kernel, CPUS)
        }),
        Err(error) => {
            unavailable("kernel", error);
            None
        }
    }
}

/// Runs the plan in one machine.
fn run(plan: &Plan, packed: Vec<GuestFile>, config: &VmConfig) -> Result<Report, String> {
    let command = GuestCommand {
        arguments: vec![COMMAND.to_owned()],
        duration_ns: 0,
        files: vec![(PLAN_FILE.to_owned(), serde_json::to_vec(plan).expect("plain data"))],
        packed,
        room: ROOM,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let answer = run_command(&command, config, folder.path(), &mut |_| true)
        .map_err(|error| format!("{error:#?}"))?;
    if answer.exit_code != 0 {
        return Err(format!("it ended with {}: {}", answer.exit_code, answer.console));
    }
    let report = std::fs::read(folder.path().join(REPORT_FILE)).expect("a report");
    let report: Report = serde_json::from_slice(&report).expect("a report is JSON");
    let is_well = |seen: &SchedulerReport| seen.problems.is_empty() && seen.complaints.is_empty();
    if !report.schedulers.iter().all(is_well) {
        eprintln!("the machine's console:\n{}", answer.console);
    }
    Ok(report)
}

/// What must hold for a scheduler with every plan.
fn check(seen: &SchedulerReport, plan: &Plan, workers: usize) {
    eprintln!("{}", serde_json::to_string(seen).expect("plain data"));
    let name = &seen.name;
    assert_eq!(seen.problems, Vec::<String>::new(), "{name}");
    assert_eq!(seen.complaints, Vec::<String>::new(), "{name}: the kernel complains");
    assert!(seen.workers >= workers && seen.least_ops > 0, "{name}: {seen:?}");
    assert_eq!((seen.reloads, seen.hotplugs), (plan.reloads, plan.hotplugs), "{name}");
    let exit = seen.exit.as_ref().expect("it was taken off");
    assert_eq!((exit.kind, exit.code), (Some(64), Some(0)), "{name}");
    assert_eq!(exit.reason, "unregistered from user space", "{name}");
    assert_eq!(exit.message, "", "{name}");
}

/// Limit of the instructions that the verifier examines, by scheduler.
fn budgets() -> BTreeMap<String, u64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/verifier.toml");
    let text = std::fs::read_to_string(&path).expect("policies/verifier.toml");
    toml::from_str(&text).expect("a table of numbers")
}

/// The kernel refuses a program at a million; policies/verifier.toml has a limit for each scheduler.
fn check_budgets(report: &Report) {
    let budgets = budgets();
    for seen in &report.schedulers {
        let counts = seen.programs.iter().map(|(_, count)| count.map(u64::from));
        let total: u64 = counts.map(|count| count.expect("this kernel counts them")).sum();
        let budget = budgets.get(&seen.name).copied().unwrap_or(0);
        assert!(
            total <= budget,
            "{}: the verifier examines {total} instructions; policies/verifier.toml allows {budget}",
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

/// All of them in one machine, one after the other: leftovers of one would affect the next.
#[test]
fn every_scheduler_loads_works_and_leaves() {
    let Some(config) = machine(SHORT_DEADLINE) else { return };
    let plan = Plan { schedulers: vec![], load_s: 4, reloads: 2, hotplugs: 1, programs: vec![] };
    let report = run(&plan, Vec::new(), &config).expect("the machine comes to its end");
    let names: Vec<&str> = report.schedulers.iter().map(|seen| seen.name.as_str()).collect();
    assert_eq!(names, fairground_policies::all().iter().map(|p| p.name).collect::<Vec<_>>());
    report.schedulers.iter().for_each(|seen| check(seen, &plan, OWN_WORKERS));
    check_budgets(&report);
}

/// Each in a machine of its own: one that hangs it does not affect the others.
#[test]
#[ignore = "most of an hour: make soak"]
fn every_scheduler_survives_a_long_load() {
    let Some(config) = machine(LONG_DEADLINE) else { return };
    let (programs, packed) = load_programs();
    let chosen = std::env::var(CHOICE).ok();
    let mut failed = Vec::new();
    for policy in fairground_policies::all() {
        let name = policy.name.to_owned();
        if chosen.as_ref().is_some_and(|names| names.split(',').all(|n| n != name)) {
            continue;
        }
        let schedulers = vec![name.clone()];
        let plan =
            Plan { schedulers, load_s: 45, reloads: 100, hotplugs: 3, programs: programs.clone() };
        let start = Instant::now();
        match run(&plan, packed.clone(), &config) {
            // stress-ng reports its workers one by one.
            Ok(report) => report.schedulers.iter().for_each(|seen| {
                check(seen, &plan, OWN_WORKERS + plan.programs.len());
            }),
            Err(problem) => failed.push(format!("{name}: {problem}")),
        }
        eprintln!("{name}: {} s", start.elapsed().as_secs());
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The programs beside the own load, and their files; missing ones are noted.
fn load_programs() -> (Vec<Vec<String>>, Vec<GuestFile>) {
    let Ok(cache) = Cache::open() else { return (Vec::new(), Vec::new()) };
    let (mut programs, mut files) = (Vec::new(), Vec::new());
    let mut paths = BTreeSet::new();
    for program in LOAD_PROGRAMS {
        match program.program.pack(cache.root()) {
            Ok(packed) => {
                programs.push(program.words(&packed));
                files.extend(packed.files.into_iter().filter(|f| paths.insert(f.path.clone())));
            }
            Err(reason) => unavailable("originals", reason),
        }
    }
    (programs, files)
}
