//! One map: its type's bookkeeping.

use super::arena::Arena;
use super::hash::Hash;
use super::queue::Queue;
use super::ring::Ring;
use crate::needs::type_name;
use crate::trap::Trap;

/// The key of an element.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ElementKey {
    /// Index in an array.
    Index(u32),
    /// The guest address of the key.
    Address(u64),
}

/// The values of a task-storage map, for generated code.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TaskView {
    /// Guest address of task 0's value.
    pub(crate) values: u64,
    /// By task: 1 if it has a value, else 0.
    pub(crate) present: *mut u8,
}

/// One map of an instance.
pub(super) struct Map {
    pub(super) name: String,
    /// Bytes of a value.
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    /// Byte offsets of the references that a value owns.
    pub(super) kptrs: Vec<u32>,
    pub(super) kind: Kind,
}

/// The bookkeeping of a map, by its type.
pub(super) enum Kind {
    /// Array or per-CPU array.
    Array {
        /// Guest address of element 0 (on CPU 0).
        addr: u64,
        /// Bytes from one element to the next.
        stride: u64,
        /// Bytes from a CPU's copy to the next CPU's; 0 if all CPUs share one.
        cpu_stride: u64,
    },
    Hash(Hash),
    /// Task storage.
    Tasks {
        /// Guest address of task 0's value.
        values: u64,
        /// Bytes from one task's value to the next.
        stride: u64,
        /// By task: 1 if it has a value, else 0.
        present: Vec<u8>,
    },
    /// Cgroup storage, by the cgroup's guest address.
    Cgroups(Hash),
    Queue(Queue),
    Ring(Ring),
    PerfEvents,
    Arena(Arena),
    /// A type that instances do not hold, by its number.
    Foreign(u32),
    /// Array of maps: handles of maps, or NULL.
    Maps(Vec<u64>),
}

impl Map {
    /// The trap of an operation that this type of map does not have.
    #[cold]
    pub(super) fn refuse(&self, what: &str) -> Trap {
        let why = match self.kind {
            Kind::Foreign(number) => {
                format!("maps of type {} are not supported", type_name(number))
            }
            _ => "it is of another kind".to_owned(),
        };
        Trap::helper(format!("cannot {what} map `{}`: {why}", self.name))
    }

    /// For the control block.
    pub(super) fn task_view(&mut self) -> TaskView {
        match &mut self.kind {
            Kind::Tasks { values, present, .. } => {
                TaskView { values: *values, present: present.as_mut_ptr() }
            }
            _ => TaskView { values: 0, present: std::ptr::null_mut() },
        }
    }
}
