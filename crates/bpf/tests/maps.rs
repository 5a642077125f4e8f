//! Maps and helpers, on both engines.

use crate::support::{
    BOTH, Code, Recorder, add, code, data, exit, image, insn, instance, map, mov, mov_reg, run_with,
};
use fairground_bpf::{
    Callee, Fixup, FuncRef, Function, Insn, InstanceConfig, MapDef, MapKind, TrapKind,
};

/// r2 = address of a 4-byte key on the stack.
fn key(code: Code, key: i32) -> Code {
    code.op(insn(0x62, 10, 0, -4, key)).op(mov_reg(2, 10)).op(add(2, -4))
}

/// map[key] = value through `bpf_map_update_elem`; r0 is its result.
fn update(code: Code, index: usize, at: i32, value: i32, flags: i32) -> Code {
    key(code, at)
        .op(insn(0x7a, 10, 0, -16, value))
        .op(mov_reg(3, 10))
        .op(add(3, -16))
        .op(mov(4, flags))
        .lddw(1, Fixup::Map(index))
        .helper(2)
}

/// r0 = *lookup(map, key), or -1.
fn read(code: Code, index: usize, at: i32) -> Code {
    let tail: [Insn; 3] = [insn(0x55, 0, 0, 2, 0), mov(0, -1), insn(0x05, 0, 0, 1, 0)];
    key(code, at).lddw(1, Fixup::Map(index)).helper(1).ops(&tail).op(insn(0x79, 0, 0, 0, 0))
}

fn value(main: Code, maps: &[MapDef]) -> i64 {
    run_with(main.op(exit()).function("main"), maps.to_vec(), &[]).expect("no trap") as i64
}

#[test]
fn arrays_hold_every_index_and_no_other() {
    let maps = [map("array", MapKind::Array, 4, 8, 3)];
    assert_eq!(value(read(update(code(), 0, 2, 77, 0), 0, 2), &maps), 77);
    assert_eq!(value(read(code(), 0, 0), &maps), 0);
    assert_eq!(value(read(code(), 0, 3), &maps), -1);
    assert_eq!(value(read(code(), 0, -1), &maps), -1);
    assert_eq!(value(update(code(), 0, 3, 1, 0), &maps), -7);
    assert_eq!(value(update(code(), 0, 1, 1, 1), &maps), -17);
}

#[test]
fn hashes_add_replace_and_delete() {
    for kind in [MapKind::Hash, MapKind::LruHash, MapKind::PerCpuHash] {
        let maps = [map("hash", kind, 4, 8, 4)];
        assert_eq!(value(read(code(), 0, 5), &maps), -1);
        assert_eq!(value(read(update(code(), 0, 5, 9, 0), 0, 5), &maps), 9);
        assert_eq!(value(update(update(code(), 0, 5, 9, 0), 0, 5, 1, 1), &maps), -17);
        assert_eq!(value(update(code(), 0, 5, 9, 2), &maps), -2);
        let deleted = key(update(code(), 0, 5, 9, 0), 5).lddw(1, Fixup::Map(0)).helper(3);
        assert_eq!(value(read(deleted, 0, 5), &maps), -1);
    }
}

#[test]
fn a_full_hash_refuses_and_a_full_lru_hash_forgets_the_oldest() {
    let fill = |kind| {
        let mut program = code();
        for at in 0..3 {
            program = update(program, 0, at, 10 + at, 0);
        }
        (program, [map("hash", kind, 4, 8, 2)])
    };
    let (program, maps) = fill(MapKind::Hash);
    assert_eq!(value(program, &maps), -7);
    let (program, maps) = fill(MapKind::LruHash);
    assert_eq!(value(read(program, 0, 0), &maps), -1);
    let (program, maps) = fill(MapKind::LruHash);
    assert_eq!(value(read(program, 0, 2), &maps), 12);
    // A lookup of 0 makes 1 the oldest.
    let used = read(update(update(code(), 0, 0, 10, 0), 0, 1, 11, 0), 0, 0);
    assert_eq!(value(read(update(used, 0, 2, 12, 0), 0, 0), &maps), 10);
}

