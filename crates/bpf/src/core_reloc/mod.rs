//! CO-RE ("compile once, run everywhere"): resolves accesses to kernel types against the types of the target kernel,
//! by the rules of libbpf (`relo_core.c`).
//!
//! Without a match, an "exists" relocation yields 0, and any other instruction becomes poison: a program that tests
//! first never executes it.

mod compatible;
mod flavour;
mod patch;
mod question;
mod spec;
mod value;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::btf::Btf;
use crate::btf::ext::CoreRelocation;
use crate::error::LoadCause;

use compatible::same_kind;
pub(crate) use flavour::essential_name;
pub(crate) use patch::{Patched, patch};
use question::Question;
use spec::Spec;
use value::Outcome;

/// Resolves the relocations of one object.
pub(crate) struct Resolver<'a> {
    local: &'a Btf,
    target: &'a Btf,
    /// By type of the object: the types of the kernel that it may refer to.
    candidates: BTreeMap<u32, Rc<[u32]>>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(local: &'a Btf, target: &'a Btf) -> Self {
        Self { local, target, candidates: BTreeMap::new() }
    }

    /// The target of the relocation, `struct task_struct.scx.slice`; `None` if it does not match the object's own types.
    pub(crate) fn describe(local: &Btf, relocation: &CoreRelocation) -> Option<String> {
        let question = Question::new(relocation.kind).ok()?;
        Some(Spec::of_object(local, question, relocation).ok()?.describe(local))
    }

    /// Resolves one relocation.
    ///
    /// # Errors
    /// The relocation does not match the object's own types, or several types of the kernel match with different
    /// results.
    pub(crate) fn resolve(&mut self, relocation: &CoreRelocation) -> Result<Outcome, LoadCause> {
        let (local, target) = (self.local, self.target);
        let question = Question::new(relocation.kind)?;
        let spec = Spec::of_object(local, question, relocation)?;
        if question == Question::TypeIdLocal {
            return Ok(Outcome::Value { value: u64::from(relocation.root), size: None });
        }
        if local.get(relocation.root).name.is_empty() {
            return Err(LoadCause::BadRelocation("CO-RE: the root type has no name".into()));
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
    let text = format!("CO-RE: several types of the kernel match {}", spec.describe(local));
    LoadCause::BadRelocation(text)
}
