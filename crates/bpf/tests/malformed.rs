//! Damaged objects give errors with location and cause; no panics, no endless loops.

use std::sync::OnceLock;

use crate::compile::compile;
use crate::support::Recorder;
use fairground_bpf::{
    ConfigValue, Engine, Env, Field, Image, LoadCause, LoadError, Object, Symbols, TargetTypes,
    link,
};
use object::write::{Object as Writer, Relocation, StandardSection, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, Object as _, ObjectSection as _, RelocationFlags,
    SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};
use proptest::prelude::{ProptestConfig, any};
use proptest::proptest;
use proptest::test_runner::FileFailurePersistence;

fn good() -> &'static [Vec<u8>] {
    static BYTES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    BYTES.get_or_init(|| vec![compile("loader", &[]), compile("core", &[])])
}

fn types() -> TargetTypes {
    let mut types = TargetTypes::new();
    let u64_ = types.unsigned("u64", 8);
    types.structure("task", 64, &[Field::at("pid", 32, u64_), Field::at("stamp", 8, u64_)]);
    types
}

/// Parses, links and checks each instruction.
fn load(bytes: &[u8]) -> Result<(), LoadError> {
    let object = Object::parse("bad.bpf.o", bytes)?;
    // Damaged debugging information gives no line or another one.
    for function in object.functions() {
        let _ = object.line_of_inline_call(&function.name, 0);
    }
    let symbols = Symbols {
        kfuncs: &["record", "present", "changed"],
        kconfig: &[("LINUX_KERNEL_VERSION", ConfigValue::Number(1))],
        ksyms: &[("runqueues", 0x4000)],
        missing_helpers: &[],
        lacks: &[],
    };
    let linked = link(&object, &types(), &symbols)?;
    let mut env = Env::<Recorder>::new(TargetTypes::new());
    for name in ["record", "present", "changed"] {
        env.kfuncs.push((name, |_, _, _| Ok(0)));
    }
    Image::from_linked("bad.bpf.o", linked, &env, Engine::Interpreter).map(drop)
}

fn refusal(bytes: &[u8]) -> LoadError {
    let error = load(bytes).expect_err("a refusal");
    let text = error.to_string();
    assert!(text.starts_with("bad.bpf.o: ") && text.contains("; "), "{text}");
    error
}

#[test]
fn the_undamaged_objects_load() {
    for bytes in good() {
        load(bytes).expect("a good object");
    }
}

#[test]
fn an_object_cut_short_anywhere() {
    let bytes = &good()[0];
    // The tables are at the end of the file, so it is incomplete without the last byte.
    for length in 0..bytes.len() {
        refusal(&bytes[..length]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    })]

    #[test]
    fn flipped_bits(which in 0usize..2, flips in proptest::collection::vec(any::<(u32, u8)>(), 1..6)) {
        let mut bytes = good()[which].clone();
        for (at, bit) in flips {
            let at = at as usize % bytes.len();
            bytes[at] ^= 1 << (bit % 8);
        }
        let _either = load(&bytes);
    }

    /// Flips bits in the parsed parts only: most of a file is debugging information.
    #[test]
    fn flipped_bits_of_a_section(
        which in 0usize..2,
        section in 0usize..64,
        flips in proptest::collection::vec(any::<(u32, u8)>(), 1..4),
    ) {
        let mut bytes = good()[which].clone();
        let ranges: Vec<(u64, u64)> = object::File::parse(&good()[which][..])
            .expect("a good object")
            .sections()
            .filter(|section| !section.name().unwrap_or("").contains("debug"))
            .filter_map(|section| section.file_range())
            .filter(|(_, size)| *size > 0)
            .collect();
        let (start, size) = ranges[section % ranges.len()];
        for (at, bit) in flips {
            bytes[(start + u64::from(at) % size) as usize] ^= 1 << (bit % 8);
        }
        let _either = load(&bytes);
    }

    #[test]
    fn words_replaced(which in 0usize..2, at in any::<u32>(), word in any::<u32>()) {
        let mut bytes = good()[which].clone();
        let at = at as usize % (bytes.len() / 4) * 4;
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        let _either = load(&bytes);
    }

    #[test]
    fn bytes_at_random(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        refusal(&bytes);
    }
}

