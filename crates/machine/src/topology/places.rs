//! A topology from the place of each CPU: any shape, any numbering.

use super::{CpuPlace, Topology, TopologyError};
use crate::abi;

/// A level of the machine: its name and the number of a place in it.
type Level = (&'static str, fn(&CpuPlace) -> u32);

const CORE: Level = ("core", |p| p.core);
const LLC: Level = ("last-level cache", |p| p.llc);
const NODE: Level = ("node", |p| p.node);
const SOCKET: Level = ("socket", |p| p.socket);

/// Which level is wholly inside of which. A node may hold several sockets, and a socket several nodes.
const INSIDE: [(Level, Level); 3] = [(CORE, LLC), (LLC, NODE), (LLC, SOCKET)];

impl Topology {
    /// A machine from the place of each CPU, CPU 0 first. `text` names it in results.
    ///
    /// # Errors
    /// No CPU or more than a machine takes; numbers of one level that leave a gap; a core with CPUs in two caches, or a
    /// cache with CPUs in two nodes or sockets.
    pub fn from_places(places: Vec<CpuPlace>, text: &str) -> Result<Topology, TopologyError> {
        let wrong = |problem: String| TopologyError { text: text.to_owned(), problem };
        if places.is_empty() {
            return Err(wrong("a machine has at least one CPU".to_owned()));
        }
        if places.len() > abi::MAX_CPUS as usize {
            return Err(wrong(format!("it has {} CPUs", places.len())));
        }
        for level in [CORE, LLC, NODE, SOCKET] {
            dense(&places, level).map_err(wrong)?;
        }
        for (inner, outer) in INSIDE {
            nested(&places, inner, outer).map_err(wrong)?;
        }
        Ok(Topology::new(places.len() as u32, places, text.to_owned()))
    }

    /// The same machine with its sockets spread over `nodes` NUMA nodes: equal numbers of neighbouring sockets in each.
    /// A virtual machine's sockets are often all in one node.
    ///
    /// # Errors
    /// `nodes` does not divide the number of sockets.
    pub fn with_nodes(&self, nodes: u32) -> Result<Topology, TopologyError> {
        let text = format!("{self},nodes={nodes}");
        let sockets = self.places.iter().map(|p| p.socket + 1).max().unwrap_or(0);
        if nodes == 0 || !sockets.is_multiple_of(nodes) {
            let problem = format!("{sockets} sockets cannot be spread evenly over {nodes} nodes");
            return Err(TopologyError { text, problem });
        }
        let each = sockets / nodes;
        let places = self.places.iter().map(|p| CpuPlace { node: p.socket / each, ..*p });
        Topology::from_places(places.collect(), &text)
    }
}

/// The numbers of a level are 0, 1, 2 … without a gap.
fn dense(places: &[CpuPlace], (name, number): Level) -> Result<(), String> {
    let mut known = vec![false; places.len()];
    for (cpu, place) in places.iter().enumerate() {
        match known.get_mut(number(place) as usize) {
            Some(seen) => *seen = true,
            None => {
                return Err(format!(
                    "CPU {cpu} is in {name} {}; numbers count from 0 without a gap",
                    number(place)
                ));
            }
        }
    }
    let count = known.iter().rposition(|seen| *seen).map_or(0, |last| last + 1);
    match known[..count].iter().position(|seen| !seen) {
        Some(gap) => Err(format!("no CPU is in {name} {gap}; numbers count from 0 without a gap")),
        None => Ok(()),
    }
}

/// All CPUs of one inner place are in one outer place.
fn nested(
    places: &[CpuPlace],
    (inner_name, inner): Level,
    (outer_name, outer): Level,
) -> Result<(), String> {
    let mut first: Vec<Option<usize>> = vec![None; places.len()];
    for (cpu, place) in places.iter().enumerate() {
        let of = &mut first[inner(place) as usize];
        let other = *of.get_or_insert(cpu);
        if outer(&places[other]) != outer(place) {
            return Err(format!(
                "CPUs {other} and {cpu} share {inner_name} {}, but are in {outer_name} {} and {}",
                inner(place),
                outer(&places[other]),
                outer(place)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(core: u32, llc: u32, node: u32, socket: u32) -> CpuPlace {
        CpuPlace { core, llc, node, socket }
    }

    #[test]
    fn any_numbering_will_do() {
        let places =
            vec![place(0, 0, 0, 0), place(1, 0, 0, 0), place(0, 0, 0, 0), place(1, 0, 0, 0)];
        let t = Topology::from_places(places, "threads last").expect("a machine");
        assert_eq!((t.cpus(), t.has_smt(), t.nodes()), (4, true, 1));
        assert_eq!(t.siblings(3).iter().collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn sockets_share_nodes() {
        let t: Topology = "8x1x1,nodes=1".parse().expect("a machine");
        assert_eq!((t.cpus(), t.nodes(), t.to_string().as_str()), (8, 1, "8x1x1,nodes=1"));
        assert_eq!(t.place(7), Some(place(7, 7, 0, 7)));
        let t: Topology = "4x2x1,nodes=2".parse().expect("a machine");
        assert_eq!(t.place(5), Some(place(5, 2, 1, 2)));
        for text in ["3x1x1,nodes=2", "2x1x1,nodes=0", "2x1x1,nodes=x", "2x1x1,node=1", "8,nodes=9"]
        {
            assert!(text.parse::<Topology>().is_err(), "{text}");
        }
    }

    #[test]
    fn contradictions_are_named() {
        for (places, says) in [
            (vec![], "at least one CPU"),
            (vec![place(1, 0, 0, 0)], "CPU 0 is in core 1"),
            (vec![place(0, 0, 0, 0), place(0, 0, 0, 0), place(2, 0, 0, 0)], "no CPU is in core 1"),
            (vec![place(0, 0, 0, 0), place(0, 1, 0, 0)], "CPUs 0 and 1 share core 0"),
            (vec![place(0, 0, 0, 0), place(1, 0, 1, 0)], "are in node 0 and 1"),
            (vec![place(0, 0, 0, 0), place(1, 0, 0, 1)], "are in socket 0 and 1"),
            (vec![place(0, 0, 0, 0); 1025], "1025 CPUs"),
        ] {
            let error = Topology::from_places(places, "x").expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
