//! Files and folders that a program writes while it works, and that leave nothing half when it is killed.
//!
//! * [`write_whole`]: a file is there with its whole content, or as it was before. [`free_name`]: a name beside it.
//! * [`put_folder`]: a folder replaces another one at once.
//! * [`Folder`]: a temporary folder. A [`Guard`], a process of its own, removes it when the program is killed.
//! * [`die_with_parent`]: a child that the kernel kills with the program; [`limit`]: one with limits of its own.
//! * [`name_of_own`], [`is_left`]: names from which the next program sees what a killed one left.
//! * [`unpack`]: archives that others made, unpacked into one folder, within limits.
//! * `faults`, with the feature of that name: streams that fail by a seed, for the tests of these and of others that write.
//!
//! This crate knows no other crate of the workspace.

mod child;
#[cfg(any(test, feature = "faults"))]
pub mod faults;
mod folder;
mod guard;
mod owner;
mod place;
pub mod unpack;
mod whole;

pub use child::{die_with_parent, limit, start_time};
pub use folder::Folder;
pub use guard::Guard;
pub use owner::{is_left, name_of_own};
pub use place::{Folders, put_folder, put_folder_on};
pub use whole::{Disk, HostDisk, free_name, write_whole, write_whole_named, write_whole_on};
