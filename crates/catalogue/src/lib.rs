//! Schedulers that others publish: an entry for each says where it comes from and what its own loader would set, and
//! its object is built into a cache, by version. A package without an entry is built, too. Nothing of theirs is part of
//! fairground.
//!
//! ```text
//! CACHE/schedulers/scx_lavd/1.1.4/scx_lavd.bpf.o   the object, linked
//! CACHE/schedulers/scx_lavd/1.1.4/source.json      version, checksum, compiler; exists only beside a whole object
//! CACHE/schedulers/shared/scx_cargo-1.1.4/         headers, for several of them
//! ```

mod entry;
mod error;
mod objects;
mod recipe;
mod registry;
mod store;

pub use entry::{CatalogueEntry, ENTRIES, find};
pub use error::FetchError;
pub use objects::SCX_FLAGS;
pub use store::{Built, HEADERS, Store, by_version};
