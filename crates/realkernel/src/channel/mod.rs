//! The shared memory between the program and its guest: what to do goes in, what came of it goes out.
//!
//! On the host it is an anonymous file that QEMU maps (`ivshmem-plain`), in the guest the memory of a PCI device
//! (`resource2` in sysfs): plain memory on both sides, no driver, no interrupt. The first page is the host's, the second
//! the guest's, the rest are two bundles of files. The host believes nothing of what it finds: each length is checked
//! against the size of the memory and against a limit, and it copies a page once before it looks at it.

mod bundle;
mod page;

pub(crate) use bundle::{BundleError, Entry, entry_size, read_bundle, write_bundle};
pub(crate) use page::{GuestPage, GuestState, HostPage, PAGE_SIZE, PageError};

/// PCI vendor and device of the shared memory, as sysfs writes them.
pub(crate) const PCI_ID: (&str, &str) = ("0x1af4", "0x1110");
/// Where the host's bundle starts.
pub(crate) const INPUT_AT: u64 = 2 * PAGE_SIZE as u64;
/// The command's own file in the host's bundle.
pub(crate) const COMMAND_FILE: &str = "command.json";
/// What the command wrote on its standard output, in the guest's bundle.
pub const STDOUT_FILE: &str = "stdout.txt";
/// The folder in the guest that the bundle is unpacked to, and that the command runs in.
pub const GUEST_FOLDER: &str = "/job";

/// What the guest is to run, as it goes in.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct CommandFile {
    /// Arguments of the program.
    pub arguments: Vec<String>,
}
