//! Paths to parts of a variable: `x[1].y`, `x[0..3]`, `x[*].y[cpus]`.

use fairground_bpf::{GlobalType, Types};
use fairground_suggest::did_you_mean;

use super::words::Words;
use super::{LISTED_MAX, listed};

/// Maximum parts of a variable that one setting writes.
const PLACES_MAX: u64 = 1 << 20;
/// Maximum steps of a path.
const STEPS_MAX: usize = 64;

/// The parts of a variable that a path names. All have the same type.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Byte offset of each, and its element number in the first `[*]` or `[A..B]` of the path, from 0.
    pub(super) at: Vec<(u64, usize)>,
    /// Elements of that `[*]` or `[A..B]`; `None`: the path has none.
    pub(super) spread: Option<usize>,
    /// Their type.
    pub(super) ty: GlobalType,
    /// Their size in bytes.
    pub(super) size: u64,
    /// Of a bit field: its first bit within the byte, and its bits.
    pub(super) field: Option<(u32, u32)>,
}

/// One step of a path.
#[derive(Clone, Copy, Debug)]
enum Step<'t> {
    Member(&'t str),
    Elements(&'t str),
}

/// The variable that a setting's name begins with, and the rest of the name: the longest name that `known` finds. The
/// name of a static variable may contain points.
pub(super) fn split(text: &str, known: impl Fn(&str) -> Option<usize>) -> Option<(usize, &str)> {
    if let Some(found) = known(text) {
        return Some((found, ""));
    }
    let ends = text.match_indices(['.', '[']).map(|(at, _)| at).take(STEPS_MAX);
    let ends: Vec<usize> = ends.collect();
    ends.into_iter().rev().find_map(|end| Some((known(&text[..end])?, &text[end..])))
}

/// The name of the variable at the beginning of a setting's name, as it is written.
pub fn root_of(name: &str) -> &str {
    name.split(['.', '[']).next().unwrap_or(name)
}

/// Follows a path (`.y[1]`) from a value that is called `name`.
///
/// # Errors
/// The problem with the path, in words.
pub(super) fn follow(
    mut places: Places,
    name: &str,
    path: &str,
    types: &Types,
    words: &Words<'_>,
) -> Result<Places, String> {
    let mut rest = path;
    for _ in 0..STEPS_MAX {
        if rest.is_empty() {
            return Ok(places);
        }
        let here = format!("{name}{}", &path[..path.len() - rest.len()]);
        let (step, behind) = step(rest)?;
        rest = behind;
        match step {
            Step::Member(member) => places.enter(&here, member, types)?,
            Step::Elements(text) => places.index(&here, text, words)?,
        }
    }
    Err(format!("it has more than {STEPS_MAX} steps"))
}

/// The first step of a path, and what is behind it.
fn step(text: &str) -> Result<(Step<'_>, &str), String> {
    if let Some(inside) = text.strip_prefix('[') {
        let (index, rest) =
            inside.split_once(']').ok_or_else(|| format!("`{text}` lacks its `]`"))?;
        return Ok((Step::Elements(index.trim()), rest));
    }
    let Some(member) = text.strip_prefix('.') else {
        return Err(format!("`.` or `[` is missing before `{text}`"));
    };
    let end = member.find(['.', '[']).unwrap_or(member.len());
    match member.split_at(end) {
        ("", _) => Err("the name of a member is missing after `.`".to_owned()),
        (name, rest) => Ok((Step::Member(name), rest)),
    }
}

/// The path of the part at a byte offset, among those that `path` names in a value of a type: with the numbers of
/// elements in the place of `[*]`, ranges and words.
pub(super) fn concrete(
    name: &str,
    path: &str,
    offset: u64,
    ty: &GlobalType,
    types: &Types,
) -> String {
    let (mut text, mut rest, mut left, mut ty) = (name.to_owned(), path, offset, ty.clone());
    while let Ok((step, behind)) = step(rest) {
        rest = behind;
        ty = match (step, &ty) {
            (Step::Member(name), GlobalType::Composite { id, .. }) => {
                let members = types.members(*id);
                let Some(member) = members.into_iter().find(|member| member.name == name) else {
                    return text;
                };
                left = left.saturating_sub(member.bit_offset / 8);
                text += &format!(".{name}");
                member.ty
            }
            (Step::Elements(_), GlobalType::Array { of, element_size, .. }) => {
                let size = (*element_size).max(1);
                text += &format!("[{}]", left / size);
                left %= size;
                (**of).clone()
            }
            _ => return text,
        };
    }
    text
}

/// Whether a value of a type has the part that a path names: its members, and elements that are named by a number. The
/// ends of ranges are not looked at.
pub(super) fn exists(ty: &GlobalType, path: &str, types: &Types) -> bool {
    let (mut rest, mut ty) = (path, ty.clone());
    while let Ok((step, behind)) = step(rest) {
        rest = behind;
        ty = match (step, &ty) {
            (Step::Member(name), GlobalType::Composite { id, .. }) => {
                match types.members(*id).into_iter().find(|member| member.name == name) {
                    Some(member) => member.ty,
                    None => return false,
                }
            }
            (Step::Elements(text), GlobalType::Array { of, count, .. }) => {
                if text.parse::<u64>().is_ok_and(|index| index >= *count) {
                    return false;
                }
                (**of).clone()
            }
            _ => return false,
        };
    }
    true
}

impl Places {
    /// The whole of a value.
    pub(super) fn of(ty: &GlobalType, size: u64) -> Places {
        Places { at: vec![(0, 0)], spread: None, ty: ty.clone(), size, field: None }
    }

    /// A member of each.
    fn enter(&mut self, here: &str, name: &str, types: &Types) -> Result<(), String> {
        let GlobalType::Composite { id, .. } = &self.ty else {
            return Err(match &self.ty {
                GlobalType::Array { .. } => {
                    format!("{}; `.{name}` is a member's", describe(here, &self.ty, types))
                }
                _ => format!("`{here}` has no members"),
            });
        };
        let members = types.members(*id);
        let Some(member) = members.iter().find(|member| member.name == name) else {
            let near = did_you_mean(name, members.iter().map(|member| member.name.as_str()));
            return Err(match near {
                Some(near) => format!("`{here}` has no member `{name}`; did you mean `{near}`?"),
                None => {
                    format!("`{here}` has no member `{name}`; {}", describe(here, &self.ty, types))
                }
            });
        };
        for (offset, _) in &mut self.at {
            *offset += member.bit_offset / 8;
        }
        self.field = (member.bits > 0).then_some(((member.bit_offset % 8) as u32, member.bits));
        self.size = member.size;
        self.ty = member.ty.clone();
        Ok(())
    }

    /// An element of each, or several.
    fn index(&mut self, here: &str, text: &str, words: &Words<'_>) -> Result<(), String> {
        let GlobalType::Array { of, element_size, count, .. } = &self.ty else {
            return Err(format!("`{here}` is no array"));
        };
        let (size, count) = (*element_size, *count);
        let bound = |text: &str| words.index(text.trim());
        let (first, end) = match text.split_once("..") {
            _ if text == "*" => (0, count),
            Some((first, end)) => (bound(first)?, bound(end)?),
            None => {
                let index = bound(text)?;
                (index, index.saturating_add(1))
            }
        };
        let several = text == "*" || text.contains("..");
        if end > count || (first >= end && text != "*") {
            let elements = format!("`{here}` has {count} elements, numbered from 0");
            return Err(match several {
                true => format!("{elements}; a range is `[FIRST..END]`, without the element END"),
                false => elements,
            });
        }
        let places = (self.at.len() as u64).saturating_mul(end - first);
        if places > PLACES_MAX {
            return Err(format!("it names {places} elements; {PLACES_MAX} are possible"));
        }
        let is_spread = several && self.spread.is_none();
        if is_spread {
            self.spread = Some((end - first) as usize);
        }
        let elements = |&(offset, number): &(u64, usize)| {
            (first..end).map(move |index| {
                let number = if is_spread { (index - first) as usize } else { number };
                (offset + index * size, number)
            })
        };
        self.at = self.at.iter().flat_map(elements).collect();
        self.size = size;
        self.field = None;
        let of = (**of).clone();
        self.ty = of;
        Ok(())
    }
}

/// Meaning of a value that is no number, and how its parts are written.
pub(super) fn describe(here: &str, ty: &GlobalType, types: &Types) -> String {
    match ty {
        GlobalType::Array { count, .. } => format!(
            "`{here}` is an array of {count} elements: write `{here}[0]=…`, `{here}[0..{count}]=…` or `{here}[*]=…`"
        ),
        GlobalType::Composite { union, id, .. } => {
            let kind = if *union { "union" } else { "structure" };
            let members = types.members(*id);
            let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            let first = names.first().unwrap_or(&"MEMBER");
            format!(
                "`{here}` is a {kind} with the members {}: write `{here}.{first}=…`",
                listed(&names, LISTED_MAX, "")
            )
        }
        GlobalType::Pointer => format!("`{here}` is a pointer: only the program has addresses"),
        _ => format!("`{here}` is no whole number"),
    }
}
