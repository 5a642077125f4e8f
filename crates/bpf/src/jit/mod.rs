//! Machine code by Cranelift, on x86-64 Linux. On other targets the interpreter runs, because leaving generated code
//! with a trap is written in assembly.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod access;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod alu;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod compile;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod entry;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod fuel;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod inline;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod liveness;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod shims;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod translate;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use compile::{Code, compile, run};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use entry::catching;

/// Whether this processor and system have the JIT.
pub(crate) const SUPPORTED: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) use absent::{Code, catching, compile, run};

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod absent {
    use crate::env::Host;
    use crate::host_calls::HostCalls;
    use crate::program::Program;
    use crate::trap::Trap;
    use crate::vm::Vm;

    /// No machine code.
    #[derive(Debug)]
    pub(crate) enum Code {}

    impl Code {
        pub(crate) fn range(&self) -> (u64, u64) {
            match *self {}
        }
    }

    /// Runs `body`: the interpreter checks each access, so nothing faults.
    pub(crate) fn catching<T>(_vm: *mut Vm, body: impl FnOnce() -> T) -> T {
        body()
    }

    pub(crate) fn compile<H: Host>(
        _program: &Program,
        _calls: &HostCalls<H>,
    ) -> Result<Code, String> {
        Err("there is no JIT for this processor and system".to_owned())
    }

    /// # Safety
    /// None needed: there is no `Code`.
    pub(crate) unsafe fn run(
        _vm: *mut Vm,
        code: &Code,
        _function: usize,
        _args: &[u64; 5],
    ) -> Result<u64, Trap> {
        match *code {}
    }
}
