//! Bootable kernels.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::PackageError;
use crate::files::{PROGRAM_BYTES_MAX, read_file};

/// A bootable kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name (`6.1`, `7.2-rt`), or its path.
    pub name: String,
    /// Its bzImage.
    pub image: PathBuf,
    /// Its configuration, if known.
    pub config: Option<PathBuf>,
    /// SHA-256 of the image, hexadecimal.
    pub sha256: String,
}

impl Kernel {
    /// The bzImage at `path`. A `.config` or `config` in the same folder is its configuration.
    ///
    /// # Errors
    ///
    /// It cannot be read or is not a bzImage.
    pub fn from_path(path: &Path) -> Result<Self, PackageError> {
        let bytes = read_file(path, PROGRAM_BYTES_MAX)
            .map_err(PackageError::io(format!("read the kernel {}", path.display())))?;
        if !is_bzimage(&bytes) {
            return Err(PackageError::NoKernel { path: path.to_owned() });
        }
        let beside = |name: &str| path.parent().map(|f| f.join(name)).filter(|c| c.is_file());
        Ok(Self {
            name: path.display().to_string(),
            image: path.to_owned(),
            config: beside("config").or_else(|| beside(".config")),
            sha256: hex_digest(&bytes),
        })
    }

    /// Its image, with the digest that it had when it was found: what is compared is what is booted.
    ///
    /// # Errors
    /// It cannot be read, or it has changed meanwhile.
    pub fn read(&self) -> Result<Vec<u8>, PackageError> {
        let bytes = read_file(&self.image, PROGRAM_BYTES_MAX)
            .map_err(PackageError::io(format!("read the kernel {}", self.image.display())))?;
        match hex_digest(&bytes) == self.sha256 {
            true => Ok(bytes),
            false => Err(PackageError::Changed { path: self.image.clone() }),
        }
    }

    /// Whether it comes from a package, and is no file of the user's.
    pub fn is_packaged(&self) -> bool {
        super::takes_schedulers(&self.name).is_some()
    }
}

/// Whether a file has the header of a Linux kernel for x86 (`Documentation/arch/x86/boot.rst`: "HdrS" at 0x202).
pub(super) fn is_bzimage(bytes: &[u8]) -> bool {
    bytes.get(0x202..0x206) == Some(b"HdrS")
}

/// SHA-256, hexadecimal.
pub(super) fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_booted_is_what_was_found() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut image = vec![0; 0x202];
        image.extend_from_slice(b"HdrS");
        std::fs::write(file.path(), &image).expect("written");
        let kernel = Kernel::from_path(file.path()).expect("a kernel");
        assert_eq!(kernel.read().expect("unchanged"), image);
        image.push(1);
        std::fs::write(file.path(), &image).expect("written");
        let error = kernel.read().expect_err("refused").to_string();
        assert!(error.contains("has changed"), "{error}");
    }

    #[test]
    fn a_text_is_no_kernel() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "vmlinux").expect("written");
        let error = Kernel::from_path(file.path()).expect_err("refused").to_string();
        assert!(error.contains("not a bzImage"), "{error}");
    }

    #[test]
    fn a_digest_is_that_of_the_standard() {
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex_digest(b"abc"), of_abc, "FIPS 180-4, appendix B.1");
    }
}
