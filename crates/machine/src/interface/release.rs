//! Releases of Linux whose sched_ext interface is known.

use std::fmt;
use std::str::FromStr;

/// Names, major and minor numbers, and what came with each; the oldest first.
const RELEASES: [(&str, u8, u8, &str); 11] = [
    ("6.12", 6, 12, "the first with sched_ext"),
    ("6.13", 6, 13, "with `scx_bpf_dsq_insert` and `scx_bpf_dsq_move`"),
    ("6.14", 6, 14, "with `scx_bpf_now`"),
    ("6.15", 6, 15, "with idle CPUs by node, and event counters"),
    ("6.16", 6, 16, "with `scx_bpf_select_cpu_and`"),
    ("6.17", 6, 17, "with `cgroup_set_bandwidth`"),
    ("6.18", 6, 18, "with `scx_bpf_cpu_curr` and `scx_bpf_locked_rq`"),
    ("6.19", 6, 19, "with `scx_bpf_dsq_peek`, and functions that take structures"),
    ("7.0", 7, 0, "with no name that is known to be new"),
    ("7.1", 7, 1, "with schedulers of control groups"),
    ("7.2", 7, 2, "with CPU identifiers by topology (cid)"),
];

/// The release of Linux whose sched_ext interface the simulated kernel offers: its kernel functions, callbacks, flags
/// and types. What they do is that of the newest release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelAbi(u8);

/// A release that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no kernel release `{0}`; known are {known}", known = known())]
pub struct UnknownRelease(String);

fn known() -> String {
    KernelAbi::ALL.map(KernelAbi::name).join(", ")
}

impl KernelAbi {
    /// Every release, the oldest first.
    pub const ALL: [KernelAbi; RELEASES.len()] = {
        let mut all = [KernelAbi(0); RELEASES.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = KernelAbi(at as u8);
            at += 1;
        }
        all
    };
    /// The newest release.
    pub const NEWEST: KernelAbi = KernelAbi::ALL[RELEASES.len() - 1];
    /// The oldest release.
    pub const OLDEST: KernelAbi = KernelAbi::ALL[0];

    /// The release of these numbers.
    ///
    /// # Panics
    /// If it is not known.
    pub(crate) const fn of(major: u8, minor: u8) -> KernelAbi {
        let mut at = 0;
        while at < RELEASES.len() {
            if RELEASES[at].1 == major && RELEASES[at].2 == minor {
                return KernelAbi(at as u8);
            }
            at += 1;
        }
        panic!("an unknown release")
    }

    /// The release as people write it: `6.12`.
    pub const fn name(self) -> &'static str {
        RELEASES[self.0 as usize].0
    }

    /// The news of the release, in a few words.
    pub const fn about(self) -> &'static str {
        RELEASES[self.0 as usize].3
    }

    /// `KERNEL_VERSION(major, minor, 0)`, what programs read as `LINUX_KERNEL_VERSION`.
    pub(crate) fn version_code(self) -> u64 {
        let (_, major, minor, _) = RELEASES[usize::from(self.0)];
        u64::from(major) << 16 | u64::from(minor) << 8
    }
}

impl Default for KernelAbi {
    fn default() -> KernelAbi {
        KernelAbi::NEWEST
    }
}

impl fmt::Display for KernelAbi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KernelAbi {
    type Err = UnknownRelease;

    fn from_str(text: &str) -> Result<KernelAbi, UnknownRelease> {
        let found = KernelAbi::ALL.iter().find(|release| release.name() == text);
        found.copied().ok_or_else(|| UnknownRelease(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_in_order_and_read_as_they_are_written() {
        assert!(RELEASES.is_sorted_by_key(|(_, major, minor, _)| (major, minor)));
        for release in KernelAbi::ALL {
            assert_eq!(release.to_string().parse(), Ok(release));
        }
        assert_eq!(KernelAbi::of(6, 14).version_code(), 0x6_0e00);
        let unknown = "6.11".parse::<KernelAbi>().expect_err("before sched_ext").to_string();
        assert!(unknown.contains("6.12, 6.13") && unknown.ends_with("7.2"), "{unknown}");
    }
}
