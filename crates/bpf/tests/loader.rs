//! Parsing of compiled objects: callbacks, variables, maps, and requirements of the kernel.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::compile::compile;
use crate::support::Recorder;
use fairground_bpf::{
    ConfigValue, Engine, Env, Fixup, FuncRef, Global, GlobalType, Image, InstanceConfig, LoadCause,
    MapKind, Object, OpsValue, Symbols, TargetTypes, Trap, TrapKind, link,
};

fn bytes() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| compile("loader", &[]))
}

fn object() -> Object {
    Object::parse("loader.bpf.o", bytes()).expect("a good object")
}

const SYMBOLS: Symbols<'_> = Symbols {
    kfuncs: &["present", "changed"],
    kconfig: &[
        ("CONFIG_HZ", ConfigValue::Number(250)),
        ("LINUX_KERNEL_VERSION", ConfigValue::Number(0x06_0c_00)),
        ("CONFIG_CC_VERSION_TEXT", ConfigValue::Text(Cow::Borrowed("a compiler, version 16"))),
    ],
    ksyms: &[("runqueues", 0x4000)],
    missing_helpers: &[],
    lacks: &[],
};

fn env() -> Env<Recorder> {
    let mut env = Env::new(TargetTypes::new());
    env.kfuncs.push(("present", |_, _, args| Ok(args[0])));
    env.kfuncs.push(("changed", |_, _, args| Ok(args[0] + 1)));
    let kconfig = SYMBOLS.kconfig.iter().map(|(name, value)| ((*name).into(), value.clone()));
    env.kconfig = kconfig.collect();
    env.ksyms = SYMBOLS.ksyms.iter().map(|(name, value)| ((*name).into(), *value)).collect();
    env
}

fn run_in(object: &Object, env: &Env<Recorder>, function: &str) -> Result<u64, Trap> {
    let image = Image::new(object, env, Engine::Interpreter).expect("it links");
    let index = image.function(function).expect("the function is there");
    let mut instance = image.instantiate(&InstanceConfig::default()).expect("memory");
    instance.call_function(FuncRef(index), [0; 5], &mut Recorder::default())
}

fn run(function: &str) -> Result<u64, Trap> {
    run_in(&object(), &env(), function)
}

fn global(name: &str) -> Global {
    object().global(name).unwrap_or_else(|| panic!("no global {name}")).clone()
}

#[test]
fn struct_ops_name_their_callbacks() {
    let object = object();
    let [ops] = object.struct_ops() else { panic!("{:?}", object.struct_ops()) };
    assert_eq!((ops.name.as_str(), ops.type_name.as_str()), ("ops", "sched_ext_ops"));
    let names: Vec<&str> = ops.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["select_cpu", "enqueue", "flags", "level", "name", "table"], "no zeros");
    for name in ["select_cpu", "enqueue"] {
        let function = ops.function(name).expect("a callback");
        assert_eq!(object.functions()[function].name, name);
        assert_eq!(object.functions()[function].section, format!("struct_ops/{name}"));
    }
    assert_eq!(ops.field("dispatch"), None);
    assert_eq!(ops.field("flags"), Some(&OpsValue::Int(5)));
    assert_eq!(ops.field("level"), Some(&OpsValue::Int(-3i64 as u64)), "sign-extended");
    assert_eq!(ops.field("name"), Some(&OpsValue::Text("demo".into())));
    let slice = global("slice_ns");
    let place = OpsValue::Data { map: slice.map, offset: slice.offset };
    assert_eq!(ops.field("table"), Some(&place));
    assert_eq!(object.license(), Some("GPL"));
}

#[test]
fn functions_are_numbered_alike_before_and_after_linking() {
    let object = object();
    let linked = link(&object, &TargetTypes::new(), &SYMBOLS).expect("it links");
    assert_eq!(object.functions().len(), linked.functions.len());
    for (info, function) in object.functions().iter().zip(&linked.functions) {
        assert_eq!((&info.name, &info.section), (&function.name, &function.section));
        assert_eq!(info.slots, function.insns.len());
    }
    for name in ["local_part", "global_part", "callback"] {
        let info = object.functions().iter().find(|info| info.name == name);
        assert_eq!(info.map(|info| info.section.as_str()), Some(".text"), "{name}");
    }
}

