//! Where in a scheduler's source an exit comes from.

use fairground_bpf::{Object, SourceLine, TrapPlace};
use fairground_machine::Exit;

/// Where in the source something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The line.
    pub line: SourceLine,
    /// Whether it is this line; else it is this one or one that follows.
    pub is_exact: bool,
}

/// The lines of the source from which an exit comes; none where the object has no line information.
pub fn sources(object: &Object, exit: &Exit) -> Vec<Source> {
    let places = exit.origin.iter().flat_map(|origin| &origin.places);
    let mut sources: Vec<Source> = Vec::new();
    for place in places {
        if let Some(source) = source_of(object, place)
            && !sources.contains(&source)
        {
            sources.push(source);
        }
    }
    sources
}

/// The line of an instruction in the file of its function. Code of a header's inline function has lines of that
/// header only: then the line that calls it, or without DWARF the last line before it.
fn source_of(object: &Object, place: &TrapPlace) -> Option<Source> {
    let exact = object.source_line(&place.function, place.insn)?;
    let first = object.source_line(&place.function, 0);
    let is_own = |line: &&SourceLine| first.is_none_or(|first| first.file == line.file);
    if !is_own(&exact)
        && let Some(line) = object.line_of_inline_call(&place.function, place.insn)
    {
        return Some(Source { line, is_exact: true });
    }
    let lines = (0..=place.insn).rev().map(|slot| object.source_line(&place.function, slot));
    let own = lines.flatten().find(is_own).unwrap_or(exact);
    Some(Source { line: own.clone(), is_exact: is_own(&exact) })
}
