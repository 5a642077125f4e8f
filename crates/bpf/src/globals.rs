//! The global variables of an object: a scheduler's tunables, switches and statistics, discovered through BTF.

/// One global variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// The data map that holds it: an index into [`Linked::maps`](crate::Linked::maps).
    pub map: usize,
    /// Its byte offset in the map's value.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its type, as far as a tool can show and change it.
    pub ty: GlobalType,
    /// It lies in `.rodata`: a program cannot write it; user space can, before the program runs.
    pub read_only: bool,
    /// It is declared `volatile`. A read-only variable that is not (`const` alone) is folded into the code by the
    /// compiler: changing it changes nothing.
    pub volatile: bool,
    /// The texts of its `__attribute__((btf_decl_tag("…")))`, in the order of the declaration.
    pub tags: Vec<String>,
}

impl Global {
    /// Whether changing this variable changes what the program does.
    pub fn is_settable(&self) -> bool {
        !self.read_only || self.volatile
    }
}

/// The type of a global variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GlobalType {
    /// `bool`, one byte.
    Bool,
    /// An integer.
    Int {
        /// 8, 16, 32, 64 or 128.
        bits: u32,
        /// Whether it is signed.
        signed: bool,
    },
    /// An enumeration.
    Enum {
        /// Its tag; empty if it has none.
        name: String,
        /// 8, 16, 32 or 64.
        bits: u32,
        /// Whether a value is negative.
        signed: bool,
        /// Its constants in the order of the declaration.
        values: Vec<(String, i64)>,
    },
    /// An array.
    Array {
        /// The element's type.
        of: Box<GlobalType>,
        /// Bytes of an element.
        element_size: u64,
        /// Elements.
        count: u64,
    },
    /// A structure, a union, a pointer, a floating-point number: bytes.
    Other,
}
