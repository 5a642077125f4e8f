//! The dump of the state at an error (`scx_dump_state`): what the scheduler adds to it, and who gets it.

use crate::support::{MS, free_machine, object_with, simulate, task, workload};
use fairground_machine::{Engine, Machine, Policy, RunResult, Setting};
use fairground_workload::{Op, Workload};

fn policy(defines: &[&str]) -> Policy {
    Policy::load(&object_with("dump", defines), Engine::Jit).unwrap_or_else(|e| panic!("{e}"))
}

fn hogs() -> Workload {
    workload(vec![task("hog", 3, vec![Op::RunForever])])
}

fn run(defines: &[&str], settings: &[(&str, &str)]) -> RunResult {
    simulate(&free_machine(3), &policy(defines), settings, &hogs(), 50 * MS)
}

/// `ops.dump()` first, then each CPU with the tasks that are runnable there. A CPU about which nothing is said and that
/// is idle is left out.
#[test]
fn the_scheduler_describes_itself_its_cpus_and_its_tasks() {
    let one = workload(vec![task("hog", 1, vec![Op::RunForever])]);
    let result = simulate(&free_machine(3), &policy(&[]), &[], &one, 50 * MS);
    assert_eq!(result.exit.message, "enough");
    let hog = "  hog[1000]: runs, runnable for 1 ms, slice 19000000, vtime 0, weight 100";
    let own: Vec<&str> = result.exit.dump.own.iter().map(String::as_str).collect();
    let expected = [
        "queue of 0, kind 1025",
        "two",
        "lines1",
        "CPU 0: runs hog[1000], 0 waiting",
        "  cpu 0 idle 0",
        hog,
        "    pid 1000",
        "CPU 2: runs idle, 0 waiting",
        "  cpu 2 idle 1",
    ];
    assert_eq!(own, expected);
    assert_eq!(result.exit.dump.text, expected.join("\n") + "\n");
}

/// The machine's own lines are in the text and not among the scheduler's.
#[test]
fn a_cpu_that_is_not_idle_is_there_in_any_case() {
    let dump = run(&[], &[]).exit.dump;
    assert!(dump.text.contains("\nCPU 1: runs hog"), "{}", dump.text);
    assert!(!dump.own.iter().any(|line| line.starts_with("CPU 1")), "{:?}", dump.own);
}

/// `ops.exit()` gets the dump, the CPU of the error, and whether `ops.init()` had succeeded.
#[test]
fn the_exit_callback_gets_the_dump() {
    let mut machine =
        Machine::new(&free_machine(3), &policy(&[]), &[], &hogs()).expect("a machine");
    machine.run_until(50 * MS).expect("no fault of the machine");
    let text = machine.variable("told_dump").expect("a variable");
    assert!(
        text.starts_with(b"queue of 0, kind 1025\ntwo\n"),
        "{}",
        String::from_utf8_lossy(&text)
    );
    assert_eq!(machine.variable("told_cpu").expect("a variable"), &[0; 4][..]);
    assert_eq!(machine.variable("told_flags").expect("a variable")[0], 1);
}

#[test]
fn an_orderly_end_has_no_dump() {
    let result = run(&[], &[("fails", "off")]);
    assert!(!result.exit.kind.is_error());
    assert_eq!(result.exit.dump, Default::default());
}

/// `exit_dump_len`.
#[test]
fn a_dump_has_its_limit() {
    let dump = run(&["-DDUMP_LENGTH=64"], &[]).exit.dump;
    assert!(dump.text.len() <= 64 && dump.text.ends_with("[truncated]\n"), "{}", dump.text);
    assert!(dump.own.len() < 4, "{:?}", dump.own);
}

#[test]
fn dumps_are_written_in_their_callbacks_only() {
    let result = run(&[], &[("says_at_tick", "on")]);
    assert!(result.exit.message.contains("is for ops.dump()"), "{}", result.exit);
    let settings = [Setting::initial("fails", "off"), Setting::initial("says_at_tick", "on")];
    let machine = Machine::new(&free_machine(3), &policy(&[]), &settings, &hogs());
    let mut machine = machine.expect("a machine");
    machine.run_until(50 * MS).expect("no fault of the machine");
    assert!(machine.exit().is_some_and(|exit| exit.kind.is_error()));
}

/// A callback of the dump that fails ends the dump, with a line that says so; the scheduler leaves as it would without.
#[test]
fn a_dump_that_fails_keeps_no_one_from_leaving() {
    let settings = [Setting::initial("reads_what_is_not_there", "on")];
    let mut machine =
        Machine::new(&free_machine(3), &policy(&[]), &settings, &hogs()).expect("a machine");
    machine.run_until(50 * MS).expect("no fault of the machine");
    assert_eq!(machine.variable("told_flags").expect("a variable")[0], 1, "exit was called");
    let result = machine.finish().expect("a result");
    assert_eq!(result.exit.message, "enough", "the reason is the error, not the dump");
    let own = &result.exit.dump.own;
    let last = own.last().expect("lines");
    assert!(last.starts_with("the dump ends here: ops.dump_task(): "), "{own:?}");
    assert!(last.contains("no_such_member"), "{last}");
    assert!(own.iter().any(|line| line == "    pid 1000"), "what came before is there: {own:?}");
    assert!(!own.iter().any(|line| line == "    pid 1001"), "nothing follows: {own:?}");
    assert!(result.exit.dump.text.ends_with(&format!("{last}\n")), "{}", result.exit.dump.text);
}
