//! Cgroups: what the scheduler is told, in which order (`scx_cgroup_init`, `scx_cgroup_can_attach`, `sched_move_task`,
//! `scx_group_set_weight`, `scx_cgroup_exit` of Linux 6.12), and what it may ask.

use crate::support::{MS, free_machine, lines, policy, simulate, texts};
use fairground_machine::{ExitKind, Machine, RunResult, Setting};
use fairground_trace::EventKind;
use fairground_workload::{Op, Workload, parse};

/// A tree of five, and groups of tasks by their lines.
fn tree(tasks: &str) -> Workload {
    let text = format!(
        "format = 1\nname = \"tree\"\nduration = \"1s\"\n\
         [cgroups.web]\nweight = 300\n[cgroups.\"web/front\"]\n[cgroups.\"web/back\"]\n\
         weight = 50\n[cgroups.batch]\n{tasks}"
    );
    parse("tree.toml", &text).unwrap_or_else(|e| panic!("{e}"))
}

fn run(cpus: u32, settings: &[Setting], workload: &Workload, until_ns: u64) -> RunResult {
    let config = free_machine(cpus);
    let mut machine = Machine::new(&config, &policy("cgroups"), settings, workload)
        .unwrap_or_else(|e| panic!("{e}"));
    machine.run_until(until_ns).unwrap_or_else(|e| panic!("{e}"));
    machine.finish().unwrap_or_else(|e| panic!("{e}"))
}

fn initial(list: &[(&str, &str)]) -> Vec<Setting> {
    list.iter().map(|(name, value)| Setting::initial(name, value)).collect()
}

fn log(result: &RunResult) -> String {
    texts(&result.log).join("\n")
}

/// Lines of the log with one of these words in front.
fn said(result: &RunResult, words: &[&str]) -> Vec<String> {
    let first = |line: &&str| words.contains(&line.split(' ').next().unwrap_or_default());
    log(result).lines().filter(first).map(str::to_owned).collect()
}

const HOG: &str =
    "[[task]]\nname = \"hog\"\ncgroup = \"web/front\"\nprogram = [{ run = \"forever\" }]\n";

#[test]
fn the_tree_is_told_from_the_root_and_left_from_the_leaves() {
    let result = run(1, &[], &tree(HOG), 5 * MS);
    insta::assert_snapshot!(log(&result));
    assert_eq!(result.exit.kind, ExitKind::Unregistered);
}

#[test]
fn a_running_task_moves_itself() {
    let w = tree(
        "[[task]]\nname = \"a\"\ncgroup = \"web/front\"\n\
         program = [{ run = \"1ms\" }, { cgroup = \"batch\" }, { run = \"1ms\" }, \
         { cgroup = \"batch\" }, { cgroup = \"/\" }]\n",
    );
    let result = run(1, &[], &w, 5 * MS);
    insta::assert_snapshot!(format!("{}\n\n{}", log(&result), lines(&result.trace, 5 * MS)));
}

#[test]
fn tasks_move_while_they_run_wait_and_sleep() {
    let w = tree(
        "[[task]]\nname = \"hog\"\ncount = 2\ncgroup = \"web\"\nprogram = [{ run = \"forever\" }]\n\
         [[task]]\nname = \"nap\"\ncgroup = \"batch\"\nprogram = [{ sleep = \"2ms\" }, { run = \"1ms\" }]\n",
    );
    let at = |ms, name: &str| Setting::at(ms * MS, name, "web/back");
    let result = run(1, &[at(1, "task.hog.cgroup"), at(1, "task.nap.cgroup")], &w, 4 * MS);
    insta::assert_snapshot!(log(&result));
    let moves = result.trace.events().filter(|e| matches!(e.kind, EventKind::CgroupMove { .. }));
    assert_eq!(moves.count(), 3);
}

/// A remote CPU's running task is taken off its queue and put back, and that CPU schedules anew.
#[test]
fn a_task_that_runs_on_another_cpu_moves() {
    let w = tree(
        "[[task]]\nname = \"hog\"\ncount = 3\ncgroup = \"web\"\nprogram = [{ run = \"forever\" }]\n",
    );
    let at = Setting::at(MS + MS / 2, "task.hog.cgroup", "batch");
    let result = run(2, &[at], &w, 20 * MS);
    assert_eq!(said(&result, &["move"]).len(), 3, "{}", log(&result));
    assert_eq!(said(&result, &["cgroup_exit"])[0], "cgroup_exit 65 runnable 3 weight 100");
}

