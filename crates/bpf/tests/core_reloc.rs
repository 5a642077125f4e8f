//! CO-RE: a program compiled against one layout of the kernel's types reads the same values from another.

use std::sync::{Arc, OnceLock};

use crate::compile::compile;
use crate::support::Recorder;
use fairground_bpf::{
    Engine, Env, Field, FuncRef, Image, Instance, InstanceConfig, LoadCause, Object, Symbols,
    TargetTypes, Trap, TrapKind, TypeRef, link,
};
use object::{Object as _, ObjectSection as _};
use proptest::prelude::{Just, Strategy};
use proptest::{prop_assert_eq, proptest};

fn bytes() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| compile("core", &[]))
}

fn program() -> &'static Object {
    static OBJECT: OnceLock<Object> = OnceLock::new();
    OBJECT.get_or_init(|| Object::parse("core.bpf.o", bytes()).expect("a good object"))
}

/// A kernel whose `struct task` has the member names of the program's, but another layout.
fn kernel() -> TargetTypes {
    let mut t = TargetTypes::new();
    let u32_ = t.unsigned("unsigned int", 4);
    let s32_ = t.signed("int", 4);
    let u64_ = t.unsigned("unsigned long long", 8);
    let char_ = t.signed("char", 1);
    let task = t.declare("task");
    let task_pointer = t.pointer(task);
    let list = t.array(u32_, 6);
    let part = t.structure_in_order("part", &[("list", list), ("first", u32_)]);
    let either = t.union("", 8, &[Field::at("wide", 0, u64_), Field::at("flat", 0, u32_)]);
    let anonymous = t.structure("", 16, &[Field::at("more", 0, u64_), Field::at("", 8, either)]);
    let name = t.array(char_, 16);
    let inside = t.structure_in_order("inside", &[("x", u32_)]);
    let fields = [
        Field::at("stamp", 0, u64_),
        Field::at("", 8, anonymous),
        Field::at("parent", 24, task_pointer),
        Field::at("pid", 32, u64_),
        Field::at("prio", 40, s32_),
        Field::at("part", 44, part),
        Field::bits("bits", 8 * 72 + 12, 7, u32_),
        Field::bits("minus", 8 * 72 + 19, 5, s32_),
        Field::at("name", 80, name),
        Field::at("turned", 96, inside),
    ];
    let completed = t.structure("task", 104, &fields);
    assert_eq!(completed, task, "a declared structure is completed");
    let states = [("WAITING", 9), ("RUNNING", 4), ("BIG", 0x7_0000_0000)];
    t.enumeration("state", 8, false, &states);
    t
}

fn instance(types: TargetTypes) -> Instance<Recorder> {
    let env = Env::<Recorder>::new(types);
    let image = Image::new(program(), &env, Engine::Interpreter).expect("it links");
    let image: &Arc<Image<Recorder>> = &image;
    image.instantiate(&InstanceConfig::default()).expect("memory")
}

fn call(instance: &mut Instance<Recorder>, function: &str, task: u64) -> Result<u64, Trap> {
    let index = instance.image().function(function).expect("the function is there");
    instance.call_function(FuncRef(index), [task, 0, 0, 0, 0], &mut Recorder::default())
}

fn ask(types: TargetTypes, function: &str) -> Result<u64, Trap> {
    call(&mut instance(types), function, 0)
}

/// Calls a function with a task of [`kernel`], whose bytes `fill` wrote at offsets in it.
fn read(function: &str, fill: &[(u64, &[u8])]) -> Result<u64, Trap> {
    let mut instance = instance(kernel());
    let task = instance.alloc(104, 8).expect("memory");
    for (offset, bytes) in fill {
        instance.memory().write(task + offset, bytes).expect("inside of the task");
    }
    call(&mut instance, function, task)
}

#[test]
fn loads_follow_the_field() {
    assert_eq!(read("load_stamp", &[(0, &77u64.to_le_bytes())]), Ok(77));
    assert_eq!(read("load_prio", &[(40, &(-9i32).to_le_bytes())]), Ok(-9i64 as u64));
    assert_eq!(read("load_nested", &[(44 + 2 * 4, &5u32.to_le_bytes())]), Ok(5));
    assert_eq!(read("load_flat", &[(16, &6u32.to_le_bytes())]), Ok(6), "in an anonymous structure");
    assert_eq!(read("load_name", &[(83, &[0x41])]), Ok(0x41), "an element decides the width");
}

#[test]
fn a_load_takes_the_width_of_the_kernels_field() {
    let wide = 0x1_2345_6789u64;
    assert_eq!(read("load_pid", &[(32, &wide.to_le_bytes())]), Ok(wide));
}

