//! Constants of the running kernel that an object keeps in variables: `const volatile u64 __SCX_SLICE_DFL` for `SCX_SLICE_DFL`,
//! as the headers of the scx project declare them. Their values come from the kernel's own type information.

use std::collections::BTreeMap;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Enum64};

use super::layout::Place;

/// What stands before the constant's name in the variable's.
const MARK: &str = "__";
/// How the names of the constants begin.
const PREFIX: &str = "SCX_";
/// Bytes of such a variable: u64.
const SIZE: usize = 8;

/// The constant that a variable stands for; `None`: it stands for none.
pub(super) fn constant_of(place: &Place) -> Option<&str> {
    let name = place.variable.strip_prefix(MARK).filter(|name| name.starts_with(PREFIX));
    name.filter(|_| place.section == ".rodata" && place.size == SIZE)
}

/// The values of those that this kernel has. One that it lacks is left out, and the variable stays 0, as with the headers' own
/// loader.
pub(super) fn values<'p>(places: &'p [Place]) -> Vec<(&'p Place, [u8; SIZE])> {
    if places.is_empty() {
        return Vec::new();
    }
    let Ok(btf) = Btf::from_vmlinux() else { return Vec::new() };
    let known = constants(&btf);
    let value = |place: &&'p Place| known.get(constant_of(place)?).copied();
    places.iter().filter_map(|place| Some((place, value(&place)?.to_ne_bytes()))).collect()
}

/// Every constant of the kernel whose name begins so.
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

    fn place(variable: &str, section: &str, size: usize) -> Place {
        Place { variable: variable.to_owned(), section: section.to_owned(), offset: 0, size }
    }

    #[test]
    fn constants_are_told_from_other_variables() {
        let of = |variable, section, size| {
            constant_of(&place(variable, section, size)).map(str::to_owned)
        };
        assert_eq!(of("__SCX_SLICE_DFL", ".rodata", 8).as_deref(), Some("SCX_SLICE_DFL"));
        assert_eq!(of("__SCX_SLICE_DFL", ".data", 8), None);
        assert_eq!(of("__SCX_SLICE_DFL", ".rodata", 4), None);
        assert_eq!(of("slice_ns", ".rodata", 8), None);
    }
}
