//! Access paths: from a root type through members and array elements to a field.

use super::compatible;
use super::flavour::essential_name;
use super::question::Question;
use crate::btf::ext::CoreRelocation;
use crate::btf::{Btf, Kind, MAX_TYPE_DEPTH, Member};
use crate::error::LoadCause;

/// Maximum bytes of an access path in a message: each poisoned instruction stores its message.
const MAX_DESCRIPTION_BYTES: usize = 200;

/// One step of an access path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// For a named member: the structure that has it. For an element: the element's type.
    pub(super) of: u32,
    /// Index of the member or element.
    pub(super) index: u32,
    /// The member's name; empty for an element. Anonymous structures are not steps.
    pub(super) name: String,
}

/// An access path in one type graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) root: u32,
    pub(super) steps: Vec<Step>,
    /// Bit offset of the field in the root type.
    pub(super) bit_offset: u64,
    /// The value of an enumeration constant.
    pub(super) constant: Option<i64>,
}

pub(super) fn bad(text: &str) -> LoadCause {
    LoadCause::BadRelocation(format!("CO-RE: {text}"))
}

/// Bits of `count` elements of a type.
fn bits_of(btf: &Btf, id: u32, count: u32) -> Result<u64, LoadCause> {
    let size = btf.size_of(id).ok_or_else(|| bad("a type of the access path has no size"))?;
    let bits = size.checked_mul(u64::from(count)).and_then(|bytes| bytes.checked_mul(8));
    bits.ok_or_else(|| bad("an offset is too large"))
}

fn add(offset: &mut u64, bits: u64) -> Result<(), LoadCause> {
    *offset = offset.checked_add(bits).ok_or_else(|| bad("an offset is too large"))?;
    Ok(())
}

impl Spec {
    /// The access path in the object's types.
    pub(super) fn of_object(
        btf: &Btf,
        question: Question,
        relocation: &CoreRelocation,
    ) -> Result<Self, LoadCause> {
        let root = relocation.root;
        if root >= btf.len() {
            return Err(bad(&format!("type {root} does not exist")));
        }
        let first = *relocation.access.first().ok_or_else(|| bad("the access is empty"))?;
        let mut spec = Self { root, steps: Vec::new(), bit_offset: 0, constant: None };
        if question.is_about_constant() {
            let Kind::Enum { values, .. } = &btf.get(btf.strip_all(root)).kind else {
                return Err(bad("its type is not an enumeration"));
            };
            let (name, value) = values
                .get(first as usize)
                .filter(|_| relocation.access.len() == 1)
                .ok_or_else(|| bad("the enumeration has no such constant"))?;
            spec.constant = Some(*value);
            spec.steps.push(Step { of: root, index: first, name: name.clone() });
            return Ok(spec);
        }
        if !question.is_about_field() {
            return Ok(spec);
        }
        let mut id = btf.strip_all(root);
        spec.steps.push(Step { of: id, index: first, name: String::new() });
        add(&mut spec.bit_offset, bits_of(btf, id, first)?)?;
        for index in &relocation.access[1..] {
            id = spec.step(btf, id, *index)?;
        }
        Ok(spec)
    }

    /// Appends the step from a type to its member or element `index`; returns the type of that.
    fn step(&mut self, btf: &Btf, id: u32, index: u32) -> Result<u32, LoadCause> {
        let id = btf.strip_all(id);
        match &btf.get(id).kind {
            Kind::Composite { members, .. } => {
                let member = members
                    .get(index as usize)
                    .ok_or_else(|| bad("a structure has no such member"))?;
                add(&mut self.bit_offset, u64::from(member.bit_offset))?;
                if !member.name.is_empty() {
                    self.steps.push(Step { of: id, index, name: member.name.clone() });
                }
                Ok(member.of)
            }
            Kind::Array { of, .. } => {
                let of = btf.strip_all(*of);
                self.steps.push(Step { of, index, name: String::new() });
                add(&mut self.bit_offset, bits_of(btf, of, index)?)?;
                Ok(of)
            }
            _ => Err(bad("it goes into a type that has no members")),
        }
    }

