//! Control groups: their tree, what the scheduler is told of changes, and the kfuncs on them.

mod control;
pub(crate) mod kfuncs;
mod tree;

pub(crate) use tree::{Cgroup, CgroupRef, Cgroups, Control, PostOrder};
