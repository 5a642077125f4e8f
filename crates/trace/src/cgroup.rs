//! The control groups of a trace.

/// A cgroup's index in [`crate::Trace::cgroups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupId(pub u32);

impl CgroupId {
    /// The root of the tree, where a trace has one.
    pub const ROOT: CgroupId = CgroupId(0);

    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The attributes of a cgroup, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupInfo {
    /// The path from the root: `"web/front"`; the root's is `"/"`.
    pub path: String,
    /// The group above, which comes before it in the table; `None` for the root.
    pub parent: Option<CgroupId>,
    /// `cpu.weight` (1…10,000) at the start; `None` when it is unknown, and for the root, which has none.
    /// Later changes are [`crate::EventKind::CgroupWeight`] events.
    pub weight: Option<u32>,
}