#[test]
fn children_begin_where_their_parent_is() {
    let w = tree(
        "[[task]]\nname = \"boss\"\ncgroup = \"web\"\n\
         program = [{ fork = \"child\" }, { cgroup = \"batch\" }, { fork = \"child\" }, \
         { fork = \"front\" }, \"wait\"]\n\
         [[task]]\nname = \"child\"\nprogram = [{ run = \"1ms\" }]\n\
         [[task]]\nname = \"front\"\ncgroup = \"web/front\"\nprogram = [{ run = \"1ms\" }]\n",
    );
    let result = run(2, &[], &w, 20 * MS);
    insta::assert_snapshot!(said(&result, &["init_task"]).join("\n"), @r#"
    init_task boss in 129 weight 100
    init_task child in 129 weight 100
    init_task child in 65 weight 100
    init_task front in 257 weight 100
    "#);
    let cgroups: Vec<&str> = result.trace.tasks()[1..]
        .iter()
        .map(|task| result.trace.cgroups()[task.cgroup.expect("known").index()].path.as_str())
        .collect();
    assert_eq!(cgroups, ["web", "web", "batch", "web/front"]);
}

#[test]
fn weights_change_at_the_start_during_the_run_and_by_a_task() {
    let w = tree(
        "[[task]]\nname = \"boss\"\nprogram = [{ run = \"1ms\" }, \
         { weight = { cgroup = \"web/front\", weight = 7 } }, \
         { weight = { cgroup = \"web/front\", weight = 7 } }, { run = \"forever\" }]\n",
    );
    let settings = [
        Setting::initial("cgroup.batch.weight", "10000"),
        Setting::at(3 * MS, "cgroup.web.weight", "1"),
    ];
    let result = run(1, &settings, &w, 5 * MS);
    let weights = said(&result, &["cgroup_init", "set_weight"]);
    insta::assert_snapshot!(weights.join("\n"), @r#"
    cgroup_init 1 level 0 weight 100
    cgroup_init 65 level 1 weight 10000
    cgroup_init 129 level 1 weight 300
    cgroup_init 193 level 2 weight 50
    cgroup_init 257 level 2 weight 100
    set_weight 257 100 -> 7
    set_weight 129 300 -> 1
    "#);
    assert_eq!(result.trace.cgroups()[1].weight, Some(10_000), "the trace has it from the start");
    let changes: Vec<(u64, u32, u32)> = result
        .trace
        .events()
        .filter_map(|e| match e.kind {
            EventKind::CgroupWeight { cgroup, weight } => Some((e.time_ns, cgroup.0, weight)),
            _ => None,
        })
        .collect();
    assert_eq!(changes, [(MS, 4, 7), (3 * MS, 2, 1)]);
}

#[test]
fn a_refused_move_is_cancelled_for_those_that_were_ready() {
    let w = tree(
        "[[task]]\nname = \"hog\"\ncount = 3\ncgroup = \"web\"\nprogram = [{ run = \"forever\" }]\n",
    );
    let mut settings = initial(&[("fault", "REFUSE_SECOND")]);
    settings.push(Setting::at(MS, "task.hog.cgroup", "batch"));
    let result = run(1, &settings, &w, 5 * MS);
    let told = said(&result, &["prep_move", "cancel_move", "move"]);
    insta::assert_snapshot!(told.join("\n"), @r#"
    prep_move hog/0 129 -> 65
    prep_move hog/1 129 -> 65
    cancel_move hog/0 129 -> 65
    "#);
    assert_eq!(result.counters.cgroup_moves_refused, 1);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "the scheduler may refuse");
    assert!(!result.trace.events().any(|e| matches!(e.kind, EventKind::CgroupMove { .. })));
}

#[test]
fn storage_lives_until_it_is_deleted() {
    let result = run(1, &initial(&[("forget", "on")]), &tree(HOG), 5 * MS);
    insta::assert_snapshot!(said(&result, &["cgroup_exit", "deleted"]).join("\n"), @r#"
    cgroup_exit 65 runnable 0 weight 100
    deleted 0, again -2, new weight 0
    cgroup_exit 193 runnable 0 weight 50
    deleted 0, again -2, new weight 0
    cgroup_exit 257 runnable 1 weight 100
    deleted 0, again -2, new weight 0
    cgroup_exit 129 runnable 0 weight 300
    deleted 0, again -2, new weight 0
    cgroup_exit 1 runnable 0 weight 100
    deleted 0, again -2, new weight 0
    "#);
}

#[test]
fn who_may_ask_for_a_cgroup() {
    let w = tree(
        "[[task]]\nname = \"hog\"\ncount = 2\ncgroup = \"web\"\n\
         program = [{ run = \"1ms\" }, { cgroup = \"batch\" }, { run = \"forever\" }]\n",
    );
    for (fault, message) in [
        ("ASK_IN_DISPATCH", "called on a task not being operated on"),
        ("ASK_OTHER", "called on a task not being operated on"),
        ("ASK_IN_MOVE", "kfunc with mask 0x1f called from an operation only allowing 0x0"),
        ("BAD_ERRNO", "ops.cgroup_prep_move() returned an invalid errno 5"),
        ("FAIL_INIT", "ops.cgroup_init() failed (-12)"),
    ] {
        let result = run(1, &initial(&[("fault", fault)]), &w, 50 * MS);
        assert_eq!(result.exit.kind, ExitKind::Error, "{fault}");
        assert_eq!(result.exit.message, message, "{fault}");
    }
    let result = run(1, &initial(&[("fault", "WILD_ANCESTOR")]), &w, 50 * MS);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "a level that is not there is NULL");
}

#[test]
fn a_task_is_under_its_cgroup_and_those_above() {
    let w = tree(HOG);
    for (id, there) in [(1, true), (65, false), (129, true), (193, false), (257, true)] {
        let config = free_machine(1);
        let settings = initial(&[("under_id", &id.to_string())]);
        let mut machine = Machine::new(&config, &policy("cgroups"), &settings, &w).expect("loads");
        machine.run_until(5 * MS).expect("runs");
        assert_eq!(machine.variable_field("under", 0, 8).expect("there") > 0, there, "{id}");
    }
}

#[test]
fn settings_that_name_nothing_are_refused() {
    let w = tree(HOG);
    let mut answers = String::new();
    for (name, value) in [
        ("cgroup.wb.weight", "5"),
        ("cgroup.web.weight", "0"),
        ("cgroup.web.weight", "heavy"),
        ("cgroup./.weight", "5"),
        ("cgroup.web.shares", "5"),
        ("task.hogs.cgroup", "web"),
        ("task.hog.cgroup", "web/fornt"),
    ] {
        let settings = initial(&[(name, value)]);
        let error = Machine::new(&free_machine(1), &policy("cgroups"), &settings, &w).unwrap_err();
        answers += &format!("{error}\n");
    }
    let mut plain = w.clone();
    plain.cgroups.clear();
    plain.tasks[0].cgroup = None;
    let settings = initial(&[("cgroup.web.weight", "5")]);
    let error = Machine::new(&free_machine(1), &policy("cgroups"), &settings, &plain).unwrap_err();
    answers += &format!("{error}\n");
    plain.tasks[0].program = vec![Op::SetCgroup(3)];
    let error = Machine::new(&free_machine(1), &policy("cgroups"), &[], &plain).unwrap_err();
    answers += &format!("{error}\n");
    insta::assert_snapshot!(answers);
}

/// From the waking to the switch, and from there to the next, ns, of a task that sleeps in a cgroup.
fn latency_and_run(cgroup: &str, costs: &[(&str, u64)]) -> (u64, u64) {
    let workload = tree(&format!(
        "[[task]]\nname = \"sleeper\"\ncgroup = \"{cgroup}\"\n\
         program = [{{ loop = [{{ run = \"10us\" }}, {{ sleep = \"1ms\" }}] }}]\n"
    ));
    let mut config = free_machine(1);
    for (name, ns) in costs {
        config.cost.set(name, *ns).expect("a cost of that name");
    }
    let result = simulate(&config, &policy("probe"), &[], &workload, 5 * MS);
    let events = result.trace.events().map(|event| (event.time_ns, event.kind));
    let times: Vec<u64> = events
        .skip_while(|(_, kind)| !matches!(kind, EventKind::Waking { .. }))
        .filter(|(_, kind)| matches!(kind, EventKind::Waking { .. } | EventKind::Switch { .. }))
        .map(|(time_ns, _)| time_ns)
        .take(3)
        .collect();
    (times[1] - times[0], times[2] - times[1])
}

#[test]
fn each_level_costs_at_a_wakeup_and_at_blocking() {
    let costs =
        [("wakeup_ns", 100), ("block_ns", 50), ("group_wakeup_ns", 7), ("group_block_ns", 3)];
    assert_eq!(latency_and_run("/", &costs), (100, 10_050));
    assert_eq!(latency_and_run("batch", &costs), (107, 10_053));
    assert_eq!(latency_and_run("web/front", &costs), (114, 10_056));
}

/// A task alone comes from the idle task and leaves to it.
#[test]
fn the_idle_task_makes_a_switch_and_blocking_cheaper() {
    let costs = [("context_switch_ns", 100), ("block_ns", 50), ("idle_saving_ns", 20)];
    assert_eq!(latency_and_run("/", &costs), (0, 10_000 + 80 + 30));
}

/// `cpu.max` and `cpu.idle`: the scheduler is told, at the start of the limits that there are, later of changes.
/// Nothing else enforces them (`scx_group_set_bandwidth`, `scx_group_set_idle` of Linux 7.2).
#[test]
fn limits_are_told_and_no_more() {
    let text = "format = 1\nname = \"limits\"\nduration = \"1s\"\n\
                [cgroups.a]\nmax = \"20ms/100ms\"\n[cgroups.b]\nmax = \"10000 50000 5000\"\nidle = true\n\
                [cgroups.c]\n\
                [[task]]\nname = \"hog\"\ncgroup = \"a\"\nprogram = [{ run = \"forever\" }]\n";
    let w = parse("limits.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let settings = [
        Setting::initial("cgroup.c.max", "2ms"),
        Setting::at(MS, "cgroup.a.max", "max"),
        Setting::at(2 * MS, "cgroup.a.max", "max"),
        Setting::at(3 * MS, "cgroup.b.max", "10ms/50ms"),
        Setting::at(4 * MS, "cgroup.b.idle", "off"),
    ];
    let mut machine = Machine::new(&free_machine(1), &policy("bandwidth"), &settings, &w)
        .unwrap_or_else(|e| panic!("{e}"));
    machine.run_until(200 * MS).unwrap_or_else(|e| panic!("{e}"));
    let result = machine.finish().unwrap_or_else(|e| panic!("{e}"));
    insta::assert_snapshot!(log(&result), @r"
    init 1: -1 of 100000
    burst 0
    init 65: 20000 of 100000
    burst 0
    init 129: 10000 of 50000
    burst 5000
    init 193: 2000 of 100000
    burst 0
    set 65: -1 of 100000
    burst 0
    set 129: 10000 of 50000
    burst 0
    idle 129: 0
    ");
    let label = |e: &fairground_trace::Event| match e.kind {
        EventKind::Param { label } => Some(result.trace.label(label).to_owned()),
        _ => None,
    };
    let changes: Vec<String> = result.trace.events().filter_map(|e| label(&e)).collect();
    assert_eq!(changes.len(), 4, "the trace has each change: {changes:?}");
}

#[test]
fn limits_that_no_kernel_takes_are_refused() {
    for (name, value, problem) in [
        ("cgroup.web.max", "1us/100ms", "at least 1 ms"),
        ("cgroup.web.max", "soon", "not a length of time"),
        ("cgroup.web.idle", "perhaps", "`on` or `off`"),
        ("cgroup./.max", "10ms", "the root cgroup has no `max`"),
        ("cgroup.web.share", "10ms", "cgroup.PATH.max=50ms/100ms"),
    ] {
        let setting = [Setting::initial(name, value)];
        let config = free_machine(1);
        let error = Machine::new(&config, &policy("cgroups"), &setting, &tree(HOG))
            .expect_err("no kernel takes that");
        assert!(error.to_string().contains(problem), "{name}={value}: {error}");
    }
}
