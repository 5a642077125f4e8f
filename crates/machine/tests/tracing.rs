//! Programs that are called at events of the kernel: when, with which arguments, and at what cost.

use crate::support::{MS, free_machine, object, policy};
use fairground_machine::{
    ExitKind, Machine, MachineConfig, Policy, Setting, Setup, TracingState, tracing_programs,
};
use fairground_trace::{EventKind, Trace};
use fairground_workload::{Workload, parse};

fn of_text(text: &str) -> Workload {
    let head = "format = 1\nname = \"t\"\nduration = \"1s\"\n";
    parse("t.toml", &format!("{head}{text}")).unwrap_or_else(|e| panic!("{e}"))
}

/// Tasks that wait for each other in every way, fork, and end.
fn busy() -> Workload {
    of_text(
        r#"
        [locks.m]
        kind = "mutex"
        [locks.pi]
        kind = "rt_mutex"
        [locks.rw]
        kind = "rwlock"
        [[condition]]
        name = "full"
        [[barrier]]
        name = "all"
        count = 2
        [[queue]]
        name = "q"
        capacity = 2
        [[pipe]]
        name = "p"
        capacity = 4096
        [[task]]
        name = "locker"
        count = 3
        program = [{ loop = [
            { lock = "m" }, { run = "300us" }, { unlock = "m" }, { run = "50us" },
            { lock = "pi" }, { run = "200us" }, { unlock = "pi" },
            { read_lock = "rw" }, { run = "20us" }, { unlock = "rw" }, { sleep = "1ms" } ] }]
        [[task]]
        name = "inheritor"
        count = 2
        program = [{ loop = [
            { lock = "pi" }, { run = "500us" }, { unlock = "pi" }, { sleep = "200us" } ] }]
        [[task]]
        name = "writer"
        program = [{ loop = [
            { write_lock = "rw" }, { run = "70us" }, { unlock = "rw" }, { sleep = "90us" } ] }]
        [[task]]
        name = "waiter"
        count = 2
        program = [{ loop = [
            { lock = "m" }, { wait = { cond = "full", lock = "m" } }, { run = "30us" }, { unlock = "m" },
            { barrier = "all" } ] }]
        [[task]]
        name = "giver"
        program = [{ loop = [ { sleep = "2ms" }, { notify_all = "full" } ] }]
        [[task]]
        name = "sender"
        count = 2
        program = [{ loop = [ { run = "40us" }, { send = "q" }, { write = { pipe = "p", bytes = 1024 } } ] }]
        [[task]]
        name = "receiver"
        program = [{ loop = [
            { receive = "q" }, { run = "60us" }, { read = { pipe = "p", bytes = 1024 } } ] }]
        [[task]]
        name = "maker"
        program = [{ loop = [ { fork = "child" }, "wait" ], times = 20 }]
        [[task]]
        name = "child"
        count = 2
        program = [{ run = "200us" }]
        "#,
    )
}

fn config(cpus: u32, costs: &[(&str, u64)]) -> MachineConfig {
    let mut config = free_machine(cpus);
    config.trace.callbacks = false;
    for (name, value) in costs {
        config.cost.set(name, *value).expect("a cost of that name");
    }
    config
}

fn after(config: &MachineConfig, policy: &Policy, workload: &Workload, ms: u64) -> Machine {
    let mut machine = Machine::new(config, policy, &[], workload).unwrap_or_else(|e| panic!("{e}"));
    machine.run_until(ms * MS).unwrap_or_else(|e| panic!("{e}"));
    machine
}