#[test]
fn a_hash_survives_many_additions_and_removals() {
    let maps = vec![map("hash", MapKind::Hash, 4, 8, 200)];
    let put = update(code(), 0, 0, 1, 0);
    // The key comes from the arguments: patch the store of the key.
    let with_key = |program: Code| {
        let mut program = program;
        for insn in &mut program.insns {
            if insn.code == 0x62 {
                *insn = crate::support::insn(0x63, 10, 6, -4, 0);
            }
        }
        let start = code().op(insn(0x79, 6, 1, 0, 0));
        let shift = start.insns.len();
        let mut all = start;
        all.insns.extend(program.insns);
        all.fixups = program.fixups.into_iter().map(|(at, fixup)| (at + shift, fixup)).collect();
        all.op(exit())
    };
    let delete = key(code(), 0).lddw(1, Fixup::Map(0)).helper(3);
    let functions = vec![
        with_key(put).function("put"),
        with_key(delete).function("delete"),
        with_key(read(code(), 0, 0)).function("get"),
    ];
    for engine in BOTH {
        let mut instance = instance(functions.clone(), maps.clone(), engine);
        let host = &mut Recorder::default();
        let mut present = std::collections::BTreeSet::new();
        for turn in 0..3000u64 {
            let key = turn * 7919 % 256;
            if turn % 3 == 0 {
                let expected = if present.remove(&key) { 0 } else { -2 };
                assert_eq!(instance.call(1, &[key], host), Ok(expected as u64));
            } else {
                let room = present.len() < 200 || present.contains(&key);
                assert_eq!(instance.call(0, &[key], host), Ok(if room { 0 } else { -7i64 as u64 }));
                if room {
                    present.insert(key);
                }
            }
            let probe = turn * 31 % 256;
            let expected = if present.contains(&probe) { 1 } else { -1i64 as u64 };
            assert_eq!(instance.call(2, &[probe], host), Ok(expected));
        }
    }
}

#[test]
fn per_cpu_arrays_keep_cpus_apart() {
    let maps = vec![map("cpus", MapKind::PerCpuArray, 4, 8, 2)];
    let set = update(code(), 0, 1, 5, 0).op(exit()).function("set");
    let get = read(code(), 0, 1).op(exit()).function("get");
    let of = key(code(), 1)
        .op(mov(3, 2))
        .lddw(1, Fixup::Map(0))
        .helper(195)
        .op(insn(0x79, 0, 0, 0, 0))
        .op(exit())
        .function("of_cpu_2");
    for engine in BOTH {
        let image = image(vec![set.clone(), get.clone(), of.clone()], maps.clone(), engine);
        let config = InstanceConfig { cpus: 4, ..Default::default() };
        let mut instance = image.instantiate(&config).expect("memory");
        let host = &mut Recorder::default();
        instance.context().cpu = 2;
        assert_eq!(instance.call(0, &[], host), Ok(0));
        assert_eq!(instance.call(1, &[], host), Ok(5));
        instance.context().cpu = 3;
        assert_eq!(instance.call(1, &[], host), Ok(0));
        assert_eq!(instance.call(2, &[], host), Ok(5));
        instance.context().cpu = 4;
        assert!(instance.call(1, &[], host).is_err(), "CPU 4 of 4 does not exist");
    }
}

/// CPUs share the values of a hash map; each has its own value in a per-CPU one.
#[test]
fn hashes_are_one_for_all_cpus_unless_they_are_per_cpu() {
    for (kind, of_others) in [(MapKind::Hash, 9), (MapKind::LruHash, 9), (MapKind::PerCpuHash, 0)] {
        let maps = vec![map("hash", kind, 4, 8, 4)];
        let put = update(update(code(), 0, 5, 9, 0), 0, 6, 1, 0).op(exit()).function("put");
        let get = read(code(), 0, 5).op(exit()).function("get");
        for engine in BOTH {
            let image = image(vec![put.clone(), get.clone()], maps.clone(), engine);
            let config = InstanceConfig { cpus: 4, ..Default::default() };
            let mut instance = image.instantiate(&config).expect("memory");
            let host = &mut Recorder::default();
            instance.context().cpu = 2;
            assert_eq!(instance.call(0, &[], host), Ok(0));
            for (cpu, seen) in [(2, 9), (0, of_others), (1, of_others), (3, of_others)] {
                instance.context().cpu = cpu;
                assert_eq!(
                    instance.call(1, &[], host),
                    Ok(seen),
                    "{kind:?}, CPU {cpu}, {engine:?}"
                );
            }
        }
    }
}

