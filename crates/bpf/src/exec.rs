//! Running one function on either engine, and the view that helpers have of the running call.

use std::marker::PhantomData;

use crate::env::Host;
use crate::image::{HostCall, Image};
use crate::instance::Core;
use crate::memory::Memory;
use crate::trap::{Trap, TrapKind};
use crate::vm::{Context, FRAME_BYTES, MAX_FRAMES, STACK_LOW, Vm};
use crate::{interp, jit};

/// Runs `function` with r1…r5 on the frame at `Vm::sp`. The outermost call runs inside [`jit::catching`].
///
/// # Safety
/// `vm` is the control block of a live instance of `H` whose host is set; no reference to its core, host or block is in use;
/// `function` is one of its functions.
#[inline]
pub(crate) unsafe fn invoke<H: Host>(
    vm: *mut Vm,
    function: usize,
    args: &[u64; 5],
) -> Result<u64, Trap> {
    // SAFETY: by contract; the image is only read.
    let image: &Image<H> = unsafe { &(*(*vm).core.cast::<Core<H>>()).image };
    match &image.code {
        // SAFETY: by contract.
        Some(code) => unsafe { jit::run::<H>(vm, code, function, args) },
        // SAFETY: by contract.
        None => unsafe { interp::run::<H>(vm, image, function, args) },
    }
}

/// The running call, as a helper sees it. Its methods hand out short borrows, so that a helper can call the program back
/// between them.
pub(crate) struct Call<H> {
    vm: *mut Vm,
    host: PhantomData<H>,
}

impl<H: Host> Call<H> {
    /// # Safety
    /// As [`invoke`], for the life of the value.
    pub(crate) unsafe fn new(vm: *mut Vm) -> Call<H> {
        Call { vm, host: PhantomData }
    }

    /// The instance's parts.
    #[inline]
    pub(crate) fn core(&mut self) -> &mut Core<H> {
        // SAFETY: by the contract of `new`; the borrow ends before `self` is used again.
        unsafe { &mut *(*self.vm).core.cast::<Core<H>>() }
    }

    /// Guest memory.
    #[inline]
    pub(crate) fn memory(&self) -> &Memory {
        // SAFETY: as in `core`; memory has interior mutability.
        unsafe { &(*(*self.vm).core.cast::<Core<H>>()).memory }
    }

    /// Guest memory and the host.
    #[inline]
    pub(crate) fn host(&mut self) -> (&Memory, &mut H) {
        // SAFETY: as in `core`; the host is no part of the core.
        unsafe { (&(*(*self.vm).core.cast::<Core<H>>()).memory, &mut *(*self.vm).host.cast::<H>()) }
    }

    /// What the host set before the call.
    #[inline]
    pub(crate) fn context(&self) -> Context {
        // SAFETY: as in `core`.
        unsafe { (*self.vm).context }
    }

    /// The number of the task at `addr`.
    pub(crate) fn task_number(&self, addr: u64) -> Option<usize> {
        // SAFETY: as in `core`.
        unsafe { (*self.vm).task_number(addr) }
    }

    /// Calls a function of the program from a helper, one frame deeper.
    pub(crate) fn callback(&mut self, function: usize, args: [u64; 5]) -> Result<u64, Trap> {
        // SAFETY: by the contract of `new`; no borrow from `self` is alive.
        unsafe {
            let (sp, entry_sp) = ((*self.vm).sp, (*self.vm).entry_sp);
            let result = if (*self.vm).fuel < 0 {
                Err(out_of_fuel::<H>(self.vm))
            } else {
                invoke::<H>(self.vm, function, &args)
            };
            (*self.vm).sp = sp;
            (*self.vm).entry_sp = entry_sp;
            result
        }
    }

    /// Gives `body` 8 bytes on the program's stack, which callbacks inside it leave alone.
    pub(crate) fn with_scratch(
        &mut self,
        body: impl FnOnce(&mut Self, u64) -> Result<u64, Trap>,
    ) -> Result<u64, Trap> {
        // SAFETY: by the contract of `new`.
        let sp = unsafe { (*self.vm).sp };
        if sp <= STACK_LOW {
            return Err(Trap::new(TrapKind::StackOverflow { frames: MAX_FRAMES }));
        }
        // SAFETY: as above.
        unsafe { (*self.vm).sp = sp - FRAME_BYTES };
        let result = body(self, sp - 8);
        // SAFETY: as above.
        unsafe { (*self.vm).sp = sp };
        result
    }

    /// A host call with r1…r5.
    #[inline]
    pub(crate) fn host_call(&mut self, call: HostCall<H>, args: [u64; 5]) -> Result<u64, Trap> {
        match call {
            HostCall::Env(function) => {
                let (memory, host) = self.host();
                function(host, memory, args)
            }
            HostCall::Builtin(function) => function(self, args),
        }
    }
}

/// The trap of a call that used up its fuel.
///
/// # Safety
/// As [`invoke`].
#[cold]
pub(crate) unsafe fn out_of_fuel<H>(vm: *mut Vm) -> Trap {
    // SAFETY: by contract.
    let limit = unsafe { (*(*vm).core.cast::<Core<H>>()).config.fuel_per_call };
    Trap::new(TrapKind::OutOfFuel { limit })
}