#[test]
fn what_is_no_bpf_object() {
    assert!(matches!(refusal(b"").cause, LoadCause::NotElf(_)));
    assert!(matches!(refusal(&[b'x'; 4096]).cause, LoadCause::NotElf(_)));
    let native = Writer::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let error = refusal(&native.write().expect("ELF"));
    assert_eq!(error.cause, LoadCause::WrongMachine { machine: 62, class: 64 });
    let narrow = Writer::new(BinaryFormat::Elf, Architecture::Arm, Endianness::Little);
    let error = refusal(&narrow.write().expect("ELF"));
    assert_eq!(error.cause, LoadCause::WrongMachine { machine: 40, class: 32 });
    let big = Writer::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Big);
    assert_eq!(refusal(&big.write().expect("ELF")).cause, LoadCause::BigEndian);
    assert_eq!(refusal(&compile("loader", &["-g0"])).cause, LoadCause::NoBtf);
}

/// Builds a BPF object byte by byte.
struct Handmade {
    writer: Writer<'static>,
    strings: Vec<u8>,
    types: Vec<u8>,
}

impl Handmade {
    fn new() -> Self {
        let writer = Writer::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
        Self { writer, strings: vec![0], types: Vec::new() }
    }

    fn string(&mut self, text: &str) -> u32 {
        let at = self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        at
    }

    /// A type: name, kind, count, size or type, further words.
    fn ty(&mut self, name: &str, kind: u32, count: u32, word: u32, rest: &[u32]) -> &mut Self {
        let name = if name.is_empty() { 0 } else { self.string(name) };
        for word in [name, kind << 24 | count, word].iter().chain(rest) {
            self.types.extend_from_slice(&word.to_le_bytes());
        }
        self
    }

    fn section(&mut self, name: &str, kind: SectionKind, data: &[u8]) -> object::write::SectionId {
        let id = self.writer.add_section(Vec::new(), name.as_bytes().to_vec(), kind);
        self.writer.section_mut(id).set_data(data.to_vec(), 8);
        id
    }

    fn symbol(
        &mut self,
        name: &str,
        section: SymbolSection,
        kind: SymbolKind,
        value: u64,
        size: u64,
    ) -> object::write::SymbolId {
        self.writer.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size,
            kind,
            scope: SymbolScope::Dynamic,
            weak: false,
            section,
            flags: SymbolFlags::None,
        })
    }

    /// A function of its own section.
    fn function(&mut self, name: &str, code: &[u64]) -> object::write::SectionId {
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let section = self.section(name, SectionKind::Text, &bytes);
        let size = bytes.len() as u64;
        self.symbol(name, SymbolSection::Section(section), SymbolKind::Text, 0, size);
        section
    }

    fn relocate(
        &mut self,
        section: object::write::SectionId,
        offset: u64,
        kind: u32,
        symbol: object::write::SymbolId,
    ) {
        let flags = RelocationFlags::Elf { r_type: object::elf::RelocationType(kind) };
        let relocation = Relocation { offset, symbol, addend: 0, flags };
        self.writer.add_relocation(section, relocation).expect("a relocation");
    }

    fn bytes(mut self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut btf: Vec<u8> = [0x0001_eb9f, 24, 0, types, types, strings]
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        btf.extend_from_slice(&self.types);
        btf.extend_from_slice(&self.strings);
        self.section(".BTF", SectionKind::Other, &btf);
        self.writer.write().expect("ELF")
    }
}

const EXIT: u64 = 0x95;
const MOV_R0: u64 = 0xb7;
const LDDW_R1: u64 = 0x0118;
const CALL_LOCAL: u64 = 0xffff_ffff_0000_1085;

#[test]
fn a_handmade_object_loads() {
    let mut object = Handmade::new();
    object.function("main", &[MOV_R0, EXIT]);
    load(&object.bytes()).expect("a good object");
}

fn expect(object: Handmade, text: &str) {
    let error = refusal(&object.bytes()).to_string();
    assert!(error.contains(text), "{text:?} is not in {error:?}");
}

#[test]
fn types_that_contain_themselves() {
    let mut object = Handmade::new();
    object.ty("loop", 8, 0, 2, &[]).ty("pool", 8, 0, 1, &[]);
    expect(object, "type 1 (loop) contains itself");
    let mut object = Handmade::new();
    let name = object.string("me");
    object.ty("s", 4, 1, 8, &[name, 1, 0]);
    expect(object, "type 1 (s) contains itself");
    let mut object = Handmade::new();
    object.ty("", 3, 0, 0, &[1, 1, 4]);
    expect(object, "type 1 (anonymous) contains itself");
    let mut object = Handmade::new();
    object.ty("", 10, 0, 1, &[]);
    expect(object, "contains itself");
}

#[test]
fn a_structure_may_point_to_itself() {
    let mut object = Handmade::new();
    let name = object.string("next");
    object.ty("list", 4, 1, 8, &[name, 2, 0]).ty("", 2, 0, 1, &[]);
    object.function("main", &[MOV_R0, EXIT]);
    load(&object.bytes()).expect("a good object");
}

