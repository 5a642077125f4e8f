//! The substitute for the JIT where there is none.

use crate::env::Host;
use crate::host_calls::HostCalls;
use crate::program::Program;
use crate::trap::Trap;
use crate::vm::Vm;

/// Whether this processor and system have the JIT.
pub(crate) const SUPPORTED: bool = false;

/// No machine code.
#[derive(Debug)]
pub(crate) enum Code {}

impl Code {
    pub(crate) fn new(_program: &Program) -> Result<Code, String> {
        Err("there is no JIT for this processor and system".to_owned())
    }

    pub(crate) fn range(&self) -> (u64, u64) {
        match *self {}
    }
}

/// Runs `body`: the interpreter checks each access, so nothing faults.
pub(crate) fn catching<T>(_vm: *mut Vm, body: impl FnOnce() -> T) -> T {
    body()
}

/// # Safety
/// None needed: there is no `Code`.
pub(crate) unsafe fn run<H: Host>(
    _vm: *mut Vm,
    code: &Code,
    _program: &Program,
    _calls: &HostCalls<H>,
    _function: usize,
    _args: &[u64; 5],
) -> Result<u64, Trap> {
    match *code {}
}
