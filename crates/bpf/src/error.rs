//! Load errors: the file, the location in it, the cause and the remedy.

use std::fmt;

use crate::location::Location;

/// An object that could not be parsed, linked or compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct LoadError {
    /// The name that was given to [`Object::parse`](crate::Object::parse): usually the file's path.
    pub file: String,
    /// The location in the file, if it is known.
    pub location: Option<Box<Location>>,
    /// The cause.
    pub cause: LoadCause,
}

/// The cause of a load error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadCause {
    /// Not an ELF file.
    #[error("this is not an ELF object file ({0})")]
    NotElf(String),
    /// An ELF file for another machine.
    #[error("this is an ELF file for machine {machine} ({class}-bit), not for BPF")]
    WrongMachine {
        /// `e_machine`.
        machine: u16,
        /// 32 or 64.
        class: u8,
    },
    /// A big-endian BPF object.
    #[error("this BPF object is big-endian")]
    BigEndian,
    /// The file is truncated or inconsistent.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// No `.BTF` section.
    #[error("the object has no BTF (type information)")]
    NoBtf,
    /// The type information is inconsistent.
    #[error("the type information (BTF) is damaged: {0}")]
    BadBtf(String),
    /// An instruction that is not valid BPF.
    #[error("invalid instruction: {0}")]
    BadInstruction(String),
    /// A relocation without a valid target.
    #[error("invalid relocation: {0}")]
    BadRelocation(String),
    /// A malformed map definition.
    #[error("invalid map definition: {0}")]
    BadMap(String),
    /// A valid feature that this loader does not support.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// A named limit is exceeded.
    #[error("{what}: {value} exceeds the limit of {limit}")]
    Limit {
        /// The name of the quantity.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// A kernel function that the environment does not have.
    #[error("it calls the kernel function `{name}`, which this kernel does not have")]
    UnknownKfunc {
        /// Its name.
        name: String,
    },
    /// A kernel variable or configuration value that the environment does not have.
    #[error("it needs the {kind} `{name}`, which this kernel does not have")]
    UnknownExtern {
        /// `kernel variable` or `configuration value`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The engine could not compile the program.
    #[error("it cannot be compiled: {0}")]
    Engine(String),
}

impl LoadCause {
    /// The remedy, for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::NotElf(_) | Self::WrongMachine { .. } => {
                "compile the scheduler with `clang -target bpf -g -O2 -c`".into()
            }
            Self::BigEndian => {
                "compile with `-target bpfel` (little-endian); big-endian objects are not supported"
                    .into()
            }
            Self::Damaged(_) | Self::BadBtf(_) | Self::BadRelocation(_) => {
                "build the object again; the file may have been cut short or edited".into()
            }
            Self::NoBtf => "compile with `-g`, and do not strip the object's .BTF section".into(),
            Self::BadInstruction(_) => {
                "compile with `clang -target bpf -mcpu=v3` or `-mcpu=v4`; a kernel would refuse this \
                 program too"
                    .into()
            }
            Self::BadMap(_) => {
                "declare the map as libbpf requires: `struct { __uint(type, …); __type(key, …); … } \
                 name SEC(\".maps\");`"
                    .into()
            }
            Self::Unsupported(_) => "do without it, or run the object on a real kernel".into(),
            Self::Limit { .. } => "make the program smaller, or split it".into(),
            Self::UnknownKfunc { .. } => {
                "declare it `__weak` and test bpf_ksym_exists(), or do without it".into()
            }
            Self::UnknownExtern { .. } => "declare it `__weak`, or do without it".into(),
            Self::Engine(_) => "report it with the object attached".into(),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        write!(f, "{}; {}", self.cause, self.cause.remedy())
    }
}

/// A load error without its file: [`Object::parse`](crate::Object::parse) and [`link`](crate::link()) add the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) location: Option<Box<Location>>,
    pub(crate) cause: LoadCause,
}

impl Fault {
    fn at(location: Location, cause: LoadCause) -> Self {
        Self { location: Some(Box::new(location)), cause }
    }

    pub(crate) fn at_section(section: &str, offset: u64, cause: LoadCause) -> Self {
        Self::at(Location::Section { section: section.into(), offset }, cause)
    }

    pub(crate) fn at_instruction(
        function: &str,
        section: &str,
        slot: usize,
        cause: LoadCause,
    ) -> Self {
        let (function, section) = (function.into(), section.into());
        Self::at(Location::Instruction { function, section, slot, source: None }, cause)
    }

    pub(crate) fn at_symbol(name: &str, cause: LoadCause) -> Self {
        Self::at(Location::Symbol(name.into()), cause)
    }

    pub(crate) fn in_file(self, file: &str) -> LoadError {
        LoadError { file: file.into(), location: self.location, cause: self.cause }
    }
}

impl From<LoadCause> for Fault {
    fn from(cause: LoadCause) -> Self {
        Self { location: None, cause }
    }
}
