//! Schedulers that others publish: an entry for each says where it comes from and what its own loader would set, and
//! its object is built into a cache, by version. Nothing of theirs is part of fairground.
//!
//! ```text
//! CACHE/schedulers/scx_lavd/1.1.4/scx_lavd.bpf.o   the object, linked
//! CACHE/schedulers/scx_lavd/1.1.4/source.json      version, checksum, compiler; exists only beside a whole object
//! ```

mod entry;
mod error;
mod objects;
mod recipe;
mod registry;
mod store;

pub use entry::{ENTRIES, Entry, find};
pub use error::FetchError;
pub use store::{Built, Store};