fn storage_program(flags: i32) -> Function {
    code()
        .op(insn(0x79, 2, 1, 0, 0))
        .op(mov(3, 0))
        .op(mov(4, flags))
        .lddw(1, Fixup::Map(0))
        .helper(156)
        .op(insn(0x15, 0, 0, 3, 0))
        .op(mov(1, 1))
        .op(insn(0xdb, 0, 1, 0, 0))
        .op(insn(0x79, 0, 0, 0, 0))
        .op(exit())
        .function("count")
}

#[test]
fn task_storage_follows_the_task() {
    let maps = vec![map("tasks", MapKind::TaskStorage, 4, 12, 0)];
    let functions = vec![storage_program(1), storage_program(0)];
    for engine in BOTH {
        let mut instance = instance(functions.clone(), maps.clone(), engine);
        // A stride that is not a power of two.
        let stride = 712;
        let slab = instance.task_slab(stride, 100).expect("a slab");
        let host = &mut Recorder::default();
        let task = |number: u64| slab + number * stride;
        for number in [0, 1, 50, 99] {
            assert_eq!(instance.call(1, &[task(number)], host), Ok(0), "not created yet");
            assert_eq!(instance.call(0, &[task(number)], host), Ok(1));
            assert_eq!(instance.call(1, &[task(number)], host), Ok(2));
        }
        instance.task_storage_free(&mut Recorder::default(), task(50));
        assert_eq!(instance.call(1, &[task(50)], host), Ok(0));
        assert_eq!(instance.call(0, &[task(50)], host), Ok(1), "storage comes back zeroed");
        assert_eq!(instance.call(1, &[task(99)], host), Ok(3));
        for stranger in [0, slab + 1, task(100), slab - stride, u64::MAX] {
            assert_eq!(instance.call(0, &[stranger], host), Ok(0), "{stranger:#x} is no task");
        }
        assert!(instance.task_slab(stride, 100).is_err(), "one slab per instance");
    }
}

#[test]
fn queues_and_stacks() {
    let push = |program: Code, value: i32| {
        program
            .op(insn(0x7a, 10, 0, -8, value))
            .op(mov_reg(2, 10))
            .op(add(2, -8))
            .op(mov(3, 0))
            .lddw(1, Fixup::Map(0))
            .helper(87)
    };
    let pop = |program: Code| {
        program
            .op(mov_reg(2, 10))
            .op(add(2, -8))
            .lddw(1, Fixup::Map(0))
            .helper(88)
            .op(insn(0x55, 0, 0, 1, 0))
            .op(insn(0x79, 0, 10, -8, 0))
    };
    for (kind, first, second) in [(MapKind::Queue, 1, 2), (MapKind::Stack, 3, 2)] {
        let maps = [map("values", kind, 0, 8, 3)];
        let full = || push(push(push(code(), 1), 2), 3);
        assert_eq!(value(pop(full()), &maps), first);
        assert_eq!(value(pop(pop(full())), &maps), second);
        assert_eq!(value(push(full(), 4), &maps), -7);
        assert_eq!(value(pop(code()), &maps), -2);
    }
}

#[test]
fn ring_buffer_records_reach_the_host_in_order() {
    let maps = vec![map("ring", MapKind::RingBuf, 0, 0, 4096)];
    let send = code()
        .op(insn(0x79, 6, 1, 0, 0))
        .op(mov(2, 8))
        .op(mov(3, 0))
        .lddw(1, Fixup::Map(0))
        .helper(131)
        .op(insn(0x15, 0, 0, 4, 0))
        .op(insn(0x7b, 0, 6, 0, 0))
        .op(mov_reg(1, 0))
        .op(mov(2, 0))
        .helper(132)
        .op(exit())
        .function("send");
    for engine in BOTH {
        let mut instance = instance(vec![send.clone()], maps.clone(), engine);
        for word in [7, 8] {
            assert_eq!(instance.call(0, &[word], &mut Recorder::default()), Ok(0));
        }
        let words = [7u64, 8].map(|word| (0, word.to_le_bytes().to_vec()));
        assert_eq!(instance.maps().take_records(), words);
        assert_eq!(instance.maps().take_records(), vec![]);
    }
}

