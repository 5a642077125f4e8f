//! A spec of a run: its options, the names in files and programs, and what is refused.

use clap::{FromArgMatches, Parser};
use fairground_session::{RunSpec, find_workload};
use serde_json::{Map, Value, json};

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    spec: RunSpec,
}

fn words(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

#[test]
fn the_command_line_and_named_values_say_the_same() {
    let plain = CommandLine::try_parse_from(["run", "hogs:2"]).expect("a command line").spec;
    let named = RunSpec::from_words(&words(json!({ "workload": "hogs:2" }))).expect("words");
    assert_eq!(plain, named, "every option has one default");
    let line = "run hogs:2 --on vm:6.1,sim --sched cfs --set a=on --cost tick_ns=3 --cpus 3 --locks rt-2006 \
                --timers jiffies --no-recording --lead-in 3ms --at 1s:a=off --engine interpreter --hold 2ms";
    let typed = CommandLine::try_parse_from(line.split_whitespace()).expect("a line").spec;
    let named = json!({
        "workload": "hogs:2", "on": ["vm:6.1", "sim"], "sched": "cfs", "set": { "a": true },
        "cost": { "tick_ns": 3 }, "cpus": 3, "locks": "rt-2006", "timers": "jiffies",
        "record": false, "lead_in": "3ms", "at": ["1s:a=off"], "engine": "interpreter", "hold": "2ms",
    });
    let named = RunSpec::from_words(&words(named)).expect("words");
    assert_eq!(typed, named);
    assert_eq!(RunSpec::from_words(&typed.stated()).expect("its own words"), typed);
}

#[test]
fn each_name_is_an_option() {
    let command = <CommandLine as clap::CommandFactory>::command();
    let options: Vec<_> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    assert_eq!(RunSpec::names(), options);
    let matches = command.get_matches_from(["run", "hogs:2"]);
    assert!(RunSpec::from_arg_matches(&matches).expect("a spec").stated().len() == 1);
}

#[test]
fn what_is_wrong_is_named() {
    let wrong = |value: Value| RunSpec::from_words(&words(value)).expect_err("a wrong word");
    let unknown = wrong(json!({ "lead-in": "3ms" }));
    assert_eq!(unknown.name, "lead-in");
    assert!(unknown.help.expect("a remedy").starts_with("did you mean `lead_in`?"));
    let choice = wrong(json!({ "workload": "hogs:2", "locks": "rt2006" }));
    assert!(choice.to_string().starts_with("locks: there is no `rt2006`; did you mean `rt-2006`?"));
    assert!(!choice.is_type);
    for value in [json!({ "cpus": "two" }), json!({ "sched": 5 }), json!({ "duration": 5 })] {
        let wrong = wrong(value);
        assert!(wrong.is_type, "{wrong}");
    }
    assert!(wrong(json!({ "seed": -1 })).to_string().starts_with("seed: invalid value"));
}

#[test]
fn beside_a_guest_the_machine_has_the_costs_of_its_kernel() {
    let workload = find_workload("hogs:1").expect("a workload of the library");
    let resolved = |line: &str| {
        let spec = CommandLine::try_parse_from(line.split_whitespace()).expect("a line").spec;
        let run = spec.resolve(&workload, false).expect("a run");
        (run.machine.cost.preset_name().to_owned(), run.notes)
    };
    let (preset, notes) = resolved("run hogs:1 --on sim,vm:7.2");
    assert_eq!(preset, "linux-7.2-scx");
    let told = "costs of the simulated machine: linux-7.2-scx, for the kernel of vm:7.2 beside it; --costs takes others";
    assert_eq!(notes, [told]);
    let slow = resolved("run hogs:1 --on sim,vm:7.2 --instruction-ns 4");
    assert_eq!(slow.0, "linux-7.2-scx", "the speed is that of a guest beside it");
    // The first of several guests counts.
    assert_eq!(resolved("run hogs:1 --on vm:6.1,sim,host,vm:7.2").0, "linux-6.1");
    for line in [
        "run hogs:1",
        "run hogs:1 --on sim,host",
        "run hogs:1 --on sim,vm:7.2 --costs modern",
        "run hogs:1 --on sim,vm:7.2 --vm-mode fast",
    ] {
        assert_eq!(resolved(line), ("modern".to_owned(), vec![]), "{line}");
    }
}
