//! The configuration of a virtual machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::deadlines::Deadlines;
use super::error::VmError;
use super::mode::VmMode;
use crate::catalogue::{Kernel, Qemu};

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
    /// How long each part (boot, run, end) may take, wall time; `None`: by the guest's duration ([`super::Deadlines`]).
    pub deadline: Option<Duration>,
    /// The program that becomes the guest's first process; it must call [`crate::guest::main`] when
    /// [`crate::guest::is_init`] says so. `None`: the running one.
    pub program: Option<PathBuf>,
    /// Once it is set, the machine is ended, and the command fails with [`VmError::Interrupted`]. `None`: nobody ends
    /// it early.
    pub stop: Option<Arc<AtomicBool>>,
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
            stop: None,
        }
    }

    /// Whether somebody asked for its end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Whether the machine can be.
    pub(super) fn check(&self) -> Result<(), VmError> {
        let refuse = |what: String| Err(VmError::Config(what));
        if !(1..=Self::MAX_CPUS).contains(&self.cpus) {
            return refuse(format!("{} virtual CPUs: 1 to {} can be", self.cpus, Self::MAX_CPUS));
        }
        if !(Self::MIN_MEMORY_MIB..=Self::MAX_MEMORY_MIB).contains(&self.memory_mib) {
            let (least, most) = (Self::MIN_MEMORY_MIB, Self::MAX_MEMORY_MIB);
            return refuse(format!("{} MiB of memory: {least} to {most} can be", self.memory_mib));
        }
        match self.append.iter().find(|p| p.is_empty() || p.contains(char::is_control)) {
            Some(parameter) => refuse(format!("boot parameter {parameter:?}: it is no parameter")),
            None => Ok(()),
        }
    }

    /// The deadlines of a command that lasts `guest_ns`; one of the caller's own goes for each part.
    pub(super) fn deadlines(&self, guest_ns: u64) -> Deadlines {
        match self.deadline {
            Some(own) => Deadlines { boot: own, run: own, shutdown: own },
            None => Deadlines::for_guest(guest_ns, self.cpus, self.mode),
        }
    }
}
