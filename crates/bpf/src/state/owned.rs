//! Objects that a program allocates (`bpf_obj_new`), and the red-black trees and lists that link them.
//!
//! The objects are in guest memory. The order of each tree and list is host data, which the program cannot reach.

use std::collections::{BTreeMap, VecDeque};

/// Objects that a program may own at the same time.
pub(crate) const MAX_OBJECTS: usize = 1 << 16;
/// Alignment of objects.
pub(crate) const OBJECT_ALIGN: u64 = 8;
/// `bpf_res_spin_lock`s that may be held at the same time: the kernel's `RES_NR_HELD`.
pub(crate) const MAX_HELD_LOCKS: usize = 31;

/// An allocated object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnedObject {
    /// The BTF type identifier of its structure.
    pub(crate) number: u32,
    /// Size.
    pub(crate) bytes: u32,
    /// Reference count; the object is freed at 0.
    pub(crate) references: u32,
}

/// The objects of an instance, their trees and lists, and the locks that protect these.
#[derive(Debug, Default)]
pub(crate) struct OwnedObjects {
    /// By guest address.
    pub(crate) objects: BTreeMap<u64, OwnedObject>,
    /// The nodes of each tree or list, in order, by the guest address of its root or head.
    roots: BTreeMap<u64, VecDeque<u64>>,
    /// The root or head of each linked node.
    owners: BTreeMap<u64, u64>,
    /// `bpf_res_spin_lock`s held, in the order in which they were taken.
    pub(crate) held: Vec<u64>,
}

impl OwnedObjects {
    /// The address of the object that contains the byte at `addr`.
    pub(crate) fn object_at(&self, addr: u64) -> Option<u64> {
        let (start, owned) = self.objects.range(..=addr).next_back()?;
        (addr - start < u64::from(owned.bytes).max(1)).then_some(*start)
    }

    /// The root or head of the tree or list that contains a node.
    pub(crate) fn owner(&self, node: u64) -> Option<u64> {
        self.owners.get(&node).copied()
    }

    /// The number of nodes in a tree or list.
    pub(crate) fn len(&self, root: u64) -> usize {
        self.roots.get(&root).map_or(0, VecDeque::len)
    }

    /// The node at `index` in the order of a tree or list.
    pub(crate) fn at(&self, root: u64, index: usize) -> Option<u64> {
        self.roots.get(&root)?.get(index).copied()
    }

    /// Inserts an unlinked node before the node at `index`.
    pub(crate) fn insert(&mut self, root: u64, index: usize, node: u64) {
        let nodes = self.roots.entry(root).or_default();
        nodes.insert(index.min(nodes.len()), node);
        self.owners.insert(node, root);
    }

    /// Unlinks a node; false if that tree or list does not contain it.
    pub(crate) fn remove(&mut self, root: u64, node: u64) -> bool {
        if self.owner(node) != Some(root) {
            return false;
        }
        self.owners.remove(&node);
        let Some(nodes) = self.roots.get_mut(&root) else { return false };
        let index = nodes.iter().position(|found| *found == node);
        index.and_then(|index| nodes.remove(index)).is_some()
    }
}
