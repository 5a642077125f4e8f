//! The checks: one function each. Each uses what the commands themselves use to find it.

pub(super) mod host;
pub(super) mod simulator;
pub(super) mod terminal;
pub(super) mod toolchain;
pub(super) mod virtual_machine;
