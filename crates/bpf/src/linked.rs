//! The boundary between the loader and the engines: instructions whose every symbol is resolved to an index.
//!
//! The loader (ELF, BTF, CO-RE) ends here; the interpreter and the JIT start here and know no ELF.

use std::collections::BTreeMap;

/// One 8-byte instruction slot as the BPF ISA (RFC 9669) lays it out. `lddw` takes two slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    /// Opcode.
    pub code: u8,
    /// Destination register, 0…10.
    pub dst: u8,
    /// Source register, 0…10.
    pub src: u8,
    /// Signed offset.
    pub off: i16,
    /// Immediate.
    pub imm: i32,
}

/// Whom a call instruction calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A BPF helper by its number in the kernel's UAPI.
    Helper(u32),
    /// A host function: an index into [`Linked::kfuncs`].
    Kfunc(usize),
    /// Another function of the object: an index into [`Linked::functions`].
    Function(usize),
}

/// What the loader resolved at an instruction slot (the first of an `lddw`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fixup {
    /// `lddw` of a plain value.
    Value(u64),
    /// `lddw` of the address of byte `offset` in the value of a data map (`.rodata`, `.data`, `.bss`, custom sections).
    Data {
        /// Index into [`Linked::maps`].
        map: usize,
        /// Byte offset.
        offset: u64,
    },
    /// `lddw` of a map, to hand to a helper.
    Map(usize),
    /// `lddw` of a function's address (a callback of `bpf_loop`, of a timer): an index into [`Linked::functions`].
    Function(usize),
    /// A call.
    Call(Callee),
    /// Reaching this instruction is an error: a CO-RE relocation that found nothing, a missing weak kfunc that is called.
    /// The text says which.
    Poison(String),
}

/// One function of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Its section (`struct_ops/enqueue`, `.text`, `syscall`, …).
    pub section: String,
    /// Its slots; jump offsets are relative to slots, as in the ISA, and stay inside.
    pub insns: Vec<Insn>,
    /// What was resolved, by slot. Every `lddw` and every call has an entry.
    pub fixups: BTreeMap<usize, Fixup>,
}

/// Kinds of maps that an instance can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MapKind {
    /// A data section: one value, at a fixed address.
    Data {
        read_only: bool,
    },
    Array,
    PerCpuArray,
    Hash,
    PerCpuHash,
    LruHash,
    TaskStorage,
    CgroupStorage,
    Queue,
    Stack,
    RingBuf,
    PerfEventArray,
    Arena,
    ArrayOfMaps,
}

/// One map, as the object declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDef {
    /// Its symbol, or the section's name for data.
    pub name: String,
    /// Its kind.
    pub kind: MapKind,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Entries at most (for a ring buffer: bytes).
    pub max_entries: u32,
    /// The UAPI's `map_flags`.
    pub flags: u32,
    /// The first content of a data section, or of an arena's first pages. Of an array of maps: for each element the number of
    /// the map in it plus 1, or 0, as 4 bytes, little-endian. Empty elsewhere.
    pub initial: Vec<u8>,
}

/// An object, relocated against an environment.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Linked {
    /// Functions.
    pub functions: Vec<Function>,
    /// Maps, data sections included.
    pub maps: Vec<MapDef>,
    /// Names of the host functions that the object calls, in the order of [`Callee::Kfunc`].
    pub kfuncs: Vec<String>,
    /// Bytes of the structures that the object may allocate (`bpf_obj_new`), by their number in its type information; empty
    /// where it allocates none.
    pub objects: BTreeMap<u32, u32>,
}
