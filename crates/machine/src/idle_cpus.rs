//! Which CPUs are idle: marks, searches, and the default choice of a CPU for a waking task.

use std::ops::Range;

mod spans;

use crate::abi::MAX_CPUS;
use crate::cpuset::CpuMask;
use crate::topology::Topology;
use spans::Spans;

/// A mask with an index of its non-zero words, so that a search skips the others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Summed {
    mask: CpuMask,
    /// Bit `i`: word `i` is not 0.
    summary: u32,
}

impl Summed {
    fn new(mask: CpuMask) -> Summed {
        let summary =
            mask.words.iter().enumerate().fold(0, |s, (i, word)| s | u32::from(*word != 0) << i);
        Summed { mask, summary }
    }

    #[inline]
    fn test(&self, cpu: u32) -> bool {
        self.mask.test(cpu)
    }

    #[inline]
    fn set(&mut self, cpu: u32) {
        self.set_bits(cpu / 64, 1 << (cpu % 64));
    }

    #[inline]
    fn clear(&mut self, cpu: u32) {
        self.clear_bits(cpu / 64, 1 << (cpu % 64));
    }

    #[inline]
    fn set_bits(&mut self, word: u32, bits: u64) {
        self.mask.words[word as usize] |= bits;
        self.summary |= 1 << word;
    }

    #[inline]
    fn clear_bits(&mut self, word: u32, bits: u64) {
        let rest = &mut self.mask.words[word as usize];
        *rest &= !bits;
        self.summary &= !(u32::from(*rest == 0) << word);
    }

    /// The first CPU of the word's bits `keep` that is in both masks.
    #[inline]
    fn in_word(&self, word: usize, keep: u64, allowed: &CpuMask) -> Option<u32> {
        let bits = self.mask.words[word] & allowed.words[word] & keep;
        (bits != 0).then(|| word as u32 * 64 + bits.trailing_zeros())
    }

    /// The first CPU at or after `start`, else the first before it (the kernel's `find_next_and_bit_wrap`).
    fn next_wrap(&self, start: u32, allowed: &CpuMask) -> Option<u32> {
        if self.summary == 0 {
            return None;
        }
        let start = if start < MAX_CPUS { start } else { 0 };
        let (first, below) = (start as usize / 64, (1u64 << (start % 64)) - 1);
        if let Some(cpu) = self.in_word(first, !below, allowed) {
            return Some(cpu);
        }
        let upper = (u32::MAX << first) & !(1 << first);
        for part in [self.summary & upper, self.summary & !upper & !(1 << first)] {
            let mut rest = part;
            while rest != 0 {
                let word = rest.trailing_zeros() as usize;
                if let Some(cpu) = self.in_word(word, u64::MAX, allowed) {
                    return Some(cpu);
                }
                rest &= rest - 1;
            }
        }
        self.in_word(first, below, allowed)
    }
}

/// The arguments of [`IdleCpus::select`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectCpu<'a> {
    /// The CPU on which the task ran last.
    pub(crate) prev_cpu: u32,
    /// The CPU on which the waker runs.
    pub(crate) waker_cpu: u32,
    /// Where the task may run.
    pub(crate) allowed: &'a CpuMask,
    /// Where the wake-up is synchronous (`SCX_WAKE_SYNC`): whether the waker is not exiting, and its CPU's local queue
    /// is empty.
    pub(crate) sync: Option<bool>,
    /// Only a CPU of a wholly idle core will do (`SCX_PICK_IDLE_CORE`).
    pub(crate) whole_core: bool,
}

/// The CPUs of a core that one word holds.
#[derive(Clone, Copy, Debug)]
struct CorePart {
    word: u32,
    bits: u64,
}

