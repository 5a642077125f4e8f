//! Kernel functions that came after 6.12, and walks.

use crate::support::{MS, free_machine, policy, simulate, texts};
use fairground_machine::{Machine, MachineConfig, RunResult, Setting};
use fairground_workload::{Workload, parse};

/// Two nodes of two CPUs.
fn machine() -> MachineConfig {
    let topology = "2x2x1".parse().expect("a topology");
    MachineConfig { topology, ..free_machine(4) }
}

fn groups() -> Workload {
    let text = "format = 1\nname = \"groups\"\nduration = \"1s\"\n[cgroups.web]\n[cgroups.\"web/front\"]\n\
                [[task]]\nname = \"hog\"\ncount = 2\ncpus = \"0\"\nprogram = [{ run = \"forever\" }]\n\
                [[task]]\nname = \"member\"\ncgroup = \"web\"\ncpus = \"1-3\"\nprogram = [{ run = \"forever\" }]\n";
    parse("groups.toml", text).unwrap_or_else(|e| panic!("{e}"))
}

fn run(settings: &[(&str, &str)]) -> RunResult {
    simulate(&machine(), &policy("newer"), settings, &groups(), 20 * MS)
}

#[test]
fn they_return_what_the_kernel_returns() {
    let result = run(&[]);
    assert!(!result.exit.kind.is_error(), "{}", result.exit);
    let expected = [
        "node: 2 idle, 2 on idle cores",
        // -EBUSY: both are taken.
        "picks 2, 3, -16",
        // Any CPU of the node; one of the other node; -ENOENT for no node.
        "then 1, 0, -2",
        "cid 3: core 3 3, cache 2",
        "place 1, node 2 1",
        "populated: 1; sub 0",
        "bit 5",
        "bit 63",
        "bit 65",
        "no words: -22",
        "order 2: level 0",
        "order 2: level 1",
        "order 2: level 2",
        "order 3: level 2",
        "order 3: level 1",
        "order 3: level 0",
        "order 4: level 0",
        "task 1000",
        "task 1001",
        "task 1002",
        "alone 1002",
        "of the root 1000",
        "of the root 1001",
        "events: 1 kept, 1 fallbacks, 0 exiting",
    ];
    assert_eq!(texts(&result.log), expected);
}

/// `scx_bpf_locked_rq`: that of the task, not of the CPU that executes.
#[test]
fn the_locked_run_queue_is_the_tasks() {
    let mut machine =
        Machine::new(&machine(), &policy("newer"), &[], &groups()).expect("a machine");
    machine.run_until(20 * MS).expect("no fault of the machine");
    let number = |name| machine.variable(name).expect("a variable")[0];
    assert_eq!(number("strange_rqs"), 0);
    assert!(number("again") > 0, "the local queue is enqueued again from ops.tick()");
}

#[test]
fn what_is_not_allowed_ejects() {
    for (name, value, message) in
        [("node", "7", "invalid node 7"), ("locked_in_select", "on", "holds no run queue's lock")]
    {
        let settings = [Setting::initial(name, value)];
        let machine = Machine::new(&machine(), &policy("newer"), &settings, &groups());
        let mut machine = machine.expect("a machine");
        machine.run_until(20 * MS).expect("no fault of the machine");
        let exit = machine.exit().unwrap_or_else(|| panic!("{name}={value}: not ejected"));
        assert!(exit.message.contains(message), "{}", exit.message);
    }
}
