//! What the whole-program tests bring into virtual machines.

pub mod debian;
pub mod guest;
pub mod originals;
pub mod soak;
