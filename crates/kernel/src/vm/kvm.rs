//! Whether KVM works here: tried, not asked. A device that opens may still run nothing.

use std::io::Write;
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::machine::die_with_parent;
use crate::catalogue::Qemu;

/// The port of QEMU's `isa-debug-exit`: a byte written there ends the machine at once.
const EXIT_PORT: u16 = 0x501;
/// The byte that the probe writes; QEMU's exit status is then [`EXIT_STATUS`].
const EXIT_BYTE: u8 = 0x10;
const EXIT_STATUS: i32 = ((EXIT_BYTE as i32) << 1) | 1;
/// How long the probe may take.
const DEADLINE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);
const ROM_SIZE: usize = 64 << 10;
/// Where an x86 CPU starts, from the end of the ROM.
const RESET_FROM_END: usize = 16;

/// Whether a tiny machine runs to its end under KVM; found out once.
pub(super) fn works(qemu: &Qemu) -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let opens = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
        opens && probe(qemu, "kvm").unwrap_or(false)
    })
}

/// Runs a machine whose whole program writes one byte to the exit port.
fn probe(qemu: &Qemu, accelerator: &str) -> std::io::Result<bool> {
    let mut rom = tempfile::NamedTempFile::new()?;
    rom.write_all(&rom_image())?;
    let mut command = qemu.command();
    command.args(["-accel", accelerator, "-nodefaults", "-no-user-config", "-nographic"]);
    command.args(["-monitor", "none", "-net", "none", "-no-reboot", "-m", "16M"]);
    command.args(["-device", &format!("isa-debug-exit,iobase={EXIT_PORT:#x},iosize=1")]);
    command.arg("-bios").arg(rom.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    die_with_parent(&mut command);
    let mut child = command.spawn()?;
    let ended = wait(&mut child);
    let _ = child.kill();
    let _ = child.wait();
    Ok(ended == Some(EXIT_STATUS))
}

fn wait(child: &mut Child) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < DEADLINE {
        if let Ok(Some(status)) = child.try_wait() {
            return status.code();
        }
        std::thread::sleep(POLL);
    }
    None
}

/// A ROM: at the reset vector `mov dx, port; mov al, 0x10; out dx, al; hlt`, else `hlt`.
fn rom_image() -> Vec<u8> {
    let mut rom = vec![0xf4; ROM_SIZE];
    let [low, high] = EXIT_PORT.to_le_bytes();
    let code = [0xba, low, high, 0xb0, EXIT_BYTE, 0xee, 0xf4];
    let at = ROM_SIZE - RESET_FROM_END;
    rom[at..at + code.len()].copy_from_slice(&code);
    rom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_runs_where_an_emulator_is_installed() {
        let Ok(qemu) = Qemu::installed() else {
            eprintln!("skipped: no QEMU on this machine");
            return;
        };
        assert!(probe(&qemu, "tcg").expect("QEMU starts"), "the ROM ends the machine");
        assert!(!probe(&qemu, "no-such-accelerator").expect("QEMU starts"));
    }
}
