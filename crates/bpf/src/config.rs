//! The size and the limits of an instance, and the errors of its memory.

use std::io;

/// Maximum number of CPUs: bounds per-CPU memory.
pub const MAX_CPUS: u32 = 8192;

/// The effect of a load through NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NullLoads {
    /// The call ends with a trap: the program has a bug.
    #[default]
    Trap,
    /// The load reads zero, as in the kernel for pointers that the verifier accepts unchecked (`PTR_UNTRUSTED`).
    ReadZero,
}

/// The size and the limits of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceConfig {
    /// CPUs, 1…[`MAX_CPUS`]: the number of values in per-CPU maps.
    pub cpus: u32,
    /// Maximum instructions of one call; more end it with [`crate::TrapKind::OutOfFuel`].
    pub fuel_per_call: u64,
    /// Maximum number of tasks at the same time: the number of values in task-storage maps.
    pub task_capacity: u32,
    /// Maximum number of cgroups at the same time: the number of values in cgroup-storage maps.
    pub cgroup_capacity: u32,
    /// The effect of a load through NULL.
    pub null_loads: NullLoads,
    /// Instructions that can never execute with the constants of the instance are removed at its first call, and not
    /// counted, as by the kernel's verifier.
    pub remove_dead_code: bool,
}

impl Default for InstanceConfig {
    /// One CPU, 8 million instructions per call, 4,096 tasks, 256 cgroups, traps at NULL, the code as it is.
    fn default() -> Self {
        InstanceConfig {
            cpus: 1,
            fuel_per_call: 8 << 20,
            task_capacity: 4096,
            cgroup_capacity: 256,
            null_loads: NullLoads::default(),
            remove_dead_code: false,
        }
    }
}

/// Why an instance cannot be created, or why it has no memory left.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// The kernel refused a mapping.
    #[error(
        "the kernel grants no memory for a program's region: {0} \
         (see `sysctl vm.max_map_count` and `ulimit -v` when many instances live at once)"
    )]
    Map(#[source] io::Error),
    /// The region is full.
    #[error(
        "{bytes} bytes do not fit into the program's 4 GiB region: use fewer CPUs, tasks or map entries"
    )]
    Full {
        /// The requested value.
        bytes: u64,
    },
    /// The number of CPUs is out of range.
    #[error("{cpus} CPUs: a program runs on 1 to {MAX_CPUS}")]
    Cpus {
        /// The requested value.
        cpus: u32,
    },
    /// An alignment that is not a power of two, or above a page.
    #[error("an alignment of {align}: use a power of two up to 4096")]
    Align {
        /// The requested value.
        align: u64,
    },
    /// A second slab, or one larger than configured.
    #[error(
        "a slab of {capacity} tasks of {stride} bytes: one slab per instance, within `task_capacity` = {limit}"
    )]
    Slab {
        /// Bytes from a task to the next.
        stride: u64,
        /// Tasks.
        capacity: u32,
        /// [`InstanceConfig::task_capacity`].
        limit: u32,
    },
}
