//! Settings of parts of variables: paths, words for the topology, and what is said of wrong ones.

use std::sync::LazyLock;

use fairground_bpf::{Engine, Object};
use fairground_machine::{
    Machine, MachineConfig, Meanings, NamedValue, Policy, Setting, SettingError, Topology, Unmet,
    VariableChange,
};
use fairground_workload::Op;

use crate::support::{MS, free_machine, object, task, workload};

static OBJECT: LazyLock<Object> = LazyLock::new(|| object("values"));

/// The bytes of a variable after some settings, on a machine of 2 sockets with 2 cores of 2 threads; before, all bits
/// of those that the object does not initialise are `fill`.
fn bytes(settings: &[(&str, &str)], variable: &str, fill: Option<u8>) -> Vec<u8> {
    let object = &*OBJECT;
    let global = object.global(variable).expect("a variable of the fixture");
    let mut content = object.initial(global);
    if let Some(fill) = fill {
        content.fill(fill);
    }
    for (name, value) in settings {
        let change = change(name, value).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(object.globals()[change.variable].name, variable);
        assert!(change.patches.iter().all(|patch| patch.apply(&mut content)));
    }
    content
}

fn change(name: &str, value: &str) -> Result<VariableChange, SettingError> {
    let object = &*OBJECT;
    let topology: Topology = "2x2x2".parse().expect("a topology");
    let types = object.types();
    let meanings = Meanings::new(&types, &topology);
    meanings.change("values", object.globals(), &Setting::initial(name, value))
}

fn numbers(settings: &[(&str, &str)], variable: &str) -> Vec<u32> {
    let content = bytes(settings, variable, None);
    content.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().expect("four"))).collect()
}

#[test]
fn a_path_changes_its_part_and_nothing_else() {
    let other = 0xa5;
    let old = bytes(&[], "config", Some(other));
    // (path, value, offset, bytes)
    let cases: [(&str, &str, usize, &[u8]); 9] = [
        ("config.nr_cpus", "7", 0, &[7, 0, 0, 0]),
        ("config.mode", "mode_fast", 4, &[9, 0, 0, 0]),
        ("config.depths[1].high", "-2", 14, &[0xfe, 0xff]),
        ("config.whole", "0x0102030405060708", 16, &[8, 7, 6, 5, 4, 3, 2, 1]),
        ("config.halves[1]", "1", 20, &[1, 0, 0, 0]),
        ("config.first", "2", 24, &[0xa2]),
        ("config.second", "1", 24, &[0x0d]),
        ("config.fast", "on", 25, &[1]),
        ("config.slice_us", "3ms", 32, &[0xb8, 0x0b, 0, 0, 0, 0, 0, 0]),
    ];
    for (path, value, offset, part) in cases {
        let mut expected = old.clone();
        expected[offset..offset + part.len()].copy_from_slice(part);
        assert_eq!(bytes(&[(path, value)], "config", Some(other)), expected, "{path}={value}");
    }
}

#[test]
fn ranges_leave_their_end_and_stars_take_all() {
    assert_eq!(numbers(&[("numbers[1..3]", "7")], "numbers"), [10, 7, 7, 13, 14, 15]);
    assert_eq!(numbers(&[("numbers[*]", "7"), ("numbers[2]", "1")], "numbers"), [7, 7, 1, 7, 7, 7]);
    assert_eq!(numbers(&[("numbers[0..cores]", "cpus")], "numbers"), [8, 8, 8, 8, 14, 15]);
    assert_eq!(numbers(&[("numbers[llcs]", "0")], "numbers"), [10, 11, 0, 13, 14, 15]);
    let matrix = bytes(&[("matrix[*][1]", "-1"), ("matrix[1][0..1]", "2")], "matrix", None);
    assert_eq!(matrix, [0, 0, 255, 255, 0, 0, 2, 0, 255, 255, 0, 0]);
    let one = change("numbers[*]", "7").expect("a setting");
    assert_eq!(one.patches.len(), 1, "adjoining elements are one change");
}

#[test]
fn words_fill_arrays_by_the_topology() {
    let llcs = numbers(&[("cpu_llc", "cpu.llc")], "cpu_llc");
    assert_eq!(llcs[..10], [0, 0, 0, 0, 1, 1, 1, 1, 0, 0]);
    assert_eq!(numbers(&[("numbers", "llc.cpus")], "numbers"), [4, 4, 12, 13, 14, 15]);
    let masks = bytes(&[("masks", "core.mask")], "masks", Some(0xff));
    let expected: Vec<u8> = (0..4).flat_map(|core| u128::to_le_bytes(0b11 << (2 * core))).collect();
    assert_eq!(masks, expected, "the words of a mask behind the last CPU are 0");
    assert_eq!(bytes(&[("byte_mask", "cpus.mask")], "byte_mask", None), [0xff, 0]);
    assert_eq!(bytes(&[("masks[1][0]", "cpus.mask")], "masks", None)[16], 0xff);
    let configs = bytes(&[("configs[*].nr_cpus", "llc.id")], "configs", Some(9));
    let size = configs.len() / 4;
    let first: Vec<u8> = (0..4).map(|index| configs[index * size]).collect();
    assert_eq!(first, [0, 1, 9, 9], "elements without a value stay as they are");
}

