//! What a scheduler's program learns of the machine's topology.

use crate::support::{free_machine, object, object_with, texts, workload};
use fairground_bpf::Object;
use fairground_machine::{Engine, Machine, MachineConfig, MachineError, Policy, Topology};

fn machine(object: &Object, topology: &str) -> Result<Machine, MachineError> {
    let policy = Policy::load(object, Engine::Jit).expect("it loads");
    let topology: Topology = topology.parse().expect("a topology");
    let config = MachineConfig { topology, ..free_machine(1) };
    Machine::new(&config, &policy, &[], &workload(vec![]))
}

/// Tagged arrays hold the places of all CPUs before `init()` runs, whatever they are called and wherever they lie; a
/// variable without a tag keeps its value.
#[test]
fn tagged_arrays_are_filled_before_init() {
    let machine = machine(&object("topology"), "2x2x2,nodes=1").expect("a machine");
    let said = texts(machine.log());
    let cores: Vec<String> =
        (0..8).map(|cpu| format!("CPU {cpu}: {} {}", cpu / 2, cpu / 4)).collect();
    let rest: Vec<String> = (0..8)
        .map(|cpu| format!("CPU {cpu}: 0 {} {}", cpu / 4, if cpu == 0 { 7 } else { 0 }))
        .collect();
    assert_eq!(said[..8], cores);
    assert_eq!(said[8..], rest);
    assert_eq!(machine.variable_field("topology_llc", 4 * 63, 4), Some(0));
}

#[test]
fn an_array_that_is_too_short_is_refused() {
    let error = machine(&object("topology"), "65").expect_err("64 elements").to_string();
    assert!(error.contains("65 CPUs") && error.contains("room for 64"), "{error}");
}

#[test]
fn a_tag_on_something_else_is_refused() {
    let load = |define: &str| {
        let object = object_with("topology", &[define]);
        Policy::load(&object, Engine::Jit).expect_err(define).to_string()
    };
    let error = load("-DNODE_TYPE=u64");
    assert!(error.contains("topology.bpf.o") && error.contains("`topology_node`"), "{error}");
    assert!(error.contains("array of u32"), "{error}");
    assert!(load("-DNODE_TYPE=s32").contains("array of u32"));
    let error = load("-DEXTRA=\"topology:cluster\"");
    assert!(error.contains("`topology:cluster` names no level"), "{error}");
    assert!(load("-DFOLDED").contains("declare it `const volatile`"));
}
