//! Variables of an object that hold constants of the running kernel, as the headers of the scx project declare them:
//! `const volatile u64 __SCX_SLICE_DFL` for `SCX_SLICE_DFL`. The values come from the kernel's BTF.

use std::collections::BTreeMap;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Enum64};

use super::sections::VariableLocation;

/// Prefix of the variable's name before the constant's.
const MARK: &str = "__";
/// Prefix of the constants' names.
const PREFIX: &str = "SCX_";
/// Bytes of such a variable: u64.
const SIZE: usize = 8;

/// The constant that a variable holds, if any.
pub(super) fn constant_of(variable: &VariableLocation) -> Option<&str> {
    let name = variable.variable.strip_prefix(MARK).filter(|name| name.starts_with(PREFIX));
    name.filter(|_| variable.section == ".rodata" && variable.size == SIZE)
}

/// The values of the constants that this kernel has. The variables of others stay 0, as with the scx project's loaders.
pub(super) fn values<'p>(
    variables: &'p [VariableLocation],
) -> Vec<(&'p VariableLocation, [u8; SIZE])> {
    if variables.is_empty() {
        return Vec::new();
    }
    let Ok(btf) = Btf::from_vmlinux() else { return Vec::new() };
    let known = constants(&btf);
    let value = |variable: &&'p VariableLocation| known.get(constant_of(variable)?).copied();
    variables
        .iter()
        .filter_map(|variable| Some((variable, value(&variable)?.to_ne_bytes())))
        .collect()
}

/// The kernel's constants whose name starts with [`PREFIX`].
fn constants(btf: &Btf<'_>) -> BTreeMap<String, u64> {
    let name = |name: Option<&std::ffi::OsStr>| {
        let name = name?.to_str()?;
        name.starts_with(PREFIX).then(|| name.to_owned())
    };
    let mut found = BTreeMap::new();
    for ty in btf.type_by_kind::<Enum<'_>>() {
        found.extend(ty.iter().filter_map(|m| Some((name(m.name)?, m.value as u64))));
    }
    for ty in btf.type_by_kind::<Enum64<'_>>() {
        found.extend(ty.iter().filter_map(|m| Some((name(m.name)?, m.value as u64))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(variable: &str, section: &str, size: usize) -> VariableLocation {
        VariableLocation {
            variable: variable.to_owned(),
            section: section.to_owned(),
            offset: 0,
            size,
        }
    }

    #[test]
    fn constants_are_told_from_other_variables() {
        let of = |variable, section, size| {
            constant_of(&location(variable, section, size)).map(str::to_owned)
        };
        assert_eq!(of("__SCX_SLICE_DFL", ".rodata", 8).as_deref(), Some("SCX_SLICE_DFL"));
        assert_eq!(of("__SCX_SLICE_DFL", ".data", 8), None);
        assert_eq!(of("__SCX_SLICE_DFL", ".rodata", 4), None);
        assert_eq!(of("slice_ns", ".rodata", 8), None);
    }
}
