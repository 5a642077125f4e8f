//! A scheduler on the running kernel: an object is opened, told its settings, loaded, attached, watched and detached.
//!
//! The link to the kernel is a file descriptor of this process and is never pinned: when the process ends, however it ends,
//! the kernel takes its own scheduler back.

mod error;

pub use error::LoadError;

use crate::job::{GlobalWrite, SchedulerExit};

/// A scheduler in charge of the running kernel. Dropping it detaches it.
#[derive(Debug)]
pub struct Attached {}

impl Attached {
    /// Loads an object and puts it in charge. `name` is what messages call it. Writes without a time are applied before
    /// the object is loaded; the others are left to [`Attached::write`].
    ///
    /// # Errors
    /// If the kernel, the user's rights or the object do not allow it; the kernel's own scheduler is in charge then.
    pub fn attach(
        name: &str,
        object: &[u8],
        writes: &[GlobalWrite],
    ) -> Result<Attached, LoadError> {
        let _ = (object, writes);
        Err(LoadError::NoSchedExt { name: name.to_owned(), release: String::new() })
    }

    /// Changes a variable of the scheduler while it is in charge.
    ///
    /// # Errors
    /// If the object has no such bytes, or they were frozen when it was loaded (`.rodata`).
    pub fn write(&mut self, write: &GlobalWrite) -> Result<(), LoadError> {
        Err(LoadError::Frozen { label: write.label.clone() })
    }

    /// How it ended, if it is not in charge any more.
    pub fn exited(&mut self) -> Option<SchedulerExit> {
        None
    }

    /// Takes it off, and waits until the kernel's own scheduler is in charge.
    pub fn detach(self) -> SchedulerExit {
        SchedulerExit { kind: None, code: None, reason: String::new(), message: String::new() }
    }
}
