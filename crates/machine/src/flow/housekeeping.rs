//! What a kernel does for itself, whatever runs on it: on each CPU a worker brings statistics up to date every second (`vmstat_update`,
//! `mm/vmstat.c`), and one thread for all looks every half second whether memory shall be compacted (`kcompactd`, `mm/compaction.c`).
//!
//! To the scheduler these are tasks as any others, who take the CPU from whoever has it: of ten hogs on eight CPUs one involuntary switch in ten
//! is to them.

use fairground_workload::{CpuList, Duration, Op, Program, TaskSpec, Workload};

use crate::CostModel;

/// `sysctl_stat_interval`, ns.
const WORKER_PERIOD_NS: u64 = 1_000_000_000;
/// `HPAGE_FRAG_CHECK_INTERVAL_MSEC`, 500 ms, as the timer wheel rounds it, ns.
const KCOMPACTD_PERIOD_NS: u64 = 512_000_000;
/// When they work first, ns: in the recorded runs 80 and 240 ms after the workload began, in the median.
const WORKER_FIRST_NS: u64 = 80_000_000;
const KCOMPACTD_FIRST_NS: u64 = 240_000_000;
/// When they work last before it begins, ns: a scheduler that goes by loads over time (PELT) has long forgotten then that they were new, on
/// each CPU, if the lead-in is long enough.
const LAST_BEFORE_NS: u64 = 100_000_000;

/// A thread of the kernel's own, as it appears in recordings of real kernels, bound to a CPU or to none.
pub(crate) fn kernel_thread(name: &str, cpu: Option<u32>, program: Program) -> TaskSpec {
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

/// The workload with these threads in it, where the costs say that they work.
pub(crate) fn with_threads(
    mut workload: Workload,
    cost: &CostModel,
    cpus: u32,
    lead_in_ns: u64,
) -> Workload {
    if cost.housekeeping_ns == 0 {
        return workload;
    }
    let before_ns = LAST_BEFORE_NS.min(lead_in_ns);
    let fixed = |ns| Duration::Fixed(ns);
    let thread = |name: &str, cpu, first_ns: u64, period_ns: u64| {
        let turn = vec![Op::Run(fixed(cost.housekeeping_ns)), Op::Sleep(fixed(period_ns))];
        let program = vec![
            Op::Sleep(fixed(lead_in_ns.saturating_sub(before_ns))),
            Op::Run(fixed(cost.housekeeping_ns)),
            Op::Sleep(fixed(before_ns.saturating_add(first_ns))),
            Op::Loop(None, turn),
        ];
        kernel_thread(name, cpu, program)
    };
    let worker =
        |cpu| thread(&format!("kworker/{cpu}"), Some(cpu), WORKER_FIRST_NS, WORKER_PERIOD_NS);
    workload.tasks.extend((0..cpus).map(worker));
    workload.tasks.push(thread("kcompactd0", None, KCOMPACTD_FIRST_NS, KCOMPACTD_PERIOD_NS));
    workload
}
