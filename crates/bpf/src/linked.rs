//! A linked object: the interface between the loader (ELF, BTF, CO-RE) and the engines. Every symbol is resolved to
//! an index.

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

/// The opcode of `lddw`, the only instruction of two slots.
pub(crate) const LDDW: u8 = 0x18;

/// The function that a call instruction calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A BPF helper by its number in the kernel's UAPI.
    Helper(u32),
    /// A host function: an index into [`Linked::kfuncs`].
    Kfunc(usize),
    /// Another function of the object: an index into [`Linked::functions`].
    Function(usize),
}

/// A resolved symbol of an instruction (of the first slot of an `lddw`).
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
    /// `lddw` of a map, as a helper's argument.
    Map(usize),
    /// `lddw` of a function's address (a callback of `bpf_loop`, of a timer): an index into [`Linked::functions`].
    Function(usize),
    /// A call.
    Call(Callee),
    /// Executing this instruction is an error: its CO-RE relocation has no match, or it calls a missing weak kfunc.
    /// The text is the message.
    Poison(String),
}

/// One function of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Its section (`struct_ops/enqueue`, `.text`, `syscall`, …).
    pub section: String,
    /// Its instruction slots. Jump offsets count slots, as in the ISA, and stay within the function.
    pub insns: Vec<Insn>,
    /// The resolved symbols, by slot. Every `lddw` and every call has an entry.
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
    /// Another type, by its number in `enum bpf_map_type`: the map exists, and an operation on it traps.
    Foreign(u32),
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
    /// Maximum number of entries (of a ring buffer: bytes; of an arena: pages of address space).
    pub max_entries: u32,
    /// The UAPI's `map_flags`.
    pub flags: u32,
    /// The initial content of a data section, with zeros behind it up to `value_size` (all of `.bss`), or of an arena's
    /// first pages. For an array of maps: by element, the index of the map plus 1, or 0 for none, as 4 little-endian
    /// bytes. Empty for other maps.
    pub initial: Vec<u8>,
    /// Byte offsets of the references that a value owns (`__kptr`).
    pub kptrs: Vec<u32>,
}

/// A structure that an object may allocate (`bpf_obj_new`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Its size, bytes.
    pub size: u32,
    /// Byte offsets of the references that it owns.
    pub kptrs: Vec<u32>,
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
    /// The structures that the object may allocate, by BTF type identifier; empty if it allocates none.
    pub objects: BTreeMap<u32, Allocated>,
}
