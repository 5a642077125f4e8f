//! The tests on real kernels, in one program.

mod benchmarks;
mod guest_operations;
mod operations;
mod recorded;
mod rig;
mod tracefs;
mod traces_left;
mod vm;