fn number(machine: &Machine, name: &str) -> u64 {
    let bytes = machine.variable(name).unwrap_or_else(|| panic!("no variable {name}"));
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn count(trace: &Trace, is_one: impl Fn(&EventKind) -> bool) -> u64 {
    trace.events().filter(|event| is_one(&event.kind)).count() as u64
}

/// Each event of the recording is a call of the program that counts it.
#[test]
fn programs_see_the_events_of_the_recording() {
    let policy = policy("tracing");
    for (cpus, costs) in [(1, &[][..]), (3, &[("syscall_ns", 700), ("context_switch_ns", 1500)])] {
        let machine = after(&config(cpus, costs), &policy, &busy(), 60);
        let (trace, see) = (machine.trace(), |name: &str| number(&machine, name));
        let blocks = |kind: &EventKind| {
            matches!(kind, EventKind::Switch { prev, prev_state, .. }
            if !prev.is_idle() && *prev_state != fairground_trace::TaskState::Runnable)
        };
        for (name, events) in [
            ("switches", count(trace, |kind| matches!(kind, EventKind::Switch { .. }))),
            ("switches_from_current", see("switches")),
            ("blocked", count(trace, blocks)),
            ("wakings", count(trace, |kind| matches!(kind, EventKind::Waking { .. }))),
            ("wakeups", count(trace, |kind| matches!(kind, EventKind::Wakeup { .. }))),
            ("wakeups_new", count(trace, |kind| matches!(kind, EventKind::WakeupNew { .. }))),
            ("new_tasks", count(trace, |kind| matches!(kind, EventKind::WakeupNew { .. }))),
            ("forks", count(trace, |kind| matches!(kind, EventKind::Fork { .. }))),
            ("exits", count(trace, |kind| matches!(kind, EventKind::Exit { .. }))),
            ("dead_groups", see("exits")),
            ("frees", see("exits")),
            ("registered", 11),
            ("by_hand", 0),
        ] {
            assert_eq!(see(name), events, "{name} on {cpus} CPUs");
            assert!(events > 0 || name == "by_hand", "{name} on {cpus} CPUs");
        }
    }
}

/// Calls of futexes enter the kernel and leave it, and every task that was woken had waited.
#[test]
fn futexes_are_entered_and_left() {
    let policy = policy("tracing");
    let machine = after(&config(3, &[("syscall_ns", 700)]), &policy, &busy(), 60);
    let see = |name: &str| number(&machine, name);
    let of_each = ["waited", "came_late", "wakes", "locked_pi", "unlocked_pi"].map(see);
    assert!(of_each.iter().all(|times| *times > 0), "{of_each:?}");
    let inside = see("calls") - see("returns");
    assert!(inside <= machine.trace().tasks().len() as u64, "{inside} tasks are in a call");
    assert_eq!(see("returns"), of_each.iter().sum::<u64>());
    let waiting = see("waits_begun") - see("waited") - see("came_late");
    assert!((see("waited")..=see("waited") + waiting).contains(&see("woken")));
    assert_eq!(["call_number", "last_caller", "arguments"].map(see), [202, 1, 5]);
}

/// One of two tasks finds the mutex taken and waits; the other releases it in a call.
#[test]
fn a_mutex_calls_the_kernel_when_it_is_contended() {
    let program = |start: &str, hold: &str| {
        format!(
            "[[task]]\nname = \"t{start}\"\nstart = \"{start}\"\n\
             program = [{{ lock = \"m\" }}, {{ run = \"{hold}\" }}, {{ unlock = \"m\" }}]\n"
        )
    };
    let policy = policy("tracing");
    let seen = |starts: [&str; 2], kind: &str| {
        let lock = format!("[locks.m]\nkind = \"{kind}\"\n");
        let text = format!("{lock}{}{}", program(starts[0], "3ms"), program(starts[1], "1ms"));
        let machine = after(&config(2, &[("syscall_ns", 1000)]), &policy, &of_text(&text), 20);
        assert_eq!(number(&machine, "woken_by_record"), number(&machine, "woken"));
        let names = ["waited", "came_late", "wakes", "woken", "locked_pi", "unlocked_pi", "calls"];
        names.map(|name| number(&machine, name))
    };
    assert_eq!(seen(["0ms", "10ms"], "mutex"), [0, 0, 0, 0, 0, 0, 0], "one after the other");
    // Its word says contended still: the second one has no task to wake.
    assert_eq!(seen(["0ms", "1ms"], "mutex"), [1, 0, 2, 1, 0, 0, 3]);
    // It is free again before the call has looked at it.
    assert_eq!(seen(["0ms", "2999500ns"], "mutex"), [0, 1, 2, 0, 0, 0, 3]);
    assert_eq!(seen(["0ms", "1ms"], "rt_mutex"), [0, 0, 0, 0, 1, 2, 3]);
}

#[test]
fn a_task_that_moves_shows_its_cgroup() {
    let w = of_text(
        "[cgroups.web]\n[cgroups.\"web/f\"]\n[[task]]\nname = \"a\"\ncount = 2\n\
         program = [{ run = \"1ms\" }, { cgroup = \"web/f\" }, { cgroup = \"web/f\" }, { run = \"1ms\" }]\n",
    );
    let machine = after(&config(1, &[]), &policy("tracing"), &w, 10);
    assert_eq!(["moves", "moves_of_one"].map(|name| number(&machine, name)), [2, 2]);
    assert_eq!(number(&machine, "last_path").to_le_bytes(), *b"/web/f\0\0");
}

fn with(setup: &Setup) -> Result<Policy, String> {
    policy("tracing").with_setup(setup).map_err(|e| e.to_string())
}

#[test]
fn a_loader_says_which_programs_it_attaches() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let setup = Setup {
        attach: names(&["count_by_hand", "unheard_of"]),
        detach: names(&["count_switch", "end_wait"]),
        ..Setup::default()
    };
    let machine = after(&config(2, &[]), &with(&setup).expect("programs"), &busy(), 30);
    let see = |name: &str| number(&machine, name);
    let switches = count(machine.trace(), |kind| matches!(kind, EventKind::Switch { .. }));
    assert_eq!(["by_hand", "switches", "waited"].map(see), [switches, 0, 0]);
    assert!(see("waits_begun") > 0);
    for (attach, detach) in [("tracing_init", ""), ("", "nothing"), ("prepare", "")] {
        let only =
            |name: &str| names(&[name]).into_iter().filter(|name| !name.is_empty()).collect();
        let setup = Setup { attach: only(attach), detach: only(detach), ..Setup::default() };
        let problem = with(&setup).expect_err("no such program");
        assert!(problem.contains(&format!("`{attach}{detach}`")), "{problem}");
    }
}