#[test]
fn globals_have_the_types_of_the_source() {
    use GlobalType::{Array, Bool, Composite, Enum, Int};
    let slice = global("slice_ns");
    assert_eq!(slice.ty, Int { bits: 64, signed: false });
    assert_eq!(slice.tags, ["unit=ns", "doc=longest run"]);
    assert!(slice.read_only && slice.volatile && slice.is_settable());
    assert_eq!(global("smt").ty, Bool);
    let folded = global("folded");
    assert!(folded.read_only && !folded.volatile && !folded.is_settable());
    let values = |list: &[(&str, i64)]| list.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    assert_eq!(
        global("policy").ty,
        Enum {
            name: "policy".into(),
            bits: 32,
            signed: false,
            values: values(&[("FIFO", 0), ("BY_DEADLINE", 7)]),
        }
    );
    assert_eq!(
        global("sign").ty,
        Enum {
            name: "sign".into(),
            bits: 32,
            signed: true,
            values: values(&[("MINUS", -1), ("PLUS", 1)]),
        }
    );
    let row = Array {
        of: Box::new(Int { bits: 32, signed: true }),
        element_size: 4,
        count: 2,
        text: false,
    };
    assert_eq!(
        global("offsets").ty,
        Array { of: Box::new(row), element_size: 8, count: 3, text: false }
    );
    assert!(matches!(&global("structure").ty, Composite { name, .. } if name == "value"));
    assert_eq!(global("structure").size, 16);
    assert!(!global("hidden").read_only, "static variables are found too");
}

#[test]
fn first_contents_are_those_of_the_source() {
    let object = object();
    let linked = link(&object, &TargetTypes::new(), &SYMBOLS).expect("it links");
    let content = |name: &str| {
        let global = object.global(name).expect("a global");
        let bytes = linked.maps[global.map].initial.iter().chain(std::iter::repeat(&0));
        bytes.skip(global.offset as usize).take(global.size as usize).copied().collect::<Vec<u8>>()
    };
    assert_eq!(content("slice_ns"), 20_000_000u64.to_le_bytes());
    assert_eq!(content("smt"), [1]);
    assert_eq!(content("policy"), 7u32.to_le_bytes());
    assert_eq!(content("zeroed"), [0; 8]);
    assert_eq!(content("offsets")[..8], [0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0]);
    for (name, read_only) in [(".rodata", true), (".data", false), (".bss", false)] {
        let map = linked.maps.iter().find(|map| map.name == name).expect("a section");
        assert_eq!(map.kind, MapKind::Data { read_only }, "{name}");
        let in_file = if name == ".bss" { 0 } else { map.value_size as usize };
        assert_eq!(map.initial.len(), in_file, "{name}: zeros take no room");
    }
}

#[test]
fn globals_do_not_overlap_and_lie_in_their_maps() {
    let object = object();
    let linked = link(&object, &TargetTypes::new(), &SYMBOLS).expect("it links");
    for pair in object.globals().windows(2) {
        let [before, after] = pair else { unreachable!("windows of two") };
        let ordered = before.map < after.map || before.offset + before.size <= after.offset;
        assert!(ordered, "{before:?} {after:?}");
    }
    for global in object.globals() {
        assert!(global.offset + global.size <= u64::from(linked.maps[global.map].value_size));
    }
}

#[test]
fn maps_are_defined_by_their_types() {
    let linked = link(&object(), &TargetTypes::new(), &SYMBOLS).expect("it links");
    let map = |name: &str| linked.maps.iter().find(|map| map.name == name).expect("a map");
    let tasks = map("tasks");
    assert_eq!(tasks.kind, MapKind::TaskStorage);
    assert_eq!((tasks.key_size, tasks.value_size, tasks.flags), (4, 16, 1));
    let table = map("table");
    assert_eq!(table.kind, MapKind::Hash);
    assert_eq!((table.key_size, table.value_size, table.max_entries), (12, 16, 77));
    let ring = map("ring");
    assert_eq!((ring.kind, ring.max_entries), (MapKind::RingBuf, 8192));
}

