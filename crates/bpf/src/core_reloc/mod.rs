//! CO-RE ("compile once, run everywhere"): accesses to kernel types that the compiler left open, resolved against the kernel
//! at hand. The rules are those of libbpf (`relo_core.c`).
//!
//! Where nothing in the kernel fits, an "exists" question has the answer 0; any other instruction becomes poison, because a
//! program that asks first never reaches it.

mod compatible;
mod patch;
mod spec;
mod value;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::btf::ext::CoreRelocation;
use crate::btf::{Btf, Kind};
use crate::error::LoadCause;

pub(crate) use patch::{Patched, patch};
use spec::Spec;
pub(crate) use value::Outcome;

/// The name without a `___flavour`: `task_struct___old` means the kernel's `task_struct`.
pub(crate) fn essential_name(name: &str) -> &str {
    match name.rfind("___") {
        // Neither a name that begins with underscores nor one that ends with them has a flavour.
        Some(at) if at > 0 && at + 3 < name.len() => &name[..at],
        _ => name,
    }
}

/// `enum bpf_core_relo_kind` of the UAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    FieldByteOffset,
    FieldByteSize,
    FieldExists,
    FieldSigned,
    FieldLshiftU64,
    FieldRshiftU64,
    TypeIdLocal,
    TypeIdTarget,
    TypeExists,
    TypeSize,
    EnumvalExists,
    EnumvalValue,
    TypeMatches,
}

impl Question {
    fn new(kind: u32) -> Result<Self, LoadCause> {
        Ok(match kind {
            0 => Self::FieldByteOffset,
            1 => Self::FieldByteSize,
            2 => Self::FieldExists,
            3 => Self::FieldSigned,
            4 => Self::FieldLshiftU64,
            5 => Self::FieldRshiftU64,
            6 => Self::TypeIdLocal,
            7 => Self::TypeIdTarget,
            8 => Self::TypeExists,
            9 => Self::TypeSize,
            10 => Self::EnumvalExists,
            11 => Self::EnumvalValue,
            12 => Self::TypeMatches,
            _ => return Err(LoadCause::Unsupported(format!("CO-RE relocation of kind {kind}"))),
        })
    }

    fn is_about_field(self) -> bool {
        use Question as Q;
        matches!(
            self,
            Q::FieldByteOffset
                | Q::FieldByteSize
                | Q::FieldExists
                | Q::FieldSigned
                | Q::FieldLshiftU64
                | Q::FieldRshiftU64
        )
    }

    fn is_about_constant(self) -> bool {
        matches!(self, Self::EnumvalExists | Self::EnumvalValue)
    }
}

/// Resolves the relocations of one object.
pub(crate) struct Resolver<'a> {
    local: &'a Btf,
    target: &'a Btf,
    /// Types of the kernel that a type of the object may mean.
    candidates: BTreeMap<u32, Rc<[u32]>>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(local: &'a Btf, target: &'a Btf) -> Self {
        Self { local, target, candidates: BTreeMap::new() }
    }

    /// Resolves one relocation.
    ///
    /// # Errors
    /// If the relocation does not fit the object's own types, or several types of the kernel fit and disagree.
    pub(crate) fn resolve(&mut self, relocation: &CoreRelocation) -> Result<Outcome, LoadCause> {
        let (local, target) = (self.local, self.target);
        let question = Question::new(relocation.kind)?;
        let spec = Spec::of_object(local, question, relocation)?;
        if question == Question::TypeIdLocal {
            return Ok(Outcome::Value { value: u64::from(relocation.root), size: None });
        }
        if local.get(relocation.root).name.is_empty() {
            return Err(LoadCause::BadRelocation("CO-RE: its type has no name".into()));
        }
        let mut agreed: Option<Outcome> = None;
        for id in self.candidates(relocation.root).iter() {
            let Some(found) = spec.in_kernel(local, target, *id, question)? else { continue };
            let outcome = value::calculate(local, target, question, &spec, Some(&found))?;
            match &agreed {
                Some(other) if *other != outcome => return Err(ambiguous(&spec, local)),
                _ => agreed = Some(outcome),
            }
        }
        match agreed {
            Some(outcome) => Ok(outcome),
            None => value::calculate(local, target, question, &spec, None),
        }
    }

    fn candidates(&mut self, root: u32) -> Rc<[u32]> {
        let (local, target) = (self.local.get(root), self.target);
        let known = self.candidates.entry(root).or_insert_with(|| {
            let essential = essential_name(&local.name);
            let named = target.names_from(essential);
            let ids = named.filter(|(name, _)| essential_name(name) == essential);
            ids.flat_map(|(_, ids)| ids.iter().copied())
                .filter(|id| same_kind(&target.get(*id).kind, &local.kind))
                .collect()
        });
        Rc::clone(known)
    }
}

fn ambiguous(spec: &Spec, local: &Btf) -> LoadCause {
    let text = format!("CO-RE: several types of the kernel fit {}", spec.describe(local));
    LoadCause::BadRelocation(text)
}

/// Whether two types are of one kind; 32- and 64-bit enumerations are.
fn same_kind(a: &Kind, b: &Kind) -> bool {
    match (a, b) {
        (Kind::Composite { union: a, .. }, Kind::Composite { union: b, .. }) => a == b,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}