#[test]
fn texts_end_with_a_zero() {
    assert_eq!(bytes(&[("name", "abc")], "name", Some(1)), *b"abc\0\0\0\0\0");
    assert_eq!(bytes(&[("name", "cpus")], "name", None), *b"cpus\0\0\0\0", "a text is no word");
    assert_eq!(bytes(&[("name[1]", "76")], "name", None), *b"oLd\0\0\0\0\0");
}

#[test]
fn what_is_wrong_says_why_and_what_to_write() {
    for (name, value, parts) in [
        (
            "config",
            "1",
            &["structure with the members `nr_cpus`", "and 2 more", "config.nr_cpus="][..],
        ),
        ("configs", "1", &["an array of 4 elements", "configs[0]="]),
        ("configs.fast", "1", &["an array of 4 elements"]),
        ("config.nr_cpu", "1", &["no member `nr_cpu`; did you mean `nr_cpus`?"]),
        ("config.zzzzzzzz", "1", &["no member", "`mode`"]),
        ("config.depths[2].low", "1", &["`config.depths` has 2 elements"]),
        ("config.depths[0..3].low", "1", &["2 elements", "without the element END"]),
        ("config.depths[1..1].low", "1", &["2 elements"]),
        ("config.depths[x].low", "1", &["`[x]` is no element", "`cpus`"]),
        ("config.depths[0", "1", &["lacks its `]`"]),
        ("config.nr_cpus[0]", "1", &["`config.nr_cpus` is no array"]),
        ("config.nr_cpus.x", "1", &["`config.nr_cpus` has no members"]),
        ("config.", "1", &["name of a member is missing"]),
        ("config.first", "8", &["0 to 7"]),
        ("config.mode", "MODE", &["`MODE_SLOW`, `MODE_FAST`"]),
        ("config.pointer", "1", &["is a pointer"]),
        ("real", "1", &["no whole number"]),
        ("name", "12345678", &["8 bytes", "takes 7"]),
        ("numbers", "cpu.llc", &["`cpu.llc` has 8 values, and the array has 6 elements"]),
        ("numbers[0..1]", "llc.id", &["2 values, and the range has 1 elements"]),
        ("numbers[0]", "cpu.llc", &["list of 8 values"]),
        ("cpu_llc", "cpu.cache", &["no word", "`cpu.llc`"]),
        ("byte_mask", "llc.mask", &["a mask of 8 bits has no room"][..0]),
        ("configs", "cpus.mask", &["a mask of CPUs needs"]),
        ("confid.fast", "1", &["no variable `confid.fast`; did you mean `config`?"]),
    ] {
        if parts.is_empty() {
            change(name, value).expect("it has room");
            continue;
        }
        let error = change(name, value).expect_err(name).to_string();
        for part in parts {
            assert!(error.contains(part), "`{part}` is missing from: {error}");
        }
    }
}

#[test]
fn parts_change_during_a_run_unless_they_are_frozen() {
    let policy = Policy::load(&OBJECT, Engine::Jit).expect("a scheduler");
    let hog = workload(vec![task("hog", 1, vec![Op::RunForever])]);
    let machine = |settings: &[Setting]| -> Result<Machine, String> {
        let config = MachineConfig { topology: Topology::flat(3), ..free_machine(3) };
        Machine::new(&config, &policy, settings, &hog).map_err(|e| e.to_string())
    };
    let settings = [
        Setting::initial("configs[2].nr_cpus", "cpus"),
        Setting::at(5 * MS, "configs[2].depths[0].low", "9"),
    ];
    let mut running = machine(&settings).expect("settings of the fixture");
    let part = |machine: &Machine, at: usize| {
        let configs = machine.variable("configs").expect("a variable");
        configs[configs.len() / 2 + at]
    };
    assert_eq!((part(&running, 0), part(&running, 8)), (3, 0));
    running.run_until(6 * MS).expect("no fault of the machine");
    assert_eq!((part(&running, 0), part(&running, 8)), (3, 9));
    let error = machine(&[Setting::at(MS, "config.nr_cpus", "1")]).expect_err("it is frozen");
    assert!(error.contains("const volatile"), "{error}");
}

/// The first part of a variable that is not as expected after some settings.
fn unmet(settings: &[(&str, &str)], variable: &str, expected: &str) -> Option<Unmet> {
    let object = &*OBJECT;
    let topology: Topology = "2x2x2".parse().expect("a topology");
    let types = object.types();
    let meanings = Meanings::new(&types, &topology);
    let expectation = meanings.expectation("values", object.globals(), expected);
    let expectation = expectation.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(object.globals()[expectation.part.variable].name, variable);
    expectation.unmet(&bytes(settings, variable, None), &types)
}

