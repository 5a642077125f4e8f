//! The topology that a scheduler's program reads: arrays that the loader of the object fills in.
//!
//! sched_ext has no kfunc that returns which CPUs share a core, a cache or a node. Programs take it from their loader,
//! in global arrays indexed by CPU. A declaration tag gives the meaning of an array: `topology:core`, `:llc`, `:node`,
//! `:socket`.

use fairground_bpf::{Global, GlobalType};

use super::{CpuPlace, Topology};
use crate::PolicyError;

/// Prefix of a tag.
const PREFIX: &str = "topology:";

/// The name of a level in the tag, and the number of a place in it.
type Level = (&'static str, fn(&CpuPlace) -> u32);

const LEVELS: [Level; 4] = [
    ("core", |place| place.core),
    ("llc", |place| place.llc),
    ("node", |place| place.node),
    ("socket", |place| place.socket),
];

/// An array of the program that the machine fills.
#[derive(Clone, Debug)]
pub(crate) struct TopologyArray {
    /// Index into the policy's globals.
    pub(crate) global: usize,
    /// Index into [`LEVELS`].
    level: usize,
    /// Elements.
    count: u64,
}

/// Finds the arrays of an object.
pub(crate) fn find(file: &str, globals: &[Global]) -> Result<Vec<TopologyArray>, PolicyError> {
    let mut found = Vec::new();
    for (index, global) in globals.iter().enumerate() {
        for name in global.tags.iter().filter_map(|tag| tag.strip_prefix(PREFIX)) {
            let wrong = |problem: String| PolicyError::Topology {
                file: file.to_owned(),
                variable: global.name.clone(),
                problem,
            };
            let level = LEVELS.iter().position(|(known, _)| *known == name).ok_or_else(|| {
                wrong(format!(
                    "its tag `{PREFIX}{name}` names no level; known are core, llc, node and socket"
                ))
            })?;
            found.push(TopologyArray {
                global: index,
                level,
                count: elements(global).map_err(wrong)?,
            });
        }
    }
    Ok(found)
}

/// The elements of an array of `u32`, or what is wrong with the variable.
fn elements(global: &Global) -> Result<u64, String> {
    if !global.is_settable() {
        return Err(
            "it is a constant that the compiler has folded into the code; declare it `const \
             volatile`, or without `const`"
                .to_owned(),
        );
    }
    match &global.ty {
        GlobalType::Array { of, element_size: 4, count, .. } => match **of {
            GlobalType::Int { bits: 32, signed: false } => Ok(*count),
            _ => Err(wanted()),
        },
        _ => Err(wanted()),
    }
}

fn wanted() -> String {
    "a variable with a topology tag is an array of u32, one element for each CPU: `u32 topology_core[MAX_CPUS]`"
        .to_owned()
}

impl TopologyArray {
    /// The bytes of the array: the place of each CPU; 0 behind the last one. An error when there is no room for every
    /// CPU.
    pub(crate) fn bytes(&self, topology: &Topology) -> Result<Vec<u8>, String> {
        let (level, number) = LEVELS[self.level];
        if self.count < u64::from(topology.cpus()) {
            return Err(format!(
                "the machine has {} CPUs; the scheduler's array with the tag `{PREFIX}{level}` has room for {}",
                topology.cpus(),
                self.count
            ));
        }
        let mut bytes = vec![0; self.count as usize * 4];
        for (element, place) in bytes.chunks_exact_mut(4).zip(&topology.places) {
            element.copy_from_slice(&number(place).to_le_bytes());
        }
        Ok(bytes)
    }
}
