//! The capabilities of this process.

use std::fs;
use std::path::Path;

/// Bits of `CapEff` (`linux/capability.h`).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// The effective capabilities and user of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    bits: Option<u64>,
    user: Option<u32>,
}

impl Rights {
    /// Those of this process, from the `/proc` below `root`.
    pub fn read(root: &Path) -> Self {
        let status = fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
        let after = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
        let bits = after("CapEff:").and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        // Real, effective, saved, file system.
        let user = after("Uid:").and_then(|text| text.split_whitespace().nth(1)?.parse().ok());
        Self { bits, user }
    }

    /// Whether it is root and can install packages, also in a container.
    pub fn is_root(self) -> bool {
        self.user == Some(0)
    }

    /// Whether it may record the kernel's events, which requires root. True if unknown: the kernel will report an error.
    pub fn may_record(self) -> bool {
        self.has(CAP_SYS_ADMIN)
    }

    /// Whether it may attach a scheduler. True if unknown: the kernel will report an error.
    pub fn may_attach(self) -> bool {
        self.has(CAP_SYS_ADMIN) || (self.has(CAP_BPF) && self.has(CAP_PERFMON))
    }

    fn has(self, bit: u32) -> bool {
        self.bits.is_none_or(|bits| bits & (1 << bit) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(status: &str) -> Rights {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(root.path().join("proc/self")).expect("made");
        fs::write(root.path().join("proc/self/status"), status).expect("written");
        Rights::read(root.path())
    }

    #[test]
    fn root_is_who_is_root_now() {
        assert!(with("Uid:\t1000\t0\t0\t0\nCapEff:\t0000000000000000\n").is_root());
        assert!(!with("Uid:\t0\t1000\t0\t0\nCapEff:\t000001ffffffffff\n").is_root());
        assert!(!with("").is_root());
    }

    #[test]
    fn rights_are_those_in_effect() {
        let root = with("Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000001ffffffffff\n");
        assert!(root.may_record() && root.may_attach());
        let user = with("CapPrm:\t000001ffffffffff\nCapEff:\t0000000000000000\n");
        assert!(!user.may_record() && !user.may_attach());
        let bpf = with("CapEff:\t000000c000000000\n");
        assert!(!bpf.may_record() && bpf.may_attach(), "CAP_PERFMON and CAP_BPF");
        assert!(!with("CapEff:\t0000008000000000\n").may_attach(), "CAP_BPF alone");
    }

    #[test]
    fn what_is_not_known_is_left_to_the_kernel() {
        assert!(with("Name:\tx\n").may_attach());
    }
}
