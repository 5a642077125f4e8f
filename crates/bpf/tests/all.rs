//! The tests of loading and running objects, in one program.

mod compile;
mod core_reloc;
mod differential;
mod faults;
mod garbage;
mod graph;
mod isa;
mod loader;
mod malformed;
mod maps;
mod nested;
mod prices;
mod refusals;
mod support;
mod traps;
