//! Arguments and results of kfuncs in registers.

use fairground_bpf::Trap;

/// Result of a kfunc in r0, or why it ends the scheduler's program.
pub(crate) type Ret = Result<u64, Trap>;

/// A C `int` argument.
pub(crate) fn int(arg: u64) -> i64 {
    i64::from(arg as u32 as i32)
}

/// A negative errno or another `s32` as it comes back in r0.
pub(crate) fn s32(value: i64) -> u64 {
    u64::from(value as i32 as u32)
}