/// Programs that only look change nothing but the time that they take.
#[test]
fn programs_take_time_and_nothing_else() {
    let policy = policy("tracing");
    let all: Vec<String> =
        tracing_programs(&object("tracing")).into_iter().map(|p| p.name).collect();
    let none = with(&Setup { detach: all, ..Setup::default() }).expect("programs");
    let run = |policy: &Policy, costs: &[(&str, u64)]| {
        after(&config(2, costs), policy, &busy(), 40).finish().expect("a result")
    };
    let (looked, alone) = (run(&policy, &[]), run(&none, &[]));
    let events = |result: &fairground_machine::RunResult| {
        result
            .trace
            .events()
            .map(|event| (event.time_ns, event.cpu, event.kind))
            .collect::<Vec<_>>()
    };
    assert!(events(&looked) == events(&alone), "without costs the runs are the same");
    assert!(looked.counters.insns > alone.counters.insns + 10_000);
    assert_eq!(alone.counters.insns, run(&none, &[("call_ns", 300)]).counters.insns);
    assert!(run(&policy, &[("call_ns", 300)]).counters.switches < looked.counters.switches);
}

#[test]
fn an_error_in_a_program_names_it() {
    let settings = [Setting::initial("fail_at", "7")];
    let mut machine =
        Machine::new(&config(1, &[]), &policy("tracing"), &settings, &busy()).expect("a machine");
    machine.run_until(60 * MS).expect("no fault of the machine");
    let exit = machine.finish().expect("a result").exit;
    assert_eq!(exit.kind, ExitKind::ErrorBpf);
    let origin = exit.origin.expect("where it ended");
    assert_eq!(origin.callback, "count_switch (tp_btf/sched_switch)");
    assert_eq!(origin.places[0].function, "count_switch");
}

#[test]
fn what_becomes_of_each_program_is_told() {
    let programs = tracing_programs(&object("tracing"));
    let of = |name: &str| programs.iter().find(|program| program.name == name).expect("a program");
    let found = of("count_waking");
    assert_eq!((found.target.as_str(), found.by_itself), ("tp_btf/sched_waking", true));
    assert_eq!(found.state, TracingState::Called);
    assert!(matches!(of("count_switch").state, TracingState::Approximated(_)));
    assert!(!of("count_by_hand").by_itself);
    for (name, why) in [
        ("probe", "no probes"),
        ("unheard_of", "no such event"),
        ("at_interrupt", "handlers of interrupts"),
    ] {
        let TracingState::Never(text) = &of(name).state else { panic!("{name} is never called") };
        assert!(text.contains(why), "{name}: {text}");
    }
    assert!(programs.iter().all(|program| program.name != "tracing_init"));
    assert!(tracing_programs(&object("setup")).is_empty(), "what the loader runs is none");
}
