//! Probes whether KVM works.
//!
//! `/dev/kvm` may open although no kernel boots: on a virtual machine, KVM ran the firmware and stopped at the
//! kernel's first vector instruction. Therefore the probe boots the requested kernel without a root file system, and
//! expects the panic about that.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::config::VmConfig;
use super::console::panic_reason;
use super::machine::Machine;
use super::qemu_command::confine;

/// Time limit of the probe. A boot under a working KVM takes about a second.
const DEADLINE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
/// Start of the kernel's message about the missing root file system.
const NO_ROOT: &str = "VFS: ";

/// QEMU's arguments for KVM.
pub(super) const ARGUMENTS: [&str; 4] = ["-accel", "kvm", "-cpu", "max"];

/// The device, relative to the root.
const DEVICE: &str = "dev/kvm";

/// Why KVM cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoKvm {
    /// The kernel has no KVM, or the machine is virtual without nested virtualization.
    #[error("there is no {}", .0.display())]
    NoDevice(PathBuf),
    /// The user may not open the device.
    #[error("{}: {error}", .path.display())]
    NotPermitted {
        /// The device.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The device does not open: the processor has no virtualization, or it is disabled.
    #[error("{}: {error}", .path.display())]
    NotUsable {
        /// The device.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The device opens, but the kernel does not boot.
    #[error("the device opens, but {kernel} does not boot under it")]
    BootsNothing {
        /// The kernel that was tried.
        kernel: String,
    },
}

/// Whether the kernel of `config` boots under KVM. Probes each kernel once per process.
pub(super) fn works(config: &VmConfig) -> bool {
    static ANSWERS: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = || kvm_works(Path::new("/"), config).is_ok();
    *answers.entry(config.kernel.sha256.clone()).or_insert_with(ask)
}

/// Boots the kernel of `config` under the KVM whose device is below `root`. Takes about a second, and up to 20 s if
/// it fails.
///
/// # Errors
/// Why it does not boot.
pub fn kvm_works(root: &Path, config: &VmConfig) -> Result<(), NoKvm> {
    kvm_opens(root)?;
    match boots(config) {
        true => Ok(()),
        false => Err(NoKvm::BootsNothing { kernel: config.kernel.name.clone() }),
    }
}

/// Opens the device. Success does not prove that a kernel boots.
///
/// # Errors
/// Why it cannot be opened.
pub fn kvm_opens(root: &Path) -> Result<(), NoKvm> {
    let path = root.join(DEVICE);
    match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NoKvm::NoDevice(path)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(NoKvm::NotPermitted { path, error })
        }
        Err(error) => Err(NoKvm::NotUsable { path, error }),
    }
}

/// Whether the kernel under KVM reaches the panic about its root file system.
fn boots(config: &VmConfig) -> bool {
    let mut command = config.qemu.command();
    confine(&mut command, config.qemu.has_sandbox);
    command.args(ARGUMENTS);
    command.args(["-nodefaults", "-no-user-config", "-nographic", "-no-reboot"]);
    command.args(["-serial", "stdio", "-monitor", "none", "-net", "none", "-m", "512M"]);
    command.arg("-kernel").arg(&config.kernel.image);
    command.args(["-append", "console=ttyS0 quiet panic=-1 cryptomgr.notests"]);
    let Ok(mut machine) = Machine::spawn(command, false) else { return false };
    let start = Instant::now();
    while start.elapsed() < DEADLINE {
        match machine.ended() {
            Ok(None) => std::thread::sleep(POLL),
            Ok(Some(_)) => {
                let reason = panic_reason(&machine.console.text());
                return reason.is_some_and(|r| r.starts_with(NO_ROOT));
            }
            Err(_) => return false,
        }
    }
    false
}
