//! Helpers about the event at which a program is called. The word before its context is the number of arguments, and
//! the word behind the last of them is the result, as in the kernel.

use fairground_bpf::{HostFn, Memory};

use crate::kernel::Kernel;
use crate::kfuncs::registers::{Ret, s32};

pub(crate) const HELPERS: &[(u32, HostFn<Kernel>)] =
    &[(183, func_arg), (184, func_ret), (185, func_arg_cnt)];

/// Invalid argument.
const EINVAL: i64 = 22;

/// `bpf_get_func_arg(ctx, n, value)`: argument `n` of the function.
fn func_arg(_: &mut Kernel, mem: &Memory, [context, number, value, ..]: [u64; 5]) -> Ret {
    let number = u64::from(number as u32);
    if number >= mem.load_u64(context.wrapping_sub(8))? {
        return Ok(s32(-EINVAL));
    }
    mem.store_u64(value, mem.load_u64(context.wrapping_add(8 * number))?)?;
    Ok(0)
}

/// `bpf_get_func_ret(ctx, value)`: what the function has returned.
fn func_ret(_: &mut Kernel, mem: &Memory, [context, value, ..]: [u64; 5]) -> Ret {
    let count = mem.load_u64(context.wrapping_sub(8))?;
    let result = mem.load_u64(context.wrapping_add(count.wrapping_mul(8)))?;
    mem.store_u64(value, result)?;
    Ok(0)
}

/// `bpf_get_func_arg_cnt(ctx)`: how many arguments the function has.
fn func_arg_cnt(_: &mut Kernel, mem: &Memory, [context, ..]: [u64; 5]) -> Ret {
    mem.load_u64(context.wrapping_sub(8))
}
