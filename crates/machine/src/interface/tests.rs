//! The table against what the machine has.

use std::collections::BTreeSet;

use fairground_bpf::builtin_kfuncs;

use super::*;
use crate::op::Op;

fn kfunc(name: &str) -> Option<&'static Feature> {
    kfuncs::all().map(|kfunc| &kfunc.feature).find(|feature| feature.name == name)
}

fn names<'a>(features: impl Iterator<Item = &'a Feature>) -> Vec<&'static str> {
    features.map(|feature| feature.name).collect()
}

/// Those of `fairground_bpf` that the machine does not replace are the ones that it has.
#[test]
fn a_kernel_function_is_done_if_something_carries_it_out() {
    let mut all = BTreeSet::new();
    for kfunc in kfuncs::all() {
        let name = kfunc.feature.name;
        assert!(all.insert(name), "{name} is there twice");
        let is_there = kfunc.call.is_some() || builtin_kfuncs().any(|known| known == name);
        assert_eq!(kfunc.feature.is_done(), is_there, "{name}");
    }
    let lacking: Vec<&str> = builtin_kfuncs().filter(|name| !all.contains(name)).collect();
    assert_eq!(lacking, [""; 0], "not in the table");
}

/// The spellings of one function, and the same by CPU, by cid and by node, cost the same.
#[test]
fn a_kernel_function_costs_the_same_in_each_spelling() {
    let price = |name: &str| {
        kfuncs::all().find(|kfunc| kfunc.feature.name == name).map(|kfunc| kfunc.price)
    };
    for [one, other] in [
        ["scx_bpf_kick_cpu", "scx_bpf_kick_cid"],
        ["scx_bpf_select_cpu_dfl", "scx_bpf_select_cpu_and"],
        ["scx_bpf_select_cpu_dfl", "__scx_bpf_select_cpu_and"],
        ["scx_bpf_pick_idle_cpu", "scx_bpf_pick_any_cpu"],
        ["scx_bpf_pick_idle_cpu", "scx_bpf_pick_idle_cpu_node"],
        ["scx_bpf_pick_idle_cpu", "scx_bpf_pick_any_cpu_node"],
        ["bpf_task_from_pid", "scx_bpf_tid_to_task"],
    ] {
        assert_eq!(price(one), price(other), "{one} and {other}");
        assert_eq!(price(one), Some(crate::cost::Price::Call), "{one}");
    }
    let spelling = |name: &str| name.trim_start_matches("__").trim_end_matches("___v2").to_owned();
    for one in kfuncs::all() {
        for other in kfuncs::all() {
            if spelling(one.feature.name) == spelling(other.feature.name) {
                assert_eq!(one.price, other.price, "{}", one.feature.name);
            }
        }
    }
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
