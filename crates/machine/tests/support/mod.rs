//! What the machine's tests share: fixtures compiled on the spot, workloads built by hand, traces as text.
#![allow(dead_code)] // Each test program uses a part of it.

use std::path::Path;
use std::process::Command;

use fairground_bpf::Object;
use fairground_machine::{
    CostModel, Engine, Machine, MachineConfig, Policy, PrintedLine, RunResult, Setting,
    TraceOptions,
};
use fairground_trace::{CgroupId, Event, EventKind, TaskId, Trace};
use fairground_workload::{CpuList, Duration, Op, Program, Role, TaskSpec, Workload};

/// One ms in ns.
pub(crate) const MS: u64 = 1_000_000;

/// Compiles a fixture and loads it.
pub(crate) fn policy(name: &str) -> Policy {
    Policy::load(&object(name), Engine::Jit).unwrap_or_else(|e| panic!("{e}"))
}

/// Compiles a fixture.
pub(crate) fn object(name: &str) -> Object {
    object_with(name, &[])
}

/// Compiles a fixture with macros defined (`-DNAME=VALUE`).
pub(crate) fn object_with(name: &str, defines: &[&str]) -> Object {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = dir.join(format!("tests/fixtures/{name}.bpf.c"));
    let binary = std::env::current_exe().expect("a test has a path");
    let binary = binary.file_stem().expect("a test has a name").to_string_lossy().into_owned();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{binary}-{name}-{:?}.o", std::thread::current().id()));
    let clang = fairground_policies::find_clang().unwrap_or_else(|e| panic!("{e}"));
    let done = Command::new(clang)
        .args(fairground_policies::CLANG_FLAGS)
        .arg("-I")
        .arg(dir.join("../../policies/include"))
        .arg("-I")
        .arg(dir.join("tests/fixtures"))
        .args(defines)
        .arg("-c")
        .arg(&source)
        .arg("-o")
        .arg(&out)
        .output()
        .expect("clang runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = std::fs::read(&out).expect("clang wrote the object");
    Object::parse(&format!("{name}.bpf.o"), &bytes).unwrap_or_else(|e| panic!("{e}"))
}

/// A machine without costs, checked, whose trace holds callbacks.
pub(crate) fn free_machine(cpus: u32) -> MachineConfig {
    let mut config = MachineConfig::new(cpus);
    config.cost = CostModel::preset("zero").expect("the preset exists");
    config.trace = TraceOptions { callbacks: true, ticks: false, calls: false };
    config.check = true;
    config
}

/// A group of tasks that starts at time 0.
pub(crate) fn task(name: &str, count: u32, program: Program) -> TaskSpec {
    TaskSpec::new(name, count, Some(0), program)
}

/// A workload of these groups.
pub(crate) fn workload(tasks: Vec<TaskSpec>) -> Workload {
    Workload { name: "test".to_owned(), duration_ns: 1_000 * MS, tasks, ..Workload::default() }
}

/// `run ns`.
pub(crate) fn run(ns: u64) -> Op {
    Op::Run(Duration::Fixed(ns))
}

/// `sleep ns`.
pub(crate) fn sleep(ns: u64) -> Op {
    Op::Sleep(Duration::Fixed(ns))
}

/// CPUs `low` to `high`.
pub(crate) fn cpus(low: u32, high: u32) -> CpuList {
    CpuList(vec![(low, high)])
}

/// Runs to a time and takes the result.
pub(crate) fn simulate(
    config: &MachineConfig,
    policy: &Policy,
    settings: &[(&str, &str)],
    workload: &Workload,
    until_ns: u64,
) -> RunResult {
    let settings: Vec<Setting> = settings.iter().map(|(n, v)| Setting::initial(n, v)).collect();
    let mut machine =
        Machine::new(config, policy, &settings, workload).unwrap_or_else(|e| panic!("{e}"));
    machine.run_until(until_ns).unwrap_or_else(|e| panic!("{e}"));
    machine.finish().unwrap_or_else(|e| panic!("{e}"))
}

/// A task's name.
pub(crate) fn name(trace: &Trace, task: TaskId) -> &str {
    if task.is_idle() { "idle" } else { &trace.tasks()[task.index()].comm }
}

/// The trace as lines: time in us, CPU, event. Times after `end_ns` are left out.
pub(crate) fn lines(trace: &Trace, end_ns: u64) -> String {
    let mut out = String::new();
    for event in trace.events().take_while(|e| e.time_ns <= end_ns) {
        out += &line(trace, &event);
        out.push('\n');
    }
    out
}

fn line(trace: &Trace, event: &Event) -> String {
    let n = |task| name(trace, task);
    let what = match event.kind {
        EventKind::Switch { prev, prev_state, next } => {
            format!("switch {} ({prev_state:?}) -> {}", n(prev), n(next))
        }
        EventKind::Waking { task, waker, target_cpu } => {
            format!("waking {} by {}, last on CPU {target_cpu}", n(task), n(waker))
        }
        EventKind::Wakeup { task, target_cpu } => {
            format!("wakeup {} for CPU {target_cpu}", n(task))
        }
        EventKind::WakeupNew { task, target_cpu } => {
            format!("new {} for CPU {target_cpu}", n(task))
        }
        EventKind::Migrate { task, from_cpu, to_cpu } => {
            format!("migrate {} from CPU {from_cpu} to CPU {to_cpu}", n(task))
        }
        EventKind::Fork { parent, child } => format!("fork {} by {}", n(child), n(parent)),
        EventKind::Exit { task } => format!("exit {}", n(task)),
        EventKind::RtPrio { task, prio } => format!("prio {} {}", n(task), prio.prio()),
        EventKind::Slice { task, slice_ns } => format!("slice {} {slice_ns}", n(task)),
        EventKind::Affinity { task, .. } => format!("affinity {}", n(task)),
        EventKind::WakeSync { task } => format!("sync {}", n(task)),
        EventKind::CallEnter { task, call, object } => {
            format!("enter {} {} {object:#x}", n(task), call.name())
        }
        EventKind::CallExit { task, result } => format!("leave {} {result}", n(task)),
        EventKind::Nice { task, nice } => format!("nice {} {nice}", n(task)),
        EventKind::Tick { task } => format!("tick {}", n(task)),
        EventKind::Charge { task, runtime_ns } => format!("charge {} {runtime_ns}", n(task)),
        EventKind::Callback { kind, task } => format!("  {kind:?}({})", n(task)),
        EventKind::Mark { task, label, value } => {
            format!("mark {} {} {value}", n(task), trace.label(label))
        }
        EventKind::CgroupMove { task, from, to } => {
            let path = |id: CgroupId| &trace.cgroups()[id.index()].path;
            format!("move {} from {} to {}", n(task), path(from), path(to))
        }
        EventKind::CgroupWeight { cgroup, weight } => {
            format!("weight {} {weight}", trace.cgroups()[cgroup.index()].path)
        }
        EventKind::ContentionBegin { task, lock, flags, holder } => {
            let (lock, flags) = (trace.label(lock), flags.text());
            format!("contention {} {lock} {flags}, held by {}", n(task), n(holder))
        }
        EventKind::ContentionEnd { task, lock } => {
            format!("contention over {} {}", n(task), trace.label(lock))
        }
        EventKind::Param { label } => format!("param {}", trace.label(label)),
        EventKind::Print { label } => format!("print {}", trace.label(label)),
        EventKind::Stack { task, label } => format!("stack {} {}", n(task), trace.label(label)),
        EventKind::Lost { count } => format!("lost {count}"),
    };
    format!("{:>9.3} [{}] {what}", event.time_ns as f64 / 1000.0, event.cpu)
}

/// CPU time per task between two times, from the switches.
pub(crate) fn cpu_time(trace: &Trace, from_ns: u64, to_ns: u64) -> Vec<u64> {
    let mut time = vec![0; trace.tasks().len()];
    let mut running = vec![(TaskId::IDLE, 0); trace.cpus as usize];
    let mut book = |(task, since): (TaskId, u64), now: u64| {
        time[task.index()] += now.min(to_ns).saturating_sub(since.max(from_ns));
    };
    for event in trace.events() {
        if let EventKind::Switch { prev, next, .. } = event.kind {
            let slot = &mut running[event.cpu as usize];
            assert_eq!(slot.0, prev, "CPU {} at {}", event.cpu, event.time_ns);
            book(*slot, event.time_ns);
            *slot = (next, event.time_ns);
        }
    }
    running.into_iter().for_each(|slot| book(slot, to_ns));
    time
}

/// Tasks of every kind on four CPUs: pinned, forking, signalled, yielding, moving.
pub(crate) fn mixed() -> Workload {
    let mut pinned = task("pinned", 2, vec![Op::Loop(None, vec![run(300_000), sleep(700_000)])]);
    pinned.cpus = Some(cpus(1, 2));
    let mut child = task("child", 2, vec![run(100_000)]);
    child.start_ns = None;
    let mut signalled = task("signalled", 2, vec![Op::RunForever]);
    signalled.on_signal = vec![Op::Mark("answer".to_owned())];
    workload(vec![
        task("hog", 3, vec![Op::RunForever]),
        pinned,
        task("parent", 2, vec![Op::Loop(None, vec![sleep(2 * MS), Op::Fork(3), Op::WaitChildren])]),
        child,
        signalled,
        task("boss", 1, vec![Op::Loop(None, vec![sleep(5 * MS), Op::Signal(Role::All(4))])]),
        task("polite", 1, vec![Op::Loop(None, vec![run(50_000), Op::Yield])]),
        task(
            "mover",
            1,
            vec![Op::Loop(
                None,
                vec![
                    run(400_000),
                    Op::SetAffinity(cpus(0, 0)),
                    run(400_000),
                    Op::SetNice(3),
                    Op::SetAffinity(cpus(1, 3)),
                    Op::SetNice(0),
                ],
            )],
        ),
    ])
}

/// When a task got a CPU and when it left it, in order, ns.
pub(crate) fn stays(trace: &Trace, name: &str) -> Vec<(u64, u64)> {
    let id = trace.tasks().iter().position(|task| task.comm == name).expect("a task of that name");
    let id = TaskId(id as u32);
    let (mut stays, mut since_ns) = (Vec::new(), None);
    for event in trace.events() {
        if let EventKind::Switch { prev, next, .. } = event.kind {
            if next == id {
                since_ns = Some(event.time_ns);
            } else if prev == id
                && let Some(since_ns) = since_ns.take()
            {
                stays.push((since_ns, event.time_ns));
            }
        }
    }
    stays
}

/// The scheduler's output without times and CPUs.
pub(crate) fn texts(log: &[PrintedLine]) -> Vec<&str> {
    log.iter().map(|line| line.text.trim()).collect()
}
