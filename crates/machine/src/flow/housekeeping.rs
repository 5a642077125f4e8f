//! What a kernel does for itself, whatever runs on it: on each CPU a worker brings statistics up to date every second (`vmstat_update`,
//! `mm/vmstat.c`), another does what is bound to no CPU, as looking whose statistics are out of date (`vmstat_shepherd`), and one thread for all
//! looks every half second whether memory shall be compacted (`kcompactd`, `mm/compaction.c`).
//!
//! To the scheduler these are tasks as any others, who take the CPU from whoever has it: of ten hogs on eight CPUs one involuntary switch in ten
//! is to them. They sleep by timers of the tick (`kernel/time/timer.c`) and so wake up in one.

use fairground_workload::{CpuList, Duration, Op, Program, TaskSpec, Workload};

use crate::{CostModel, MachineConfig};

/// A thread: its name, when it first works after the workload began, and every how many ns from then on.
///
/// When that is differs from kernel to kernel and hangs on how long it booted; in recordings of 6.1 and 7.2 with runs that begin at a full
/// second of the kernel's clock, these are the medians.
struct Thread {
    name: &'static str,
    first_ns: u64,
    period_ns: u64,
}

/// One on each CPU; its period is `sysctl_stat_interval`.
const WORKER: Thread = Thread { name: "kworker", first_ns: 560_000_000, period_ns: 1_000_000_000 };
const UNBOUND: Thread =
    Thread { name: "kworker/u", first_ns: 460_000_000, period_ns: 1_280_000_000 };
/// Its period is `HPAGE_FRAG_CHECK_INTERVAL_MSEC`, 500 ms, as the timer wheel rounds it.
const KCOMPACTD: Thread =
    Thread { name: "kcompactd0", first_ns: 308_000_000, period_ns: 512_000_000 };
/// When those that are bound to a CPU work last before the workload begins, ns.
const LAST_BEFORE_NS: u64 = 100_000_000;

/// A task that is not the workload's, as it appears in recordings of real kernels, bound to a CPU or to none.
pub(crate) fn other_task(name: &str, cpu: Option<u32>, program: Program) -> TaskSpec {
    TaskSpec {
        name: format!("other/{name}"),
        count: 1,
        nice: 0,
        cpus: cpu.map(|cpu| CpuList(vec![(cpu, cpu)])),
        cgroup: None,
        start_ns: Some(0),
        program,
        on_signal: Vec::new(),
    }
}

impl CostModel {
    /// Whether what else is there on a recorded kernel is there: its own threads, and the program that starts the workload.
    pub(crate) fn has_house(&self) -> bool {
        self.housekeeping_ns > 0
    }
}

/// The workload with these threads in it, where the costs say that they work.
pub(crate) fn with_threads(mut workload: Workload, config: &MachineConfig) -> Workload {
    if !config.cost.has_house() {
        return workload;
    }
    let workers = (0..config.cpus()).map(|cpu| {
        other_task(&format!("{}/{cpu}", WORKER.name), Some(cpu), program(&WORKER, config, true))
    });
    workload.tasks.extend(workers);
    for thread in [&UNBOUND, &KCOMPACTD] {
        workload.tasks.push(other_task(thread.name, None, program(thread, config, false)));
    }
    workload
}

/// Works once at the start of the machine, and from the workload's beginning on at its times; one that is bound to its CPU also shortly
/// before: a scheduler that goes by loads over time (PELT) has long forgotten then, on each CPU, that the threads were new.
fn program(thread: &Thread, config: &MachineConfig, bound: bool) -> Program {
    let tick_ns = 1_000_000_000 / u64::from(config.hz);
    // A timer of the tick expires a tick late: the present one is under way.
    let sleep = |ns: u64| Op::Sleep(Duration::Fixed(ns.saturating_sub(tick_ns)));
    let work = || Op::Run(Duration::Fixed(config.cost.housekeeping_ns));
    let rounds = Op::Loop(None, vec![work(), sleep(thread.period_ns)]);
    if !bound {
        return vec![work(), sleep(config.lead_in_ns.saturating_add(thread.first_ns)), rounds];
    }
    let before_ns = LAST_BEFORE_NS.min(config.lead_in_ns);
    let until_first_ns = before_ns + thread.first_ns;
    vec![work(), sleep(config.lead_in_ns - before_ns), work(), sleep(until_first_ns), rounds]
}
