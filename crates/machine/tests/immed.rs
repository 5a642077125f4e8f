//! `SCX_ENQ_IMMED`: a task in a local queue runs at once, or goes to the scheduler again.

use crate::support::{MS, free_machine, policy};
use fairground_machine::{Machine, Setting};
use fairground_workload::{Workload, parse};

/// Tasks that compute and sleep, and further groups. All wake on the CPU where they ran, from CPU 0 on; a task with one
/// CPU alone would not be asked about.
fn sleepers(count: u32, groups: &str) -> Workload {
    let text = format!(
        "format = 1\nname = \"sleepers\"\nduration = \"1s\"\n\
         [[task]]\nname = \"sleeper\"\ncount = {count}\nprogram = [{{ loop = [{{ run = \"3ms\" }}, {{ sleep = \"1ms\" }}] }}]\n\
         {groups}"
    );
    parse("sleepers.toml", &text).unwrap_or_else(|e| panic!("{e}"))
}

fn run(cpus: u32, settings: &[(&str, &str)], workload: &Workload) -> Machine {
    let settings: Vec<Setting> =
        settings.iter().map(|(name, value)| Setting::initial(name, value)).collect();
    let machine = Machine::new(&free_machine(cpus), &policy("immed"), &settings, workload);
    let mut machine = machine.unwrap_or_else(|e| panic!("{e}"));
    machine.run_until(200 * MS).unwrap_or_else(|e| panic!("{e}"));
    machine
}

/// How often `ops.enqueue()` was called again: because it was asked for, not at once, preempted.
fn reasons(machine: &Machine) -> [u64; 3] {
    [1, 2, 3].map(|at| machine.variable_field("reasons", 8 * at, 8).expect("an element"))
}

/// A CPU that runs something else, or for which another task is on its way, is no place to run at once.
#[test]
fn a_task_that_would_wait_goes_to_the_scheduler_again() {
    let machine = run(2, &[], &sleepers(3, ""));
    assert!(machine.exit().is_none(), "{:?}", machine.exit());
    let [asked, not_at_once, preempted] = reasons(&machine);
    assert_eq!((asked, preempted), (0, 0));
    assert!(not_at_once > 20, "{not_at_once}");
    assert_eq!(machine.counters().reenqueued_immed, not_at_once);
    let seen = machine.variable("seen").expect("a variable");
    assert_eq!(seen[0], 0, "an enqueue begins without SCX_TASK_IMMED");
}

#[test]
fn an_idle_cpu_runs_it() {
    let machine = run(2, &[], &sleepers(1, ""));
    assert_eq!(reasons(&machine), [0, 0, 0]);
}

/// A task of a higher class takes the CPU: what was to run at once does not stay there.
#[test]
fn a_preempted_task_goes_to_the_scheduler_again() {
    let rt = |cpu| {
        format!(
            "[[task]]\nname = \"rt{cpu}\"\npolicy = \"fifo\"\npriority = 10\ncpus = \"{cpu}\"\n\
             program = [{{ loop = [{{ sleep = \"6700us\" }}, {{ run = \"500us\" }}] }}]\n"
        )
    };
    let machine = run(2, &[], &sleepers(1, &(rt(0) + &rt(1))));
    assert!(machine.exit().is_none(), "{:?}", machine.exit());
    let [_, not_at_once, preempted] = reasons(&machine);
    assert!(preempted > 5, "{not_at_once} {preempted}");
}

#[test]
fn what_the_kernel_refuses_ejects() {
    for (name, message) in [
        ("wrong_queue", "SCX_ENQ_IMMED on a non-local DSQ 0x1"),
        ("insists", "SCX_ENQ_REENQ repeated"),
    ] {
        let machine = run(1, &[(name, "on")], &sleepers(2, ""));
        let exit = machine.exit().unwrap_or_else(|| panic!("{name}: not ejected"));
        assert!(exit.message.contains(message), "{}", exit.message);
    }
}
