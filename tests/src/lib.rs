//! Home of the whole-program tests; see `tests/tests/`.

pub mod soak;
