//! Linking: an [`Object`] and the kernel that it meets become a [`Linked`] program.

use crate::{Linked, LoadCause, LoadError, Object, TargetTypes};

/// What the kernel offers by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Symbols<'a> {
    /// Kernel functions.
    pub kfuncs: &'a [&'a str],
    /// Configuration values (`CONFIG_HZ`, `LINUX_KERNEL_VERSION`).
    pub kconfig: &'a [(&'a str, u64)],
    /// Kernel variables and their addresses.
    pub ksyms: &'a [(&'a str, u64)],
}

/// Links an object: resolves CO-RE relocations against `types` and external symbols against `symbols`.
///
/// # Errors
/// If the object needs a kernel function, variable or configuration value that is not there and not declared `__weak`,
/// or a kind of map that no instance can hold. A CO-RE relocation that finds nothing is no error: the instruction becomes
/// a [`Fixup::Poison`](crate::Fixup::Poison).
pub fn link(
    object: &Object,
    _types: &TargetTypes,
    _symbols: &Symbols<'_>,
) -> Result<Linked, LoadError> {
    let cause = LoadCause::Unsupported("linking".into());
    Err(LoadError { file: object.name().into(), place: None, cause })
}
