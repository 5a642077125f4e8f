//! The named sets of costs: files that name the values which differ from the default, each with its source.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A preset as it is compiled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PresetFile {
    /// Its name.
    pub(super) name: &'static str,
    /// Its meaning.
    pub(super) about: &'static str,
    /// The values that differ from the default, as TOML.
    text: &'static str,
}

/// A value and its source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PresetValue {
    pub(super) value: u64,
    pub(super) source: String,
}

/// The contents of a preset's file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Preset {
    /// Time of an instruction on the machine that these costs were measured on, ns; `None`: it does not count them.
    pub(super) instruction_ns: Option<u64>,
    /// For every cost that is not named; without it those have their defaults.
    pub(super) others: Option<PresetValue>,
    /// By name.
    #[serde(default)]
    pub(super) costs: BTreeMap<String, PresetValue>,
}

impl PresetFile {
    /// Its contents.
    pub(super) fn read(&self) -> Preset {
        toml::from_str(self.text)
            .unwrap_or_else(|e| unreachable!("a test reads every preset; {}: {e}", self.name))
    }
}

macro_rules! preset {
    ($name:literal, $about:literal) => {
        PresetFile {
            name: $name,
            about: $about,
            text: include_str!(concat!("presets/", $name, ".toml")),
        }
    };
}

/// All of them, the default first.
pub(super) static PRESETS: [PresetFile; 6] = [
    PresetFile { name: "modern", about: "an x86 server of today", text: "" },
    preset!("zero", "the kernel's own work takes no time"),
    preset!(
        "linux-2.6",
        "Linux 2.6.22 to 2.6.27 in QEMU, 8 ns an instruction: the recorded runs of those kernels"
    ),
    preset!(
        "linux-6.1",
        "Linux 6.1 in QEMU, 8 ns an instruction, recording: a run of `--on vm:6.1`"
    ),
    preset!(
        "linux-7.2",
        "Linux 7.2 in QEMU, 8 ns an instruction, recording, under its own EEVDF: a run of `--on vm:7.2`"
    ),
    preset!("linux-7.2-scx", "the same under a sched_ext scheduler"),
];
