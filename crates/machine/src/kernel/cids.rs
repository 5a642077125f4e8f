//! Topological CPU numbers (`kernel/sched/ext/cid.c`, Linux 7.2): CPUs that share a core, a cache or a node have
//! numbers next to each other. A scheduler of the cid form (`struct sched_ext_ops_cid`) gets these numbers only.

use std::collections::BTreeMap;

use fairground_bpf::{Memory, Trap};

use super::Kernel;
use crate::Topology;
use crate::abi;
use crate::cpuset::CpuMask;
use crate::layout::offsets::cmask;

/// The two tables, and what the scheduler asked for.
#[derive(Debug)]
pub(crate) struct Cids {
    /// The scheduler is of the cid form.
    pub(crate) form: bool,
    /// `SCX_OPS_TID_TO_TASK`: tasks can be looked up by `p->scx.tid`.
    pub(crate) tids: bool,
    cid_of: Vec<u32>,
    cpu_of: Vec<u32>,
    /// The scheduler has given other numbers, which say nothing of the topology.
    replaced: bool,
    /// `ops.init()` runs: the numbers may be changed.
    pub(crate) open: bool,
    /// Guest address of the mask that `ops.set_cmask()` gets.
    pub(crate) mask: u64,
}

impl Cids {
    /// `scx_cid_init`: node by node, in it cache by cache, core by core, CPU by CPU; each in the order of its first
    /// CPU.
    pub(crate) fn new(topology: &Topology, form: bool, flags: u64) -> Cids {
        let mut cpu_of: Vec<u32> = (0..topology.cpus()).collect();
        // The first CPU of each node, cache and core; a part is met first at its lowest CPU.
        let mut first: BTreeMap<(u8, u32), u32> = BTreeMap::new();
        for cpu in 0..topology.cpus() {
            for part in parts(topology, cpu) {
                first.entry(part).or_insert(cpu);
            }
        }
        cpu_of.sort_by_cached_key(|cpu| (parts(topology, *cpu).map(|part| first[&part]), *cpu));
        let mut cids = Cids {
            form,
            tids: flags & abi::ops_flag::TID_TO_TASK != 0,
            cid_of: Vec::new(),
            cpu_of,
            replaced: false,
            open: false,
            mask: 0,
        };
        cids.cid_of = inverse(&cids.cpu_of);
        cids
    }

    /// The number of a CPU that exists.
    pub(crate) fn cid_of(&self, cpu: u32) -> u32 {
        self.cid_of[cpu as usize]
    }

    /// `scx_cpu_arg`: the number that a callback gets for a CPU.
    #[inline]
    pub(crate) fn told(&self, cpu: u32) -> u64 {
        u64::from(if self.form { self.cid_of[cpu as usize] } else { cpu })
    }

    /// The members of `struct scx_cid_topo` for a CPU, if the numbers follow the topology: core, cache, node, each with
    /// the first number of its CPUs and its place among its kind, in the order of these.
    pub(crate) fn place_of(&self, topology: &Topology, cpu: u32) -> Option<[u32; 6]> {
        if self.replaced {
            return None;
        }
        let mut members = [0; 6];
        for (at, kind) in [2, 1, 0].into_iter().enumerate() {
            let own = parts(topology, cpu)[kind];
            let mut firsts: Vec<(u8, u32)> = Vec::new();
            for (cid, other) in self.cpu_of.iter().enumerate() {
                let part = parts(topology, *other)[kind];
                if firsts.last() != Some(&part) {
                    firsts.push(part);
                    if part == own {
                        (members[2 * at], members[2 * at + 1]) =
                            (cid as u32, firsts.len() as u32 - 1);
                    }
                }
            }
        }
        Some(members)
    }

    /// Gives every CPU another number. `cid_of` is a permutation.
    pub(crate) fn replace(&mut self, cid_of: Vec<u32>) {
        self.cpu_of = inverse(&cid_of);
        self.cid_of = cid_of;
        self.replaced = true;
    }

    /// `scx_cpumask_to_cmask`: writes a mask for `ops.set_cmask()`, which covers all CPUs; its guest address.
    pub(crate) fn write_mask(&self, mem: &Memory, cpus: &CpuMask) -> Result<u64, Trap> {
        let words = self.cpu_of.len().div_ceil(64);
        let mut bits = vec![0u64; words];
        for cpu in cpus.iter() {
            let cid = self.cid_of[cpu as usize] as usize;
            bits[cid / 64] |= 1 << (cid % 64);
        }
        mem.store_u32(self.mask + cmask::BASE, 0)?;
        mem.store_u32(self.mask + cmask::NR_CIDS, self.cpu_of.len() as u32)?;
        mem.store_u32(self.mask + cmask::ALLOC_WORDS, words as u32 + 1)?;
        for (at, word) in bits.iter().enumerate() {
            mem.store_u64(self.mask + cmask::BITS + 8 * at as u64, *word)?;
        }
        Ok(self.mask)
    }

    /// Bytes of a mask of so many CPUs (`SCX_CMASK_NR_WORDS` words, one more than needed).
    pub(crate) fn mask_bytes(cpus: u32) -> u64 {
        cmask::BITS + 8 * (u64::from(cpus).div_ceil(64) + 1)
    }
}

/// A CPU's node, last-level cache and core, by kind and number.
fn parts(topology: &Topology, cpu: u32) -> [(u8, u32); 3] {
    match topology.place(cpu) {
        Some(place) => [(0, place.node), (1, place.llc), (2, place.core)],
        None => [(0, 0), (1, 0), (2, cpu)],
    }
}

/// The table the other way round.
fn inverse(table: &[u32]) -> Vec<u32> {
    let mut out = vec![0; table.len()];
    for (at, to) in table.iter().enumerate() {
        out[*to as usize] = at as u32;
    }
    out
}

impl Kernel {
    /// `scx_cid_to_cpu`: a wrong number ejects the scheduler.
    pub(crate) fn cpu_of_cid(&mut self, cid: i64) -> Option<u32> {
        let cpu = usize::try_from(cid).ok().and_then(|cid| self.cids.cpu_of.get(cid).copied());
        if cpu.is_none() {
            self.error(format!("invalid cid {cid}"));
        }
        cpu
    }

    /// `scx_cpu_ret`, and the check of what comes out: the CPU that a scheduler of either form names.
    pub(crate) fn named_cpu(&mut self, number: i64, place: &str) -> Option<u32> {
        if self.cids.form && number >= 0 {
            return self.cpu_of_cid(number);
        }
        self.cpu_valid(number, place)
    }
}