/// Which CPUs are idle, and whose whole core is (`idle_masks` in `kernel/sched/ext.c` of Linux 6.12). A CPU that was
/// picked counts as busy from then on; the core corrects that when the CPU goes idle again.
#[derive(Clone, Debug)]
pub(crate) struct IdleCpus {
    cpus: Summed,
    /// CPUs whose siblings are all idle, themselves included. Unused without SMT.
    cores: Summed,
    smt: bool,
    /// The CPUs of each core, as parts of words: siblings sit close together, so a core is one part, seldom two.
    parts: Vec<CorePart>,
    /// Per CPU: where its core's parts are. Empty without SMT.
    core_parts: Vec<Range<u32>>,
    /// Per calling CPU: the CPU that was picked last (`distribute_cpu_mask_prev` in `lib/cpumask.c`).
    last_pick: Vec<u32>,
    spans: Spans,
}

impl IdleCpus {
    /// All CPUs idle (`reset_idle_masks`).
    pub(crate) fn new(topology: &Topology) -> IdleCpus {
        let all = topology.all();
        let cpus = topology.cpus().min(MAX_CPUS);
        let smt = topology.has_smt();
        let (mut parts, mut core_parts) = (Vec::new(), Vec::new());
        for cpu in 0..if smt { cpus } else { 0 } {
            let start = parts.len() as u32;
            let words = topology.siblings(cpu).words.into_iter().zip(0..);
            parts.extend(words.filter(|w| w.0 != 0).map(|(bits, word)| CorePart { word, bits }));
            core_parts.push(start..parts.len() as u32);
        }
        IdleCpus {
            cpus: Summed::new(all),
            cores: Summed::new(if smt { all } else { CpuMask::EMPTY }),
            smt,
            parts,
            core_parts,
            last_pick: vec![0; cpus as usize],
            spans: Spans::new(topology),
        }
    }

    /// Whether a CPU is marked idle.
    #[cfg(test)]
    pub(crate) fn is_idle(&self, cpu: u32) -> bool {
        self.cpus.test(cpu)
    }

