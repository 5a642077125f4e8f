//! Any bytes as an object: refused with an error, or linked to a program whose every instruction is checked.
#![no_main]

mod fixed_hash_seed;

use std::sync::LazyLock;

use fairground_bpf::{
    ConfigValue, Engine, Env, Field, FuncRef, Host, Image, Linked, Object, Symbols, TargetTypes, link,
};
use libfuzzer_sys::fuzz_target;

/// A host that does nothing.
struct NoHost;

impl Host for NoHost {
    fn random_u32(&mut self) -> u32 {
        4
    }
    fn print(&mut self, _line: &str) {}
    fn timer_start(&mut self, _: u64, _: FuncRef, _: [u64; 5], _: u64, _: u64) -> i64 {
        0
    }
    fn timer_cancel(&mut self, _timer: u64) -> i64 {
        0
    }
}

const KFUNCS: [&str; 3] = ["present", "changed", "scx_bpf_dsq_insert"];

static KERNEL: LazyLock<TargetTypes> = LazyLock::new(|| {
    let mut types = TargetTypes::new();
    let u64_ = types.unsigned("u64", 8);
    let s32_ = types.signed("int", 4);
    let task = types.declare("task");
    let pointer = types.pointer(task);
    let list = types.array(s32_, 6);
    let part = types.structure_in_order("part", &[("list", list)]);
    let fields = [
        Field::at("pid", 0, u64_),
        Field::at("parent", 8, pointer),
        Field::at("part", 16, part),
        Field::bits("bits", 8 * 40 + 3, 7, s32_),
    ];
    types.structure("task", 48, &fields);
    types.enumeration("state", 8, false, &[("RUNNING", 1), ("BIG", 1 << 40)]);
    types
});

fn environment() -> Env<NoHost> {
    let mut env = Env::new(TargetTypes::new());
    for name in KFUNCS {
        env.kfuncs.push((name, |_, _, _| Ok(0)));
    }
    env
}

fn linked(bytes: &[u8]) -> Option<Linked> {
    let object = Object::parse("fuzz", bytes).ok()?;
    // Debugging information is only parsed when it is asked for.
    if let Some(function) = object.functions().first() {
        let _ = object.line_of_inline_call(&function.name, 0);
    }
    let symbols = Symbols {
        kfuncs: &KFUNCS,
        kconfig: &[
            ("CONFIG_HZ", ConfigValue::Number(250)),
            ("LINUX_KERNEL_VERSION", ConfigValue::Number(0x06_0c_00)),
        ],
        ksyms: &[("runqueues", 0x4000)],
        missing_helpers: &[],
        lacks: &[],
    };
    let linked = link(&object, &KERNEL, &symbols).ok()?;
    // The properties of the object hold for the program.
    assert_eq!(object.functions().len(), linked.functions.len());
    for global in object.globals() {
        let end = global.offset.checked_add(global.size).expect("a place in memory");
        let map = &linked.maps[global.map];
        // The initial content leaves out the zeros at the end of a data section.
        assert!(end <= u64::from(map.value_size).max(map.initial.len() as u64), "{global:?}");
    }
    Some(linked)
}

fuzz_target!(|bytes: &[u8]| {
    if let Some(linked) = linked(bytes) {
        let _image = Image::from_linked("fuzz", linked, &environment(), Engine::Interpreter);
    }
});
