//! Short turns for the virtual CPUs of a guest whose clock counts instructions.
//!
//! QEMU runs such CPUs on one thread, one after the other, and a turn lasts until the next timer of its virtual clock is due: with
//! the kernel's own timers half a millisecond to one and a half, in which the clock goes on for the CPUs that stand still. A
//! task that needs 36 µs was so charged 690 µs (Linux 6.1, 2 CPUs, a sleeper of 1 kHz beside two hogs). The periodic
//! interrupt of the emulated real-time clock is a timer too. It is set here and delivered to nobody — the kernel has no
//! driver for it ([`NO_DRIVER`]), its line is masked — and a turn lasts its period divided by the number of CPUs: the same task
//! is charged 51 µs.

use std::arch::asm;
use std::fs;

/// The kernel's parameter that asks for short turns.
pub const PARAMETER: &str = "fairground.turns=short";
/// The kernel's parameter that keeps its driver away from the clock whose interrupt is used.
pub const NO_DRIVER: &str = "initcall_blacklist=cmos_init";

/// The clock's ports: which register, and its content.
const INDEX_PORT: u16 = 0x70;
const DATA_PORT: u16 = 0x71;
/// Register A: the time base of 32,768 Hz and the rate; register B: which interrupts are on.
const REGISTER_A: u8 = 0x0a;
const REGISTER_B: u8 = 0x0b;
const BASE_32768_HZ: u8 = 0x20;
const PERIODIC_ON: u8 = 0x40;

/// The rate `r` of register A is 65,536 Hz / 2^r; 3, the quickest of a real one, is 8,192 Hz.
const RATE_QUICKEST: u8 = 3;
/// 2 Hz.
const RATE_SLOWEST: u8 = 15;

/// The rate for so many CPUs: turns of 61 µs where the clock is quick enough. One CPU has no turns.
fn rate(cpus: u32) -> Option<u8> {
    if cpus < 2 {
        return None;
    }
    let doublings = u8::try_from(cpus.ilog2() - 1).unwrap_or(RATE_SLOWEST);
    Some(RATE_QUICKEST.saturating_add(doublings).min(RATE_SLOWEST))
}

/// Sets the clock, when the kernel's command line asks for it.
///
/// # Errors
///
/// When the ports cannot be had.
pub(super) fn shorten() -> Result<(), String> {
    let asked = fs::read_to_string("/proc/cmdline")
        .is_ok_and(|line| line.split_whitespace().any(|word| word == PARAMETER));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let Some(rate) = rate(u32::try_from(cpus).unwrap_or(u32::MAX)).filter(|_| asked) else {
        return Ok(());
    };
    // SAFETY: the call has no memory operands; it fails or lets this process use two ports.
    if unsafe { libc::ioperm(INDEX_PORT.into(), 2, 1) } != 0 {
        return Err(format!("ports of the clock: {}", std::io::Error::last_os_error()));
    }
    write(REGISTER_A, BASE_32768_HZ | rate);
    let interrupts = read(REGISTER_B);
    write(REGISTER_B, interrupts | PERIODIC_ON);
    Ok(())
}

fn write(register: u8, value: u8) {
    put(INDEX_PORT, register);
    put(DATA_PORT, value);
}

fn read(register: u8) -> u8 {
    put(INDEX_PORT, register);
    let value: u8;
    // SAFETY: `ioperm` has granted the port; the instruction touches no memory.
    unsafe { asm!("in al, dx", in("dx") DATA_PORT, out("al") value, options(nomem, nostack)) };
    value
}

fn put(port: u16, value: u8) {
    // SAFETY: `ioperm` has granted the port; the instruction touches no memory.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_keeps_its_length_with_more_cpus() {
        assert_eq!([1, 2, 4, 8, 64].map(rate), [None, Some(3), Some(4), Some(5), Some(8)]);
        assert_eq!(rate(u32::MAX), Some(RATE_SLOWEST));
    }
}
