//! Traps: typed errors that end a call before its `exit`.

use std::fmt;

/// Why a call ended before its `exit`: the error, the function, the instruction.
///
/// Host functions create one with [`Trap::host`]; the engine adds the location.
#[derive(Clone, PartialEq, Eq)]
pub struct Trap(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: TrapKind,
    place: Option<TrapPlace>,
}

/// The location of a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapPlace {
    /// The function's symbol.
    pub function: String,
    /// Index of the instruction's slot in that function, from 0, as in `llvm-objdump -d`.
    pub insn: usize,
}

/// The cause of a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrapKind {
    /// A load through NULL or a small offset from it.
    NullLoad {
        /// Guest address of the first byte that could not be read.
        addr: u64,
    },
    /// A store through NULL or a small offset from it.
    NullStore {
        /// Guest address of the first byte that could not be written.
        addr: u64,
    },
    /// A load from an address without memory.
    WildLoad {
        /// Guest address of the first byte that could not be read.
        addr: u64,
    },
    /// A store to an address without memory.
    WildStore {
        /// Guest address of the first byte that could not be written.
        addr: u64,
    },
    /// A store to `.rodata` or other read-only data.
    ReadOnlyStore {
        /// Guest address of the first byte that could not be written.
        addr: u64,
    },
    /// The call exceeded [`crate::InstanceConfig::fuel_per_call`].
    OutOfFuel {
        /// Maximum instructions per call.
        limit: u64,
    },
    /// The nesting of calls exceeds the stack.
    StackOverflow {
        /// Maximum number of frames.
        frames: u32,
    },
    /// The program executed an instruction that the loader could not resolve: a CO-RE relocation without a match, or
    /// a call of a weak kfunc that the environment lacks.
    Poison(String),
    /// A BPF helper rejected its arguments.
    Helper(String),
    /// A host function reported an error.
    Host(String),
}

impl Trap {
    /// A trap without a location; the engine adds that of the call.
    #[cold]
    pub fn new(kind: TrapKind) -> Trap {
        Trap(Box::new(Inner { kind, place: None }))
    }

    /// The trap of a host function that ends the run.
    #[cold]
    pub fn host(text: impl Into<String>) -> Trap {
        Trap::new(TrapKind::Host(text.into()))
    }

    /// The trap of a BPF helper that rejects its arguments.
    #[cold]
    pub(crate) fn helper(text: impl Into<String>) -> Trap {
        Trap::new(TrapKind::Helper(text.into()))
    }

    /// The cause.
    pub fn kind(&self) -> &TrapKind {
        &self.0.kind
    }

    /// The location; `None` until the trap has passed an engine.
    pub fn place(&self) -> Option<&TrapPlace> {
        self.0.place.as_ref()
    }

    /// Adds the location, unless an inner frame has added one.
    #[cold]
    pub(crate) fn at(mut self, function: &str, insn: usize) -> Trap {
        if self.0.place.is_none() {
            self.0.place = Some(TrapPlace { function: function.to_owned(), insn });
        }
        self
    }
}

impl fmt::Display for TrapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrapKind::NullLoad { addr } => {
                write!(f, "load through a NULL pointer (address {addr:#x})")
            }
            TrapKind::NullStore { addr } => {
                write!(f, "store through a NULL pointer (address {addr:#x})")
            }
            TrapKind::WildLoad { addr } => {
                write!(f, "load from address {addr:#x}, where the program has no memory")
            }
            TrapKind::WildStore { addr } => {
                write!(f, "store to address {addr:#x}, where the program has no memory")
            }
            TrapKind::ReadOnlyStore { addr } => {
                write!(f, "store to read-only data (address {addr:#x})")
            }
            TrapKind::OutOfFuel { limit } => {
                write!(f, "more than {limit} instructions in one call: an endless loop?")
            }
            TrapKind::StackOverflow { frames } => {
                write!(f, "more than {frames} nested calls: unbounded recursion?")
            }
            TrapKind::Poison(text) => write!(f, "reached an unresolved instruction: {text}"),
            TrapKind::Helper(text) | TrapKind::Host(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.place {
            Some(place) => {
                write!(
                    f,
                    "{} in function `{}` at instruction {}",
                    self.0.kind, place.function, place.insn
                )
            }
            None => write!(f, "{}", self.0.kind),
        }
    }
}

impl fmt::Debug for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trap({self})")
    }
}

impl std::error::Error for Trap {}
