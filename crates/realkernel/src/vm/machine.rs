//! QEMU as a child: its command line, its life, its end.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use super::conductor::Conductor;
use super::console::Console;
use super::memory::SharedMemory;
use super::{VmConfig, VmError, VmMode, kvm};
use crate::guest::turns;

/// A running QEMU; it dies when this is dropped, and when the program dies.
#[derive(Debug)]
pub(super) struct Machine {
    child: Child,
    // Its end is QEMU's end, which comes before that of the fields.
    _conductor: Option<Conductor>,
    pub(super) console: Console,
}

impl Machine {
    /// Starts it.
    pub(super) fn start(
        config: &VmConfig,
        initramfs: &Path,
        memory: &SharedMemory,
    ) -> Result<Self, VmError> {
        let mut command = config.qemu.command();
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
        command.arg("-kernel").arg(&config.kernel.image);
        command.arg("-initrd").arg(initramfs);
        command.arg("-append").arg(command_line(config));
        Self::spawn(command, config.mode == VmMode::Deterministic)
    }

    /// Starts `command`, conducted or not, so that it cannot outlive this process; both its outputs are the console.
    pub(super) fn spawn(mut command: Command, is_conducted: bool) -> Result<Self, VmError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let fail = || VmError::io(format!("start {program}"));
        let (reader, writer) = std::io::pipe().map_err(fail())?;
        let writer_too = writer.try_clone().map_err(fail())?;
        command.stdin(Stdio::null()).stdout(writer).stderr(writer_too);
        die_with_parent(&mut command);
        // After that: a child that is conducted by nobody must not be left.
        let conductor = is_conducted.then(|| Conductor::attach(&mut command));
        let conductor = conductor.transpose().map_err(fail())?;
        let child = command.spawn();
        // The command holds the pipe's writing end: without it the console's end is QEMU's end. The conductor's end, too, is
        // that of the command and of QEMU.
        drop(command);
        let child = child.map_err(fail())?;
        Ok(Self { child, _conductor: conductor, console: Console::follow(reader) })
    }

    /// Its status, when it has ended.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, VmError> {
        let status = self.child.try_wait().map_err(VmError::io("wait for QEMU"))?;
        if status.is_some() {
            self.console.finish();
        }
        Ok(status)
    }

    /// Ends it now.
    pub(super) fn kill(&mut self) {
        // Either fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.console.finish();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Lets the kernel kill the child as soon as the thread that starts it ends, however it ends.
fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let tie = move || {
        set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have died before the call above.
        if nix::unistd::getppid().as_raw().cast_unsigned() != parent {
            return Err(std::io::ErrorKind::NotConnected.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(tie) };
}

/// What an instruction takes of the guest's time in the deterministic mode, ns.
pub const INSTRUCTION_NS: u64 = 8;
/// The same for QEMU: 2^shift ns an instruction; and no waiting for the wall clock in idle times.
const ICOUNT: &str = "shift=3,sleep=off";

/// How the machine's time passes, as QEMU's arguments.
///
/// Each of the deterministic ones is needed: a fixed shift ([`INSTRUCTION_NS`]), no waiting for the wall clock in idle
/// times, a clock that starts at a fixed date and follows the instructions, and no source of chance. Without the fast
/// string instructions the kernel copies eight bytes an instruction instead of one (1 GB/s at 8 ns, not 125 MB/s).
fn accelerator(config: &VmConfig) -> Vec<&'static str> {
    match config.mode {
        VmMode::Deterministic => vec![
            "-accel",
            "tcg,thread=single",
            "-icount",
            ICOUNT,
            "-rtc",
            "base=2026-01-01T00:00:00,clock=vm",
            "-cpu",
            "max,-rdrand,-rdseed,-erms,-fsrm",
            "-seed",
            "42",
            // Linux leaves the first timer of an HPET running from its boot on, and QEMU ends the turn of a CPU at each of a timer's ends.
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
        // A thread that looks at memory every few ms, for nobody here (6.17 and newer).
        "damon_stat.enabled=N",
        "mitigations=off",
        "tsc=reliable",
        "nokaslr",
        "norandmaps",
        "rdinit=/init",
    ];
    // In turns of a millisecond a CPU stands still while the clock goes on: see `guest::turns`.
    let turns = match config.mode {
        VmMode::Deterministic => &[turns::PARAMETER][..],
        VmMode::Fast | VmMode::OneThread => &[],
    };
    let theirs = config.append.iter().map(String::as_str);
    ours.iter().chain(turns).copied().chain(theirs).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_takes_what_the_emulator_is_told() {
        let shift = ICOUNT.strip_prefix("shift=").and_then(|rest| rest.split(',').next());
        let shift: u32 = shift.and_then(|digits| digits.parse().ok()).expect("a shift");
        assert_eq!(1 << shift, INSTRUCTION_NS);
    }
}
