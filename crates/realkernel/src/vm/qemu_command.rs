//! QEMU's command line.

use std::process::Command;

use fairground_scratch::Guard;

use super::config::VmConfig;
use super::kvm;
use super::memory::SharedMemory;
use super::mode::VmMode;
use crate::guest::slices;

/// The user and group without rights (`nobody`), by their usual number.
const NOBODY: &str = "user=65534:65534";

/// The command that boots the guest of `config`.
pub(super) fn for_guest(
    config: &VmConfig,
    [image, initramfs]: [&str; 2],
    memory: &SharedMemory,
) -> Command {
    let mut command = config.qemu.command();
    confine(&mut command, config.qemu.has_sandbox);
    command.args(accelerator(config));
    command.args(["-nodefaults", "-no-user-config", "-nographic", "-no-reboot"]);
    command.args(["-serial", "stdio", "-monitor", "none", "-net", "none"]);
    command.args(["-smp", &config.cpus.to_string()]);
    command.args(["-m", &format!("{}M", config.memory_mib)]);
    command.arg("-object").arg(format!(
        "memory-backend-file,id=shared,share=on,mem-path={},size={}",
        memory.path(),
        memory.size()
    ));
    command.args(["-device", "ivshmem-plain,memdev=shared"]);
    command.arg("-kernel").arg(image);
    command.arg("-initrd").arg(initramfs);
    command.arg("-append").arg(command_line(config));
    command
}

/// Adds the options with which QEMU filters its own system calls, as far as it can, and gives up the rights of root
/// once its files are open. The filter then has to allow the calls that change the user; without rights, and without
/// new ones (`no_new_privs`), they have no effect afterwards. QEMU is started with a [`Guard`] then.
pub(super) fn confine(command: &mut Command, has_sandbox: bool) {
    let leaves_root = is_root() && Guard::is_possible();
    if has_sandbox {
        let elevation = if leaves_root { "allow" } else { "deny" };
        let filter = "on,obsolete=deny,spawn=deny,resourcecontrol=deny,elevateprivileges=";
        command.args(["-sandbox", &format!("{filter}{elevation}")]);
    }
    if leaves_root {
        command.args(["-run-with", NOBODY]);
    }
}

/// Whether QEMU would have the rights of root.
pub(super) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// QEMU's arguments for the clock and the processor.
///
/// The deterministic mode requires all of these: a fixed shift ([`VmConfig::icount`]), no wait for the wall clock when
/// idle, a clock that starts at a fixed date and follows the instructions, and no source of randomness. Without the
/// fast string instructions (`erms`, `fsrm`) the kernel copies eight bytes per instruction instead of one: 1 GB/s at
/// 8 ns, not 125 MB/s.
fn accelerator(config: &VmConfig) -> Vec<&'static str> {
    match config.mode {
        VmMode::Deterministic => vec![
            "-accel",
            "tcg,thread=single",
            "-icount",
            config.icount(),
            "-rtc",
            "base=2026-01-01T00:00:00,clock=vm",
            "-cpu",
            "max,-rdrand,-rdseed,-erms,-fsrm",
            "-seed",
            "42",
            // Linux never stops the first HPET timer, and QEMU switches to the next virtual CPU at each expiry.
            "-machine",
            "hpet=off",
        ],
        VmMode::Fast if kvm::works(config) => kvm::ARGUMENTS.to_vec(),
        VmMode::Fast => vec!["-accel", "tcg,thread=multi", "-cpu", "max"],
        VmMode::OneThread => vec!["-accel", "tcg,thread=single", "-cpu", "max"],
    }
}

/// The kernel's command line.
fn command_line(config: &VmConfig) -> String {
    let ours = [
        "console=ttyS0",
        "quiet",
        "panic=-1",
        "cryptomgr.notests",
        // Stops a kernel thread that samples memory accesses every few ms (6.17 and newer).
        "damon_stat.enabled=N",
        "mitigations=off",
        "tsc=reliable",
        "nokaslr",
        "norandmaps",
        "rdinit=/init",
    ];
    // See `guest::slices`.
    let slices = match config.mode {
        VmMode::Deterministic => &[slices::PARAMETER][..],
        VmMode::Fast | VmMode::OneThread => &[],
    };
    let theirs = config.append.iter().map(String::as_str);
    ours.iter().chain(slices).copied().chain(theirs).collect::<Vec<_>>().join(" ")
}
