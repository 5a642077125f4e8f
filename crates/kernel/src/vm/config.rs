//! What a virtual machine is made of.

use std::path::PathBuf;
use std::time::Duration;

use crate::catalogue::{Kernel, Qemu};

/// How the machine's time passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VmMode {
    /// Time counts instructions, 8 ns each: the same job gives the same bytes, on any host, beside any load.
    #[default]
    Deterministic,
    /// Each virtual CPU is a thread of the host (under KVM where a probe proved it): quicker, never the same twice.
    Fast,
}

/// A virtual machine.
#[derive(Clone, Debug)]
pub struct VmConfig {
    /// The machine's emulator ([`crate::catalogue::Cache::qemu`]).
    pub qemu: Qemu,
    /// The kernel ([`crate::catalogue::Cache::kernel`], [`Kernel::from_path`]).
    pub kernel: Kernel,
    /// Virtual CPUs, 1 to [`VmConfig::MAX_CPUS`].
    pub cpus: u32,
    /// Memory of the guest, MiB, [`VmConfig::MIN_MEMORY_MIB`] to [`VmConfig::MAX_MEMORY_MIB`].
    pub memory_mib: u32,
    /// How its time passes.
    pub mode: VmMode,
    /// Parameters for the kernel's command line, after the program's own.
    pub append: Vec<String>,
    /// How long the whole may take, wall time; `None`: by the guest's duration ([`super::Deadlines::for_guest`]).
    pub deadline: Option<Duration>,
    /// The program that becomes the guest's first process; it must call [`crate::guest::main`] when
    /// [`crate::guest::is_init`] says so. `None`: the running one.
    pub program: Option<PathBuf>,
}

impl VmConfig {
    /// The most virtual CPUs (the recipes were seen to work up to 8; QEMU's own limit is 255).
    pub const MAX_CPUS: u32 = 64;
    /// The least memory that a Debian kernel with the program in its initramfs boots in, MiB.
    pub const MIN_MEMORY_MIB: u32 = 256;
    /// The most memory, MiB: all of it lies below the hole for devices.
    pub const MAX_MEMORY_MIB: u32 = 3 << 10;

    /// A deterministic machine with 1 GiB.
    pub fn new(qemu: Qemu, kernel: Kernel, cpus: u32) -> Self {
        Self {
            qemu,
            kernel,
            cpus,
            memory_mib: 1 << 10,
            mode: VmMode::default(),
            append: Vec::new(),
            deadline: None,
            program: None,
        }
    }
}