#[test]
fn timers_hand_their_element_to_the_callback() {
    let maps = vec![map("timers", MapKind::Array, 4, 24, 2)];
    let start = key(code(), 1)
        .lddw(1, Fixup::Map(0))
        .helper(1)
        .op(mov_reg(6, 0))
        .op(mov_reg(1, 6))
        .op(add(1, 8))
        .lddw(2, Fixup::Map(0))
        .op(mov(3, 1))
        .helper(169)
        .op(mov_reg(1, 6))
        .op(add(1, 8))
        .lddw(2, Fixup::Function(1))
        .helper(170)
        .op(mov_reg(1, 6))
        .op(add(1, 8))
        .op(mov(2, 500))
        .op(mov(3, 0))
        .helper(171)
        .op(exit())
        .function("start");
    // The callback stores its key + 40 at the start of the value.
    let fire = code()
        .op(insn(0x61, 0, 2, 0, 0))
        .op(add(0, 40))
        .op(insn(0x7b, 3, 0, 0, 0))
        .op(exit())
        .function("fire");
    for engine in BOTH {
        let mut instance = instance(vec![start.clone(), fire.clone()], maps.clone(), engine);
        let mut host = Recorder::default();
        assert_eq!(instance.call(0, &[], &mut host), Ok(0));
        let value = instance.maps().lookup(0, &1u32.to_le_bytes(), 0).expect("a map");
        let value = value.expect("an element");
        let (timer, callback, args, delay_ns) = host.timers[0];
        assert_eq!((timer, callback, delay_ns), (value + 8, FuncRef(1), 500));
        assert_eq!(instance.call_function(callback, args, &mut host), Ok(41));
        assert_eq!(instance.memory().load_u64(value), Ok(41));
    }
}

#[test]
fn for_each_visits_all_until_the_callback_stops_it() {
    let maps = vec![map("array", MapKind::Array, 4, 8, 5), map("hash", MapKind::Hash, 4, 8, 5)];
    // ctx accumulates 10 * acc + key; stops at key 3.
    let visit = code()
        .op(insn(0x61, 5, 2, 0, 0))
        .op(insn(0x79, 1, 4, 0, 0))
        .op(insn(0x27, 1, 0, 0, 10))
        .op(insn(0x0f, 1, 5, 0, 0))
        .op(insn(0x7b, 4, 1, 0, 0))
        .op(mov(0, 0))
        .op(insn(0x55, 5, 0, 1, 3))
        .op(mov(0, 1))
        .op(exit())
        .function("visit");
    let walk = |program: Code, map| {
        program
            .op(insn(0x7a, 10, 0, -32, 0))
            .lddw(1, Fixup::Map(map))
            .lddw(2, Fixup::Function(1))
            .op(mov_reg(3, 10))
            .op(add(3, -32))
            .op(mov(4, 0))
            .helper(164)
            .op(insn(0x79, 1, 10, -32, 0))
            .op(insn(0x27, 0, 0, 0, 100_000))
            .op(insn(0x0f, 0, 1, 0, 0))
            .op(exit())
            .function("main")
    };
    let filled = [4, 3, 1].into_iter().fold(code(), |program, at| update(program, 1, at, 0, 0));
    let mains = [(walk(code(), 0), 400_123), (walk(filled, 1), 200_043)];
    for (main, expected) in mains {
        for engine in BOTH {
            let functions = vec![main.clone(), visit.clone()];
            let mut instance = instance(functions, maps.clone(), engine);
            assert_eq!(instance.call(0, &[], &mut Recorder::default()), Ok(expected));
        }
    }
}

#[test]
fn printing_follows_printf() {
    let texts = b"%d %5u|%-4x|%04llx %s %c%%\n\0name\0";
    let text = |program: Code, reg, offset| program.lddw(reg, Fixup::Data { map: 0, offset });
    let word = |program: Code, at: i16| program.op(insn(0x7b, 10, 1, at, 0));
    let mut main = code().op(mov(1, -5));
    main = word(main, -48).op(mov(1, 42));
    main = word(main, -40).op(mov(1, 255));
    main = word(main, -32).op(mov(1, 171));
    main = word(main, -24);
    main = word(text(main, 1, 28), -16).op(mov(1, 33));
    main = word(main, -8);
    main = text(main, 1, 0)
        .op(mov(2, 28))
        .op(mov_reg(3, 10))
        .op(add(3, -48))
        .op(mov(4, 48))
        .helper(177)
        .op(exit());
    let main = main.function("main");
    for engine in BOTH {
        let maps = vec![data(".rodata", true, texts)];
        let mut instance = instance(vec![main.clone()], maps, engine);
        let mut host = Recorder::default();
        instance.call(0, &[], &mut host).expect("no trap");
        assert_eq!(host.lines, ["-5    42|ff  |00ab name !%"]);
    }
}

