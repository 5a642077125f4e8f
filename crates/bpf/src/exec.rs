//! Runs one function on the image's engine.

use crate::env::Host;
use crate::image::Image;
use crate::trap::Trap;
use crate::vm::Vm;
use crate::{interp, jit};

/// Runs `function` with r1…r5 on the frame at `Vm::sp`. The outermost call runs inside [`jit::catching`].
///
/// # Safety
/// `vm` is the control block of a live instance of `H` whose host is set; no reference to its state, host or block is
/// in use; `function` is the index of one of its functions.
#[inline]
pub(crate) unsafe fn invoke<H: Host>(
    vm: *mut Vm,
    function: usize,
    args: &[u64; 5],
) -> Result<u64, Trap> {
    // SAFETY: by contract; both are only read.
    let (executable, image) = unsafe { (&*(*vm).executable, &*(*vm).image.cast::<Image<H>>()) };
    match &executable.code {
        // SAFETY: by contract.
        Some(code) => unsafe {
            jit::run(vm, code, &executable.program, &image.calls, function, args)
        },
        // SAFETY: by contract.
        None => unsafe { interp::run(vm, &executable.program, &image.calls, function, args) },
    }
}
