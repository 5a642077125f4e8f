//! A spec of a run: its options, the names in files and programs, and what is refused.

use fairground_session::{
    Kind, NamedChoice, OptionGroup, RunSpec, TimersChoice, VmModeChoice, find_workload,
};
use serde_json::{Map, Value, json};

fn words(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

#[test]
fn each_row_is_a_field_and_is_whole() {
    let mut fields: Vec<_> = RunSpec::default().words().into_iter().collect();
    for row in RunSpec::options() {
        let name = row.name;
        let at = fields.iter().position(|(field, _)| field == name);
        let (_, default) = fields.remove(at.unwrap_or_else(|| panic!("{name} is no field")));
        assert_eq!(default, (row.default)(), "{name}");
        let kebab = name.replace('_', "-");
        let is_on = default == json!(true);
        assert!(is_on || row.long().is_none_or(|long| long == kebab), "{name}: {:?}", row.long());
        assert_eq!(row.value_name().is_none(), row.kind == Kind::Flag, "{name}");
        assert!(row.doc().len() > 7 && !row.doc().ends_with('.'), "{name}: {}", row.doc());
        for other in row.conflicts.into_iter().chain(row.requires) {
            assert!(RunSpec::names().contains(&other), "{name}: there is no {other}");
        }
    }
    assert_eq!(fields, [], "fields without a row");
}

#[test]
fn a_spec_is_read_as_it_is_written() {
    let named = json!({
        "workload": "hogs:2", "on": ["vm:6.1", "sim"], "sched": "cfs", "set": { "a": true },
        "cost": { "tick_ns": 3 }, "cpus": 3, "locks": "rt-2006", "timers": "jiffies",
        "record": false, "lead_in": "3ms", "at": ["1s:a=off"], "engine": "interpreter", "hold": "2ms",
    });
    let spec = RunSpec::from_words(&words(named)).expect("words");
    assert_eq!(spec.scheduler.set, ["a=on"]);
    assert_eq!(RunSpec::from_words(&spec.stated()).expect("its own words"), spec);
    assert_eq!(RunSpec::from_words(&spec.words()).expect("its own words"), spec);
    assert_eq!(RunSpec::from_words(&Map::new()).expect("no words"), RunSpec::default());
}

#[test]
fn choices_have_a_word_each() {
    fn held<C: NamedChoice>() {
        assert_eq!(C::ALL.len(), C::WORDS.len());
        assert!(C::ALL.iter().all(|choice| C::parse(choice.word()).is_ok_and(|of| of == *choice)));
    }
    held::<TimersChoice>();
    held::<VmModeChoice>();
    held::<fairground_session::KernelAbiChoice>();
}

/// What is refused of a run on these targets, and the remedy.
fn refused(on: &[&str], option: Value) -> Option<String> {
    let workload = find_workload("hogs:1").expect("a workload of the library");
    let mut named = words(option);
    named.insert("on".to_owned(), json!(on));
    let spec = RunSpec::from_words(&named).expect("words");
    spec.resolve(&workload, false).err().map(|failure| failure.to_string())
}

#[test]
fn an_option_without_effect_is_refused_in_one_form() {
    let memory = || json!({ "memory": 2048 });
    assert_eq!(
        refused(&["sim"], memory()).expect("a refusal"),
        "--memory applies to virtual machines only, and the run is on sim\n  \
         help: leave --memory out, or add `vm:newest` to --on"
    );
    assert!(refused(&["sim", "vm:7.2"], memory()).is_none());
    for row in RunSpec::options().filter(|row| row.targets.words() == ["sim"]) {
        let value = match (row.name, row.kind) {
            ("topology", _) => json!("1x2x1"),
            (_, Kind::Flag) => json!(true),
            (_, Kind::Choice(words)) => {
                let other = words.iter().find(|word| (row.default)() != json!(word.word));
                json!(other.expect("two words").word)
            }
            (_, Kind::U32 | Kind::U64 | Kind::Size) => json!(100),
            ("cost", _) => json!(["tick_ns=3"]),
            ("show_globals" | "expect", _) => json!(["x=1"]),
            ("costs", _) => json!("zero"),
            _ => json!("3ms"),
        };
        let text = refused(&["host", "vm:7.2"], json!({ row.name: value })).expect(row.name);
        let flag = row.long().expect("an option");
        let told =
            format!("--{flag} applies to the simulator only, and the run is on host, vm:7.2");
        assert!(text.starts_with(&told), "{text}");
        assert!(text.contains(&format!("leave --{flag} out, or add `sim` to --on")), "{text}");
    }
    let beside = refused(&["sim", "vm:7.2"], json!({ "topology": "1x2x1" })).expect("a refusal");
    assert!(beside.contains("a virtual machine takes --cpus"), "{beside}");
}

#[test]
fn options_that_need_or_exclude_each_other_are_told() {
    let bound = refused(&["sim"], json!({ "idle_bound": "1ms" })).expect("a refusal");
    assert!(bound.starts_with("--idle-bound means nothing without --check"), "{bound}");
    let both = refused(&["host"], json!({ "stacks": true, "record": false })).expect("a refusal");
    assert!(both.starts_with("--stacks and --no-recording exclude each other"), "{both}");
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
    let resolved = |on: &[&str], options: Value| {
        let mut named = words(options);
        named.insert("on".to_owned(), json!(on));
        let spec = RunSpec::from_words(&named).expect("words");
        let run = spec.resolve(&workload, false).expect("a run");
        (run.machine.cost.preset_name().to_owned(), run.notes)
    };
    let (preset, notes) = resolved(&["sim", "vm:7.2"], json!({}));
    assert_eq!(preset, "linux-7.2-scx");
    let told = "costs of the simulated machine: linux-7.2-scx, for the kernel of vm:7.2 beside it; --costs takes others";
    assert_eq!(notes, [told]);
    let slow = resolved(&["sim", "vm:7.2"], json!({ "instruction_ns": 4 }));
    assert_eq!(slow.0, "linux-7.2-scx", "the speed is that of a guest beside it");
    // The first of several guests counts.
    let several = resolved(&["vm:6.1", "sim", "host", "vm:7.2"], json!({}));
    assert_eq!(several.0, "linux-6.1");
    for (on, options) in [
        (&["sim"][..], json!({})),
        (&["sim", "host"], json!({})),
        (&["sim", "vm:7.2"], json!({ "costs": "modern" })),
        (&["sim", "vm:7.2"], json!({ "vm_mode": "fast" })),
    ] {
        assert_eq!(resolved(on, options), ("modern".to_owned(), vec![]), "{on:?}");
    }
}
