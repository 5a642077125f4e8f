//! Programs that the whole-program tests run in virtual machines.

pub mod debian;
pub mod guest;
pub mod originals;
pub mod soak;
