//! Whether KVM works here: tried, not asked.
//!
//! A device that opens may still run nothing: on a machine that is itself virtual, KVM was seen to run a firmware and then
//! to stop at the kernel's first vector instruction. So the probe boots the very kernel that is asked for, without a file
//! system: it must come as far as to miss it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::VmConfig;
use super::console::panic_reason;
use super::machine::Machine;

/// How long the probe may take. A boot under a KVM that works takes about a second.
const DEADLINE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
/// How the kernel begins to say that it finds no file system.
const NO_ROOT: &str = "VFS: ";

/// The arguments with which QEMU uses KVM.
pub(super) const ARGUMENTS: [&str; 4] = ["-accel", "kvm", "-cpu", "max"];

/// Whether the kernel of `config` boots under KVM; found out once for each kernel.
pub(super) fn works(config: &VmConfig) -> bool {
    static ANSWERS: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    *answers.entry(config.kernel.sha256.clone()).or_insert_with(|| opens() && boots(config))
}

fn opens() -> bool {
    std::fs::OpenOptions::new().read(true).write(true).open(Path::new("/dev/kvm")).is_ok()
}

/// Whether the kernel comes to its end under KVM.
fn boots(config: &VmConfig) -> bool {
    let mut command = config.qemu.command();
    command.args(ARGUMENTS);
    command.args(["-nodefaults", "-no-user-config", "-nographic", "-no-reboot"]);
    command.args(["-serial", "stdio", "-monitor", "none", "-net", "none", "-m", "512M"]);
    command.arg("-kernel").arg(&config.kernel.image);
    command.args(["-append", "console=ttyS0 quiet panic=-1 cryptomgr.notests"]);
    let Ok(mut machine) = Machine::spawn(command) else { return false };
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
