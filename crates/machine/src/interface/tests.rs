//! The table against what the machine has.

use std::collections::BTreeSet;

use fairground_bpf::builtin_kfuncs;

use super::*;
use crate::op::Op;

fn kfunc(name: &str) -> Option<&'static Feature> {
    kfuncs::SCX.iter().chain(kfuncs::BPF).find(|feature| feature.name == name)
}

fn names<'a>(features: impl Iterator<Item = &'a Feature>) -> Vec<&'static str> {
    features.map(|feature| feature.name).collect()
}

#[test]
fn a_kernel_function_is_done_if_the_machine_has_it() {
    let table: Vec<&Feature> = kfuncs::SCX.iter().chain(kfuncs::BPF).collect();
    let done: BTreeSet<&str> =
        names(table.iter().copied().filter(|feature| feature.is_done())).into_iter().collect();
    let own = crate::kfuncs::table().into_iter().map(|(name, _)| name);
    let there: BTreeSet<&str> = own.chain(builtin_kfuncs()).collect();
    assert_eq!(done.difference(&there).collect::<Vec<_>>(), Vec::<&&str>::new(), "not there");
    assert_eq!(there.difference(&done).collect::<Vec<_>>(), Vec::<&&str>::new(), "not told");
    let all: BTreeSet<&str> = names(table.iter().copied()).into_iter().collect();
    assert_eq!(all.len(), table.len(), "a name is there twice");
}

#[test]
fn every_callback_of_the_kernel_is_told() {
    let told: BTreeSet<&str> = names(callbacks::CALLBACKS.iter()).into_iter().collect();
    assert_eq!(told, Op::names().collect(), "the members of `sched_ext_ops`");
    for op in Op::ALL {
        let other = callbacks::CID_NAMES.iter().find(|(name, _)| *name == op.name());
        assert_eq!(op.cid_form_name(), other.map_or(op.name(), |(_, feature)| feature.name));
    }
}

#[test]
fn a_helper_is_done_if_there_is_one() {
    let own = crate::kfuncs::helpers();
    let env = crate::policy::environment(KernelAbi::NEWEST);
    for (number, feature) in helpers::HELPERS {
        assert_eq!(feature.is_done(), env.has_helper(*number), "{} ({number})", feature.name);
        let name = fairground_bpf::helper_name(*number).expect("a helper");
        assert_eq!(format!("bpf_{name}"), feature.name);
    }
    for (number, _) in own {
        assert!(helpers::HELPERS.iter().any(|(told, _)| *told == number), "helper {number}");
    }
}

/// A constant has one value in each release, and a callback is told for each.
#[test]
fn a_name_stands_for_one_value_in_a_release() {
    for abi in KernelAbi::ALL {
        for enumeration in ENUMERATIONS {
            let values = enumeration.values(abi);
            let distinct: BTreeSet<&str> = values.iter().map(|(name, _)| *name).collect();
            assert_eq!(distinct.len(), values.len(), "{} in {abi}", enumeration.name);
        }
    }
}

#[test]
fn a_reason_names_the_release_and_the_remedy() {
    let [old, new] = [KernelAbi::OLDEST, KernelAbi::NEWEST];
    let peek = kfunc("scx_bpf_dsq_peek").expect("a kfunc");
    let reason = peek.lack(old).expect("not in 6.12");
    assert!(reason.contains("6.19") && reason.contains("--kernel-abi 6.19"), "{reason}");
    assert_eq!(peek.lack(new), None);
    let consume = kfunc("scx_bpf_consume").expect("a kfunc");
    let reason = consume.lack(new).expect("not in 7.2");
    assert!(reason.contains("--kernel-abi 6.17"), "{reason}");
    let (name, why) = refused_flag(1 << 6, old).expect("not in 6.12");
    assert!(name == "SCX_OPS_BUILTIN_IDLE_PER_NODE" && why.contains("6.15"), "{name}: {why}");
    assert_eq!(refused_flag(1 << 6, new), None);
    assert_eq!(refused_flag(1 << 40, new).expect("no flag").0, "0x10000000000");
}
