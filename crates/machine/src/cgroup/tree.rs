//! The tree of cgroups, as the simulated kernel keeps it and as programs see it in guest memory.

use fairground_bpf::{Memory, Trap};
use fairground_trace::{CgroupInfo, Trace};
use fairground_workload::{Bandwidth, Workload};

use crate::layout::offsets::{cgroup as field, task};

/// The weight of a cgroup that was not set (`CGROUP_WEIGHT_DFL`).
const WEIGHT_DFL: u32 = 100;

/// Numbers between the kernfs ids of two cgroups: on a real machine the control files of a cgroup have numbers too, so
/// that an id cannot be taken for an index.
const ID_STEP: u64 = 64;

/// A cgroup's place in the tree; 0 is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CgroupRef(pub(crate) u32);

impl CgroupRef {
    pub(crate) const ROOT: CgroupRef = CgroupRef(0);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// Its number in the trace.
    pub(crate) fn id(self) -> fairground_trace::CgroupId {
        fairground_trace::CgroupId(self.0)
    }
}

/// A file of a cgroup, with what it comes to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// `cpu.weight`.
    Weight(u32),
    /// `cpu.max`, with `cpu.max.burst`.
    Max(Bandwidth),
    /// `cpu.idle`.
    Idle(bool),
}

/// One cgroup with its `task_group`.
#[derive(Clone, Debug)]
pub(crate) struct Cgroup {
    pub(crate) path: String,
    pub(crate) parent: Option<CgroupRef>,
    pub(crate) level: u32,
    /// `cpu.weight` (`tg->scx_weight`).
    pub(crate) weight: u32,
    /// `cpu.max`: told to the scheduler, and enforced by nothing else.
    pub(crate) max: Bandwidth,
    /// `cpu.idle`, likewise.
    pub(crate) idle: bool,
    /// `SCX_TG_INITED`: `ops.cgroup_init()` was called, or there is none.
    pub(crate) inited: bool,
}

/// A place in a walk with children first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PostOrder {
    /// The cgroup there.
    pub(crate) cgroup: CgroupRef,
    /// The cgroups before this one, in the order of the list, were met or have one below them that was.
    pub(crate) opened: u32,
}

/// All cgroups of a machine: parents before their children, each subtree in one piece (the order of a walk from the
/// root).
#[derive(Clone, Debug)]
pub(crate) struct Cgroups {
    list: Vec<Cgroup>,
    /// Guest address of the first `struct cgroup`.
    base: u64,
    /// Whether any is below the root: the trace then has them.
    pub(crate) in_trace: bool,
}

impl Cgroup {
    /// A cgroup whose files hold what they hold at first.
    fn new(path: String, parent: Option<CgroupRef>, level: u32) -> Cgroup {
        let (weight, max) = (WEIGHT_DFL, Bandwidth::NO_LIMIT);
        Cgroup { path, parent, level, weight, max, idle: false, inited: false }
    }

    /// A file gets what it is to hold.
    pub(crate) fn set(&mut self, control: Control) {
        match control {
            Control::Weight(weight) => self.weight = weight,
            Control::Max(max) => self.max = max,
            Control::Idle(idle) => self.idle = idle,
        }
    }
}

