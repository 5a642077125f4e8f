//! `sched show --cost`: what a scheduler's program executes on each path of the kernel, counted over reference loads.

use fairground_machine::{Counters, Machine, MachineConfig, Path, PathCost, Topology};
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
    Load::new("2 hogs, 1 CPU", "hogs:2", 1, LONG_NS),
    Load::new("200 hogs, 1 CPU", "hogs:200", 1, LONG_NS),
    Load::new("hogs of five nice values, 1 CPU", "hogs:1:-20:-10:0:10:19", 1, LONG_NS),
    Load::new("4 × (100 µs run, 400 µs sleep), 1 CPU", "sleepers:4", 1, LONG_NS),
    Load::new("2 tasks that yield, 1 CPU", "yieldpair", 1, SHORT_NS),
    Load::new("slice:16, 2 CPUs", "slice:16", 2, LONG_NS),
];

impl Load {
    const fn new(name: &'static str, workload: &'static str, cpus: u32, duration_ns: u64) -> Load {
        Load { name, workload, cpus, duration_ns }
    }
}

/// Thousands of ticks, ns.
const LONG_NS: u64 = 2_000_000_000;
/// Thousands of yields, ns.
const SHORT_NS: u64 = 20_000_000;
/// Ticks a second.
const HZ: u32 = 1000;

pub(super) fn cost_table(scheduler: &Scheduler) -> Result<Table, Failure> {
    let mut costs: Vec<(&str, Path, PathCost)> = Vec::new();
    for load in &LOADS {
        let counters = run(scheduler, load)?;
        let of_paths = Path::ALL.into_iter().map(|path| (load.name, path, counters.path(path)));
        costs.extend(of_paths.filter(|(_, _, cost)| cost.times > 0));
    }
    let mean = |cost: &PathCost, sum: u64| Cell::float(sum as f64 / cost.times as f64, 1);
    let insns = |name| Column::number_in(name, "insns");
    let divisions = |name| Column::number_in(name, "divisions");
    let title = format!("What {} executes, counted", scheduler.object.label);
    let mut table = Table::of("policy_cost", title, costs)
        .text("load", |(load, ..)| *load)
        .text("path", |(_, path, _)| path_name(*path))
        .count("times", |(.., cost)| cost.times)
        .column(insns("mean"), |(.., cost)| mean(cost, cost.insns))
        .column(insns("most"), |(.., cost)| Cell::count(cost.insns_max))
        .column(divisions("mean"), |(.., cost)| mean(cost, cost.divisions))
        .column(divisions("most"), |(.., cost)| Cell::count(cost.divisions_max))
        .table();
    table.note(format!(
        "BPF instructions of the scheduler's own program, {} s of simulated time (yields: {} ms) \
         at {HZ} ticks a second; a call into the kernel counts as one.",
        LONG_NS / 1_000_000_000,
        SHORT_NS / 1_000_000
    ));
    Ok(table)
}

fn run(scheduler: &Scheduler, load: &Load) -> Result<Counters, Failure> {
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
