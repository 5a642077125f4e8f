//! The shared memory between the program and its guest, and the paths that both sides use.
//!
//! On the host the memory is an anonymous file that QEMU maps (`ivshmem-plain`); in the guest it is the memory of a
//! PCI device (`resource2` in sysfs). Neither side has a driver or an interrupt. The host writes the first page, the
//! guest the second; two bundles of files follow. The host does not trust the guest: it copies a page before it
//! parses it, and checks each length against the size of the memory and against a limit.

mod bundle;
mod page;

pub(crate) use bundle::{BundleError, Entry, entry_size, read_bundle, write_bundle};
pub(crate) use page::{GuestPage, GuestState, HostPage, INPUT_AT, PAGE_SIZE, PageError};

/// PCI vendor and device of the shared memory, as sysfs writes them.
pub(crate) const PCI_ID: (&str, &str) = ("0x1af4", "0x1110");
/// The file of the command in the host's bundle.
pub(crate) const COMMAND_FILE: &str = "command.json";
/// The program's path in the guest.
pub(crate) const INIT: &str = "/init";
/// The path of the kernel's configuration in the guest, if its package has one; `/boot/config-RELEASE` links to it.
pub(crate) const KERNEL_CONFIG: &str = "/boot/config";
/// The folder of a scheduler's loader in the guest.
pub(crate) const LOADER_FOLDER: &str = "/loader";
/// The command's standard output, in the guest's bundle.
pub const STDOUT_FILE: &str = "stdout.txt";
/// The folder in the guest to which the bundle is unpacked: the command's working directory.
pub const GUEST_FOLDER: &str = "/job";

/// The command that the guest runs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct CommandFile {
    /// The program's arguments.
    pub arguments: Vec<String>,
}