#[test]
fn types_that_nest_without_end() {
    let mut object = Handmade::new();
    for inner in 0..200 {
        object.ty("", 3, 0, 0, &[inner, 0, 0xffff_ffff]);
    }
    expect(object, "nests too deep");
}

#[test]
fn damaged_type_information() {
    let mut object = Handmade::new();
    object.ty("p", 8, 0, 77, &[]);
    expect(object, "type 1 (p) refers to type 77");
    let mut object = Handmade::new();
    object.ty("k", 31, 0, 0, &[]);
    expect(object, "kind 31");
    let mut object = Handmade::new();
    object.ty("i", 1, 0, 3, &[24]);
    expect(object, "an integer of 3 bytes");
    let mut object = Handmade::new();
    object.ty("s", 4, 9, 8, &[0, 0, 0]);
    expect(object, "ends in the middle");
    let mut object = Handmade::new();
    object.types.extend_from_slice(&[0xff; 12]);
    expect(object, "a name is outside of the string table");
}

#[test]
fn relocations_without_a_target() {
    let lddw = [LDDW_R1, 0, MOV_R0, EXIT];
    for (offset, kind, text) in [
        (800, 1, "is outside of the section"),
        (4, 1, "within an instruction"),
        (0, 10, "type 10, expected type 1"),
        (16, 1, "an instruction that has no symbol"),
    ] {
        let mut object = Handmade::new();
        let section = object.function("main", &lddw);
        let data = object.section(".data", SectionKind::Data, &[0; 8]);
        let x = object.symbol("x", SymbolSection::Section(data), SymbolKind::Data, 0, 8);
        object.relocate(section, offset, kind, x);
        expect(object, text);
    }
    for (value, text) in [(8, "byte 0x8 of .data"), (u64::MAX, "byte 0xffffffffffffffff")] {
        let mut object = Handmade::new();
        let section = object.function("main", &lddw);
        let data = object.section(".data", SectionKind::Data, &[0; 8]);
        let x = object.symbol("x", SymbolSection::Section(data), SymbolKind::Data, value, 8);
        object.relocate(section, 0, 1, x);
        expect(object, text);
    }
}

#[test]
fn symbols_of_the_wrong_kind() {
    let mut object = Handmade::new();
    let section = object.function("main", &[CALL_LOCAL, EXIT]);
    let data = object.section(".data", SectionKind::Data, &[0; 8]);
    let x = object.symbol("x", SymbolSection::Section(data), SymbolKind::Data, 0, 8);
    object.relocate(section, 0, 10, x);
    expect(object, "it calls data");
    let mut object = Handmade::new();
    let section = object.function("main", &[CALL_LOCAL, EXIT]);
    let unknown = object.symbol("who", SymbolSection::Undefined, SymbolKind::Unknown, 0, 0);
    object.relocate(section, 0, 10, unknown);
    expect(object, "`who` is declared neither `__ksym` nor `__kconfig`");
    let mut object = Handmade::new();
    let section = object.function("main", &[LDDW_R1, 0, EXIT]);
    let data = object.section("mine", SectionKind::Data, &[0; 8]);
    let x = object.symbol("x", SymbolSection::Section(data), SymbolKind::Data, 0, 8);
    object.relocate(section, 0, 1, x);
    expect(object, "an address in section mine");
}

#[test]
fn calls_into_the_middle_of_nothing() {
    let mut object = Handmade::new();
    object.function("main", &[0x0000_0005_0000_1085, EXIT]);
    expect(object, "where no function starts");
    let mut object = Handmade::new();
    object.function("main", &[0x0000_0005_0000_2085, EXIT]);
    expect(object, "a call of an unknown kind (2)");
    let mut object = Handmade::new();
    object.function("main", &[0x1118, 0, EXIT]);
    expect(object, "unknown kind (1)");
    let mut object = Handmade::new();
    object.function("main", &[EXIT, LDDW_R1]);
    expect(object, "lacks its second half");
    let mut object = Handmade::new();
    object.function("main", &[LDDW_R1, MOV_R0, EXIT]);
    expect(object, "is not empty");
    let mut object = Handmade::new();
    object.function("main", &[MOV_R0]);
    expect(object, "past the end");
}