impl Cgroups {
    /// The tree of a workload; the root alone when it has none.
    pub(crate) fn new(workload: &Workload) -> Cgroups {
        let mut list: Vec<Cgroup> = Vec::with_capacity(workload.cgroups.len().max(1));
        for cgroup in &workload.cgroups {
            let parent = cgroup.parent.map(|parent| CgroupRef(parent as u32));
            let level = parent.map_or(0, |parent| list[parent.index()].level + 1);
            let (weight, max, idle) = (cgroup.weight, cgroup.max, cgroup.idle);
            let usual = Cgroup::new(cgroup.path.clone(), parent, level);
            list.push(Cgroup { weight, max, idle, ..usual });
        }
        let in_trace = list.len() > 1;
        if list.is_empty() {
            list.push(Cgroup::new("/".to_owned(), None, 0));
        }
        Cgroups { list, base: 0, in_trace }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn get(&self, cgroup: CgroupRef) -> &Cgroup {
        &self.list[cgroup.index()]
    }

    pub(crate) fn get_mut(&mut self, cgroup: CgroupRef) -> &mut Cgroup {
        &mut self.list[cgroup.index()]
    }

    /// Every cgroup, parents first (`css_for_each_descendant_pre`).
    pub(crate) fn pre_order(&self) -> Vec<CgroupRef> {
        (0..self.list.len() as u32).map(CgroupRef).collect()
    }

    /// Every cgroup, children first (`css_for_each_descendant_post`).
    pub(crate) fn post_order(&self) -> Vec<CgroupRef> {
        let mut order = Vec::with_capacity(self.list.len());
        let mut open: Vec<CgroupRef> = Vec::new();
        for cgroup in self.pre_order() {
            let level = self.get(cgroup).level as usize;
            while open.len() > level {
                order.extend(open.pop());
            }
            open.push(cgroup);
        }
        order.extend(open.into_iter().rev());
        order
    }

    /// The next cgroup of a walk over the one at `start` and those below it, parents first; `met` were met before.
    pub(crate) fn next_pre_order(&self, start: CgroupRef, met: u64) -> Option<CgroupRef> {
        // A subtree is one piece of the list.
        let next = CgroupRef(u32::try_from(u64::from(start.0) + met).ok()?);
        let level = self.list.get(next.index()).map(|_| self.get(start).level)?;
        (self.ancestor(next, i64::from(level)) == Some(start)).then_some(next)
    }

    /// The same, children first, after `place`; `None`: the first.
    pub(crate) fn next_post_order(
        &self,
        start: CgroupRef,
        place: Option<PostOrder>,
    ) -> Option<PostOrder> {
        let first_of = |mut cgroup: CgroupRef| {
            let child = |of: CgroupRef| {
                let next = CgroupRef(of.0 + 1);
                (self.list.get(next.index())?.parent == Some(of)).then_some(next)
            };
            while let Some(below) = child(cgroup) {
                cgroup = below;
            }
            PostOrder { cgroup, opened: cgroup.0 + 1 }
        };
        let Some(PostOrder { cgroup, opened }) = place else { return Some(first_of(start)) };
        if cgroup == start {
            return None;
        }
        let parent = self.get(cgroup).parent;
        match self.list.get(opened as usize).is_some_and(|next| next.parent == parent) {
            true => Some(first_of(CgroupRef(opened))),
            false => parent.map(|cgroup| PostOrder { cgroup, opened }),
        }
    }

    /// By path, with or without a `/` in front.
    pub(crate) fn find(&self, path: &str) -> Option<CgroupRef> {
        let plain = path.strip_prefix('/').filter(|rest| !rest.is_empty()).unwrap_or(path);
        let index = self.list.iter().position(|cgroup| cgroup.path == plain)?;
        Some(CgroupRef(index as u32))
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|cgroup| cgroup.path.as_str())
    }

    /// Guest address of a `struct cgroup`.
    pub(crate) fn addr(&self, cgroup: CgroupRef) -> u64 {
        self.base + u64::from(cgroup.0) * field::STRIDE
    }

    /// Guest address of its `struct task_group`.
    pub(crate) fn task_group(&self, cgroup: CgroupRef) -> u64 {
        self.addr(cgroup) + field::TG
    }

    /// The cgroup whose `struct cgroup` lies at a guest address.
    pub(crate) fn at(&self, addr: u64) -> Option<CgroupRef> {
        let distance = addr.wrapping_sub(self.base);
        let index = distance / field::STRIDE;
        let there = index < self.list.len() as u64 && index * field::STRIDE == distance;
        there.then_some(CgroupRef(index as u32))
    }

    /// `kn->id`: the root's is 1.
    pub(crate) fn kn_id(cgroup: CgroupRef) -> u64 {
        1 + u64::from(cgroup.0) * ID_STEP
    }

    /// The cgroup of a `kn->id`.
    pub(crate) fn of_kn_id(&self, id: u64) -> Option<CgroupRef> {
        let distance = id.checked_sub(1)?;
        let index = distance / ID_STEP;
        let there = distance % ID_STEP == 0 && index < self.list.len() as u64;
        there.then_some(CgroupRef(index as u32))
    }

    /// The ancestor at a level; the cgroup itself at its own.
    pub(crate) fn ancestor(&self, mut cgroup: CgroupRef, level: i64) -> Option<CgroupRef> {
        let level = u32::try_from(level).ok()?;
        while self.get(cgroup).level > level {
            cgroup = self.get(cgroup).parent?;
        }
        (self.get(cgroup).level == level).then_some(cgroup)
    }

    /// Enters the tree into a trace.
    pub(crate) fn enter(&self, trace: &mut Trace) {
        if !self.in_trace {
            return;
        }
        for cgroup in &self.list {
            trace.add_cgroup(CgroupInfo {
                path: cgroup.path.clone(),
                parent: cgroup.parent.map(CgroupRef::id),
                weight: cgroup.parent.map(|_| cgroup.weight),
            });
        }
    }

