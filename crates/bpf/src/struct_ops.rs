//! The `struct_ops` variables of an object: which scheduler callbacks it implements.

/// One variable of `.struct_ops` or `.struct_ops.link`: for a scheduler, its `struct sched_ext_ops`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructOps {
    /// The variable's name.
    pub name: String,
    /// The name of its structure type, without a `___flavour`: `sched_ext_ops`.
    pub type_name: String,
    /// Its members in the order of the structure. Members that are zero or NULL are left out.
    pub fields: Vec<OpsField>,
}

impl StructOps {
    /// The value of the member `name`; `None` if it is zero or does not exist.
    pub fn field(&self, name: &str) -> Option<&OpsValue> {
        self.fields.iter().find(|field| field.name == name).map(|field| &field.value)
    }

    /// The function of the member `name` as an index into [`Linked::functions`](crate::Linked::functions).
    pub fn function(&self, name: &str) -> Option<usize> {
        match self.field(name) {
            Some(OpsValue::Function(index)) => Some(*index),
            _ => None,
        }
    }
}

/// One member of a struct_ops variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpsField {
    /// The member's name.
    pub name: String,
    /// Its value.
    pub value: OpsValue,
}

/// What a struct_ops member holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpsValue {
    /// A callback: an index into [`Linked::functions`](crate::Linked::functions).
    Function(usize),
    /// An integer, enumeration or boolean, sign-extended if its type is signed.
    Int(u64),
    /// A `char` array, up to its NUL.
    Text(String),
    /// A pointer to byte `offset` of the data map `map`.
    Data {
        /// Index into [`Linked::maps`](crate::Linked::maps).
        map: usize,
        /// Byte offset.
        offset: u64,
    },
    /// A member of another type (a nested structure, an array), as its bytes.
    Bytes(Vec<u8>),
}
