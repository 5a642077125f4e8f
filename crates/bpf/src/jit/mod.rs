//! Machine code by Cranelift.

use crate::env::Host;
use crate::image::Image;
use crate::trap::Trap;
use crate::vm::Vm;

/// Whether this processor and system have the JIT.
pub(crate) const SUPPORTED: bool = false;

/// Compiled functions.
#[derive(Debug)]
pub(crate) struct Code {}

pub(crate) fn compile<H: Host>(_image: &Image<H>) -> Result<Code, String> {
    Err("no JIT for this processor".to_owned())
}

/// # Safety
/// As [`crate::exec::invoke`].
pub(crate) unsafe fn run<H: Host>(
    _vm: *mut Vm,
    _code: &Code,
    _function: usize,
    _args: &[u64; 5],
) -> Result<u64, Trap> {
    Err(Trap::host("no JIT for this processor"))
}