    /// The same access path in a type of the kernel; `None` if that type does not match.
    pub(super) fn in_kernel(
        &self,
        local: &Btf,
        target: &Btf,
        root: u32,
        question: Question,
    ) -> Result<Option<Self>, LoadCause> {
        let mut spec = Self { root, steps: Vec::new(), bit_offset: 0, constant: None };
        if question.is_about_constant() {
            return Ok(self.constant_in(target, spec));
        }
        if !question.is_about_field() {
            let fits = match question {
                Question::TypeMatches => compatible::matches(local, self.root, target, root),
                _ => compatible::types(local, self.root, target, root),
            };
            return Ok(fits.then_some(spec));
        }
        let mut id = target.strip_all(root);
        for (at, step) in self.steps.iter().enumerate() {
            if !step.name.is_empty() {
                let Some(next) = spec.enter(local, step, target, id, 0)? else { return Ok(None) };
                id = next;
                continue;
            }
            if at > 0 {
                let Kind::Array { of, count } = target.get(target.strip_all(id)).kind else {
                    return Ok(None);
                };
                // A flexible array member may have any length.
                if count > 0 && step.index >= count {
                    return Ok(None);
                }
                id = target.strip_all(of);
            }
            spec.steps.push(Step { of: id, index: step.index, name: String::new() });
            add(&mut spec.bit_offset, bits_of(target, id, step.index)?)?;
        }
        Ok(Some(spec))
    }

    fn constant_in(&self, target: &Btf, mut spec: Self) -> Option<Self> {
        let Kind::Enum { values, .. } = &target.get(spec.root).kind else { return None };
        let wanted = essential_name(&self.steps.first()?.name);
        let at = values.iter().position(|(name, _)| essential_name(name) == wanted)?;
        spec.constant = Some(values[at].1);
        spec.steps.push(Step { of: spec.root, index: at as u32, name: values[at].0.clone() });
        Some(spec)
    }

    /// Finds a member by name, also in anonymous structures; returns its type.
    fn enter(
        &mut self,
        local: &Btf,
        step: &Step,
        target: &Btf,
        id: u32,
        depth: u32,
    ) -> Result<Option<u32>, LoadCause> {
        let id = target.strip_all(id);
        let Kind::Composite { members, .. } = &target.get(id).kind else { return Ok(None) };
        if depth > MAX_TYPE_DEPTH {
            return Ok(None);
        }
        for (index, member) in members.iter().enumerate() {
            if member.name.is_empty() {
                let before = self.clone();
                add(&mut self.bit_offset, u64::from(member.bit_offset))?;
                if let Some(found) = self.enter(local, step, target, member.of, depth + 1)? {
                    return Ok(Some(found));
                }
                *self = before;
            } else if member.name == step.name {
                let wanted = local_member(local, step).map(|member| member.of);
                if !wanted.is_some_and(|of| compatible::fields(local, of, target, member.of)) {
                    return Ok(None);
                }
                add(&mut self.bit_offset, u64::from(member.bit_offset))?;
                let index = index as u32;
                self.steps.push(Step { of: id, index, name: member.name.clone() });
                return Ok(Some(member.of));
            }
        }
        Ok(None)
    }

    /// `struct task_struct.scx.slice`, for messages.
    pub(super) fn describe(&self, btf: &Btf) -> String {
        let ty = btf.get(self.root);
        let mut text = match ty.kind {
            Kind::Composite { union: false, .. } => format!("struct {}", ty.name),
            Kind::Composite { union: true, .. } => format!("union {}", ty.name),
            Kind::Enum { .. } => format!("enum {}", ty.name),
            _ => ty.name.clone(),
        };
        for (at, step) in self.steps.iter().enumerate() {
            if !step.name.is_empty() {
                text.push('.');
                text.push_str(&step.name);
            } else if at > 0 || step.index > 0 {
                text.push_str(&format!("[{}]", step.index));
            }
            if text.len() > MAX_DESCRIPTION_BYTES {
                text.truncate(text.floor_char_boundary(MAX_DESCRIPTION_BYTES));
                text.push('…');
                break;
            }
        }
        text
    }
}

/// The member of a named step.
pub(super) fn local_member<'a>(btf: &'a Btf, step: &Step) -> Option<&'a Member> {
    match &btf.get(step.of).kind {
        Kind::Composite { members, .. } => members.get(step.index as usize),
        _ => None,
    }
}
