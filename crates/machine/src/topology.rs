//! The topology of a machine's CPUs: threads of a core, cores of a cache, caches of a node.

pub(crate) mod globals;
mod places;

use std::fmt;
use std::str::FromStr;

use crate::abi;
use crate::cpuset::CpuMask;

/// The place of one CPU. Numbers count from 0 over the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuPlace {
    /// The physical core; CPUs with the same core are its hardware threads (SMT siblings).
    pub core: u32,
    /// The last-level cache.
    pub llc: u32,
    /// The NUMA node.
    pub node: u32,
    /// The socket.
    pub socket: u32,
}

/// The CPUs of a machine. In the short form threads of a core have adjacent numbers, as in a virtual machine (firmware
/// on real x86 machines often numbers the second threads after all first ones: [`Topology::from_places`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    cpus: u32,
    places: Vec<CpuPlace>,
    cores: Vec<CpuMask>,
    nodes: Vec<CpuMask>,
    smt: bool,
    text: String,
}

/// Why a text is not a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` names no topology: {problem}; give a number of CPUs (`8`) or sockets x cores x \
     threads (`2x4x2`; `8x1x1,nodes=1` puts all sockets in one node), 1 to {} CPUs in all",
    abi::MAX_CPUS
)]
pub struct TopologyError {
    /// The text.
    pub text: String,
    /// The problem.
    pub problem: String,
}

impl Topology {
    /// `cpus` CPUs without SMT that share one cache. A machine takes 1 to 1024 of them.
    pub fn flat(cpus: u32) -> Topology {
        let places =
            (0..cpus.min(abi::MAX_CPUS)).map(|core| CpuPlace { core, ..CpuPlace::default() });
        Topology::new(cpus, places.collect(), cpus.to_string())
    }

    /// Sockets of equal cores of equal threads. Each socket is a NUMA node with one last-level cache.
    pub fn grid(
        sockets: u32,
        cores_per_socket: u32,
        threads_per_core: u32,
    ) -> Result<Topology, TopologyError> {
        let text = format!("{sockets}x{cores_per_socket}x{threads_per_core}");
        let cpus =
            u128::from(sockets) * u128::from(cores_per_socket) * u128::from(threads_per_core);
        if cpus == 0 {
            return Err(TopologyError { text, problem: "no part of it may be 0".to_owned() });
        }
        if cpus > u128::from(abi::MAX_CPUS) {
            return Err(TopologyError { text, problem: format!("it has {cpus} CPUs") });
        }
        let places = (0..cpus as u32).map(|cpu| {
            let core = cpu / threads_per_core;
            let socket = core / cores_per_socket;
            CpuPlace { core, llc: socket, node: socket, socket }
        });
        Ok(Topology::new(cpus as u32, places.collect(), text))
    }

    fn new(cpus: u32, places: Vec<CpuPlace>, text: String) -> Topology {
        let groups = |of: fn(&CpuPlace) -> u32| {
            let mut masks =
                vec![CpuMask::EMPTY; places.iter().map(|p| of(p) as usize + 1).max().unwrap_or(0)];
            for (cpu, place) in places.iter().enumerate() {
                masks[of(place) as usize].set(cpu as u32);
            }
            masks
        };
        let (cores, nodes) = (groups(|p| p.core), groups(|p| p.node));
        let smt = cores.iter().any(|core| core.count() > 1);
        Topology { cpus, places, cores, nodes, smt, text }
    }

    /// The number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Whether any core has more than one hardware thread.
    pub fn has_smt(&self) -> bool {
        self.smt
    }

    /// The number of NUMA nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The place of a CPU; `None` when the machine has no such CPU.
    pub fn place(&self, cpu: u32) -> Option<CpuPlace> {
        self.places.get(cpu as usize).copied()
    }

    /// The hardware threads of the CPU's core, itself included. Panics when the machine has no such CPU.
    #[inline]
    pub(crate) fn siblings(&self, cpu: u32) -> &CpuMask {
        &self.cores[self.places[cpu as usize].core as usize]
    }