    /// Writes into the `task_struct` at an address that the task is in a cgroup.
    pub(crate) fn publish_in(
        &self,
        mem: &Memory,
        addr: u64,
        cgroup: CgroupRef,
    ) -> Result<(), Trap> {
        mem.store_u64(addr + task::SCHED_TASK_GROUP, self.task_group(cgroup))?;
        mem.store_u64(addr + task::CGROUPS, self.addr(cgroup) + field::CSS_SET)
    }

    /// Writes what programs see, at `base`.
    pub(crate) fn publish(&mut self, mem: &Memory, base: u64) -> Result<(), Trap> {
        self.base = base;
        for cgroup in self.pre_order() {
            let at = self.addr(cgroup);
            let Cgroup { path, parent, level, weight, .. } = self.get(cgroup);
            let (kn, tg) = (at + field::KNODE, at + field::TG);
            mem.store_u64(at + field::CSS_CGROUP, at)?;
            mem.store_u64(at + field::DOM_CGRP, at)?;
            mem.store_u32(at + field::LEVEL, *level)?;
            mem.store_u64(at + field::KN, kn)?;
            mem.store_u64(kn + field::KN_ID, Cgroups::kn_id(cgroup))?;
            mem.store_u64(at + field::CSS_SET + field::DFL_CGRP, at)?;
            mem.store_u64(tg + field::TG_CGROUP, at)?;
            mem.store_u32(tg + field::TG_WEIGHT, *weight)?;
            if let Some(parent) = parent {
                let above = self.addr(*parent);
                mem.store_u64(at + field::CSS_PARENT, above)?;
                mem.store_u64(kn + field::KN_PARENT, above + field::KNODE)?;
                mem.store_u64(tg + field::TG_PARENT, above + field::TG)?;
            }
            let name = path.rsplit('/').next().unwrap_or_default().as_bytes();
            let name = &name[..name.len().min(field::NAME_BYTES as usize - 1)];
            mem.write(at + field::NAME, name)?;
            mem.store_u64(kn + field::KN_NAME, at + field::NAME)?;
            for level in 0..=*level {
                let ancestor = self.ancestor(cgroup, i64::from(level)).unwrap_or(cgroup);
                let slot = at + field::ANCESTORS + 8 * u64::from(level);
                mem.store_u64(slot, self.addr(ancestor))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Cgroups {
        let entry = |path: &str, parent: Option<u32>, level| {
            Cgroup::new(path.to_owned(), parent.map(CgroupRef), level)
        };
        let list = vec![
            entry("/", None, 0),
            entry("a", Some(0), 1),
            entry("a/b", Some(1), 2),
            entry("a/c", Some(1), 2),
            entry("d", Some(0), 1),
        ];
        Cgroups { list, base: 4096, in_trace: true }
    }

    #[test]
    fn walks_and_ancestors() {
        let tree = tree();
        let post: Vec<u32> = tree.post_order().iter().map(|cgroup| cgroup.0).collect();
        assert_eq!(post, [2, 3, 1, 4, 0]);
        let ancestor = |of, level| tree.ancestor(CgroupRef(of), level).map(|c| c.0);
        assert_eq!([0, 1, 2, 3].map(|level| ancestor(3, level)), [Some(0), Some(1), Some(3), None]);
        assert_eq!(ancestor(3, -1), None);
    }

    #[test]
    fn walks_by_steps_meet_the_same() {
        let tree = tree();
        let pre = |start| (0..).map_while(|met| tree.next_pre_order(start, met)).collect();
        let post = |start| {
            let first = tree.next_post_order(start, None);
            let all = std::iter::successors(first, |at| tree.next_post_order(start, Some(*at)));
            all.map(|at| at.cgroup).collect()
        };
        let below = |start: CgroupRef, all: Vec<CgroupRef>| -> Vec<CgroupRef> {
            let level = i64::from(tree.get(start).level);
            all.into_iter().filter(|one| tree.ancestor(*one, level) == Some(start)).collect()
        };
        for start in tree.pre_order() {
            let walked: Vec<CgroupRef> = pre(start);
            assert_eq!(walked, below(start, tree.pre_order()), "from {start:?}");
            let walked: Vec<CgroupRef> = post(start);
            assert_eq!(walked, below(start, tree.post_order()), "from {start:?}");
        }
    }

    #[test]
    fn ids_and_addresses_are_found_again() {
        let tree = tree();
        for cgroup in tree.pre_order() {
            assert_eq!(tree.of_kn_id(Cgroups::kn_id(cgroup)), Some(cgroup));
            assert_eq!(tree.at(tree.addr(cgroup)), Some(cgroup));
        }
        assert_eq!(
            (tree.of_kn_id(0), tree.of_kn_id(2), tree.of_kn_id(1 + 5 * ID_STEP)),
            (None, None, None)
        );
        assert_eq!((tree.at(0), tree.at(tree.base + 8)), (None, None));
    }
}
