//! The functions that generated code calls: for host functions, for built-in helpers, and for traps.

use super::entry::{Outcome, landing};
use crate::call::{Call, HelperFn};
use crate::env::{Host, HostFn};
use crate::image::Image;
use crate::trap::{Trap, TrapKind};
use crate::vm::{MAX_FRAMES, Vm};

/// Why generated code raises a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Raise {
    /// A shim recorded a trap in the state.
    Pending = 0,
    OutOfFuel = 1,
    StackOverflow = 2,
    Poison = 3,
}

/// The addresses of the shims for one type of host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shims {
    pub(super) env: usize,
    pub(super) builtin: usize,
    pub(super) compile: usize,
    pub(super) raise: usize,
}

impl Shims {
    pub(super) fn of<H: Host>() -> Shims {
        Shims {
            env: call_env::<H> as *const () as usize,
            builtin: call_builtin::<H> as *const () as usize,
            compile: compile::<H> as *const () as usize,
            raise: raise as *const () as usize,
        }
    }
}

fn outcome<H: Host>(call: &mut Call<H>, result: Result<u64, Trap>) -> Outcome {
    match result {
        Ok(value) => Outcome { value, trapped: 0 },
        Err(trap) => failure(call, trap),
    }
}

// Apart, so that the shims save no registers for it.
#[cold]
#[inline(never)]
fn failure<H: Host>(call: &mut Call<H>, trap: Trap) -> Outcome {
    call.state().pending = Some(trap);
    Outcome { value: 0, trapped: 1 }
}

/// # Safety
/// Called by code of `vm`'s image, whose host is an `H`.
unsafe extern "sysv64" fn call_env<H: Host>(
    vm: *mut Vm,
    r1: u64,
    r2: u64,
    r3: u64,
    r4: u64,
    r5: u64,
    function: *const (),
) -> Outcome {
    // SAFETY: generated code passes the address of a `HostFn<H>` of its image.
    let function = unsafe { std::mem::transmute::<*const (), HostFn<H>>(function) };
    // SAFETY: by contract: the block is alive, its host set, and generated code holds no references.
    let mut call = unsafe { Call::<H>::new(vm) };
    let (memory, host) = call.host();
    let result = function(host, memory, [r1, r2, r3, r4, r5]);
    outcome(&mut call, result)
}

/// # Safety
/// As [`call_env`].
unsafe extern "sysv64" fn call_builtin<H: Host>(
    vm: *mut Vm,
    r1: u64,
    r2: u64,
    r3: u64,
    r4: u64,
    r5: u64,
    function: *const (),
) -> Outcome {
    // SAFETY: generated code passes the address of a `HelperFn<H>`.
    let function = unsafe { std::mem::transmute::<*const (), HelperFn<H>>(function) };
    // SAFETY: as in `call_env`.
    let mut call = unsafe { Call::<H>::new(vm) };
    let result = function(&mut call, [r1, r2, r3, r4, r5]);
    outcome(&mut call, result)
}

/// The address of the code of a function that generated code is about to call for the first time.
///
/// # Safety
/// As [`call_env`].
unsafe extern "sysv64" fn compile<H: Host>(vm: *mut Vm, function: u64) -> Outcome {
    // SAFETY: by contract; both are only read.
    let (executable, image) = unsafe { (&*(*vm).executable, &*(*vm).image.cast::<Image<H>>()) };
    let code = executable.code.as_ref();
    let made = code.map(|code| code.compile(&executable.program, &image.calls, function as usize));
    match made.unwrap_or_else(|| Err(Trap::host("the interpreter has no machine code"))) {
        Ok(entry) => Outcome { value: entry as u64, trapped: 0 },
        // SAFETY: as in `call_env`.
        Err(trap) => failure(&mut unsafe { Call::<H>::new(vm) }, trap),
    }
}

/// Leaves generated code with a trap at instruction `insn` of function `function`.
///
/// # Safety
/// As [`call_env`].
unsafe extern "sysv64" fn raise(vm: *mut Vm, why: u64, function: u64, insn: u64) -> ! {
    // SAFETY: by contract; the borrow ends before `landing`, and every value of this block is dropped by then.
    unsafe {
        let state = &mut *(*vm).state;
        let trap = match why {
            why if why == Raise::OutOfFuel as u64 => state.out_of_fuel(),
            why if why == Raise::StackOverflow as u64 => {
                Trap::new(TrapKind::StackOverflow { frames: MAX_FRAMES })
            }
            why if why == Raise::Poison as u64 => {
                Trap::new(TrapKind::Poison(state.program.poison(function as usize, insn as usize)))
            }
            _ => state
                .pending
                .take()
                .unwrap_or_else(|| Trap::host("a host function failed without a message")),
        };
        let name = &state.program.functions[function as usize].name;
        state.pending = Some(trap.at(name, insn as usize));
        landing(vm)
    }
}
