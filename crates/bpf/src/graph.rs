//! Objects that a program allocates, and the trees and lists that it hangs them into: which object is where. The objects lie in
//! guest memory; the order lies with the host, out of the program's reach.

use std::collections::{BTreeMap, VecDeque};

/// Objects that a program may own at the same time.
pub(crate) const MAX_OBJECTS: usize = 1 << 16;
/// Locks (`bpf_res_spin_lock`) that may be held at the same time: as many as the kernel looks at for deadlocks (`RES_NR_HELD`).
pub(crate) const MAX_HELD_LOCKS: usize = 31;

/// An allocated object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owned {
    pub(crate) bytes: u32,
    pub(crate) references: u32,
}

/// What a program allocated, and in what order it stands in its trees and lists.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// By guest address.
    pub(crate) objects: BTreeMap<u64, Owned>,
    /// The nodes of each tree or list, in order, by the guest address of its root or head.
    roots: BTreeMap<u64, VecDeque<u64>>,
    /// The root of each node that hangs somewhere.
    owners: BTreeMap<u64, u64>,
    /// `bpf_res_spin_lock`s held, the last taken last.
    pub(crate) held: Vec<u64>,
}

impl Graph {
    /// The object that holds the byte at `addr`: its address.
    pub(crate) fn object_at(&self, addr: u64) -> Option<u64> {
        let (start, owned) = self.objects.range(..=addr).next_back()?;
        (addr - start < u64::from(owned.bytes).max(1)).then_some(*start)
    }

    /// The root that a node hangs at.
    pub(crate) fn owner(&self, node: u64) -> Option<u64> {
        self.owners.get(&node).copied()
    }

    /// Nodes of a tree or list.
    pub(crate) fn len(&self, root: u64) -> usize {
        self.roots.get(&root).map_or(0, VecDeque::len)
    }

    /// The node at a position.
    pub(crate) fn at(&self, root: u64, position: usize) -> Option<u64> {
        self.roots.get(&root)?.get(position).copied()
    }

    /// Hangs a node in front of the one at `position`. The node hangs nowhere.
    pub(crate) fn insert(&mut self, root: u64, position: usize, node: u64) {
        let nodes = self.roots.entry(root).or_default();
        let position = position.min(nodes.len());
        nodes.insert(position, node);
        self.owners.insert(node, root);
    }

    /// Takes a node off; false if it does not hang at that root.
    pub(crate) fn remove(&mut self, root: u64, node: u64) -> bool {
        if self.owner(node) != Some(root) {
            return false;
        }
        self.owners.remove(&node);
        let nodes = self.roots.get_mut(&root);
        let place = nodes.and_then(|nodes| {
            let at = nodes.iter().position(|found| *found == node)?;
            nodes.remove(at)
        });
        place.is_some()
    }
}
