//! The machine that fairground runs on: its CPUs and its topology.

use std::fs;

use fairground_machine::{CpuPlace, Topology};
use fairground_realkernel::sched_ext::units_of_host;

/// CPUs that this machine may have (`/sys/devices/system/cpu/possible`), as a loader on it counts them.
fn host_cpus() -> u32 {
    let possible = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = possible.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<u32>().ok());
    last.map_or(1, |last| last.saturating_add(1))
}

/// The topology of this machine, with every CPU that it may have. Where the kernel describes none, all CPUs share one
/// cache.
pub fn host_topology() -> Topology {
    let cpus = host_cpus();
    let units = |level| units_of_host(level, cpus as usize).unwrap_or_default();
    let [core, llc, node, socket] = ["core", "llc", "node", "socket"].map(units);
    let unit = |of: &[u32], cpu: usize| of.get(cpu).copied().unwrap_or(0);
    let place = |cpu: usize| CpuPlace {
        core: unit(&core, cpu),
        llc: unit(&llc, cpu),
        node: unit(&node, cpu),
        socket: unit(&socket, cpu),
    };
    let places = (0..cpus as usize).map(place).collect();
    Topology::from_places(places, "host").unwrap_or_else(|_| Topology::flat(cpus))
}
