//! How a run of a program ends early: a typed error that says where.

use std::fmt;

/// The typed end of a call that did not reach its `exit`: what happened, in which function, at which instruction.
///
/// Host functions return one with [`Trap::host`]; the engine fills in the place.
#[derive(Clone, PartialEq, Eq)]
pub struct Trap(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: TrapKind,
    place: Option<TrapPlace>,
}

/// The instruction at which a trap happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapPlace {
    /// The function's symbol.
    pub function: String,
    /// The instruction's slot in that function, from 0, as `llvm-objdump -d` numbers them within the function.
    pub insn: usize,
}

/// What went wrong.
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
    /// A load from memory that the instance does not have.
    WildLoad {
        /// Guest address of the first byte that could not be read.
        addr: u64,
    },
    /// A store to memory that the instance does not have.
    WildStore {
        /// Guest address of the first byte that could not be written.
        addr: u64,
    },
    /// A store to `.rodata` or other read-only data.
    ReadOnlyStore {
        /// Guest address of the first byte that could not be written.
        addr: u64,
    },
    /// The call executed more instructions than one call may.
    OutOfFuel {
        /// The budget: instructions per call.
        limit: u64,
    },
    /// Calls nest deeper than the stack allows: unbounded recursion.
    StackOverflow {
        /// Frames that fit.
        frames: u32,
    },
    /// An instruction was reached that the loader could not resolve: a CO-RE relocation that found nothing, a weak kfunc
    /// that this environment lacks.
    Poison(String),
    /// A BPF helper refused its arguments.
    Helper(String),
    /// A host function reported an error.
    Host(String),
}

impl Trap {
    /// A trap without a place; the engine adds the place of the call.
    #[cold]
    pub fn new(kind: TrapKind) -> Trap {
        Trap(Box::new(Inner { kind, place: None }))
    }

    /// What a host function returns when it must end the run.
    #[cold]
    pub fn host(text: impl Into<String>) -> Trap {
        Trap::new(TrapKind::Host(text.into()))
    }

    /// What a BPF helper returns when its arguments make no sense.
    #[cold]
    pub(crate) fn helper(text: impl Into<String>) -> Trap {
        Trap::new(TrapKind::Helper(text.into()))
    }

    /// What went wrong.
    pub fn kind(&self) -> &TrapKind {
        &self.0.kind
    }

    /// Where; `None` only for a trap that no engine has seen yet.
    pub fn place(&self) -> Option<&TrapPlace> {
        self.0.place.as_ref()
    }

    /// Adds the place, unless an inner frame already did.
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
