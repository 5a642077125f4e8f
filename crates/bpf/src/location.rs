//! Locations in an object file and in its source.

use std::fmt;

/// A location in an object file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A byte of a section.
    Section {
        /// The section's name.
        section: String,
        /// Byte offset in the section.
        offset: u64,
    },
    /// An instruction of a function.
    Instruction {
        /// The function's symbol.
        function: String,
        /// The function's section.
        section: String,
        /// Index of the instruction's slot, from 0 at the function's start.
        slot: usize,
        /// The source line, if the object has line information.
        source: Option<SourceLine>,
    },
    /// A map, a variable or another symbol.
    Symbol(String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Section { section, offset } => write!(f, "section {section}, byte {offset:#x}"),
            Self::Instruction { function, section, slot, source } => {
                write!(f, "function {function} (section {section}), instruction {slot}")?;
                match source {
                    Some(line) => write!(f, " ({line})"),
                    None => Ok(()),
                }
            }
            Self::Symbol(name) => write!(f, "symbol {name}"),
        }
    }
}

/// A source line, from the line information in `.BTF.ext`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file as it was named to the compiler, usually a relative path.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// The line's text without leading space; empty if the compiler did not store it.
    pub text: String,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
