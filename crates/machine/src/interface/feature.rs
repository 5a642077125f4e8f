//! One name of the interface: since when a kernel has it, and what the machine does with it.

use std::fmt;

use super::release::KernelAbi;

/// Since when kernels have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Since this release; what is older than sched_ext has the oldest.
    Release(KernelAbi),
    /// This release has it; whether an earlier one does is not known. The machine offers it from this release on.
    By(KernelAbi),
}

/// State of a name in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The same as the kernel.
    Done,
    /// Something else, which is stated.
    Approximated(&'static str),
    /// Nothing; why, and what a program gets.
    Absent(&'static str),
}

/// A name of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name.
    pub name: &'static str,
    /// Since when kernels have it.
    pub since: Since,
    /// The first release without it.
    pub gone: Option<KernelAbi>,
    /// Its state in the machine.
    pub state: State,
}

impl Feature {
    /// A name that every kernel with sched_ext has, and the machine, too.
    pub(crate) const fn new(name: &'static str) -> Feature {
        Feature { name, since: Since::Release(KernelAbi::OLDEST), gone: None, state: State::Done }
    }

    /// Came with a release.
    pub(crate) const fn since(self, major: u8, minor: u8) -> Feature {
        Feature { since: Since::Release(KernelAbi::of(major, minor)), ..self }
    }

    /// Is in a release, and perhaps in earlier ones.
    pub(crate) const fn by(self, major: u8, minor: u8) -> Feature {
        Feature { since: Since::By(KernelAbi::of(major, minor)), ..self }
    }

    /// Is not in a release any more.
    pub(crate) const fn gone(self, major: u8, minor: u8) -> Feature {
        Feature { gone: Some(KernelAbi::of(major, minor)), ..self }
    }

    /// Done in another way.
    pub(crate) const fn but(self, how: &'static str) -> Feature {
        Feature { state: State::Approximated(how), ..self }
    }

    /// Not done.
    pub(crate) const fn absent(self, why: &'static str) -> Feature {
        Feature { state: State::Absent(why), ..self }
    }

    /// Whether kernels of a release have it.
    pub fn exists_in(&self, abi: KernelAbi) -> bool {
        let (Since::Release(since) | Since::By(since)) = self.since;
        since <= abi && self.gone.is_none_or(|gone| abi < gone)
    }

    /// Whether the machine does something with it.
    pub fn is_done(&self) -> bool {
        !matches!(self.state, State::Absent(_))
    }

    /// Why a program that is linked for a release does not get it, and what to do; `None`: it gets it.
    pub(crate) fn lack(&self, abi: KernelAbi) -> Option<String> {
        let (Since::Release(since) | Since::By(since)) = self.since;
        if abi < since {
            let by = if matches!(self.since, Since::By(_)) { " at the latest" } else { "" };
            return Some(format!(
                "it came with Linux {since}{by}, and the machine offers {abi}: use --kernel-abi {since} or later"
            ));
        }
        if let Some(gone) = self.gone.filter(|gone| *gone <= abi) {
            let last = KernelAbi::ALL.iter().rev().find(|release| **release < gone);
            let last = last.copied().unwrap_or(KernelAbi::OLDEST);
            return Some(format!(
                "Linux {gone} has it no more, and the machine offers {abi}: use --kernel-abi {last}, or an object for \
                 newer kernels"
            ));
        }
        match self.state {
            State::Absent(why) => Some(format!("Linux {abi} has it, the machine has not: {why}")),
            _ => None,
        }
    }
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Since::Release(release) => write!(f, "{release}"),
            Since::By(release) => write!(f, "by {release}"),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Done => write!(f, "done"),
            State::Approximated(how) => write!(f, "approximated: {how}"),
            State::Absent(why) => write!(f, "absent: {why}"),
        }
    }
}
