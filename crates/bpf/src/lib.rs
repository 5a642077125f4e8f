//! Compiled BPF objects in user space.
//!
//! ```text
//! bytes ──Object::parse──► Object ──Image::new(&Env<H>)──► Image<H> ──instantiate──► Instance<H> ──call──► r0
//!         ELF, BTF, maps          CO-RE against Env's types,        one region of           or a Trap
//!                                 kfuncs by name, JIT               guest memory
//! ```
//!
//! An [`Object`] is what the file says. An [`Env`] is the kernel that it is linked against: types for CO-RE, host functions
//! for kfuncs. An [`Image`] is the linked, compiled program; it is shared (`Arc`) by any number of [`Instance`]s, each with
//! its own memory, maps and globals. All memory that a program can reach lies in its instance's region: a bad program can
//! crash nothing, it ends in a [`Trap`].
//!
//! This crate knows no scheduler and no machine: `H` is whatever its user hands to host functions.

mod btf;
mod core_reloc;
mod decode;
mod env;
mod error;
mod exec;
mod globals;
mod graph;
mod helpers;
mod hint;
mod image;
mod instance;
mod interp;
mod jit;
mod layout;
mod link;
mod linked;
mod maps;
mod memory;
mod object;
mod region;
mod struct_ops;
mod trap;
mod types;
mod vm;

pub use env::{Callable, Env, FuncRef, Host, HostFn, MAX_PRICES};
pub use error::{LoadCause, LoadError, Place};
pub use globals::{Global, GlobalType};
pub use helpers::format_bstr;
pub use hint::{prefetch, prefetch_start};
pub use image::{Engine, Image};
pub use instance::{Instance, InstanceConfig, InstanceError, MAX_CPUS, MapsRef, NullLoads};
pub use link::{Symbols, link};
pub use linked::{Callee, Fixup, Function, Insn, Linked, MapDef, MapKind};
pub use memory::Memory;
pub use object::{
    FunctionInfo, Lack, LackKind, MapInfo, Object, SectionInfo, SourceLine, WantedKfunc,
};
pub use struct_ops::{OpsField, OpsValue, StructOps};
pub use trap::{Trap, TrapKind, TrapPlace};
pub use types::{Field, TargetTypes, TypeRef};
pub use vm::Context;