    /// Whether any CPU is marked idle.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.cpus.summary != 0
    }

    /// The idle CPUs (`scx_bpf_get_idle_cpumask`).
    pub(crate) fn cpus(&self) -> &CpuMask {
        &self.cpus.mask
    }

    /// The CPUs on wholly idle cores (`scx_bpf_get_idle_smtmask`): without SMT, all idle CPUs.
    pub(crate) fn cores(&self) -> &CpuMask {
        if self.smt { &self.cores.mask } else { &self.cpus.mask }
    }

    /// A CPU became idle or busy (`update_builtin_idle`).
    #[inline]
    pub(crate) fn update(&mut self, cpu: u32, idle: bool) {
        if idle {
            self.cpus.set(cpu);
        } else {
            self.cpus.clear(cpu);
        }
        if self.smt {
            self.update_core(cpu, idle);
        }
    }

    #[inline]
    fn update_core(&mut self, cpu: u32, idle: bool) {
        let range = self.core_parts[cpu as usize].clone();
        let parts = &self.parts[range.start as usize..range.end as usize];
        if !idle {
            parts.iter().for_each(|part| self.cores.clear_bits(part.word, part.bits));
        } else if parts.iter().all(|p| p.bits & !self.cpus.mask.words[p.word as usize] == 0) {
            let threads = parts.iter().filter(|part| part.bits != 0);
            threads.for_each(|part| self.cores.set_bits(part.word, part.bits));
        }
    }

    /// A CPU comes or goes. One that has gone is not idle, and no thread of its core: the others can be a whole core.
    pub(crate) fn set_online(&mut self, cpu: u32, online: bool) {
        self.update(cpu, false);
        if !self.smt {
            return;
        }
        for at in self.core_parts[cpu as usize].clone() {
            let part = &mut self.parts[at as usize];
            if part.word == cpu / 64 {
                let bit = 1 << (cpu % 64);
                part.bits = if online { part.bits | bit } else { part.bits & !bit };
            }
        }
        self.update_core(cpu, !online);
    }

    /// Claims a CPU if it is idle (`test_and_clear_cpu_idle`). Its core is no longer wholly idle in either case.
    #[inline]
    pub(crate) fn claim(&mut self, cpu: u32) -> bool {
        if self.smt {
            self.update_core(cpu, false);
        }
        let idle = self.cpus.test(cpu);
        self.cpus.clear(cpu);
        idle
    }

    /// Picks and claims an idle CPU of `allowed`, preferably on a wholly idle core; `whole_core` requires one
    /// (`scx_pick_idle_cpu`). As in the kernel, the search starts after the CPU that the same `caller` CPU got last.
    /// Without SMT, `whole_core` has no effect.
    pub(crate) fn pick(&mut self, caller: u32, allowed: &CpuMask, whole_core: bool) -> Option<u32> {
        let start = self.last_pick[caller as usize] + 1;
        let on_core = if self.smt { self.cores.next_wrap(start, allowed) } else { None };
        let cpu = match on_core {
            // A core's mark may be stale only where its CPU's is, and nothing else runs in between: the claim succeeds.
            Some(cpu) => cpu,
            None if self.smt && whole_core => return None,
            None => self.cpus.next_wrap(start, allowed)?,
        };
        self.last_pick[caller as usize] = cpu;
        self.claim(cpu).then_some(cpu)
    }

    /// The idle CPU that the core chooses for a waking task, claimed (`scx_select_cpu_dfl` of Linux 7.2).
    pub(crate) fn select(&mut self, ask: &SelectCpu<'_>) -> Option<u32> {
        let SelectCpu { prev_cpu, waker_cpu, allowed, whole_core, .. } = *ask;
        let prev_allowed = allowed.test(prev_cpu);
        if let Some(takes_waker) = ask.sync {
            if prev_allowed && self.spans.share_cache(waker_cpu, prev_cpu) && self.claim(prev_cpu) {
                return Some(prev_cpu);
            }
            if takes_waker && self.any() && allowed.test(waker_cpu) {
                self.claim(waker_cpu);
                return Some(waker_cpu);
            }
        }
        if self.smt {
            if prev_allowed && self.cores.test(prev_cpu) && self.claim(prev_cpu) {
                return Some(prev_cpu);
            }
            if let Some(cpu) = self.pick_near(ask, true) {
                return Some(cpu);
            }
            if whole_core {
                return None;
            }
        }
        if prev_allowed && self.claim(prev_cpu) {
            return Some(prev_cpu);
        }
        if let Some(cpu) = self.claim_sibling(prev_cpu, allowed) {
            return Some(cpu);
        }
        self.pick_near(ask, false)
    }

    /// Picks in the previous CPU's cache, then in its node, then anywhere.
    fn pick_near(&mut self, ask: &SelectCpu<'_>, whole_core: bool) -> Option<u32> {
        for near in self.spans.of(ask.prev_cpu, ask.allowed).into_iter().flatten() {
            if let Some(cpu) = self.pick(ask.waker_cpu, &near, whole_core) {
                return Some(cpu);
            }
        }
        self.pick(ask.waker_cpu, ask.allowed, whole_core)
    }

    /// Claims the first idle sibling of a CPU.
    fn claim_sibling(&mut self, cpu: u32, allowed: &CpuMask) -> Option<u32> {
        for at in self.core_parts.get(cpu as usize)?.clone() {
            let CorePart { word, bits } = self.parts[at as usize];
            let mut bits = bits & allowed.words[word as usize];
            while bits != 0 {
                let sibling = word * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                if sibling != cpu && self.claim(sibling) {
                    return Some(sibling);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mask(cpus: &[u32]) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        cpus.iter().for_each(|cpu| mask.set(*cpu));
        mask
    }

    #[test]
    fn a_whole_core_comes_before_a_half_one() {
        let mut idle = IdleCpus::new(&"1x3x2".parse().unwrap());
        let all = CpuMask::first_n(6);
        assert!(idle.claim(2), "CPU 3's core is no longer whole");
        assert_eq!(idle.cores(), &mask(&[0, 1, 4, 5]));
        assert_eq!(idle.pick(0, &all, true), Some(1), "the search starts behind CPU 0");
        assert_eq!(idle.pick(0, &all, true), Some(4));
        assert_eq!(idle.pick(0, &all, true), None);
        assert_eq!(idle.pick(0, &all, false), Some(5), "behind CPU 4, the last pick");
        assert_eq!(idle.pick(0, &mask(&[3]), false), Some(3));
        assert_eq!(idle.pick(0, &mask(&[1, 2, 3]), false), None);
        idle.update(2, true);
        assert_eq!(idle.cores(), &CpuMask::EMPTY);
        idle.update(3, true);
        assert_eq!(idle.cores(), &mask(&[2, 3]));
        idle.update(3, false);
        assert_eq!((idle.cores(), idle.cpus()), (&CpuMask::EMPTY, &mask(&[0, 2])));
        assert!(idle.is_idle(2) && !idle.is_idle(3));
    }

    #[test]
    fn the_default_choice_follows_the_kernels_order() {
        let mut idle = IdleCpus::new(&"1x3x2".parse().unwrap());
        let all = CpuMask::first_n(6);
        let ask =
            SelectCpu { prev_cpu: 2, waker_cpu: 0, allowed: &all, sync: None, whole_core: false };
        let sync = SelectCpu { sync: Some(true), ..ask };
        assert_eq!(idle.select(&sync), Some(2), "of one cache with the waker, and idle");
        assert_eq!(idle.select(&sync), Some(0), "else the waker's own");
        let from_3 = SelectCpu { prev_cpu: 3, ..ask };
        assert_eq!(idle.select(&SelectCpu { whole_core: true, ..from_3 }), Some(4));
        assert_eq!(idle.select(&SelectCpu { whole_core: true, ..from_3 }), None, "no whole core");
        assert_eq!(idle.select(&from_3), Some(3), "the idle previous CPU");
        idle.update(2, true);
        assert_eq!(idle.select(&from_3), Some(2), "its sibling");
        assert_eq!(idle.select(&from_3), Some(5), "any other, behind the last pick");
        assert_eq!(idle.select(&from_3), Some(1));
        assert_eq!(idle.select(&from_3), None);
        assert_eq!(idle.select(&sync), None, "no sync without an idle CPU");
    }

    #[test]
    fn caches_and_nodes_come_before_the_rest() {
        let topology: Topology = "2x4x1".parse().unwrap();
        let mut idle = IdleCpus::new(&topology);
        let all = CpuMask::first_n(8);
        let ask = SelectCpu {
            prev_cpu: 5,
            waker_cpu: 0,
            allowed: &all,
            sync: Some(true),
            whole_core: false,
        };
        assert_eq!(idle.select(&ask), Some(0), "the waker's, for another cache is far");
        let local = SelectCpu { sync: None, ..ask };
        let order: Vec<_> = (0..8).map_while(|_| idle.select(&local)).collect();
        assert_eq!(order, [5, 4, 6, 7, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn the_search_is_the_plain_one(
            idle in prop::collection::vec(0u32..1024, 0..60),
            allowed in prop::collection::vec(0u32..1024, 0..600),
            start in 0u32..1100,
            dense: bool,
        ) {
            let idle = Summed::new(mask(&idle));
            let allowed = if dense { CpuMask::first_n(1024) } else { mask(&allowed) };
            let both: Vec<u32> = idle.mask.and(&allowed).iter().collect();
            let from = if start < 1024 { start } else { 0 };
            let expected = both.iter().find(|cpu| **cpu >= from).or(both.first()).copied();
            prop_assert_eq!(idle.next_wrap(start, &allowed), expected);
        }

        #[test]
        fn idle_marks_stay_consistent(steps in prop::collection::vec((0u32..3, 0u32..130), 1..200)) {
            let topology: Topology = "5x13x2".parse().unwrap();
            let mut idle = IdleCpus::new(&topology);
            for (what, cpu) in steps {
                match what {
                    0 => idle.update(cpu, true),
                    1 => idle.update(cpu, false),
                    _ => {
                        let was = idle.is_idle(cpu);
                        prop_assert_eq!(idle.claim(cpu), was);
                    }
                }
                prop_assert_eq!(Summed::new(idle.cpus.mask), idle.cpus.clone());
                prop_assert_eq!(Summed::new(idle.cores.mask), idle.cores.clone());
                for cpu in topology.all().iter() {
                    let whole = topology.siblings(cpu).is_subset(idle.cpus());
                    prop_assert_eq!(idle.cores().test(cpu), whole);
                }
            }
        }
    }
}