#[test]
fn what_is_set_is_what_is_expected() {
    for (variable, path, value) in [
        ("config", "config.nr_cpus", "7"),
        ("config", "config.mode", "MODE_FAST"),
        ("config", "config.depths[1].high", "-2"),
        ("config", "config.second", "17"),
        ("config", "config.fast", "on"),
        ("config", "config.slice_us", "3ms"),
        ("configs", "configs[1..3].nr_cpus", "cpus"),
        ("cpu_llc", "cpu_llc", "cpu.llc"),
        ("masks", "masks[llcs]", "cpus.mask"),
        ("name", "name", "new"),
        ("total", "total", "0xffff_ffff_ffff_ffff"),
    ] {
        let expected = format!("{path}={value}");
        assert_eq!(unmet(&[(path, value)], variable, &expected), None, "{expected}");
        assert!(unmet(&[], variable, &expected).is_some(), "{expected} of what was not set");
        let differs = format!("{path}!={value}");
        if !["cpu_llc", "masks"].contains(&variable) {
            assert!(unmet(&[(path, value)], variable, &differs).is_some(), "{differs}");
        }
    }
    assert_eq!(unmet(&[], "config", "config.pointer = 0"), None);
    for (holds, fails) in [("<=", "<"), (">=", ">"), ("==", "!=")] {
        assert_eq!(unmet(&[], "numbers", &format!("numbers[2] {holds} 12")), None);
        assert!(unmet(&[], "numbers", &format!("numbers[2]{fails}12")).is_some());
    }
}

#[test]
fn an_expectation_that_fails_names_the_first_part() {
    for (expected, name, wanted, found) in [
        ("configs[*].nr_cpus=1", "configs[0].nr_cpus", "1", "0"),
        ("numbers[*]>11", "numbers[0]", "> 11", "10"),
        ("numbers[1..4]<12", "numbers[2]", "< 12", "12"),
        ("cpu_llc=cpu.llc", "cpu_llc[4..8]", "1", "0"),
        ("name=new", "name", "\"new\"", "\"old\""),
        ("config.mode=MODE_SLOW", "config.mode", "MODE_SLOW", "0"),
        ("config.fast=on", "config.fast", "on", "off"),
        ("config.pointer!=0", "config.pointer", "!= NULL", "NULL"),
    ] {
        let variable = name.split(['.', '[']).next().expect("a name");
        let unmet = unmet(&[], variable, expected).expect(expected);
        let of = |text: &str| text.to_owned();
        assert_eq!(unmet, Unmet { name: of(name), expected: of(wanted), found: of(found) });
    }
}

#[test]
fn an_expectation_that_means_nothing_is_refused() {
    let object = &*OBJECT;
    let (types, topology) = (object.types(), Topology::flat(4));
    let meanings = Meanings::new(&types, &topology);
    for (text, part) in [
        ("total", "write `NAME=VALUE`"),
        ("total!3", "write `NAME=VALUE`"),
        ("totl=3", "did you mean `total`?"),
        ("total=many", "not a number"),
        ("config=1", "is a structure"),
        ("configs[4].fast=on", "has 4 elements"),
        ("cpu_llc<cpu.llc", "only `=` compares several"),
        ("name>old", "a text has no order"),
        ("real=1", "no whole number"),
    ] {
        let error = meanings.expectation("values", object.globals(), text).expect_err(text);
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn values_are_named_by_their_paths_and_equal_elements_shown_once() {
    let object = &*OBJECT;
    let (types, topology) = (object.types(), Topology::flat(4));
    let meanings = Meanings::new(&types, &topology);
    let shown = |settings: &[(&str, &str)], path: &str, max: usize| {
        let part = meanings.part("values", object.globals(), path).expect("a part");
        let variable = &object.globals()[part.variable].name;
        let (values, whole) = part.values(&bytes(settings, variable, None), &types, max);
        let text = |NamedValue { name, value }| format!("{name}={value}");
        (values.into_iter().map(text).collect::<Vec<_>>().join(" "), whole)
    };
    let all = |settings: &[(&str, &str)], path: &str| shown(settings, path, 100).0;
    assert_eq!(
        all(&[("cpu_llc[3..7]", "2")], "cpu_llc"),
        "cpu_llc[0..3]=0 cpu_llc[3..7]=2 cpu_llc[7..16]=0"
    );
    assert_eq!(all(&[], "cpu_llc"), "cpu_llc[*]=0");
    assert_eq!(
        all(&[("matrix[1][2]", "-5")], "matrix"),
        "matrix[0][*]=0 matrix[1][0..2]=0 matrix[1][2]=-5"
    );
    assert_eq!(all(&[], "numbers[1..3]"), "numbers[1]=11 numbers[2]=12");
    assert_eq!(
        all(&[("config.second", "9"), ("config.mode", "MODE_FAST")], "config"),
        "config.nr_cpus=0 config.mode=MODE_FAST config.depths[*].low=0 config.depths[*].high=0 config.whole=0 \
         config.halves[*]=0 config.first=0 config.second=9 config.fast=off config.slice_us=0 config.pointer=NULL"
    );
    assert_eq!(all(&[], "name"), "name=\"old\"");
    assert_eq!(all(&[], "real"), "real=0x0000000000000000");
    assert_eq!(shown(&[], "numbers", 2), ("numbers[0]=10 numbers[1]=11".to_owned(), false));
}
