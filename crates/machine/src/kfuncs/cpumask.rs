//! `bpf_cpumask`: masks that a program owns (`kernel/bpf/cpumask.c`).

use fairground_bpf::{Memory, Trap};

use super::{Ret, s32};
use crate::abi::errno;
use crate::cpuset::{CpuMask, MASK_WORDS};
use crate::kernel::{Kernel, write_mask};
use crate::layout::offsets::CPUMASK_SIZE;

/// Masks that a program may own at the same time.
const MAX_MASKS: usize = 65_536;

/// `struct bpf_cpumask *bpf_cpumask_create()`: NULL when there are too many.
pub(super) fn create(k: &mut Kernel, mem: &Memory, _: [u64; 5]) -> Ret {
    if k.owned_masks.len() >= MAX_MASKS {
        return Ok(0);
    }
    let Ok(addr) = mem.alloc(CPUMASK_SIZE, 8) else { return Ok(0) };
    k.owned_masks.insert(addr, 1);
    Ok(addr)
}

pub(super) fn acquire(k: &mut Kernel, _: &Memory, [mask, ..]: [u64; 5]) -> Ret {
    if let Some(count) = k.owned_masks.get_mut(&mask) {
        *count += 1;
    }
    Ok(mask)
}

pub(super) fn release(k: &mut Kernel, mem: &Memory, [mask, ..]: [u64; 5]) -> Ret {
    if !k.put_mask(mem, mask) {
        return Err(Trap::host(format!("bpf_cpumask_release(): no mask lies at {mask:#x}")));
    }
    Ok(0)
}

impl Kernel {
    /// Drops a reference to a mask that the program owns; the last one frees it. False: there is none at that address.
    pub(crate) fn put_mask(&mut self, mem: &Memory, mask: u64) -> bool {
        match self.owned_masks.get_mut(&mask) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) => {
                self.owned_masks.remove(&mask);
                mem.free(mask, CPUMASK_SIZE, 8);
            }
            None => return false,
        }
        true
    }
}

/// The result "none found", a CPU that does not exist: `nr_cpu_ids`.
fn or_none(k: &Kernel, cpu: Option<u32>) -> u64 {
    u64::from(cpu.unwrap_or(k.nr_cpus()))
}

pub(super) fn first(k: &mut Kernel, mem: &Memory, [mask, ..]: [u64; 5]) -> Ret {
    let found = k.read_mask(mem, mask)?.first();
    Ok(or_none(k, found))
}

pub(super) fn first_zero(k: &mut Kernel, mem: &Memory, [mask, ..]: [u64; 5]) -> Ret {
    let found = k.all_cpus.and_not(&k.read_mask(mem, mask)?).first();
    Ok(or_none(k, found))
}

pub(super) fn first_and(k: &mut Kernel, mem: &Memory, [a, b, ..]: [u64; 5]) -> Ret {
    let found = k.read_mask(mem, a)?.first_and(&k.read_mask(mem, b)?);
    Ok(or_none(k, found))
}

/// Loads the word of a CPU: its address, its value, the CPU's bit; `None` for a CPU that does not exist.
fn word(k: &Kernel, mem: &Memory, cpu: u64, mask: u64) -> Result<Option<(u64, u64, u64)>, Trap> {
    let cpu = cpu as u32;
    if cpu >= k.nr_cpus() {
        return Ok(None);
    }
    let addr = mask + u64::from(cpu / 64) * 8;
    Ok(Some((addr, mem.load_u64(addr)?, 1 << (cpu % 64))))
}

pub(super) fn test_and_set(k: &mut Kernel, mem: &Memory, [cpu, mask, ..]: [u64; 5]) -> Ret {
    let Some((addr, value, bit)) = word(k, mem, cpu, mask)? else { return Ok(0) };
    mem.store_u64(addr, value | bit)?;
    Ok(u64::from(value & bit != 0))
}

pub(super) fn test_and_clear(k: &mut Kernel, mem: &Memory, [cpu, mask, ..]: [u64; 5]) -> Ret {
    let Some((addr, value, bit)) = word(k, mem, cpu, mask)? else { return Ok(0) };
    mem.store_u64(addr, value & !bit)?;
    Ok(u64::from(value & bit != 0))
}

pub(super) fn set_cpu(k: &mut Kernel, mem: &Memory, args: [u64; 5]) -> Ret {
    test_and_set(k, mem, args).map(|_| 0)
}

pub(super) fn clear_cpu(k: &mut Kernel, mem: &Memory, args: [u64; 5]) -> Ret {
    test_and_clear(k, mem, args).map(|_| 0)
}

pub(super) fn test_cpu(k: &mut Kernel, mem: &Memory, [cpu, mask, ..]: [u64; 5]) -> Ret {
    Ok(word(k, mem, cpu, mask)?.map_or(0, |(_, value, bit)| u64::from(value & bit != 0)))
}

