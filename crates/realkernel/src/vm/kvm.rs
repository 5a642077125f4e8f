//! Whether KVM works here: tried, not asked.
//!
//! A device that opens may still run nothing: on a machine that is itself virtual, KVM was seen to run a firmware and
//! then to stop at the kernel's first vector instruction. So the probe boots the very kernel that is asked for,
//! without a file system: it must come as far as to miss it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::config::VmConfig;
use super::console::panic_reason;
use super::machine::Machine;

/// How long the probe may take. A boot under a KVM that works takes about a second.
const DEADLINE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
/// How the kernel begins to say that it finds no file system.
const NO_ROOT: &str = "VFS: ";

/// The arguments with which QEMU uses KVM.
pub(super) const ARGUMENTS: [&str; 4] = ["-accel", "kvm", "-cpu", "max"];

/// The device, below the root.
const DEVICE: &str = "dev/kvm";

/// Why KVM is not used.
#[derive(Debug, thiserror::Error)]
pub enum NoKvm {
    /// The kernel has none, or the machine is itself virtual and lets nothing below it have it.
    #[error("there is no {}", .0.display())]
    NoDevice(PathBuf),
    /// It is not for this user.
    #[error("{}: {error}", .path.display())]
    NotPermitted {
        /// The device.
        path: PathBuf,
        /// What the kernel answered.
        error: io::Error,
    },
    /// It is there, and does not open: the processor has no virtualisation, or it is turned off.
    #[error("{}: {error}", .path.display())]
    NotUsable {
        /// The device.
        path: PathBuf,
        /// What the kernel answered.
        error: io::Error,
    },
    /// It opens, and a kernel does not come to its end in it.
    #[error("the device opens, but {kernel} does not boot under it")]
    BootsNothing {
        /// The kernel that was tried.
        kernel: String,
    },
}

/// Whether the kernel of `config` boots under KVM; found out once for each kernel.
pub(super) fn works(config: &VmConfig) -> bool {
    static ANSWERS: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = || kvm_works(Path::new("/"), config).is_ok();
    *answers.entry(config.kernel.sha256.clone()).or_insert_with(ask)
}

/// Whether the kernel of `config` boots under the KVM whose device lies below `root`: tried, which takes a second
/// where it works and up to 20 where it does not.
///
/// # Errors
/// Why it does not.
pub fn kvm_works(root: &Path, config: &VmConfig) -> Result<(), NoKvm> {
    kvm_opens(root)?;
    match boots(config) {
        true => Ok(()),
        false => Err(NoKvm::BootsNothing { kernel: config.kernel.name.clone() }),
    }
}

/// Whether the device can be opened, which proves nothing yet.
///
/// # Errors
/// Why it cannot.
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

/// Whether the kernel comes to its end under KVM.
fn boots(config: &VmConfig) -> bool {
    let mut command = config.qemu.command();
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
