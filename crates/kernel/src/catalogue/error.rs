//! Why a kernel or QEMU is not here.

/// Why a kernel or QEMU cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// No folder to keep things in.
    #[error(
        "no folder for kernels: set FAIRGROUND_CACHE (or HOME) to a folder that can be written"
    )]
    NoCache,
    /// No kernel of this name.
    #[error("no kernel `{name}` in the catalogue: there are {}; a bzImage of your own goes by its path", .known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
}
