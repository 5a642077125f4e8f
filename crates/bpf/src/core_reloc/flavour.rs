//! Names with a flavour, which distinguish several versions of a kernel type in one object.

/// The name without a `___flavour`: `task_struct___old` means the kernel's `task_struct`.
pub(crate) fn essential_name(name: &str) -> &str {
    match name.rfind("___") {
        // Neither a name that begins with underscores nor one that ends with them has a flavour.
        Some(at) if at > 0 && at + 3 < name.len() => &name[..at],
        _ => name,
    }
}
