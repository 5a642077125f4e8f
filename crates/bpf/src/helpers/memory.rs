//! Helpers that copy, compare and exchange memory.

use crate::call::Call;
use crate::env::Host;
use crate::errno::EFAULT;
use crate::trap::Trap;

/// `bpf_probe_read_kernel(dst, size, src)`: 0; or -EFAULT and zeros if the source is not readable.
pub(super) fn probe_read<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let [dst, size, src, ..] = args;
    let (memory, size) = (call.memory(), u64::from(size as u32));
    memory.fill(dst, size, 0)?;
    match memory.copy(src, dst, size) {
        Ok(()) => Ok(0),
        Err(_) => Ok(EFAULT as u64),
    }
}

/// `bpf_probe_read_kernel_str(dst, size, src)`: the length including the NUL, or -EFAULT.
pub(super) fn probe_read_str<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let [dst, size, src, ..] = args;
    let (memory, size) = (call.memory(), u64::from(size as u32));
    if size == 0 {
        return Ok(0);
    }
    memory.fill(dst, size, 0)?;
    for at in 0..size - 1 {
        match memory.load_u8(src.wrapping_add(at)) {
            Ok(0) => return Ok(at + 1),
            Ok(byte) => memory.store_u8(dst.wrapping_add(at), byte)?,
            Err(_) => {
                memory.fill(dst, size, 0)?;
                return Ok(EFAULT as u64);
            }
        }
    }
    Ok(size)
}

/// `bpf_strncmp(s1, s1_size, s2)`.
pub(super) fn strncmp<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let [left, size, right, ..] = args;
    let memory = call.memory();
    for at in 0..u64::from(size as u32) {
        let (a, b) =
            (memory.load_u8(left.wrapping_add(at))?, memory.load_u8(right.wrapping_add(at))?);
        if a != b || a == 0 {
            return Ok((i64::from(a) - i64::from(b)) as u64);
        }
    }
    Ok(0)
}

/// `bpf_kptr_xchg(addr, new)`: the old value.
pub(super) fn kptr_xchg<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let memory = call.memory();
    let old = memory.load_u64(args[0])?;
    memory.store_u64(args[0], args[1])?;
    Ok(old)
}