pub(super) fn setall(k: &mut Kernel, mem: &Memory, [mask, ..]: [u64; 5]) -> Ret {
    write_mask(mem, mask, &k.all_cpus).map(|()| 0)
}

pub(super) fn clear(_: &mut Kernel, mem: &Memory, [mask, ..]: [u64; 5]) -> Ret {
    write_mask(mem, mask, &CpuMask::EMPTY).map(|()| 0)
}

/// `dst = op(a, b)`; the mask that results.
fn combine(
    k: &Kernel,
    mem: &Memory,
    args: [u64; 5],
    op: fn(&CpuMask, &CpuMask) -> CpuMask,
) -> Result<CpuMask, Trap> {
    let [dst, a, b, ..] = args;
    let result = op(&k.read_mask(mem, a)?, &k.read_mask(mem, b)?);
    write_mask(mem, dst, &result)?;
    Ok(result)
}

pub(super) fn and(k: &mut Kernel, mem: &Memory, args: [u64; 5]) -> Ret {
    Ok(u64::from(!combine(k, mem, args, CpuMask::and)?.is_empty()))
}

pub(super) fn or(k: &mut Kernel, mem: &Memory, args: [u64; 5]) -> Ret {
    combine(k, mem, args, CpuMask::or).map(|_| 0)
}

pub(super) fn xor(k: &mut Kernel, mem: &Memory, args: [u64; 5]) -> Ret {
    combine(k, mem, args, |a, b| a.and_not(b).or(&b.and_not(a))).map(|_| 0)
}

fn pair(k: &Kernel, mem: &Memory, [a, b, ..]: [u64; 5]) -> Result<(CpuMask, CpuMask), Trap> {
    Ok((k.read_mask(mem, a)?, k.read_mask(mem, b)?))
}

pub(super) fn equal(k: &mut Kernel, mem: &Memory, args: [u64; 5]) -> Ret {
    pair(k, mem, args).map(|(a, b)| u64::from(a == b))
}

pub(super) fn intersects(k: &mut Kernel, mem: &Memory, args: [u64; 5]) -> Ret {
    pair(k, mem, args).map(|(a, b)| u64::from(a.intersects(&b)))
}

pub(super) fn subset(k: &mut Kernel, mem: &Memory, args: [u64; 5]) -> Ret {
    pair(k, mem, args).map(|(a, b)| u64::from(a.is_subset(&b)))
}

pub(super) fn empty(k: &mut Kernel, mem: &Memory, [mask, ..]: [u64; 5]) -> Ret {
    Ok(u64::from(k.read_mask(mem, mask)?.is_empty()))
}

pub(super) fn full(k: &mut Kernel, mem: &Memory, [mask, ..]: [u64; 5]) -> Ret {
    Ok(u64::from(k.read_mask(mem, mask)? == k.all_cpus))
}

pub(super) fn copy(k: &mut Kernel, mem: &Memory, [dst, src, ..]: [u64; 5]) -> Ret {
    let mask = k.read_mask(mem, src)?;
    write_mask(mem, dst, &mask).map(|()| 0)
}

/// `int bpf_cpumask_populate(cpumask, src, src__sz)` (6.15): the bits from a buffer of the program.
pub(super) fn populate(k: &mut Kernel, mem: &Memory, [mask, src, bytes, ..]: [u64; 5]) -> Ret {
    let cpus = u64::from(k.nr_cpus());
    if bytes < cpus.div_ceil(8) || !src.is_multiple_of(8) {
        return Ok(s32(if bytes < cpus.div_ceil(8) { errno::EACCES } else { errno::EINVAL }));
    }
    let mut words = [0; MASK_WORDS];
    let whole = (bytes / 8).min(MASK_WORDS as u64) as usize;
    for (at, word) in words.iter_mut().enumerate().take(whole) {
        *word = mem.load_u64(src + 8 * at as u64)?;
    }
    for at in whole as u64 * 8..bytes.min(8 * MASK_WORDS as u64) {
        words[at as usize / 8] |= u64::from(mem.load_u8(src + at)?) << (8 * (at % 8));
    }
    write_mask(mem, mask, &CpuMask::from_words(words))?;
    Ok(0)
}

pub(super) fn weight(k: &mut Kernel, mem: &Memory, [mask, ..]: [u64; 5]) -> Ret {
    Ok(u64::from(k.read_mask(mem, mask)?.count()))
}

pub(super) fn any_distribute(k: &mut Kernel, mem: &Memory, [mask, ..]: [u64; 5]) -> Ret {
    let mask = k.read_mask(mem, mask)?;
    let found = k.any_distribute(&mask);
    Ok(or_none(k, found))
}

pub(super) fn any_and_distribute(k: &mut Kernel, mem: &Memory, args: [u64; 5]) -> Ret {
    let (a, b) = pair(k, mem, args)?;
    let found = k.any_distribute(&a.and(&b));
    Ok(or_none(k, found))
}
