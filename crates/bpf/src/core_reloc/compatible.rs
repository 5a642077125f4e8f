//! When a type of the kernel passes for a type of the object.

use super::{essential_name, same_kind};
use crate::btf::{Btf, Kind, Member};

/// How deep two types are compared: libbpf's limit.
const MAX_COMPARE_DEPTH: u32 = 32;

/// Whether a field may stand for another: structures pass for structures of any name, integers for integers of any size.
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

/// Whether a type exists: the same kind under the same name, pointers and functions compared all the way.
pub(super) fn types(local: &Btf, a: u32, target: &Btf, b: u32) -> bool {
    types_at(local, a, target, b, 0)
}

fn types_at(local: &Btf, a: u32, target: &Btf, b: u32, depth: u32) -> bool {
    if depth > MAX_COMPARE_DEPTH {
        return false;
    }
    let (a, b) = (local.strip_all(a), target.strip_all(b));
    let (ours, theirs) = (&local.get(a).kind, &target.get(b).kind);
    if !same_kind(ours, theirs) {
        return false;
    }
    match (ours, theirs) {
        (Kind::Pointer(ours), Kind::Pointer(theirs))
        | (Kind::Array { of: ours, .. }, Kind::Array { of: theirs, .. }) => {
            types_at(local, *ours, target, *theirs, depth + 1)
        }
        (
            Kind::Prototype { returns: ours, parameters: our_parameters },
            Kind::Prototype { returns: theirs, parameters: their_parameters },
        ) => {
            our_parameters.len() == their_parameters.len()
                && types_at(local, *ours, target, *theirs, depth + 1)
                && our_parameters
                    .iter()
                    .zip(their_parameters)
                    .all(|(ours, theirs)| types_at(local, *ours, target, *theirs, depth + 1))
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

/// Whether a type matches: every member and constant of the object's type is in the kernel's, with a matching type.
pub(super) fn matches(local: &Btf, a: u32, target: &Btf, b: u32) -> bool {
    matches_at(local, a, target, b, false, 0)
}

fn matches_at(local: &Btf, a: u32, target: &Btf, b: u32, behind_pointer: bool, depth: u32) -> bool {
    if depth > MAX_COMPARE_DEPTH {
        return false;
    }
    let (a, b) = (local.strip_all(a), target.strip_all(b));
    let (ours, theirs) = (local.get(a), target.get(b));
    let named_alike = essential_name(&ours.name) == essential_name(&theirs.name);
    if !named_alike {
        return false;
    }
    match (&ours.kind, &theirs.kind) {
        (Kind::Void, Kind::Void) | (Kind::Forward, Kind::Forward) => true,
        (Kind::Enum { values: ours, .. }, Kind::Enum { values: theirs, .. }) => {
            ours.iter().all(|(name, _)| {
                let wanted = essential_name(name);
                theirs.iter().any(|(name, _)| essential_name(name) == wanted)
            })
        }
        (
            Kind::Composite { union: our_union, members: ours, .. },
            Kind::Composite { union: their_union, members: theirs, .. },
        ) => {
            our_union == their_union
                && (behind_pointer
                    || ours.iter().all(|member| has(local, member, target, theirs, depth)))
        }
        // A structure that one side only declares is a match behind a pointer.
        (Kind::Forward, Kind::Composite { .. }) | (Kind::Composite { .. }, Kind::Forward) => {
            behind_pointer
        }
        (
            Kind::Int { size: ours, signed: our_sign, .. },
            Kind::Int { size: theirs, signed: their_sign, .. },
        ) => ours == theirs && our_sign == their_sign,
        (Kind::Pointer(ours), Kind::Pointer(theirs)) => {
            matches_at(local, *ours, target, *theirs, true, depth + 1)
        }
        (
            Kind::Array { of: ours, count: our_count },
            Kind::Array { of: theirs, count: their_count },
        ) => {
            our_count == their_count
                && matches_at(local, *ours, target, *theirs, behind_pointer, depth + 1)
        }
        (
            Kind::Prototype { returns: ours, parameters: our_parameters },
            Kind::Prototype { returns: theirs, parameters: their_parameters },
        ) => {
            let all = || {
                our_parameters.iter().zip(their_parameters).all(|(ours, theirs)| {
                    matches_at(local, *ours, target, *theirs, behind_pointer, depth + 1)
                })
            };
            our_parameters.len() == their_parameters.len()
                && all()
                && matches_at(local, *ours, target, *theirs, behind_pointer, depth + 1)
        }
        _ => false,
    }
}

fn has(local: &Btf, member: &Member, target: &Btf, theirs: &[Member], depth: u32) -> bool {
    theirs.iter().any(|candidate| {
        candidate.name == member.name
            && matches_at(local, member.of, target, candidate.of, false, depth + 1)
    })
}
