//! Compatibility of a type of the kernel with a type of the object.

use std::cell::Cell;

use super::flavour::essential_name;
use crate::btf::{Btf, Kind, Member};

/// Maximum depth of a comparison: libbpf's limit.
const MAX_COMPARE_DEPTH: u32 = 32;
/// Maximum steps of a comparison. The largest structure of a kernel takes some thousands.
const MAX_COMPARISONS: u32 = 1 << 20;

/// Whether the types of two fields are compatible: any two structures are, and any two integers.
pub(super) fn fields(local: &Btf, mut a: u32, target: &Btf, mut b: u32) -> bool {
    for _ in 0..MAX_COMPARE_DEPTH {
        (a, b) = (local.strip_all(a), target.strip_all(b));
        let (ours, theirs) = (local.get(a), target.get(b));
        return match (&ours.kind, &theirs.kind) {
            (Kind::Composite { .. }, Kind::Composite { .. }) => true,
            (Kind::Pointer(_), Kind::Pointer(_)) => true,
            (Kind::Float { .. }, Kind::Float { .. }) => true,
            (Kind::Int { .. }, Kind::Int { .. }) => true,
            (Kind::Enum { .. }, Kind::Enum { .. }) | (Kind::Forward, Kind::Forward) => {
                let (ours, theirs) = (essential_name(&ours.name), essential_name(&theirs.name));
                ours.is_empty() || theirs.is_empty() || ours == theirs
            }
            (Kind::Array { of: ours, .. }, Kind::Array { of: theirs, .. }) => {
                (a, b) = (*ours, *theirs);
                continue;
            }
            _ => false,
        };
    }
    false
}

/// Whether two types of the same name are compatible: they have the same kind; pointers and functions are compared
/// deeply.
pub(super) fn types(local: &Btf, a: u32, target: &Btf, b: u32) -> bool {
    Comparison::new(local, target).types(a, b, 0)
}

/// Whether a type of the kernel matches: it has every member and constant of the object's type, with a matching type.
pub(super) fn matches(local: &Btf, a: u32, target: &Btf, b: u32) -> bool {
    Comparison::new(local, target).matches(a, b, false, 0)
}

/// A bounded comparison of two types: types are different if a limit is reached.
struct Comparison<'a> {
    local: &'a Btf,
    target: &'a Btf,
    left: Cell<u32>,
}

impl<'a> Comparison<'a> {
    fn new(local: &'a Btf, target: &'a Btf) -> Self {
        Self { local, target, left: Cell::new(MAX_COMPARISONS) }
    }

    /// Whether the next step exceeds a limit.
    fn is_at_end(&self, depth: u32) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left == 0 || depth > MAX_COMPARE_DEPTH
    }

    fn types(&self, a: u32, b: u32, depth: u32) -> bool {
        if self.is_at_end(depth) {
            return false;
        }
        let (a, b) = (self.local.strip_all(a), self.target.strip_all(b));
        let (ours, theirs) = (&self.local.get(a).kind, &self.target.get(b).kind);
        if !same_kind(ours, theirs) {
            return false;
        }
        match (ours, theirs) {
            (Kind::Pointer(ours), Kind::Pointer(theirs))
            | (Kind::Array { of: ours, .. }, Kind::Array { of: theirs, .. }) => {
                self.types(*ours, *theirs, depth + 1)
            }
            (Kind::Prototype { .. }, Kind::Prototype { .. }) => {
                prototypes(ours, theirs, |ours, theirs| self.types(ours, theirs, depth + 1))
            }
            (
                Kind::Void
                | Kind::Int { .. }
                | Kind::Composite { .. }
                | Kind::Enum { .. }
                | Kind::Forward,
                _,
            ) => true,
            _ => false,
        }
    }

    fn matches(&self, a: u32, b: u32, behind_pointer: bool, depth: u32) -> bool {
        if self.is_at_end(depth) {
            return false;
        }
        let (a, b) = (self.local.strip_all(a), self.target.strip_all(b));
        let (ours, theirs) = (self.local.get(a), self.target.get(b));
        if essential_name(&ours.name) != essential_name(&theirs.name) {
            return false;
        }
        let inner = |ours, theirs| self.matches(ours, theirs, behind_pointer, depth + 1);
        match (&ours.kind, &theirs.kind) {
            (Kind::Void, Kind::Void) | (Kind::Forward, Kind::Forward) => true,
            (Kind::Enum { values: ours, .. }, Kind::Enum { values: theirs, .. }) => {
                self.has_constants(ours, theirs)
            }
            (
                Kind::Composite { union: our_union, members: ours, .. },
                Kind::Composite { union: their_union, members: theirs, .. },
            ) => {
                our_union == their_union
                    && (behind_pointer || ours.iter().all(|member| self.has(member, theirs, depth)))
            }
            // A forward declaration matches through a pointer.
            (Kind::Forward, Kind::Composite { .. }) | (Kind::Composite { .. }, Kind::Forward) => {
                behind_pointer
            }
            (
                Kind::Int { size: ours, signed: our_sign, .. },
                Kind::Int { size: theirs, signed: their_sign, .. },
            ) => ours == theirs && our_sign == their_sign,
            (Kind::Pointer(ours), Kind::Pointer(theirs)) => {
                self.matches(*ours, *theirs, true, depth + 1)
            }
            (
                Kind::Array { of: ours, count: our_count },
                Kind::Array { of: theirs, count: their_count },
            ) => our_count == their_count && inner(*ours, *theirs),
            (ours, theirs) => prototypes(ours, theirs, inner),
        }
    }

    fn has(&self, member: &Member, theirs: &[Member], depth: u32) -> bool {
        theirs.iter().any(|candidate| {
            !self.is_at_end(depth)
                && candidate.name == member.name
                && self.matches(member.of, candidate.of, false, depth + 1)
        })
    }

    fn has_constants(&self, ours: &[(String, i64)], theirs: &[(String, i64)]) -> bool {
        ours.iter().all(|(name, _)| {
            let wanted = essential_name(name);
            theirs.iter().any(|(name, _)| !self.is_at_end(0) && essential_name(name) == wanted)
        })
    }
}

/// Whether two types are function prototypes with the same structure.
fn prototypes(ours: &Kind, theirs: &Kind, alike: impl Fn(u32, u32) -> bool) -> bool {
    let (
        Kind::Prototype { returns: ours, parameters: our_parameters },
        Kind::Prototype { returns: theirs, parameters: their_parameters },
    ) = (ours, theirs)
    else {
        return false;
    };
    our_parameters.len() == their_parameters.len()
        && alike(*ours, *theirs)
        && our_parameters.iter().zip(their_parameters).all(|(ours, theirs)| alike(*ours, *theirs))
}

/// Whether two types are of the same kind. Enumerations of 32 and 64 bits are.
pub(super) fn same_kind(a: &Kind, b: &Kind) -> bool {
    match (a, b) {
        (Kind::Composite { union: a, .. }, Kind::Composite { union: b, .. }) => a == b,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}
