//! Compiled BPF objects in user space.
//!
//! ```text
//! bytes ──Object::parse──► Object ──Image::new(&Env<H>)──► Image<H> ──instantiate──► Instance<H> ──call──► r0
//!         ELF, BTF, maps          CO-RE against Env's types,        one region of           or a Trap
//!                                 kfuncs by name, JIT               guest memory
//! ```
//!
//! An [`Object`] is a parsed file. An [`Env`] is the kernel that it is linked against: types for CO-RE, host
//! functions for kfuncs. An [`Image`] is the linked, compiled program, shared (`Arc`) by any number of [`Instance`]s.
//! Each instance has its own memory, maps and globals, in one region of guest memory. A program cannot access
//! anything outside of its region: an invalid access ends the call with a [`Trap`].
//!
//! This crate depends on no scheduler and no machine. `H` is the state that host functions work on.
//!
//! The modules depend on each other in one direction: `region` → `memory` → `maps` → `state` → `call` →
//! `helpers` → `host_calls` → (`interp` | `jit`) → `image` → `exec` → `instance`.

mod btf;
mod call;
mod config;
mod core_reloc;
mod decode;
mod env;
mod errno;
mod error;
mod exec;
mod fold;
mod helpers;
mod hint;
mod host_calls;
mod image;
mod instance;
mod interp;
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), path = "no_jit.rs")]
mod jit;
mod layout;
mod limits;
mod link;
mod linked;
mod location;
mod maps;
mod memory;
mod needs;
mod object;
mod program;
mod region;
mod state;
mod trap;
mod types;
mod vm;

pub use config::{InstanceConfig, InstanceError, MAX_CPUS, NullLoads};
pub use env::{Callable, Env, FuncRef, Host, HostFn, MAX_PRICES};
pub use error::{LoadCause, LoadError};
pub use helpers::{builtin_kfuncs, format_bstr, helper_name};
pub use hint::{prefetch, prefetch_start};
pub use image::{Engine, Image, Obstacle};
pub use instance::{Instance, MapsRef};
pub use link::{ConfigValue, Symbols, link};
pub use linked::{Allocated, Callee, Fixup, Function, Insn, Linked, MapDef, MapKind};
pub use location::{Location, SourceLine};
pub use memory::Memory;
pub use needs::{Lack, LackKind, MapInfo, WantedKfunc};
pub use object::{
    FunctionInfo, Global, GlobalType, Object, OpsField, OpsValue, SectionInfo, StructOps, TypeId,
    TypeMember, Types,
};
pub use trap::{Trap, TrapKind, TrapPlace};
pub use types::{Field, TargetTypes, TypeRef};
pub use vm::Context;
