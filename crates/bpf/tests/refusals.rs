//! Invalid programs are rejected before they run, with location and cause.

use crate::support::{Code, Recorder, code, env, exit, insn, map, mov};
use fairground_bpf::{Callee, Engine, Fixup, Function, Image, Linked, MapDef, MapKind};

fn refusal(function: Function, maps: Vec<MapDef>) -> String {
    let linked = Linked {
        functions: vec![function],
        maps,
        kfuncs: vec!["record".into()],
        ..Linked::default()
    };
    let image = Image::<Recorder>::from_linked("bad.bpf.o", linked, &env(), Engine::Jit);
    image.expect_err("a refusal").to_string()
}

fn code_refusal(code: Code) -> String {
    refusal(code.function("main"), vec![])
}

#[test]
fn malformed_instructions() {
    let cases = [
        (code(), "no instructions"),
        (code().op(mov(0, 0)), "past the end"),
        (code().op(insn(0xb7, 11, 0, 0, 0)).op(exit()), "r11"),
        (code().op(insn(0xbf, 0, 12, 0, 0)).op(exit()), "r12"),
        (code().op(mov(10, 0)).op(exit()), "r10"),
        (code().op(insn(0xff, 0, 0, 0, 0)).op(exit()), "unknown instruction"),
        (code().op(insn(0xd7, 0, 0, 0, 17)).op(exit()), "unknown instruction"),
        (code().op(insn(0xdb, 10, 0, -8, 0x77)).op(exit()), "unknown instruction"),
        (code().op(insn(0x20, 0, 0, 0, 0)).op(exit()), "unknown instruction"),
        (code().op(insn(0x05, 0, 0, 5, 0)).op(exit()), "out of the function"),
        (code().op(insn(0x05, 0, 0, -3, 0)).op(exit()), "out of the function"),
        (code().op(insn(0x05, 0, 0, 1, 0)).value(0, 7).op(exit()), "middle of instruction 1"),
        (code().op(insn(0x85, 0, 0, 0, 1)).op(exit()), "a call of the symbol"),
        (code().call(Callee::Kfunc(9)).op(exit()), "Kfunc(9)"),
        (code().call(Callee::Function(9)).op(exit()), "Function(9)"),
        (code().lddw(1, Fixup::Map(3)).op(exit()), "Map(3)"),
        (code().lddw(1, Fixup::Data { map: 0, offset: 9 }).op(exit()), "of map 0"),
        (code().helper(9999).op(exit()), "helper 9999"),
    ];
    for (program, reason) in cases {
        let text = code_refusal(program);
        assert!(text.starts_with("bad.bpf.o: function main"), "{text}");
        assert!(text.contains(reason), "{reason:?} is not in {text:?}");
    }
    let mut half = code().op(exit());
    half.insns.push(insn(0x18, 1, 0, 0, 0));
    half.fixups.insert(1, Fixup::Value(1));
    assert!(code_refusal(half).contains("second half"));
}

#[test]
fn an_unsupported_helper_is_named() {
    let text = code_refusal(code().op(mov(0, 0)).helper(26).op(exit()));
    assert!(text.contains("helper 26 (skb_load_bytes)"), "{text}");
    assert!(text.contains("instruction 1"), "{text}");
}

#[test]
fn maps_beyond_the_region() {
    let huge = map("huge", MapKind::Array, 4, u32::MAX, u32::MAX);
    let text = refusal(code().op(mov(0, 0)).op(exit()).function("main"), vec![huge]);
    assert!(text.contains("symbol huge") && text.contains("limit"), "{text}");
}