#[test]
fn functions_outside_of_their_section() {
    for (value, size, text) in [
        (0, 800, "exceeds the section"),
        (u64::MAX - 7, 16, "exceeds the section"),
        (4, 8, "whole instructions"),
        (0, 0, "whole instructions"),
    ] {
        let mut object = Handmade::new();
        let section =
            object.section("code", SectionKind::Text, &[0x95, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        object.symbol("main", SymbolSection::Section(section), SymbolKind::Text, value, size);
        expect(object, text);
    }
    let mut object = Handmade::new();
    let section = object.section(".data", SectionKind::Data, &[0; 64]);
    object.symbol("main", SymbolSection::Section(section), SymbolKind::Text, 0, 8);
    expect(object, "not in a code section");
}

#[test]
fn sizes_beyond_the_limits() {
    let mut object = Handmade::new();
    let bss = object.writer.section_id(StandardSection::UninitializedData);
    object.writer.append_section_bss(bss, 1 << 40, 8);
    expect(object, "exceeds the limit");
    let mut object = Handmade::new();
    for function in 0..20_000 {
        let section = object.writer.section_id(StandardSection::Text);
        let at = object.writer.append_section_data(section, &EXIT.to_le_bytes(), 8);
        let name = format!("f{function}");
        object.symbol(&name, SymbolSection::Section(section), SymbolKind::Text, at, 8);
    }
    expect(object, "functions: 20000 exceeds the limit of 16384");
}

/// An object with one map whose attributes are `__uint(name, value)`.
fn with_map(attributes: &[(&str, u32)]) -> Handmade {
    let mut object = Handmade::new();
    object.ty("int", 1, 0, 4, &[32]);
    let mut members = Vec::new();
    for (at, (name, value)) in attributes.iter().enumerate() {
        let array = 2 + 2 * at as u32;
        object.ty("", 3, 0, 0, &[1, 1, *value]).ty("", 2, 0, array, &[]);
        members.extend([object.string(name), array + 1, 64 * at as u32]);
    }
    let count = attributes.len() as u32;
    let structure = 2 + 2 * count;
    object.ty("", 4, count, 8 * count, &members);
    object.ty("m", 14, 0, structure, &[1]);
    object.ty(".maps", 15, 1, 8 * count, &[structure + 1, 0, 8 * count]);
    let section = object.section(".maps", SectionKind::Data, &vec![0; 8 * attributes.len()]);
    object.symbol("m", SymbolSection::Section(section), SymbolKind::Data, 0, 8);
    object
}

#[test]
fn maps_that_make_no_sense() {
    let array = [("type", 2), ("key_size", 4), ("value_size", 8), ("max_entries", 1)];
    load(&with_map(&array).bytes()).expect("a good map");
    let without = |name: &str| array.into_iter().filter(|(n, _)| *n != name).collect::<Vec<_>>();
    expect(with_map(&without("type")), "symbol m: invalid map definition: it has no `type`");
    expect(with_map(&without("key_size")), "the key of an array has four bytes");
    expect(with_map(&without("value_size")), "it needs a value");
    expect(with_map(&without("max_entries")), "it needs `max_entries`");
    load(&with_map(&[("type", 27), ("max_entries", 5000)]).bytes()).expect("it is rounded up");
    expect(
        with_map(&[("type", 27), ("max_entries", u32::MAX)]),
        "a ring buffer of 4294967295 bytes",
    );
    expect(with_map(&[("type", 2), ("colour", 4)]), "the attribute `colour` is unknown");
    load(&with_map(&[("type", 13)]).bytes()).expect("only an operation on it is an error");
    let mut old = Handmade::new();
    old.section("maps", SectionKind::Data, &[0; 20]);
    expect(old, "definitions without types");
}

#[test]
fn two_sections_of_one_name() {
    let mut object = Handmade::new();
    object.section(".data", SectionKind::Data, &[1; 8]);
    object.section(".data", SectionKind::Data, &[1; 8]);
    expect(object, "two sections have this name");
}

#[test]
fn names_without_end() {
    let mut object = Handmade::new();
    object.ty(&"x".repeat(5000), 8, 0, 0, &[]);
    expect(object, "bytes of a name: 4097 exceeds the limit of 4096");
    // Many references to one long name: a small file with large content.
    let mut object = Handmade::new();
    let name = object.string(&"x".repeat(4000));
    for _ in 0..20_000 {
        for word in [name, 8 << 24, 0] {
            object.types.extend_from_slice(&word.to_le_bytes());
        }
    }
    expect(object, "bytes of all names");
}

/// Inputs that a fuzzer found: each once caused a panic.
#[test]
fn crashers_of_the_past_get_an_answer() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crashers");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is in the repository") {
        let path = entry.expect("it can be read").path();
        let bytes = std::fs::read(&path).expect("it can be read");
        // Some are valid objects with an unusual part, so the result does not matter.
        if let Ok(object) = fairground_bpf::Object::parse(&path.display().to_string(), &bytes) {
            assert!(object.functions().iter().all(|function| !function.section.is_empty()));
        }
        seen += 1;
    }
    assert!(seen > 0, "no crasher was read");
}
