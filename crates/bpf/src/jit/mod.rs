//! Machine code by Cranelift, on x86-64 Linux. On other targets the interpreter runs (`no_jit.rs`), because leaving
//! generated code with a trap is written in assembly.

mod access;
mod alu;
mod compile;
mod entry;
mod fuel;
mod inline;
mod liveness;
mod shims;
mod translate;

pub(crate) use compile::{Code, run};
pub(crate) use entry::catching;

/// Whether this processor and system have the JIT.
pub(crate) const SUPPORTED: bool = true;
