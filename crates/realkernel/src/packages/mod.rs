//! Kernel packages: kernels and QEMU from Debian, through apt, in a cache.
//!
//! ```text
//! CACHE/kernels/6.1/{vmlinuz,config,kernel.json}  complete or absent: created under another name, then put in place
//! CACHE/qemu/{usr,…,qemu.json}                    the same
//! CACHE/{kernels/6.1,qemu}/files.json             checksums, compared whenever something of the folder is used
//! CACHE/apt/SUITES/                               apt's lists
//! CACHE/lock                                      held while fetching
//! ```

mod apt;
mod cache;
mod error;
mod fetch;
mod kernel;
mod manifest;
mod qemu;
mod reach;
mod series;

pub use cache::{Cache, Cached};
pub use error::PackageError;
pub use kernel::Kernel;
pub use manifest::{verify as verify_checksums, write as write_checksums};
pub use qemu::Qemu;
pub use reach::{Reach, reach};
pub use series::{KERNEL_SERIES, KernelSeries, takes_schedulers};

use std::fs;
use std::path::Path;

fn read(path: &Path) -> Result<Vec<u8>, PackageError> {
    fs::read(path).map_err(PackageError::io(format!("read {}", path.display())))
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), PackageError> {
    fs::write(path, bytes).map_err(PackageError::io(format!("write {}", path.display())))
}

fn make_folder(path: &Path) -> Result<(), PackageError> {
    fs::create_dir_all(path).map_err(PackageError::io(format!("make {}", path.display())))
}
