//! `sched show --cost`: what a scheduler's program executes on each path of the kernel, counted over reference loads.

use fairground_machine::{Machine, MachineConfig, Path, Topology};
use fairground_report::{Cell, Column, Table};
use fairground_session::{Failure, Scheduler, find_workload};

use crate::present::path_name;

/// One reference load. Nothing random is in it, so a figure is the same at every repetition.
struct Load {
    name: &'static str,
    workload: &'static str,
    cpus: u32,
    /// Simulated time, ns.
    duration_ns: u64,
}

/// From the shortest queue to a long one, with wake-ups that preempt and such that do not, and on more than one CPU.
const LOADS: [Load; 6] = [
    Load { name: "2 hogs, 1 CPU", workload: "hogs:2", cpus: 1, duration_ns: LONG_NS },
    Load { name: "200 hogs, 1 CPU", workload: "hogs:200", cpus: 1, duration_ns: LONG_NS },
    Load {
        name: "hogs of five nice values, 1 CPU",
        workload: "hogs:1:-20:-10:0:10:19",
        cpus: 1,
        duration_ns: LONG_NS,
    },
    Load {
        name: "4 × (100 µs run, 400 µs sleep), 1 CPU",
        workload: "sleepers:4",
        cpus: 1,
        duration_ns: LONG_NS,
    },
    Load {
        name: "2 tasks that yield, 1 CPU",
        workload: "yieldpair",
        cpus: 1,
        duration_ns: SHORT_NS,
    },
    Load { name: "slice:16, 2 CPUs", workload: "slice:16", cpus: 2, duration_ns: LONG_NS },
];

/// Thousands of ticks, ns.
const LONG_NS: u64 = 2_000_000_000;
/// Thousands of yields, ns.
const SHORT_NS: u64 = 20_000_000;
/// Ticks a second.
const HZ: u32 = 1000;

/// The table of a scheduler.
pub(super) fn cost_table(scheduler: &Scheduler) -> Result<Table, Failure> {
    let columns = [
        Column::text("load"),
        Column::text("path"),
        Column::number("times"),
        Column::number_in("mean", "insns"),
        Column::number_in("most", "insns"),
        Column::number_in("mean", "divisions"),
        Column::number_in("most", "divisions"),
    ];
    let title = format!("What {} executes, counted", scheduler.object.label);
    let mut table = Table::new("policy_cost", title, columns);
    for load in &LOADS {
        let counters = run(scheduler, load)?;
        for path in Path::ALL {
            let cost = counters.path(path);
            if cost.times == 0 {
                continue;
            }
            let mean = |sum: u64| Cell::float(sum as f64 / cost.times as f64, 1);
            table.push([
                Cell::text(load.name),
                Cell::text(path_name(path)),
                Cell::count(cost.times),
                mean(cost.insns),
                Cell::count(cost.insns_max),
                mean(cost.divisions),
                Cell::count(cost.divisions_max),
            ]);
        }
    }
    table.note(format!(
        "BPF instructions of the scheduler's own program, {} s of simulated time (yields: {} ms) \
         at {HZ} ticks a second; a call into the kernel counts as one.",
        LONG_NS / 1_000_000_000,
        SHORT_NS / 1_000_000
    ));
    Ok(table)
}

fn run(scheduler: &Scheduler, load: &Load) -> Result<fairground_machine::Counters, Failure> {
    let failed =
        |e: &dyn std::fmt::Display| Failure::new(format_args!("{}: {e}", scheduler.object.label));
    let workload = find_workload(load.workload)?;
    let mut config = MachineConfig::new(load.cpus);
    config.topology = Topology::flat(load.cpus);
    config.hz = HZ;
    let mut machine =
        Machine::new(&config, &scheduler.policy, &scheduler.object.settings, &workload)
            .map_err(|e| failed(&e))?;
    machine.run_until(load.duration_ns).map_err(|e| failed(&e))?;
    if let Some(exit) = machine.exit() {
        return Err(failed(&format_args!("{}: the scheduler was ejected: {exit}", load.name)));
    }
    let result = machine.finish().map_err(|e| failed(&e))?;
    Ok(result.counters)
}