#[test]
fn a_store_takes_the_width_of_the_kernels_field() {
    let mut instance = instance(kernel());
    let task = instance.alloc(104, 8).expect("memory");
    instance.memory().write(task + 32, &[0xff; 8]).expect("inside of the task");
    call(&mut instance, "store_pid", task).expect("a store");
    assert_eq!(instance.memory().read_vec(task + 32, 8).expect("inside"), 7u64.to_le_bytes());
}

#[test]
fn a_pointer_leads_on() {
    let mut instance = instance(kernel());
    let (task, parent) =
        (instance.alloc(104, 8).expect("memory"), instance.alloc(104, 8).expect("memory"));
    instance.memory().write(task + 24, &parent.to_le_bytes()).expect("inside");
    instance.memory().write(parent + 32, &3u64.to_le_bytes()).expect("inside");
    assert_eq!(call(&mut instance, "load_parent_pid", task), Ok(3));
}

#[test]
fn a_flavour_means_the_kernels_type() {
    assert_eq!(read("load_earlier", &[(32, &12u64.to_le_bytes())]), Ok(12));
    assert_eq!(ask(kernel(), "exists_earlier"), Ok(1));
}

#[test]
fn bit_fields_are_cut_out_where_the_kernel_has_them() {
    let word = (0x55u32 << 12) | (0x1d << 19);
    let noise = word | !((0x7f << 12) | (0x1f << 19));
    for bytes in [word.to_le_bytes(), noise.to_le_bytes()] {
        assert_eq!(read("load_bits", &[(72, &bytes)]), Ok(0x55));
        assert_eq!(read("load_minus", &[(72, &bytes)]), Ok(-3i64 as u64));
    }
}

#[test]
fn a_missing_field_traps_when_it_is_reached_and_not_before() {
    let trap = read("load_gone", &[]).expect_err("there is no such field");
    let TrapKind::Poison(text) = trap.kind() else { panic!("{trap}") };
    assert!(text.contains("struct task.gone"), "{text}");
    assert_eq!(read("load_gone_if_there", &[]), Ok(17));
    assert_eq!(read("load_ancient_if_there", &[]), Ok(18));
}

#[test]
fn a_field_of_another_kind_is_missing() {
    assert_eq!(ask(kernel(), "exists_turned"), Ok(0), "it is a structure now");
    assert!(matches!(read("load_turned", &[]).expect_err("poison").kind(), TrapKind::Poison(_)));
}

#[test]
fn a_signed_field_of_another_width_is_poison() {
    let mut t = TargetTypes::new();
    let s64_ = t.signed("long", 8);
    t.structure_in_order("task", &[("prio", s64_)]);
    let trap = ask(t, "load_prio").expect_err("no load fits");
    assert!(matches!(trap.kind(), TrapKind::Poison(text) if text.contains("8")), "{trap}");
}

#[test]
fn questions_have_the_answers_of_the_kernel() {
    let answers = [
        ("offset_of_nested", 44 + 3 * 4),
        ("size_of_name", 16),
        ("size_of_nested", 4),
        ("exists_pid", 1),
        ("signed_prio", 1),
        ("signed_pid", 0),
        ("shift_left_pid", 0),
        ("shift_right_pid", 0),
        ("exists_task", 1),
        ("exists_nowhere", 0),
        ("exists_hook", 0),
        ("size_of_part", 28),
        ("size_of_nowhere", 0),
        ("matches_part", 0),
        ("matches_task", 0),
        ("value_waiting", 9),
        ("value_big", 0x7_0000_0000),
        ("exists_waiting", 1),
        ("exists_lost", 0),
        ("exists_red", 0),
    ];
    for (function, answer) in answers {
        assert_eq!(ask(kernel(), function), Ok(answer), "{function}");
    }
    let trap = ask(kernel(), "value_lost").expect_err("there is no such constant");
    assert!(matches!(trap.kind(), TrapKind::Poison(text) if text.contains("LOST")), "{trap}");
}

#[test]
fn an_empty_kernel_has_nothing() {
    for function in ["exists_pid", "exists_task", "exists_waiting", "size_of_part", "matches_part"]
    {
        assert_eq!(ask(TargetTypes::new(), function), Ok(0), "{function}");
    }
}

/// The object's own types as a kernel's.
fn own_types() -> TargetTypes {
    let file = object::File::parse(bytes()).expect("ELF");
    let section = file.section_by_name(".BTF").expect("type information");
    TargetTypes::from_btf("core.bpf.o", section.data().expect("bytes")).expect("good types")
}

