//! The configuration of a virtual machine.

use std::path::PathBuf;
use std::time::Duration;

use super::deadlines::Deadlines;
use super::error::VmError;
use super::mode::VmMode;
use crate::packages::{Kernel, Qemu};

/// A virtual machine.
#[derive(Clone, Debug)]
pub struct VmConfig {
    /// The machine's emulator ([`crate::packages::Cache::qemu`]).
    pub qemu: Qemu,
    /// The kernel ([`crate::packages::Cache::kernel`], [`Kernel::from_path`]).
    pub kernel: Kernel,
    /// Virtual CPUs, 1 to [`VmConfig::MAX_CPUS`].
    pub cpus: u32,
    /// Memory of the guest, MiB, [`VmConfig::MIN_MEMORY_MIB`] to [`VmConfig::MAX_MEMORY_MIB`].
    pub memory_mib: u32,
    /// Its clock mode.
    pub mode: VmMode,
    /// Guest time of one instruction in the deterministic mode, ns: one of [`VmConfig::INSTRUCTION_NS`].
    pub instruction_ns: u64,
    /// Parameters for the kernel's command line, after the program's own.
    pub append: Vec<String>,
    /// Time limit of each phase (boot, run, end), wall time without that in which QEMU waits for a CPU of the host;
    /// `None`: from the guest's duration ([`super::Deadlines`]).
    pub deadline: Option<Duration>,
    /// The program that becomes the guest's first process; it must call [`crate::guest::main`] when
    /// [`crate::guest::is_init`] says so. `None`: the running program.
    pub program: Option<PathBuf>,
}

impl VmConfig {
    /// Maximum number of virtual CPUs (tested up to 8; QEMU's limit is 255).
    pub const MAX_CPUS: u32 = 64;
    /// Times that an instruction may take in the deterministic mode, ns: powers of two, as QEMU has them. The kernel's work
    /// takes as many times longer than on a processor of today, which executes 1 to 3 in a nanosecond; a guest second
    /// takes as many times less of the host's time than one at 1 ns.
    pub const INSTRUCTION_NS: [u64; 4] = [1, 2, 4, 8];
    /// The time of an instruction unless it is stated, ns.
    pub const INSTRUCTION_NS_DEFAULT: u64 = 8;
    /// Minimum memory, MiB: enough for a Debian kernel with the program in its initramfs.
    pub const MIN_MEMORY_MIB: u32 = 256;
    /// Maximum memory, MiB: all of it is below the PCI hole.
    pub const MAX_MEMORY_MIB: u32 = 3 << 10;

    /// A deterministic machine with 1 GiB.
    pub fn new(qemu: Qemu, kernel: Kernel, cpus: u32) -> Self {
        Self {
            qemu,
            kernel,
            cpus,
            memory_mib: 1 << 10,
            mode: VmMode::default(),
            instruction_ns: Self::INSTRUCTION_NS_DEFAULT,
            append: Vec::new(),
            deadline: None,
            program: None,
        }
    }

    /// QEMU's clock in the deterministic mode: 2^shift ns per instruction. An idle guest does not wait for the wall
    /// clock.
    pub(super) fn icount(&self) -> &'static str {
        match self.instruction_ns {
            1 => "shift=0,sleep=off",
            2 => "shift=1,sleep=off",
            4 => "shift=2,sleep=off",
            _ => "shift=3,sleep=off",
        }
    }

    /// Checks the configuration.
    pub(super) fn check(&self) -> Result<(), VmError> {
        let refuse = |what: String| Err(VmError::Config(what));
        if !(1..=Self::MAX_CPUS).contains(&self.cpus) {
            return refuse(format!("{} virtual CPUs: use 1 to {}", self.cpus, Self::MAX_CPUS));
        }
        if !(Self::MIN_MEMORY_MIB..=Self::MAX_MEMORY_MIB).contains(&self.memory_mib) {
            let (least, most) = (Self::MIN_MEMORY_MIB, Self::MAX_MEMORY_MIB);
            return refuse(format!("{} MiB of memory: use {least} to {most}", self.memory_mib));
        }
        if !Self::INSTRUCTION_NS.contains(&self.instruction_ns) {
            return refuse(format!("{} ns an instruction: use 1, 2, 4 or 8", self.instruction_ns));
        }
        match self.append.iter().find(|p| p.is_empty() || p.contains(char::is_control)) {
            Some(parameter) => refuse(format!(
                "boot parameter {parameter:?} is empty or contains control characters"
            )),
            None => Ok(()),
        }
    }

    /// The deadlines of a command that takes `guest_ns`. [`VmConfig::deadline`] replaces each of them.
    pub(super) fn deadlines(&self, guest_ns: u64) -> Deadlines {
        match self.deadline {
            Some(own) => Deadlines { boot: own, run: own, shutdown: own },
            None => Deadlines::for_guest(guest_ns, self.cpus, self.mode, self.instruction_ns),
        }
    }
}
