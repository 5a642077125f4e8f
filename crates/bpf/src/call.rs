//! The running call as helpers see it.

use std::marker::PhantomData;

use crate::env::{Host, HostFn};
use crate::memory::Memory;
use crate::state::State;
use crate::trap::{Trap, TrapKind};
use crate::vm::{Context, FRAME_BYTES, MAX_FRAMES, STACK_LOW, Vm};

/// A built-in helper or kfunc: the running call, r1…r5; returns r0.
pub(crate) type HelperFn<H> = fn(&mut Call<H>, [u64; 5]) -> Result<u64, Trap>;

/// A function of the host that the program calls.
#[derive(Debug)]
pub(crate) enum HostCall<H> {
    /// Supplied by the environment.
    Env(HostFn<H>),
    /// Built into this crate.
    Builtin(HelperFn<H>),
}

// Function pointers are `Copy` for every `H`; a derive would require `H: Copy`.
impl<H> Copy for HostCall<H> {}
impl<H> Clone for HostCall<H> {
    fn clone(&self) -> Self {
        *self
    }
}

/// The running call. Its methods return short borrows, so that a helper can call the program back between them.
pub(crate) struct Call<H> {
    vm: *mut Vm,
    host: PhantomData<H>,
}

impl<H: Host> Call<H> {
    /// # Safety
    /// For the life of the value: `vm` is the control block of a live instance of `H` whose host is set, and no
    /// reference to its state, host or block is in use.
    pub(crate) unsafe fn new(vm: *mut Vm) -> Call<H> {
        Call { vm, host: PhantomData }
    }

    /// The instance's state.
    #[inline]
    pub(crate) fn state(&mut self) -> &mut State {
        // SAFETY: by the contract of `new`; the borrow ends before `self` is used again.
        unsafe { &mut *(*self.vm).state }
    }

    /// Guest memory.
    #[inline]
    pub(crate) fn memory(&self) -> &Memory {
        // SAFETY: as in `state`; memory has interior mutability.
        unsafe { &(*(*self.vm).state).memory }
    }

    /// Guest memory and the host.
    #[inline]
    pub(crate) fn host(&mut self) -> (&Memory, &mut H) {
        // SAFETY: as in `state`; the host is no part of the state.
        unsafe { (&(*(*self.vm).state).memory, &mut *(*self.vm).host.cast::<H>()) }
    }

    /// Drops the references of values that are gone.
    pub(crate) fn drop_references(&mut self) {
        if self.state().maps.dropped.is_empty() {
            return;
        }
        // SAFETY: as in `host`.
        let host = unsafe { &mut *(*self.vm).host.cast::<H>() };
        self.state().drop_references(|memory, pointer| host.release(memory, pointer));
    }

    /// The context that the host set before the call.
    #[inline]
    pub(crate) fn context(&self) -> Context {
        // SAFETY: as in `state`.
        unsafe { (*self.vm).context }
    }

    /// The index in the task slab of the task at `addr`.
    pub(crate) fn task_number(&self, addr: u64) -> Option<usize> {
        // SAFETY: as in `state`.
        unsafe { (*self.vm).task_number(addr) }
    }

    /// Calls a function of the program from a helper, one frame deeper.
    pub(crate) fn callback(&mut self, function: usize, args: [u64; 5]) -> Result<u64, Trap> {
        // SAFETY: by the contract of `new`; no borrow from `self` is alive.
        unsafe {
            let (sp, entry_sp) = ((*self.vm).sp, (*self.vm).entry_sp);
            let result = match (*self.vm).invoke {
                _ if (*self.vm).fuel < 0 => Err((*(*self.vm).state).out_of_fuel()),
                Some(invoke) => invoke(self.vm, function, &args),
                None => Err(Trap::host("a callback outside of a call")),
            };
            (*self.vm).sp = sp;
            (*self.vm).entry_sp = entry_sp;
            result
        }
    }

    /// Calls `body` with the guest address of 8 bytes on the program's stack that callbacks do not overwrite.
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

    /// Calls a host function with r1…r5.
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
