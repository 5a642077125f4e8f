//! Error numbers that helpers and kfuncs return, as negative values (`asm-generic/errno-base.h`).

pub(crate) const ENOENT: i64 = -2;
pub(crate) const E2BIG: i64 = -7;
pub(crate) const EAGAIN: i64 = -11;
pub(crate) const ENOMEM: i64 = -12;
pub(crate) const EFAULT: i64 = -14;
pub(crate) const EBUSY: i64 = -16;
pub(crate) const EEXIST: i64 = -17;
pub(crate) const EINVAL: i64 = -22;
pub(crate) const EDEADLK: i64 = -35;
