//! External symbols of an object: kernel functions, kernel variables, configuration values.

use std::collections::BTreeMap;

use super::elf::Elf;
use super::globals::{GlobalType, type_of};
use super::maps::ObjectMap;
use crate::btf::{Btf, Kind};
use crate::error::{Fault, LoadCause};
use crate::limits;

/// An external symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extern {
    pub(crate) name: String,
    /// It may be missing.
    pub(crate) weak: bool,
    pub(crate) kind: ExternKind,
}

/// The kind of an external symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExternKind {
    Kfunc,
    Variable,
    /// A configuration value: `size` bytes at `offset` of the map `.kconfig`.
    Config {
        map: usize,
        offset: u64,
        size: u64,
        /// It is an array of `char`.
        text: bool,
    },
}

/// All external symbols of an object.
#[derive(Debug)]
pub(crate) struct Externs {
    pub(crate) list: Vec<Extern>,
    by_name: BTreeMap<String, usize>,
}

impl Externs {
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
}

/// Reads `.ksyms` and `.kconfig` of the type information; appends the map `.kconfig` if the object has configuration
/// values.
pub(crate) fn read(elf: &Elf<'_>, btf: &Btf, maps: &mut Vec<ObjectMap>) -> Result<Externs, Fault> {
    let weak: BTreeMap<&str, bool> = elf
        .symbols
        .iter()
        .filter(|symbol| symbol.section.is_none() && !symbol.name.is_empty())
        .map(|symbol| (symbol.name.as_str(), symbol.weak))
        .collect();
    let mut list = Vec::new();
    let config = maps.len();
    let mut config_bytes = 0u64;
    for (name, id, of_config) in entries(btf) {
        // Symbols that no instruction uses are absent from the symbol table.
        let Some(weak) = weak.get(name).copied() else { continue };
        let kind = match btf.get(id).kind {
            Kind::Variable { of } if of_config => {
                let (size, text) = config_size(btf, name, of)?;
                let align = if text { 1 } else { size.max(1) };
                let offset = config_bytes.next_multiple_of(align);
                config_bytes = offset + size;
                limits::check("bytes of .kconfig", config_bytes, limits::MAX_DATA_BYTES)?;
                ExternKind::Config { map: config, offset, size, text }
            }
            Kind::Variable { .. } => ExternKind::Variable,
            _ => ExternKind::Kfunc,
        };
        list.push(Extern { name: name.to_owned(), weak, kind });
    }
    if config_bytes > 0 {
        let initial = vec![0; config_bytes as usize];
        maps.push(ObjectMap::data(".kconfig", true, initial.len() as u64, initial));
    }
    let by_name = list.iter().enumerate().map(|(at, found)| (found.name.clone(), at)).collect();
    Ok(Externs { list, by_name })
}

/// Name and type of each external symbol, and whether it is a configuration value.
fn entries(btf: &Btf) -> Vec<(&str, u32, bool)> {
    let mut found = Vec::new();
    for (section, of_config) in [(".ksyms", false), (".kconfig", true)] {
        for id in btf.named(section) {
            let Kind::Section { variables } = &btf.get(id).kind else { continue };
            for entry in variables {
                found.push((btf.get(entry.variable).name.as_str(), entry.variable, of_config));
            }
        }
    }
    found
}

/// Bytes of a configuration value, and whether it is a text: a number, `y`/`n`/`m`, or an array of `char`.
fn config_size(btf: &Btf, name: &str, of: u32) -> Result<(u64, bool), Fault> {
    let text = matches!(type_of(btf, of), GlobalType::Array { text: true, .. });
    match btf.size_of(of) {
        Some(size) if text && size > 0 => Ok((size, true)),
        Some(size @ (1 | 2 | 4 | 8)) => Ok((size, false)),
        _ => {
            let text = "a configuration value other than a number, a boolean or a text".into();
            Err(Fault::at_symbol(name, LoadCause::Unsupported(text)))
        }
    }
}
