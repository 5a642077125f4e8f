//! The sched_ext interface by name: since which kernel there is a name, and what the machine does with it.
//!
//! One table decides what an object finds when it is linked ([`KernelAbi`]), and is the reference that people read
//! (`docs/reference/sched-ext.md`). Tests hold it against the functions and callbacks that the machine has.

mod callbacks;
pub(crate) mod constants;
pub(crate) mod events;
mod feature;
mod helpers;
mod release;
pub(crate) mod types;

pub use feature::{Feature, Since, State};
pub use release::{KernelAbi, UnknownRelease};

use crate::kfuncs::{self, Kfunc};
use crate::tracing::targets::{self, TargetKind};
use constants::ENUMERATIONS;

/// A part of the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfacePart {
    /// Its title: `Callbacks`.
    pub title: String,
    /// Its names, each with its value if it is a constant.
    pub features: Vec<(Feature, Option<u64>)>,
}

/// Every part, in the order of the reference.
pub fn parts() -> Vec<InterfacePart> {
    let part = |title: &str, features: Vec<Feature>| InterfacePart {
        title: title.to_owned(),
        features: features.into_iter().map(|feature| (feature, None)).collect(),
    };
    let features = |kfuncs: &[Kfunc]| kfuncs.iter().map(|kfunc| kfunc.feature).collect();
    let cid_names = callbacks::CID_NAMES.iter().map(|(_, feature)| *feature).collect();
    let helpers = helpers::HELPERS.iter().map(|(_, feature)| *feature).collect();
    let mut parts = vec![
        part("Callbacks", callbacks::CALLBACKS.to_vec()),
        part("Callbacks of the cid form", cid_names),
        part("Data members", callbacks::DATA.to_vec()),
        part("Kernel functions of sched_ext", features(kfuncs::SCX)),
        part("Kernel functions of BPF", features(kfuncs::BPF)),
        part("BPF helpers", helpers),
        part("Tracepoints (`tp_btf`, `raw_tp`)", targets::features(TargetKind::Tracepoint)),
        part("Tracepoints by their records (`tracepoint`)", targets::features(TargetKind::Record)),
        part(
            "Functions of the kernel (`fentry`, `fexit`)",
            targets::features(TargetKind::Function),
        ),
        part("Counters of `scx_bpf_events()`", events::EVENTS.to_vec()),
        part("Types and members since 6.12", types::TYPES.to_vec()),
    ];
    parts.extend(ENUMERATIONS.iter().map(|enumeration| InterfacePart {
        title: format!("`enum {}`", enumeration.name),
        features: enumeration.constants.iter().map(|c| (c.feature, Some(c.value))).collect(),
    }));
    parts
}

/// The callback or data member of a name.
fn member(name: &str) -> Option<&'static Feature> {
    let cid_form = callbacks::CID_NAMES.iter().map(|(_, feature)| feature);
    let mut all = callbacks::CALLBACKS.iter().chain(callbacks::DATA).chain(cid_form);
    all.find(|feature| feature.name == name)
}

/// Whether the table of callbacks has a member in kernels of a release.
pub(crate) fn has_member(name: &str, abi: KernelAbi) -> bool {
    member(name).is_some_and(|feature| feature.exists_in(abi))
}

/// Why a callback is never called in the machine, if it is not.
pub(crate) fn never_called(callback: &str, abi: KernelAbi) -> Option<String> {
    match member(callback) {
        Some(feature) => feature.lack(abi),
        None => Some("no kernel that is known calls it".to_owned()),
    }
}

/// Every name that an object may ask for and does not get, with the reason and the remedy.
pub(crate) fn lacks(abi: KernelAbi) -> Vec<(&'static str, String)> {
    let constants = ENUMERATIONS.iter().flat_map(|enumeration| enumeration.constants);
    let constants = constants.map(|constant| &constant.feature);
    let there = |name: &str| constants::constant(name, abi).is_some();
    let kfuncs = kfuncs::all().map(|kfunc| &kfunc.feature);
    let features = kfuncs.chain(types::TYPES).chain(events::EVENTS);
    let helpers = helpers::HELPERS.iter().map(|(_, feature)| feature);
    let all = features.chain(constants.filter(|feature| !there(feature.name))).chain(helpers);
    all.filter_map(|feature| Some((feature.name, feature.lack(abi)?))).collect()
}

/// The flags of `sched_ext_ops.flags` that kernels of a release take. The loaders of the scx project leave out the others.
pub fn ops_flags(abi: KernelAbi) -> u64 {
    let known = constants::OPS_FLAGS.constants.iter();
    known.filter(|flag| flag.feature.exists_in(abi)).fold(0, |all, flag| all | flag.value)
}

/// A flag of `sched_ext_ops.flags` that kernels of a release refuse, of those that are set: its name, if there is one,
/// and what to do.
pub(crate) fn refused_flag(flags: u64, abi: KernelAbi) -> Option<(String, String)> {
    let known = constants::OPS_FLAGS.constants;
    let refused = flags & !ops_flags(abi);
    let bit = refused & refused.wrapping_neg();
    match known.iter().find(|flag| flag.value == bit) {
        _ if bit == 0 => None,
        Some(flag) => Some((flag.feature.name.to_owned(), flag.feature.lack(abi)?)),
        None => Some((format!("{bit:#x}"), "no kernel that is known has this flag".to_owned())),
    }
}

#[cfg(test)]
mod tests;
