//! The schedulers of fairground: sched_ext programs in BPF C, compiled when this package is built.
//!
//! Each `NAME.bpf.c` beside this package's manifest is compiled to one object: the bytes that a kernel from 6.12 on
//! loads. An object describes itself: its tunables are global variables whose BTF tags hold unit (`unit:ns`), purpose
//! (`doc:…`) and values in named parameter sets (`set:2.6.24=20000000`).

mod compiler;

pub use compiler::{
    CLANG_FLAGS, CLANG_VARIABLE, MissingTool, find_clang, find_clang_on, find_headers,
    find_headers_below,
};

/// A compiled scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name: the file name without `.bpf.c`.
    pub name: &'static str,
    /// A summary of one sentence.
    pub summary: &'static str,
    /// The ELF object.
    pub object: &'static [u8],
    /// Its BPF C source.
    pub source: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// All schedulers, sorted by name.
pub fn all() -> &'static [Policy] {
    POLICIES
}

/// The scheduler of that name.
pub fn get(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_describes_itself() {
        for policy in all() {
            assert!(
                policy.source.starts_with("/* SPDX-License-Identifier: GPL-2.0-only */"),
                "{}",
                policy.name
            );
            assert!(policy.summary.len() > 10, "{}: {}", policy.name, policy.summary);
            assert_eq!(get(policy.name), Some(policy));
        }
        for (name, text) in HEADERS {
            assert!(text.starts_with("/* SPDX-License-Identifier: GPL-2.0-only */"), "{name}");
        }
        assert_eq!(get("nothing"), None);
    }

    #[test]
    fn objects_hold_no_path_of_the_machine_that_built_them() {
        let here = env!("CARGO_MANIFEST_DIR").as_bytes();
        for policy in all() {
            assert!(!policy.object.windows(here.len()).any(|w| w == here), "{}", policy.name);
            assert!(!policy.object.windows(6).any(|w| w == b"/home/"), "{}", policy.name);
        }
    }
}
