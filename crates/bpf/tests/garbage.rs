//! Random instructions, and helpers with random arguments: a load error, a result or a trap, the same from both
//! engines, and never a panic.

use std::collections::BTreeMap;

use crate::support::{Recorder, data, env, exit, insn, map, mov_reg};
use fairground_bpf::{
    Callee, Engine, Fixup, Function, Image, Insn, InstanceConfig, Linked, MapDef, MapKind,
    NullLoads,
};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof};
use proptest::proptest;
use proptest::test_runner::FileFailurePersistence;

const HELPERS: [u32; 41] = [
    1, 2, 3, 4, 5, 6, 7, 8, 25, 35, 45, 87, 88, 89, 93, 94, 112, 113, 114, 115, 118, 130, 131, 132,
    133, 134, 153, 154, 156, 157, 164, 165, 169, 170, 171, 172, 177, 181, 182, 194, 195,
];

const KFUNCS: [&str; 8] = [
    "record",
    "bpf_iter_num_new",
    "bpf_iter_num_next",
    "bpf_local_irq_save",
    "bpf_throw",
    "bpf_arena_alloc_pages",
    "bpf_arena_free_pages",
    "scx_bpf_now",
];

const KINDS: [MapKind; 10] = [
    MapKind::Array,
    MapKind::PerCpuArray,
    MapKind::Hash,
    MapKind::PerCpuHash,
    MapKind::LruHash,
    MapKind::TaskStorage,
    MapKind::Queue,
    MapKind::RingBuf,
    MapKind::PerfEventArray,
    MapKind::Arena,
];

#[derive(Clone, Debug)]
enum Piece {
    Raw(Insn),
    Load(u8, Fixup),
    Pointer(u8, i16),
    Call(Callee),
}

fn raw() -> impl Strategy<Value = Insn> {
    let known = vec![
        0x07u8, 0x0f, 0x17, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x47, 0x4f, 0x57, 0x5f, 0x67, 0x6f, 0x77,
        0x7f, 0x87, 0x97, 0x9f, 0xa7, 0xaf, 0xb7, 0xbf, 0xc7, 0xcf, 0x04, 0x0c, 0x34, 0x3c, 0x6c,
        0x7c, 0x9c, 0xb4, 0xbc, 0xcc, 0x61, 0x69, 0x71, 0x79, 0x81, 0x62, 0x6a, 0x72, 0x7a, 0x63,
        0x6b, 0x73, 0x7b, 0xdb, 0xc3, 0x05, 0x15, 0x1d, 0x25, 0x2d, 0x35, 0x55, 0x5d, 0x65, 0x6d,
        0xa5, 0xad, 0xe5, 0x16, 0x1e, 0x56, 0x66, 0xae, 0xd4, 0xd7, 0xdc,
    ];
    let code = prop_oneof![200 => prop::sample::select(known), 1 => any::<u8>()];
    let imm = prop_oneof![-20..20i32, any::<i32>(), Just(16), Just(64), Just(0xf1)];
    (code, 0..11u8, 0..11u8, -12..12i16, imm).prop_map(|(code, dst, src, off, imm)| {
        let memory = matches!(code & 7, 1..=3);
        let jump = matches!(code & 7, 5 | 6);
        let dst = if memory || jump || dst < 10 { dst } else { 0 };
        let src = if code & 8 != 0 || code & 7 == 1 || code & 7 == 3 { src } else { 0 };
        insn(code, dst, src, if memory || jump { off } else { 0 }, imm)
    })
}

