//! The `struct_ops` variables of an object: the callbacks that a scheduler implements.

use std::collections::BTreeMap;

use super::data::{Address, AddressMap};
use super::elf::{Elf, R_BPF_64_ABS64, Section};
use super::variables::{PlacedVariable, variables};
use crate::btf::{Btf, Kind, Member};
use crate::core_reloc::essential_name;
use crate::error::{Fault, LoadCause};
use crate::limits;

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

/// Sections of struct_ops variables. libbpf loads those with a leading `?` only on request.
const SECTIONS: [&str; 4] =
    [".struct_ops", ".struct_ops.link", "?.struct_ops", "?.struct_ops.link"];

/// Reads the struct_ops variables of a file.
pub(crate) fn read(
    elf: &Elf<'_>,
    btf: &Btf,
    addresses: &AddressMap<'_>,
) -> Result<Vec<StructOps>, Fault> {
    let mut found = Vec::new();
    for name in SECTIONS {
        let Some(section) = elf.section_index(name) else { continue };
        let pointers = read_pointers(elf, addresses, section)?;
        for variable in variables(elf, btf, section)? {
            limits::check("struct_ops variables", found.len() as u64 + 1, limits::MAX_STRUCT_OPS)?;
            let reader = Reader { data: elf.sections[section].data, btf, pointers: &pointers };
            let ops =
                reader.read(&variable).map_err(|cause| Fault::at_symbol(variable.name, cause))?;
            found.push(ops);
        }
    }
    Ok(found)
}

/// The targets of the pointers in a section, by offset.
fn read_pointers(
    elf: &Elf<'_>,
    addresses: &AddressMap<'_>,
    section: usize,
) -> Result<BTreeMap<u64, OpsValue>, Fault> {
    let Section { name, data, relocations, .. } = &elf.sections[section];
    let mut found = BTreeMap::new();
    for relocation in relocations {
        let at = relocation.offset;
        let fault = |cause| Fault::at_section(name, at, cause);
        let wrong = |text: &str| fault(LoadCause::BadRelocation(text.into()));
        if relocation.kind != R_BPF_64_ABS64 {
            return Err(wrong("a struct_ops member holds whole pointers only"));
        }
        let end = at.checked_add(8).filter(|end| *end <= data.len() as u64);
        let Some(end) = end else { return Err(wrong("it is outside of the section")) };
        let symbol = &elf.symbols[relocation.symbol];
        let Some(target) = symbol.section else {
            let text = format!("it points to `{}`, which the object does not define", symbol.name);
            return Err(wrong(&text));
        };
        let addend = little_endian(&data[at as usize..end as usize]);
        let value = match addresses.resolve(elf, symbol, target, addend).map_err(fault)? {
            Address::Function(function) => OpsValue::Function(function),
            Address::Data { map, offset } => OpsValue::Data { map, offset },
            Address::Map(_) => return Err(wrong("it points to a map")),
        };
        found.insert(at, value);
    }
    Ok(found)
}

/// An unsigned integer of at most eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

struct Reader<'a> {
    data: &'a [u8],
    btf: &'a Btf,
    pointers: &'a BTreeMap<u64, OpsValue>,
}

impl Reader<'_> {
    fn read(&self, variable: &PlacedVariable<'_>) -> Result<StructOps, LoadCause> {
        let ty = self.btf.get(self.btf.strip_all(variable.of));
        let Kind::Composite { union: false, members, .. } = &ty.kind else {
            return Err(LoadCause::BadBtf("a struct_ops variable is not a structure".into()));
        };
        let count = members.len() as u64;
        limits::check("members of a struct_ops variable", count, limits::MAX_STRUCT_OPS_MEMBERS)?;
        let bytes = variable.size;
        limits::check("bytes of a struct_ops variable", bytes, limits::MAX_STRUCT_OPS_BYTES)?;
        let mut fields = Vec::new();
        for member in members {
            if let Some(value) = self.member(variable, member)? {
                fields.push(OpsField { name: member.name.clone(), value });
            }
        }
        let type_name = essential_name(&ty.name).to_owned();
        Ok(StructOps { name: variable.name.to_owned(), type_name, fields })
    }

    /// The value of a member; `None` if it is zero.
    fn member(
        &self,
        variable: &PlacedVariable<'_>,
        member: &Member,
    ) -> Result<Option<OpsValue>, LoadCause> {
        if member.bits > 0 {
            let text = format!("the member `{}` is a bit field", member.name);
            return Err(LoadCause::Unsupported(text));
        }
        let of = self.btf.strip_all(member.of);
        let start = variable.offset + u64::from(member.bit_offset / 8);
        let end = self.btf.size_of(of).and_then(|size| start.checked_add(size));
        let end = end.filter(|end| *end <= variable.offset + variable.size);
        let bytes = end.and_then(|end| self.data.get(start as usize..end as usize));
        let (Some(bytes), Some(end)) = (bytes, end) else {
            let text = format!("the member `{}` exceeds its structure", member.name);
            return Err(LoadCause::BadBtf(text));
        };
        let kind = &self.btf.get(of).kind;
        if let (Kind::Pointer(_), Some(value)) = (kind, self.pointers.get(&start)) {
            return Ok(Some(value.clone()));
        }
        if self.pointers.range(start..end).next().is_some() {
            let text = format!("the member `{}` holds pointers inside", member.name);
            return Err(LoadCause::Unsupported(text));
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        Ok(Some(self.value(kind, bytes)))
    }

    fn value(&self, kind: &Kind, bytes: &[u8]) -> OpsValue {
        match kind {
            Kind::Int { signed, .. } | Kind::Enum { signed, .. } if bytes.len() <= 8 => {
                OpsValue::Int(extend(little_endian(bytes), bytes.len(), *signed))
            }
            Kind::Array { of, .. } if self.btf.size_of(*of) == Some(1) => {
                let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
                OpsValue::Text(String::from_utf8_lossy(&bytes[..end]).into_owned())
            }
            _ => OpsValue::Bytes(bytes.to_vec()),
        }
    }
}

/// Sign-extends an integer of `bytes` bytes (1…8) if `signed`.
fn extend(value: u64, bytes: usize, signed: bool) -> u64 {
    let unused = 64 - 8 * bytes as u32;
    if signed { ((value << unused) as i64 >> unused) as u64 } else { value }
}
