//! References that values own: pointers with the type tag `kptr` or `percpu_kptr` (`btf_parse_fields`).

use crate::btf::{Btf, Kind, MAX_TYPE_DEPTH};

/// Members that own a reference.
const OWNING: [&str; 2] = ["kptr", "percpu_kptr"];
/// Owning members of one type, at most; the kernel's `BTF_FIELDS_MAX` is 11, with an array counted as one.
const KPTRS_MAX: usize = 4096;

/// The byte offsets of the references that a value of a type owns, in ascending order.
pub(crate) fn kptrs(btf: &Btf, of: u32) -> Vec<u32> {
    let mut found = Vec::new();
    collect(btf, of, 0, MAX_TYPE_DEPTH, &mut found);
    found
}

fn collect(btf: &Btf, of: u32, offset: u64, depth: u32, found: &mut Vec<u32>) {
    if depth == 0 || found.len() >= KPTRS_MAX {
        return;
    }
    match &btf.get(btf.strip_all(of)).kind {
        Kind::Pointer(to) if is_owning(btf, *to) => found.extend(u32::try_from(offset)),
        Kind::Array { of, count } => {
            let bytes = btf.size_of(*of).unwrap_or(0);
            // One element tells whether there is anything to look for.
            let before = found.len();
            for at in 0..u64::from(*count) {
                collect(btf, *of, offset + at * bytes, depth - 1, found);
                if found.len() == before || found.len() >= KPTRS_MAX {
                    return;
                }
            }
        }
        Kind::Composite { union: false, members, .. } => {
            for member in members.iter().filter(|member| member.bits == 0) {
                collect(
                    btf,
                    member.of,
                    offset + u64::from(member.bit_offset / 8),
                    depth - 1,
                    found,
                );
            }
        }
        _ => {}
    }
}

/// Whether a pointer to this type, with its tags, owns what it points to.
fn is_owning(btf: &Btf, mut to: u32) -> bool {
    for _ in 0..MAX_TYPE_DEPTH {
        let ty = btf.get(to);
        match ty.kind {
            Kind::TypeTag(_) if OWNING.contains(&ty.name.as_str()) => return true,
            Kind::TypeTag(of) | Kind::Const(of) | Kind::Volatile(of) | Kind::Restrict(of) => {
                to = of
            }
            _ => return false,
        }
    }
    false
}
