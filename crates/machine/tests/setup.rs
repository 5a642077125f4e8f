//! What a loader does beside setting variables: contents of maps, programs that it runs.

use crate::support::{MS, free_machine, object, policy, task, workload};
use fairground_machine::{Machine, MapContent, ProgramRun, SavedValue, Setup};
use fairground_workload::{Op, Workload};

fn content(map: &str, key: u64, offset: u64, bytes: &[u8]) -> MapContent {
    MapContent { map: map.to_owned(), key, cpu: None, offset, bytes: bytes.to_vec() }
}

fn one_hog() -> Workload {
    workload(vec![task("hog", 1, vec![Op::RunForever])])
}

fn machine(setup: &Setup) -> Machine {
    let policy = policy("setup").with_setup(setup).expect("a good setup");
    Machine::new(&free_machine(2), &policy, &[], &one_hog()).expect("a machine")
}

fn number(machine: &Machine, name: &str) -> u64 {
    let bytes = machine.variable(name).unwrap_or_else(|| panic!("no variable {name}"));
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn refusal(setup: &Setup) -> String {
    policy("setup").with_setup(setup).expect_err("a bad setup").to_string()
}

#[test]
fn maps_are_filled_before_init() {
    let object = object("setup");
    let (offset, size) = object.map_member("limits", "depth").expect("a member");
    assert_eq!((offset, size), (8, 8));
    assert_eq!(object.map_member("limits", "wide"), None);
    assert_eq!(object.map_member("limits", ""), Some((0, 16)));
    let maps = vec![
        content("limits", 1, 0, &7u32.to_le_bytes()),
        content("limits", 1, offset, &9u64.to_le_bytes()),
        content("each_cpu", 1, 0, &21u64.to_le_bytes()),
        content("by_name", 77, 0, &5u32.to_le_bytes()),
    ];
    let machine = machine(&Setup { maps, ..Setup::default() });
    let seen = ["burst", "depth", "copies", "named"].map(|name| number(&machine, name));
    assert_eq!(seen, [7, 9, 42, 5], "in a per-CPU map every CPU's copy");
}

#[test]
fn programs_run_before_init_and_at_each_full_second() {
    let setup = Setup {
        before: vec![ProgramRun::of("prepare"), ProgramRun::of("prepare")],
        each_second: vec![ProgramRun::of("refresh")],
        ..Setup::default()
    };
    let mut machine = machine(&setup);
    assert_eq!((number(&machine, "order"), number(&machine, "refreshed")), (2, 0));
    machine.run_until(3_500 * MS).expect("no fault of the machine");
    assert_eq!(number(&machine, "refreshed"), 3);
    assert_eq!(number(&machine, "last_refresh_ns"), 3_000 * MS);
}

/// A value that one program leaves in its context is the argument of the next.
#[test]
fn programs_pass_values_on() {
    let value = |name: &str, offset, size| SavedValue { name: name.to_owned(), offset, size };
    let add = |context: [u32; 4], load: &[SavedValue]| ProgramRun {
        program: "add".to_owned(),
        cpu: None,
        context: context.iter().flat_map(|word| word.to_le_bytes()).collect(),
        load: load.to_vec(),
        save: vec![value("sum", 8, 8)],
        store: Vec::new(),
    };
    let again = add([0, 1, 0, 0], &[value("sum", 0, 4)]);
    let setup = Setup {
        before: vec![add([3, 4, 0, 0], &[]), again.clone()],
        each_second: vec![again],
        ..Setup::default()
    };
    let mut machine = machine(&setup);
    assert_eq!(number(&machine, "last_sum"), 8);
    machine.run_until(2_500 * MS).expect("no fault of the machine");
    assert_eq!(number(&machine, "last_sum"), 10, "values are kept for later runs");
}

/// Programs run on the CPU that is named, also those of each second.
#[test]
fn a_program_runs_on_its_cpu() {
    let on = |cpu| ProgramRun { cpu, ..ProgramRun::of("where_am_i") };
    let setup = |cpu| Setup { before: vec![on(cpu)], ..Setup::default() };
    assert_eq!(number(&machine(&setup(Some(1))), "ran_on"), 1);
    assert_eq!(number(&machine(&setup(None)), "ran_on"), 0);
    let mut later = machine(&Setup { each_second: vec![on(Some(1))], ..Setup::default() });
    later.run_until(1_500 * MS).expect("no fault of the machine");
    assert_eq!(number(&later, "ran_on"), 1);
    let policy = policy("setup").with_setup(&setup(Some(2))).expect("a good setup");
    let error = Machine::new(&free_machine(2), &policy, &[], &one_hog()).expect_err("no CPU 2");
    assert!(error.to_string().contains("where_am_i runs on CPU 2"), "{error}");
}

#[test]
fn a_program_that_fails_ends_it() {
    let machine = machine(&Setup { before: vec![ProgramRun::of("fail")], ..Setup::default() });
    let exit = machine.exit().expect("it is over");
    assert!(exit.message.contains("program fail failed (-5)"), "{}", exit.message);
}

#[test]
fn what_is_not_there_is_refused() {
    let map = |content| refusal(&Setup { maps: vec![content], ..Setup::default() });
    assert!(map(content("limit", 0, 0, &[1])).contains("no such map"));
    assert!(map(content("limits", 3, 0, &[1])).contains("beyond its 3 elements"));
    assert!(map(content("limits", 0, 13, &[0; 4])).contains("16 bytes"));
    assert!(map(content("limits", 1 << 32, 0, &[1])).contains("no key of 4 bytes"));
    assert!(map(content(".bss", 0, 0, &[1])).contains("elements to set"));
    let program =
        |name: &str| refusal(&Setup { before: vec![ProgramRun::of(name)], ..Setup::default() });
    assert!(program("prepared").contains("no such program"));
    assert!(program("setup_init").contains("user space cannot run it"));
    let full = Setup {
        maps: vec![content("by_name", 1, 0, &[1]), content("by_name", 2, 0, &[1])],
        ..Setup::default()
    };
    let policy = policy("setup").with_setup(&full).expect("each for itself is right");
    let error = Machine::new(&free_machine(2), &policy, &[], &one_hog()).expect_err("too many");
    assert!(error.to_string().contains("beyond its size"), "{error}");
}
