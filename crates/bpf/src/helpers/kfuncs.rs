//! Kfuncs that are the same in every environment.

use super::handles::map;
use super::owned;
use crate::call::{Call, HelperFn};
use crate::env::Host;
use crate::errno::{E2BIG, EINVAL};
use crate::state::State;
use crate::trap::Trap;

/// Maximum iterations of `bpf_loop` and number iterators: the kernel's `BPF_MAX_LOOPS`.
pub(super) const MAX_LOOPS: u64 = 8 << 20;

/// The names of the built-in kfuncs.
pub fn builtin_kfuncs() -> impl Iterator<Item = &'static str> {
    NAMES.iter().chain(owned::NAMES).copied()
}

/// The built-in kfunc of that name.
pub(crate) fn builtin_kfunc<H: Host>(name: &str) -> Option<HelperFn<H>> {
    kfunc(name).or_else(|| owned::kfunc(name))
}

/// Defines `NAMES` and `kfunc`: a file's kfuncs by name.
macro_rules! kfuncs {
    ($($($name:literal)|+ => $function:expr,)+) => {
        /// The names of the kfuncs of this file.
        pub(super) const NAMES: &[&str] = &[$($($name),+),+];

        /// The kfunc of that name.
        pub(super) fn kfunc<H: Host>(name: &str) -> Option<HelperFn<H>> {
            Some(match name {
                $($($name)|+ => $function,)+
                _ => return None,
            })
        }
    };
}
pub(super) use kfuncs;

kfuncs! {
    "scx_bpf_now" => |call, _| Ok(call.context().now_ns),
    "bpf_iter_num_new" => iter_num_new,
    "bpf_iter_num_next" => iter_num_next,
    "bpf_iter_bits_new" => iter_bits_new,
    "bpf_iter_bits_next" => iter_bits_next,
    "bpf_iter_bits_destroy" => |call, args| call.memory().store_u64(args[0] + BITS, 0).map(|()| 0),
    // One thread runs an instance: there are no readers to wait for and no preemption.
    "bpf_iter_num_destroy"
    | "bpf_rcu_read_lock"
    | "bpf_rcu_read_unlock"
    | "bpf_preempt_disable"
    | "bpf_preempt_enable"
    | "bpf_local_irq_restore" => |_, _| Ok(0),
    "bpf_local_irq_save" => |call, args| call.memory().store_u64(args[0], 0).map(|()| 0),
    "bpf_rdonly_cast" | "bpf_cast_to_kern_ctx" => |_, args| Ok(args[0]),
    "bpf_throw" => |_, args| {
        Err(Trap::helper(format!(
            "the program threw an exception (bpf_throw, cookie {})",
            args[0]
        )))
    },
    "bpf_arena_alloc_pages" => |call, args| {
        let pages = u32::try_from(args[2]).unwrap_or(0);
        let State { maps, memory, .. } = call.state();
        maps.arena_alloc(memory, map(args[0])?, pages)
    },
    "bpf_arena_free_pages" => |call, args| {
        call.state().maps.arena_free(map(args[0])?, args[1], args[2] as u32)?;
        Ok(0)
    },
}

/// `bpf_iter_num_new(it, start, end)`: `it` holds the current number (initially `start - 1`) and the end.
fn iter_num_new<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let (it, start, end) = (args[0], args[1] as i32, args[2] as i32);
    let count = i64::from(end) - i64::from(start);
    let error = match count {
        i64::MIN..0 => EINVAL,
        _ if count as u64 > MAX_LOOPS => E2BIG,
        _ => 0,
    };
    let (before, end) = if error == 0 { (start.wrapping_sub(1), end) } else { (0, 0) };
    call.memory().store_u32(it, before as u32)?;
    call.memory().store_u32(it.wrapping_add(4), end as u32)?;
    Ok(error as u64)
}

/// `bpf_iter_num_next(it)`: the address of the next number, or NULL.
fn iter_num_next<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let it = args[0];
    let memory = call.memory();
    let next = (memory.load_u32(it)? as i32).wrapping_add(1);
    if next >= memory.load_u32(it.wrapping_add(4))? as i32 {
        memory.store_u64(it, 0)?;
        return Ok(0);
    }
    memory.store_u32(it, next as u32)?;
    Ok(it)
}

/// The most words of a bit iterator (`BITS_ITER_NR_WORDS_MAX`).
const BITS_WORDS_MAX: u64 = 511;
/// Where a `struct bpf_iter_bits` holds the address of its words, the number of bits, and the bit that was met last,
/// plus 1.
const WORDS: u64 = 0;
const BITS: u64 = 8;
const LAST: u64 = 12;

/// `bpf_iter_bits_new(it, words, nr_words)`.
fn iter_bits_new<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let (it, words, count) = (args[0], args[1], u64::from(args[2] as u32));
    let error = match (words, count) {
        (0, _) | (_, 0) => EINVAL,
        (_, BITS_WORDS_MAX..) if count > BITS_WORDS_MAX => E2BIG,
        _ => 0,
    };
    let memory = call.memory();
    memory.store_u64(it.wrapping_add(WORDS), words)?;
    memory.store_u32(it.wrapping_add(BITS), if error == 0 { 64 * count as u32 } else { 0 })?;
    memory.store_u32(it.wrapping_add(LAST), u32::MAX)?;
    Ok(error as u64)
}

/// `bpf_iter_bits_next(it)`: the address of the number of the next set bit, or NULL.
fn iter_bits_next<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let it = args[0];
    let memory = call.memory();
    let (words, bits) = (memory.load_u64(it)?, memory.load_u32(it.wrapping_add(BITS))?);
    let mut bit = memory.load_u32(it.wrapping_add(LAST))?.wrapping_add(1);
    while bit < bits {
        let word = memory.load_u64(words.wrapping_add(8 * u64::from(bit / 64)))? >> (bit % 64);
        if word != 0 {
            bit += word.trailing_zeros();
            memory.store_u32(it.wrapping_add(LAST), bit)?;
            return Ok(it.wrapping_add(LAST));
        }
        bit = (bit / 64 + 1) * 64;
    }
    memory.store_u32(it.wrapping_add(BITS), 0)?;
    Ok(0)
}