    /// The CPUs of the CPU's NUMA node, itself included. Panics when the machine has no such CPU.
    pub(crate) fn node(&self, cpu: u32) -> &CpuMask {
        &self.nodes[self.places[cpu as usize].node as usize]
    }

    /// The CPUs of a node.
    pub(crate) fn node_cpus(&self, node: u32) -> &CpuMask {
        &self.nodes[node as usize]
    }

    /// The NUMA node of a CPU. Panics when the machine has no such CPU.
    pub(crate) fn node_of(&self, cpu: u32) -> u32 {
        self.places[cpu as usize].node
    }

    /// All CPUs.
    pub(crate) fn all(&self) -> CpuMask {
        CpuMask::first_n(self.cpus)
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Topology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Topology, TopologyError> {
        let wrong = |problem: String| TopologyError { text: text.to_owned(), problem };
        let number = |part: &str| -> Result<u32, TopologyError> {
            if part.is_empty() || !part.bytes().all(|c| c.is_ascii_digit()) {
                return Err(wrong(format!("`{part}` is not a whole number")));
            }
            part.parse().map_err(|_| wrong(format!("{part} is too large")))
        };
        if let Some((sockets, nodes)) = text.split_once(",nodes=") {
            let topology: Topology =
                sockets.parse().map_err(|e: TopologyError| wrong(e.problem))?;
            return topology.with_nodes(number(nodes)?).map_err(|e| wrong(e.problem));
        }
        let parts: Vec<&str> = text.split('x').collect();
        let topology = match parts[..] {
            [cpus] => match number(cpus)? {
                0 => return Err(wrong("a machine has at least one CPU".to_owned())),
                n if n > abi::MAX_CPUS => return Err(wrong(format!("it has {n} CPUs"))),
                n => Topology::flat(n),
            },
            [sockets, cores, threads] => {
                Topology::grid(number(sockets)?, number(cores)?, number(threads)?)
                    .map_err(|e| wrong(e.problem))?
            }
            _ => return Err(wrong(format!("it has {} parts", parts.len()))),
        };
        Ok(topology)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_places_every_cpu() {
        let t: Topology = "2x4x2".parse().unwrap();
        assert_eq!(
            (t.cpus(), t.nodes(), t.has_smt(), t.to_string().as_str()),
            (16, 2, true, "2x4x2")
        );
        assert_eq!(t.place(11), Some(CpuPlace { core: 5, llc: 1, node: 1, socket: 1 }));
        assert_eq!(t.siblings(11).iter().collect::<Vec<_>>(), [10, 11]);
        let llc = |cpu| t.place(cpu).map(|place| place.llc);
        assert!((0..16).all(|cpu| (llc(cpu) == llc(11)) == (8..16).contains(&cpu)));
        assert_eq!(
            (t.node(3).count(), t.node_of(3), t.all().count(), t.place(16)),
            (8, 0, 16, None)
        );
    }

    #[test]
    fn a_plain_number_is_one_cache() {
        let t: Topology = "8".parse().unwrap();
        assert_eq!(
            (t.cpus(), t.nodes(), t.has_smt(), t.place(7).map(|place| place.llc)),
            (8, 1, false, Some(0))
        );
        assert_eq!(t, Topology::flat(8));
        assert_eq!(
            Topology::flat(u32::MAX).cpus(),
            u32::MAX,
            "the machine refuses it, not the type"
        );
        assert_eq!(Topology::flat(0).cpus(), 0);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("", "`` is not a whole number"),
            ("0", "at least one CPU"),
            ("1025", "1025 CPUs"),
            ("2x4", "2 parts"),
            ("2x0x2", "may be 0"),
            ("64x64x64", "262144 CPUs"),
            ("2X4x2", "`2X4x2` names no topology"),
            ("+8", "`+8` is not a whole number"),
            ("99999999999", "too large"),
            ("4000000000x4000000000x4000000000", "CPUs"),
        ] {
            let error = text.parse::<Topology>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("`2x4x2`"), "{error}");
        }
    }
}
