//! A call that ends in a fault or a trap: both engines give the same message, place, counts and memory.

use crate::support::{BOTH, Recorder, add, code, data, env, exit, insn, map, mov, mov_reg};
use fairground_bpf::{
    Callee, Engine, Fixup, Function, Image, Insn, InstanceConfig, Linked, MapDef, MapKind,
};

/// The highest number of a helper that is tried; the kernel's list ends before.
const HELPERS_MAX: u32 = 215;
/// Guest addresses that no program has memory at: NULL, near NULL, far away, the end of the address space.
const NOWHERE: [u64; 4] = [0, 24, 0x7000_0000, u64::MAX - 3];

fn maps() -> Vec<MapDef> {
    vec![
        data(".bss", false, &[0x5a; 64]),
        data(".rodata", true, &[1; 16]),
        map("array", MapKind::Array, 4, 8, 4),
        map("hash", MapKind::Hash, 4, 16, 3),
        map("tasks", MapKind::TaskStorage, 4, 8, 0),
    ]
}

#[derive(Debug, PartialEq)]
struct Seen {
    result: Result<u64, String>,
    insns: u64,
    divisions: u64,
    spent: u64,
    memory: Vec<u8>,
}

/// The result of a program on an engine; `None` if it cannot be linked.
fn observe(main: &Function, engine: Engine) -> Option<Seen> {
    let kfuncs = ["record", "fail", "bpf_iter_num_new", "bpf_iter_num_next"];
    let linked = Linked {
        functions: vec![main.clone()],
        maps: maps(),
        kfuncs: kfuncs.map(str::to_owned).to_vec(),
        ..Linked::default()
    };
    let image = Image::from_linked("test", linked, &env(), engine).ok()?;
    let config = InstanceConfig { fuel_per_call: 100_000, ..Default::default() };
    let mut instance = image.instantiate(&config).expect("memory");
    let mut host = Recorder::default();
    let result = instance.call(0, &[], &mut host).map_err(|trap| trap.to_string());
    let bss = instance.maps().lookup(0, &0u32.to_le_bytes(), 0).expect("a map").expect("a value");
    let memory = instance.memory().read_vec(bss, 64).expect("it is readable");
    let (insns, divisions) = (instance.insns(), instance.divisions());
    Some(Seen { result, insns, divisions, spent: instance.take_spent(), memory })
}

/// Runs a program on both engines, which must agree; returns whether it trapped.
fn agree(main: &Function, what: &str) -> Option<bool> {
    let [interpreter, jit] = BOTH.map(|engine| observe(main, engine));
    assert_eq!(interpreter, jit, "{what}");
    interpreter.map(|seen| seen.result.is_err())
}

/// Instructions before the one that is tried: a division, a branch, a loop of three turns.
fn before() -> [Insn; 8] {
    [
        mov(8, 9),
        insn(0x37, 8, 0, 0, 2),
        insn(0x15, 8, 0, 1, 7),
        mov(9, 3),
        add(9, -1),
        insn(0x7b, 10, 9, -8, 0),
        insn(0x55, 9, 0, -3, 0),
        mov(7, 1),
    ]
}

#[test]
fn every_call_of_a_helper_or_kfunc() {
    let helpers = (1..=HELPERS_MAX).map(Callee::Helper);
    let (mut trapped, mut linked) = (0, 0);
    for callee in helpers.chain((0..4).map(Callee::Kfunc)) {
        for value in NOWHERE {
            for first in 0..=maps().len() {
                let mut main = code().ops(&before());
                for register in 1..=5 {
                    main = main.value(register, value);
                }
                if first > 0 {
                    main = main.lddw(1, Fixup::Map(first - 1));
                }
                let main = main.call(callee).op(mov(6, 1)).op(exit()).function("main");
                let what = format!("{callee:?} of {value:#x}, map {first}");
                let Some(traps) = agree(&main, &what) else { continue };
                (linked, trapped) = (linked + 1, trapped + usize::from(traps));
            }
        }
    }
    assert!(trapped > 100 && trapped < linked, "{trapped} of {linked} calls trapped");
}

#[test]
fn every_access_at_every_place() {
    let accesses = [
        insn(0x79, 0, 1, 0, 0),
        insn(0x71, 0, 1, 3, 0),
        insn(0x81, 0, 1, -4, 0),
        insn(0x7a, 1, 0, 0, 5),
        insn(0x73, 1, 7, 2, 0),
        insn(0xdb, 1, 7, 0, 0),
        insn(0xc3, 1, 7, 0, 0xf1),
    ];
    for value in NOWHERE {
        for access in accesses {
            // At the start of a block, behind others, and twice.
            for behind in [0, 1, 5] {
                let filler = vec![mov(3, 7); behind];
                let main = code().ops(&before()).value(1, value).ops(&filler).ops(&[access; 2]);
                let main = main.op(mov(0, 0)).op(exit()).function("main");
                assert_eq!(agree(&main, &format!("{access:?} at {value:#x}")), Some(true));
            }
        }
    }
}

/// The compiler may remove a store that a later one overwrites, but not one that traps.
#[test]
fn stores_that_others_overwrite() {
    for width in [0x62u8, 0x6a, 0x72, 0x7a] {
        for place in [Fixup::Data { map: 1, offset: 0 }, Fixup::Data { map: 0, offset: 8 }] {
            let stores = [
                insn(width, 1, 0, 0, 1),
                insn(width, 1, 0, 8, 1),
                mov_reg(2, 1),
                insn(width, 2, 0, 0, 2),
                insn(width, 2, 0, 8, 3),
                insn(width, 1, 0, 0, 4),
            ];
            let straight = code().ops(&before()).lddw(1, place.clone()).ops(&stores);
            let straight = straight.op(mov(0, 0)).op(exit()).function("main");
            let traps = matches!(place, Fixup::Data { map: 1, .. });
            assert_eq!(agree(&straight, "in one block"), Some(traps));
            let apart = code().ops(&before()).lddw(1, place.clone()).op(stores[0]);
            let apart = apart.op(insn(0x15, 7, 0, 1, 0)).op(mov(3, 1)).op(stores[5]);
            let apart = apart.op(mov(0, 0)).op(exit()).function("main");
            assert_eq!(agree(&apart, "in two blocks"), Some(traps));
        }
    }
}