#[test]
fn programs_reach_their_maps() {
    let object = object();
    let linked = link(&object, &TargetTypes::new(), &SYMBOLS).expect("it links");
    let enqueue = object.struct_ops()[0].function("enqueue").expect("a callback");
    let maps: Vec<&str> = linked.functions[enqueue]
        .fixups
        .values()
        .filter_map(|fixup| match fixup {
            Fixup::Map(map) => Some(linked.maps[*map].name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(maps, ["table", "tasks"]);
}

#[test]
fn configuration_values_are_what_the_kernel_says() {
    assert_eq!(run("hz"), Ok(250));
    assert_eq!(run("version"), Ok(0x06_0c_00), "a missing weak value is 0");
    assert_eq!(run("text"), Ok(u64::from_be_bytes(*b"a compi\0")), "a text is cut before its end");
    let number = [("CONFIG_CC_VERSION_TEXT", ConfigValue::Number(3)), SYMBOLS.kconfig[1].clone()];
    let symbols = Symbols { kconfig: &number, ..SYMBOLS };
    let error = link(&object(), &TargetTypes::new(), &symbols).expect_err("it is no text");
    assert!(error.to_string().contains("the number 3 in an array of `char`"), "{error}");
}

#[test]
fn kernel_variables_have_the_kernels_addresses() {
    assert_eq!(run("variable"), Ok(0x4000), "a missing weak variable is at 0");
}

#[test]
fn calls_reach_static_and_global_functions() {
    assert_eq!(run("sums"), Ok(100 * 2 + 20_000_000 - 5));
}

#[test]
fn callbacks_are_functions() {
    let object = object();
    let linked = link(&object, &TargetTypes::new(), &SYMBOLS).expect("it links");
    let select = object.struct_ops()[0].function("select_cpu").expect("a callback");
    let pointed: Vec<&str> = linked.functions[select]
        .fixups
        .values()
        .filter_map(|fixup| match fixup {
            Fixup::Function(index) => Some(linked.functions[*index].name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(pointed, ["callback"]);
}

#[test]
fn a_flavoured_kernel_function_is_found_by_its_essential_name() {
    assert_eq!(run("flavoured"), Ok(42));
    let exact = Symbols { kfuncs: &["present", "changed", "changed___v2"], ..SYMBOLS };
    let linked = link(&object(), &TargetTypes::new(), &exact).expect("it links");
    assert!(linked.kfuncs.contains(&"changed___v2".to_owned()), "the whole name comes first");
}

#[test]
fn a_missing_weak_function_can_be_asked_for() {
    assert_eq!(run("asks_first"), Ok(17));
    let mut richer = env();
    richer.kfuncs.push(("absent", |_, _, args| Ok(args[0] + 1)));
    assert_eq!(run_in(&object(), &richer, "asks_first"), Ok(2));
    let trap = run("asks_not").expect_err("it is called all the same");
    assert!(matches!(trap.kind(), TrapKind::Poison(text) if text.contains("`absent`")), "{trap}");
}

/// Why an instruction of the object cannot be executed where these symbols are all that there are; the first reason
/// that names something.
fn poison(symbols: &Symbols<'_>, name: &str) -> Option<String> {
    let linked = link(&object(), &TargetTypes::new(), symbols).expect("it is looked at later");
    let fixups = linked.functions.iter().flat_map(|function| function.fixups.values());
    let mut texts = fixups.filter_map(|fixup| match fixup {
        Fixup::Poison(text) => Some(text.clone()),
        _ => None,
    });
    texts.find(|text| text.contains(name))
}

#[test]
fn a_missing_function_ends_the_run_where_it_is_called() {
    let mut poor = env();
    poor.kfuncs.retain(|(name, _)| *name != "present");
    poor.kfuncs.push(("presend", |_, _, args| Ok(args[0])));
    assert_eq!(run_in(&object(), &poor, "asks_first"), Ok(17), "what does not call it runs");
    let symbols = Symbols { kfuncs: &["presend", "changed"], ..SYMBOLS };
    let text = poison(&symbols, "`present`").expect("the call cannot be executed");
    assert!(text.contains("did you mean `presend`"), "{text}");
}

#[test]
fn other_missing_symbols_are_named() {
    let refusal = |symbols: &Symbols<'_>| {
        link(&object(), &TargetTypes::new(), symbols).expect_err("something is missing")
    };
    let error = refusal(&Symbols { kconfig: &[], ..SYMBOLS });
    assert!(error.to_string().contains("`LINUX_KERNEL_VERSION`"), "{error}");
    let too_wide = [("LINUX_KERNEL_VERSION", ConfigValue::Number(1 << 40))];
    let error = refusal(&Symbols { kconfig: &too_wide, ..SYMBOLS });
    assert!(error.to_string().contains("variable of 4 bytes"), "{error}");
    assert!(poison(&Symbols { ksyms: &[], ..SYMBOLS }, "`runqueues`").is_some());
    assert!(poison(&SYMBOLS, "`runqueues`").is_none());
}

#[test]
fn a_section_can_be_enlarged_but_not_shrunk() {
    let mut object = object();
    object.enlarge_section(".data.dump", 32_768).expect("room for a dump");
    let linked = link(&object, &TargetTypes::new(), &SYMBOLS).expect("it links");
    let map = linked.maps.iter().find(|map| map.name == ".data.dump").expect("the section");
    assert_eq!((map.value_size, map.initial.len()), (32_768, 32_768));
    let error = object.enlarge_section(".data.dump", 4).expect_err("it would shrink");
    assert!(matches!(error.cause, LoadCause::Unsupported(_)), "{error}");
    let error = object.enlarge_section(".data.dump", 1 << 40).expect_err("it is too large");
    assert!(matches!(error.cause, LoadCause::Limit { .. }), "{error}");
    assert!(object.enlarge_section(".nowhere", 4).is_err());
}

#[test]
fn every_instruction_set_that_clang_writes_is_accepted_by_both_engines() {
    for cpu in ["-mcpu=v1", "-mcpu=v2", "-mcpu=v3", "-mcpu=v4"] {
        let object = Object::parse(cpu, &compile("loader", &[cpu])).expect("a good object");
        for engine in [Engine::Interpreter, Engine::Jit] {
            let image = Image::new(&object, &env(), engine).expect("it compiles");
            let index = image.function("sums").expect("the function is there");
            let mut instance = image.instantiate(&InstanceConfig::default()).expect("memory");
            let sum = instance.call_function(FuncRef(index), [0; 5], &mut Recorder::default());
            assert_eq!(sum, Ok(20_000_195), "{cpu} {engine:?}");
        }
    }
}

#[test]
fn variables_of_an_arena_are_its_first_pages() {
    let object = Object::parse("arena.bpf.o", &compile("arena", &[])).expect("a good object");
    assert_eq!(run_in(&object, &env(), "sum"), Ok(5 + 18));
    assert_eq!(run_in(&object, &env(), "pages"), Ok(6), "the variables' page is taken");
    assert_eq!(run_in(&object, &env(), "too_many"), Ok(0));
    let second = object.global("second").expect("a variable");
    assert_eq!((second.size, second.read_only), (24, false));
}

/// Instructions of an inline function have lines of the header that defines it; the debugging information knows the
/// lines of its calls.
#[test]
fn a_call_of_an_inline_function_has_its_line() {
    let object = Object::parse("inlined.bpf.o", &compile("inlined", &[])).expect("a good object");
    let slots = object.functions().iter().find(|f| f.name == "caller").expect("it is there").slots;
    let mut calls = Vec::new();
    for slot in 0..slots {
        let line = object.source_line("caller", slot).expect("it has lines");
        let call = object.line_of_inline_call("caller", slot);
        assert_eq!(call.is_some(), line.file.ends_with("inlined.h"), "slot {slot}: {line}");
        calls.extend(call.map(|call| (call.file, call.line)));
    }
    calls.dedup();
    let file = object.source_line("caller", 0).expect("it has lines").file.clone();
    assert_eq!(calls, [(file.clone(), 16), (file, 17)]);
    assert_eq!(object.line_of_inline_call("second", 0), None);
    assert_eq!(object.line_of_inline_call("absent", 0), None);
}