fn piece() -> impl Strategy<Value = Piece> {
    let address = prop_oneof![
        (0..KINDS.len()).prop_map(|kind| Fixup::Map(kind + 1)),
        (0..64u64).prop_map(|offset| Fixup::Data { map: 0, offset }),
        Just(Fixup::Function(1)),
        any::<u64>().prop_map(Fixup::Value),
        (0..100u64).prop_map(Fixup::Value),
    ];
    prop_oneof![
        10 => raw().prop_map(Piece::Raw),
        4 => (0..6u8, address).prop_map(|(reg, fixup)| Piece::Load(reg, fixup)),
        3 => (1..6u8, -64..8i16).prop_map(|(reg, off)| Piece::Pointer(reg, off)),
        3 => prop::sample::select(HELPERS.to_vec())
            .prop_map(|number| Piece::Call(Callee::Helper(number))),
        1 => (0..KFUNCS.len()).prop_map(|index| Piece::Call(Callee::Kfunc(index))),
        1 => Just(Piece::Call(Callee::Function(1))),
    ]
}

fn function(name: &str, pieces: &[Piece]) -> Function {
    let (mut insns, mut fixups) = (vec![], BTreeMap::new());
    for piece in pieces {
        match piece {
            Piece::Raw(insn) => insns.push(*insn),
            Piece::Load(reg, fixup) => {
                fixups.insert(insns.len(), fixup.clone());
                insns.extend([insn(0x18, *reg, 0, 0, 0), insn(0, 0, 0, 0, 0)]);
            }
            Piece::Pointer(reg, off) => {
                insns.extend([mov_reg(*reg, 10), insn(0x07, *reg, 0, 0, i32::from(*off))]);
            }
            Piece::Call(callee) => {
                fixups.insert(insns.len(), Fixup::Call(*callee));
                insns.push(insn(0x85, 0, 0, 0, 0));
            }
        }
    }
    insns.push(exit());
    Function { name: name.into(), section: ".text".into(), insns, fixups }
}

fn maps() -> Vec<MapDef> {
    let mut maps = vec![data(".data", false, b"value %d %s %llx %p %5c\n of a format")];
    maps[0].initial.resize(64, 0);
    for kind in KINDS {
        let ring = kind == MapKind::RingBuf;
        maps.push(map("map", kind, 4, 24, if ring { 4096 } else { 3 }));
    }
    maps
}

type Seen = Result<(Result<u64, String>, Option<u64>, Vec<u8>, Recorder), String>;

fn observe(functions: &[Function], engine: Engine, null_loads: NullLoads) -> Seen {
    let kfuncs = KFUNCS.map(str::to_owned).to_vec();
    let linked =
        Linked { functions: functions.to_vec(), maps: maps(), kfuncs, ..Linked::default() };
    let image = Image::from_linked("garbage", linked, &env(), engine).map_err(|e| e.to_string())?;
    let config =
        InstanceConfig { cpus: 2, fuel_per_call: 20_000, null_loads, ..Default::default() };
    let mut instance = image.instantiate(&config).expect("memory");
    let slab = instance.task_slab(96, 8).expect("a slab");
    instance.context().task = slab;
    let mut host = Recorder::default();
    let result = instance.call(0, &[slab, slab + 96], &mut host);
    let insns = result.is_ok().then(|| instance.insns());
    // Two stores in a row may trap at either (see the differential test): compare the kinds, not the locations.
    let result = result.map_err(|trap| format!("{:?}", trap.kind()));
    let data = instance.maps().lookup(0, &[0; 4], 0).expect("a map").expect("its value");
    let memory = instance.memory().read_vec(data, 64).expect("data is readable");
    Ok((result, insns, memory, host))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        max_shrink_iters: 2000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    })]

    #[test]
    fn both_engines_take_garbage_alike(
        main in prop::collection::vec(piece(), 1..40),
        callback in prop::collection::vec(piece(), 0..8),
        zero in any::<bool>(),
    ) {
        let functions = [function("main", &main), function("callback", &callback)];
        let null_loads = if zero { NullLoads::ReadZero } else { NullLoads::Trap };
        let oracle = observe(&functions, Engine::Interpreter, null_loads);
        let jit = observe(&functions, Engine::Jit, null_loads);
        assert_eq!(oracle, jit);
    }
}
