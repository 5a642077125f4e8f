//! Schedulers of the cid form: CPUs by their topological numbers, tasks by theirs, queues that are enqueued again.

use crate::support::{MS, cpus, free_machine, policy, sleep, task, workload};
use fairground_machine::{CpuPlace, Machine, MachineConfig, Setting, Topology};
use fairground_workload::{Op, Workload};

/// Two cores of two threads, the second threads numbered after all the first ones: CPUs 0 and 2, 1 and 3.
fn scattered() -> Topology {
    let place = |core| CpuPlace { core, ..CpuPlace::default() };
    let places = vec![place(0), place(1), place(0), place(1)];
    Topology::from_places(places, "scattered").expect("a topology")
}

fn machine(settings: &[(&str, &str)], workload: &Workload) -> Machine {
    let config = MachineConfig { topology: scattered(), ..free_machine(4) };
    let settings: Vec<Setting> =
        settings.iter().map(|(name, value)| Setting::initial(name, value)).collect();
    Machine::new(&config, &policy("cids"), &settings, workload).expect("a machine")
}

fn run(settings: &[(&str, &str)], workload: &Workload) -> Machine {
    let mut machine = machine(settings, workload);
    machine.run_until(50 * MS).expect("no fault of the machine");
    machine
}

fn number(machine: &Machine, name: &str) -> u64 {
    let bytes = machine.variable(name).unwrap_or_else(|| panic!("no variable {name}"));
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn numbers(machine: &Machine) -> Vec<u64> {
    let of = |cpu: u64| machine.variable_field("numbers", 4 * cpu, 4).expect("an element");
    (0..4).map(of).collect()
}

fn one_hog() -> Workload {
    workload(vec![task("hog", 1, vec![Op::RunForever])])
}

/// `scx_cid_init`: the threads of a core have numbers next to each other.
#[test]
fn numbers_follow_the_topology() {
    let machine = machine(&[], &one_hog());
    assert_eq!(numbers(&machine), [0, 2, 1, 3]);
    assert_eq!(number(&machine, "strangers"), 0, "the tables are each other's inverse");
    assert_eq!(number(&machine, "idle_cids"), 0b1111, "each CPU goes idle when it is loaded");
}

/// `scx_cpu_arg`, `scx_cpu_ret`: every CPU that goes in or comes out is a topological number.
#[test]
fn callbacks_and_verdicts_speak_of_cids() {
    let machine = run(&[("target_cid", "1")], &one_hog());
    assert!(machine.exit().is_none(), "{:?}", machine.exit());
    let hog = machine.trace().events().find_map(|event| match event.kind {
        fairground_trace::EventKind::Switch { next, .. } if !next.is_idle() => Some(event.cpu),
        _ => None,
    });
    assert_eq!(hog, Some(2), "cid 1 is CPU 2");
    assert_eq!(number(&machine, "ran_cids"), 1 << 1);
    assert_eq!(number(&machine, "prev_cids"), 1, "it was born on CPU 0");
    assert_eq!(number(&machine, "strangers"), 0);
}

/// `scx_bpf_dsq_reenq`: named twice, the queue is gone through once; the task is told by its own number.
#[test]
fn a_queue_goes_to_the_scheduler_again() {
    let machine = run(&[], &workload(vec![task("hog", 3, vec![Op::RunForever])]));
    assert!(machine.exit().is_none(), "{:?}", machine.exit());
    let again = number(&machine, "reenqueued");
    assert!(again >= 3, "{again}");
    assert_eq!(number(&machine, "strangers"), 0);
}

/// `scx_call_op_set_cpumask`: CPUs 1 and 2 are cids 2 and 1.
#[test]
fn a_change_of_affinity_comes_as_a_cmask() {
    let program = vec![Op::SetAffinity(cpus(1, 2)), sleep(MS), Op::RunForever];
    let machine = run(&[("target_cid", "2")], &workload(vec![task("mover", 1, program)]));
    assert!(machine.exit().is_none(), "{:?}", machine.exit());
    let mask = ["mask_base", "mask_cids", "mask_bits"].map(|name| number(&machine, name));
    assert_eq!(mask, [0, 4, 0b0110]);
}

#[test]
fn numbers_can_be_replaced_by_init_alone() {
    let replaced = machine(&[("override", "on")], &one_hog());
    assert_eq!(numbers(&replaced), [3, 2, 1, 0]);
    let late = run(&[("override_late", "on")], &one_hog());
    let exit = late.exit().expect("it is ejected");
    assert!(exit.message.contains("only allowed from ops.init()"), "{}", exit.message);
}

#[test]
fn wrong_numbers_and_flags_eject() {
    for (name, value, message) in [
        ("target_cid", "4", "invalid cid 4"),
        ("target_cid", "-1", "invalid CPU -1 from ops.select_cpu()"),
        ("reenq_flags", "2", "invalid SCX_REENQ flags 0x2"),
    ] {
        let machine = run(&[(name, value)], &one_hog());
        let exit = machine.exit().unwrap_or_else(|| panic!("{name}={value}: not ejected"));
        assert!(exit.message.contains(message), "{}", exit.message);
    }
}