#[test]
fn probe_reads_of_nowhere_fail_softly() {
    let probe = |helper| {
        code()
            .op(insn(0x7a, 10, 0, -8, -1))
            .op(mov_reg(1, 10))
            .op(add(1, -8))
            .op(mov(2, 8))
            .op(mov(3, 64))
            .helper(helper)
            .op(insn(0x79, 1, 10, -8, 0))
            .op(insn(0x0f, 0, 1, 0, 0))
    };
    assert_eq!(value(probe(113), &[]), -14);
    assert_eq!(value(probe(115), &[]), -14);
}

#[test]
fn spin_locks_do_not_nest() {
    let lock = |program: Code| program.op(mov(1, 0)).helper(93);
    let twice = lock(lock(code())).op(exit()).function("main");
    let trap = run_with(twice, vec![], &[]).expect_err("a trap");
    assert!(matches!(trap.kind(), TrapKind::Helper(_)), "{trap}");
    assert_eq!(value(lock(code()).op(mov(1, 0)).helper(94), &[]), 0);
}

#[test]
fn globals_change_between_calls_and_constants_before_them() {
    use fairground_bpf::{Global, GlobalType};
    let maps = vec![data(".rodata", true, &[0; 16]), data(".bss", false, &[0; 8])];
    let main = code()
        .lddw(1, Fixup::Data { map: 0, offset: 8 })
        .op(insn(0x79, 0, 1, 0, 0))
        .lddw(2, Fixup::Data { map: 1, offset: 0 })
        .op(insn(0x7b, 2, 0, 0, 0))
        .op(exit())
        .function("main");
    let global = |map, offset, read_only| Global {
        name: "slice_ns".into(),
        map,
        offset,
        size: 8,
        ty: GlobalType::Int { bits: 64, signed: false },
        read_only,
        volatile: true,
        tags: vec![],
    };
    let (knob, seen) = (global(0, 8, true), global(1, 0, false));
    for engine in BOTH {
        let mut instance = instance(vec![main.clone()], maps.clone(), engine);
        let ns = 20_000_000_u64;
        instance.set_global(&knob, &[9; 8]).expect("a global");
        instance.set_global(&knob, &ns.to_le_bytes()).expect("a global");
        for before in [0_u64, 7] {
            instance.set_global(&seen, &before.to_le_bytes()).expect("a global");
            assert_eq!(instance.call(0, &[], &mut Recorder::default()), Ok(ns));
            assert_eq!(instance.global(&seen), Ok(ns.to_le_bytes().to_vec()));
        }
        assert!(instance.set_global(&knob, &[0; 8]).is_err(), "frozen by the first call");
        assert!(instance.set_global(&knob, &[0; 4]).is_err(), "4 bytes for 8");
        assert!(instance.global(&global(1, 4, false)).is_err(), "beyond the end");
        assert!(instance.global(&global(9, 0, false)).is_err(), "no such map");
    }
}

#[test]
fn kfuncs_get_their_arguments_and_memory_is_the_hosts_too() {
    let main = code()
        .op(insn(0x79, 1, 1, 0, 0))
        .op(mov(2, 2))
        .op(mov(3, 3))
        .op(mov(4, 4))
        .op(mov(5, 5))
        .call(Callee::Kfunc(0))
        .op(exit())
        .function("main");
    for engine in BOTH {
        let mut instance = instance(vec![main.clone()], vec![], engine);
        let cell = instance.alloc(16, 8).expect("memory");
        instance.memory().store_u32(cell + 4, 9).expect("in bounds");
        assert_eq!(instance.memory().load_u64(cell), Ok(9 << 32));
        let mut host = Recorder::default();
        instance.call(0, &[cell], &mut host).expect("no trap");
        assert_eq!(host.calls, [[cell, 2, 3, 4, 5]]);
    }
}
