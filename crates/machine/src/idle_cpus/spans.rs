//! CPUs that are near to each other, as the default choice of a CPU looks for them.

use crate::abi::MAX_CPUS;
use crate::cpuset::CpuMask;
use crate::topology::Topology;

/// The CPUs of each cache and of each node, where the machine has several of them
/// (`scx_idle_update_selcpu_topology`, Linux 7.2).
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    /// By CPU: its last-level cache, its node.
    places: Vec<(usize, usize)>,
    /// Empty: there is one cache only.
    caches: Vec<CpuMask>,
    /// Empty: there is one node only, or nodes are what caches are.
    nodes: Vec<CpuMask>,
}

impl Spans {
    pub(super) fn new(topology: &Topology) -> Spans {
        let cpus = topology.cpus().min(MAX_CPUS);
        let places = (0..cpus).filter_map(|cpu| topology.place(cpu));
        let places: Vec<_> =
            places.map(|place| (place.llc as usize, place.node as usize)).collect();
        let caches = masks(places.iter().map(|place| place.0));
        let mut nodes = masks(places.iter().map(|place| place.1));
        if places.iter().all(|place| caches[place.0] == nodes[place.1]) {
            nodes.clear();
        }
        let several = |masks: Vec<CpuMask>| if masks.len() > 1 { masks } else { Vec::new() };
        Spans { caches: several(caches), nodes: several(nodes), places }
    }

    /// The CPUs near to one among those that are allowed: those of its cache, those of its node.
    pub(super) fn of(&self, cpu: u32, allowed: &CpuMask) -> [Option<CpuMask>; 2] {
        let (cache, node) = self.places[cpu as usize];
        let near = |masks: &[CpuMask], number: usize| Some(masks.get(number)?.and(allowed));
        [near(&self.caches, cache), near(&self.nodes, node)]
    }

    /// Whether two CPUs have one last-level cache (`cpus_share_cache`).
    pub(super) fn share_cache(&self, one: u32, other: u32) -> bool {
        self.places[one as usize].0 == self.places[other as usize].0
    }
}

/// The CPUs of each number, from the numbers of the CPUs in their order.
fn masks(numbers: impl Iterator<Item = usize>) -> Vec<CpuMask> {
    let mut masks = Vec::new();
    for (cpu, number) in (0..).zip(numbers) {
        if masks.len() <= number {
            masks.resize(number + 1, CpuMask::EMPTY);
        }
        masks[number].set(cpu);
    }
    masks
}
