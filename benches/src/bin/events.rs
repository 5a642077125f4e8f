//! Simulated scheduling events per second of wall time, on one core, tracing to memory. An event is a switch, a
//! wake-up or a tick of a busy CPU: each is at least one call of the scheduler. The last column leaves the ticks out.
//!
//! Two loads at several CPU counts: 2 hogs per CPU, and 4 tasks per CPU that run 100 µs and sleep 400 µs. A load
//! whose cost must not depend on idle CPUs: the second load of 8 CPUs on a machine with many more. And the largest:
//! 1,024 CPUs and 100,000 tasks, of which 98 share each CPU, run 100 µs and sleep 10 ms; their creation is not
//! measured.
//!
//!     cargo run --release -p fairground-benches --bin events [SCHEDULER…]
//!
//! Each figure is the best and the median of several repetitions of the same run: the work is the same to the byte, so
//! a slower run was disturbed. Hogs are switched rarely, at a rate that depends on the scheduler: compare schedulers by
//! events with ticks there.

use std::time::Instant;

use fairground_bpf::Object;
use fairground_machine::{CostModel, Engine, Machine, MachineConfig, Policy, TraceOptions};
use fairground_trace::Trace;
use fairground_workload::{Workload, from_spec};

/// CPU counts of the table.
const CPUS: [u32; 4] = [2, 8, 64, 256];
/// Repetitions of each run.
const REPETITIONS: usize = 5;
/// Approximate number of events of a run: enough for a fraction of a second.
const EVENTS: u64 = 1_500_000;

struct Load {
    name: &'static str,
    spec: fn(u32) -> String,
    /// Events per CPU and simulated second, roughly: sets the length of the run.
    rate: u64,
    /// Simulated time before the measurement, ns: the tasks are created in it, which is not measured.
    start_up_ns: u64,
}

/// 100,000 tasks need 98 % of 1,024 CPUs.
const CROWD: Load = Load {
    name: "100,000 × (100 µs run, 10 ms sleep)",
    spec: |_| "sleepers:100000,run=100us,sleep=10ms".to_owned(),
    rate: 18_000,
    start_up_ns: 15_000_000,
};

const LOADS: [Load; 2] = [
    Load {
        name: "2 hogs/CPU",
        spec: |cpus| format!("hogs:{}", 2 * cpus),
        rate: 250,
        start_up_ns: 0,
    },
    Load {
        name: "4 × (100 µs run, 400 µs sleep)/CPU",
        spec: |cpus| format!("sleepers:{},run=100us,sleep=400us", 4 * cpus),
        rate: 16_000,
        start_up_ns: 0,
    },
];

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = fairground_policies::all().iter().map(|policy| policy.name.to_owned()).collect();
    }
    println!(
        "{:<11} {:<36} {:>6} {:>6} {:>12} {:>10} {:>10} {:>13}",
        "sched", "load", "of", "CPUs", "events", "best M/s", "median M/s", "no ticks M/s"
    );
    for name in &names {
        let policy = load(name);
        for load in &LOADS {
            for cpus in CPUS {
                measure(name, &policy, load, cpus, cpus);
            }
        }
        for idle_beside in [64, 256, 1024] {
            measure(name, &policy, &LOADS[1], 8, idle_beside);
        }
        measure(name, &policy, &CROWD, 1024, 1024);
    }
    println!("bytes kept per event: {}", Trace::BYTES_PER_EVENT);
}

fn load(name: &str) -> Policy {
    let builtin = fairground_policies::get(name).unwrap_or_else(|| panic!("no scheduler {name}"));
    let object = Object::parse(name, builtin.object).unwrap_or_else(|e| panic!("{e}"));
    Policy::load(&object, Engine::Jit).unwrap_or_else(|e| panic!("{e}"))
}

/// The load of `busy` CPUs on a machine of `cpus`.
fn measure(name: &str, policy: &Policy, load: &Load, busy: u32, cpus: u32) {
    let workload = from_spec(&(load.spec)(busy)).unwrap_or_else(|e| panic!("{e}"));
    let length_ns = EVENTS * 1_000_000_000 / (load.rate * u64::from(busy));
    let mut rates = Vec::new();
    let (mut events, mut ticks) = (0, 0);
    for _ in 0..REPETITIONS {
        let end_ns = load.start_up_ns + length_ns.min(60_000_000_000);
        let seconds;
        (events, ticks, seconds) = run(policy, &workload, cpus, load.start_up_ns, end_ns);
        rates.push(events as f64 / seconds / 1e6);
    }
    rates.sort_by(f64::total_cmp);
    let (best, median) = (rates[REPETITIONS - 1], rates[REPETITIONS / 2]);
    let without_ticks = best * (events - ticks) as f64 / events as f64;
    println!(
        "{name:<11} {:<36} {busy:>6} {cpus:>6} {events:>12} {best:>10.2} {median:>10.2} {without_ticks:>13.2}",
        load.name
    );
}

/// Events between two simulated times, how many of them are ticks, and the wall time that they took: set-up and
/// analysis are not counted.
fn run(
    policy: &Policy,
    workload: &Workload,
    cpus: u32,
    from_ns: u64,
    to_ns: u64,
) -> (u64, u64, f64) {
    let mut config = MachineConfig::new(cpus);
    config.hz = 250;
    config.check = false;
    config.cost = CostModel::preset("modern").unwrap_or_else(|e| panic!("{e}"));
    config.trace = TraceOptions { callbacks: false, ticks: false, calls: false };
    let mut machine =
        Machine::new(&config, policy, &[], workload).unwrap_or_else(|e| panic!("{e}"));
    machine.run_until(from_ns).unwrap_or_else(|e| panic!("{e}"));
    let before = machine.counters().clone();
    let start = Instant::now();
    machine.run_until(to_ns).unwrap_or_else(|e| panic!("{e}"));
    let seconds = start.elapsed().as_secs_f64();
    let result = machine.finish().unwrap_or_else(|e| panic!("{e}"));
    let after = &result.counters;
    let ticks = after.ticks - before.ticks;
    let events = after.switches + after.wakeups - before.switches - before.wakeups + ticks;
    (events, ticks, seconds)
}