/// Linking against the same types does not change any instruction.
#[test]
fn a_program_fits_its_own_types_unchanged() {
    let symbols = Symbols::default();
    let own = link(program(), &own_types(), &symbols).expect("it links");
    let original: Vec<(String, u64)> = code_of(bytes());
    let differences: Vec<String> = own
        .functions
        .iter()
        .filter(|function| {
            let code: Vec<u64> = function.insns.iter().map(word).collect();
            let before: Vec<u64> = original
                .iter()
                .filter(|(name, _)| *name == function.name)
                .map(|(_, word)| *word)
                .collect();
            assert_eq!(code.len(), before.len(), "{}", function.name);
            code != before
        })
        .map(|function| function.name.clone())
        .collect();
    // For bit fields, the compiler loads another unit than libbpf's rule; both contain the bits.
    assert_eq!(differences, ["load_bits", "load_minus"]);
    for function in ["exists_hook", "matches_task", "matches_part", "exists_nowhere"] {
        assert_eq!(ask(own_types(), function), Ok(1), "{function}");
    }
    assert_eq!(ask(own_types(), "id_in_kernel"), ask(own_types(), "id_in_object"));
    assert_eq!(ask(TargetTypes::new(), "id_in_kernel"), Ok(0));
}

fn word(insn: &fairground_bpf::Insn) -> u64 {
    u64::from(insn.code)
        | u64::from(insn.dst | insn.src << 4) << 8
        | u64::from(insn.off as u16) << 16
        | u64::from(insn.imm as u32) << 32
}

/// The instructions of each function in the file.
fn code_of(bytes: &[u8]) -> Vec<(String, u64)> {
    use object::ObjectSymbol as _;
    let file = object::File::parse(bytes).expect("ELF");
    let mut words = Vec::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Text) {
        let section = symbol.section_index().expect("a defined function");
        let data = file.section_by_index(section).expect("a section").data().expect("bytes");
        let (start, size) = (symbol.address() as usize, symbol.size() as usize);
        for chunk in data[start..start + size].chunks_exact(8) {
            let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
            words.push((symbol.name().expect("a name").to_owned(), word));
        }
    }
    words
}

#[test]
fn types_that_disagree_are_refused() {
    let mut t = kernel();
    let u32_ = t.unsigned("u32", 4);
    t.structure_in_order("task___other", &[("pid", u32_)]);
    let error = link(program(), &t, &Symbols::default()).expect_err("two offsets of one field");
    assert!(matches!(error.cause, LoadCause::BadRelocation(_)), "{error}");
    assert!(error.to_string().contains("struct task.pid"), "{error}");
}

#[test]
fn a_field_beyond_the_reach_of_a_load_is_refused() {
    let mut t = TargetTypes::new();
    let u32_ = t.unsigned("unsigned int", 4);
    t.structure("task", 80_000, &[Field::at("pid", 70_000, u32_)]);
    let error = link(program(), &t, &Symbols::default()).expect_err("offsets have 16 bits");
    assert!(error.to_string().contains("70000"), "{error}");
}

const SHUFFLED: usize = 5;

fn shuffled(order: &[usize], widths: &[u32]) -> TargetTypes {
    let mut t = TargetTypes::new();
    let s32_ = t.signed("int", 4);
    let padding = t.array(s32_, 3);
    let unsigned = |t: &mut TargetTypes, at: usize| {
        let size = 1 << (widths[at] % 4);
        t.unsigned(["u8", "u16", "u32", "u64"][(widths[at] % 4) as usize], size)
    };
    let pid = unsigned(&mut t, 0);
    let stamp = unsigned(&mut t, 1);
    let flat = unsigned(&mut t, 2);
    let fields: [(&str, TypeRef); SHUFFLED] =
        [("pid", pid), ("stamp", stamp), ("flat", flat), ("prio", s32_), ("padding", padding)];
    let fields: Vec<(&str, TypeRef)> = order.iter().map(|at| fields[*at]).collect();
    t.structure_in_order("task", &fields);
    t
}

proptest! {
    /// The program reads the fields at any offset and unsigned fields of any width.
    #[test]
    fn values_do_not_depend_on_the_layout(
        order in Just((0..SHUFFLED).collect::<Vec<_>>()).prop_shuffle(),
        widths in proptest::collection::vec(0u32..4, 3),
        values in proptest::collection::vec(0u64..200, 4),
    ) {
        let types = shuffled(&order, &widths);
        let fields = ["pid", "stamp", "flat", "prio"];
        let places: Vec<_> =
            fields.iter().map(|field| types.offset_of("task", field).expect("a field")).collect();
        let mut instance = instance(types);
        let task = instance.alloc(128, 8).expect("memory");
        for ((offset, size), value) in places.iter().zip(&values) {
            let bytes = &value.to_le_bytes()[..*size as usize];
            instance.memory().write(task + u64::from(*offset), bytes).expect("inside of the task");
        }
        for (field, value) in fields.iter().zip(&values) {
            prop_assert_eq!(call(&mut instance, &format!("load_{field}"), task), Ok(*value));
        }
    }
}
