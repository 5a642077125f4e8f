//! Each error of a program gives a specific trap, the same from both engines, and the instance stays usable.

use crate::support::{BOTH, Recorder, add, code, data, exit, image, insn, mov, run, run_with};
use fairground_bpf::{
    Callee, Fixup, FuncRef, Function, InstanceConfig, MapDef, NullLoads, TrapKind,
};

fn kind(main: Function, maps: Vec<MapDef>) -> (TrapKind, usize) {
    let trap = run_with(main, maps, &[]).expect_err("a trap");
    let place = trap.place().expect("engines add the location");
    assert_eq!(place.function, "main");
    (trap.kind().clone(), place.insn)
}

#[test]
fn null_load_names_its_place() {
    let main = code().op(mov(1, 0)).op(insn(0x79, 0, 1, 16, 0)).op(exit()).function("main");
    assert_eq!(kind(main.clone(), vec![]), (TrapKind::NullLoad { addr: 16 }, 1));
    let trap = run_with(main, vec![], &[]).expect_err("a trap");
    assert_eq!(
        trap.to_string(),
        "load through a NULL pointer (address 0x10) in function `main` at instruction 1"
    );
}

#[test]
fn null_store() {
    let main = code().op(mov(1, 0)).op(insn(0x7a, 1, 0, 0, 1)).op(exit()).function("main");
    assert_eq!(kind(main, vec![]), (TrapKind::NullStore { addr: 0 }, 1));
}

#[test]
fn wild_accesses() {
    let wild = 0x7000_0000;
    for (access, expected) in [
        (insn(0x79, 0, 1, 0, 0), TrapKind::WildLoad { addr: wild }),
        (insn(0x7a, 1, 0, 0, 1), TrapKind::WildStore { addr: wild }),
        (insn(0xdb, 1, 0, 0, 0), TrapKind::WildStore { addr: wild }),
    ] {
        // The high half of an address is ignored.
        for high in [0, 0xdead_beef << 32] {
            let main = code().value(1, wild | high).op(access).op(mov(0, 0)).op(exit());
            assert_eq!(kind(main.function("main"), vec![]), (expected.clone(), 2));
        }
    }
}

#[test]
fn both_ends_of_the_region_are_guarded() {
    let below = code().op(mov(1, 0)).op(insn(0x79, 0, 1, -8, 0)).op(exit());
    let (found, _) = kind(below.function("main"), vec![]);
    assert_eq!(found, TrapKind::WildLoad { addr: (-8i64) as u64 });
    let above = code().op(mov(1, -1)).op(insn(0x7a, 1, 0, i16::MAX, 1)).op(exit());
    let (found, _) = kind(above.function("main"), vec![]);
    assert_eq!(found, TrapKind::WildStore { addr: 0xffff_ffff + 0x7fff });
}

#[test]
fn read_only_data_cannot_be_written() {
    let maps = vec![data(".rodata", true, &7u64.to_le_bytes())];
    let address = Fixup::Data { map: 0, offset: 0 };
    let store = code().lddw(1, address.clone()).op(insn(0x7a, 1, 0, 0, 1)).op(exit());
    let (found, at) = kind(store.function("main"), maps.clone());
    assert!(matches!(found, TrapKind::ReadOnlyStore { .. }), "{found}");
    assert_eq!(at, 2);
    let load = code().lddw(1, address).op(insn(0x79, 0, 1, 0, 0)).op(exit());
    assert_eq!(run_with(load.function("main"), maps, &[]), Ok(7));
}

#[test]
fn endless_loop_runs_out_of_fuel() {
    let main = code().op(mov(0, 0)).op(insn(0x05, 0, 0, -1, 0)).function("main");
    let limit = InstanceConfig::default().fuel_per_call;
    let (found, at) = kind(main, vec![]);
    assert_eq!((found, at), (TrapKind::OutOfFuel { limit }, 1));
}

#[test]
fn unbounded_recursion_overflows_the_stack() {
    let main = code().call(Callee::Function(0)).op(exit()).function("main");
    let (found, at) = kind(main, vec![]);
    assert_eq!((found, at), (TrapKind::StackOverflow { frames: 64 }, 0));
}

#[test]
fn recursion_through_a_helper_overflows_too() {
    let main = code()
        .op(mov(1, 1))
        .lddw(2, Fixup::Function(0))
        .op(mov(3, 0))
        .op(mov(4, 0))
        .helper(181)
        .op(exit());
    let (found, _) = kind(main.function("main"), vec![]);
    assert_eq!(found, TrapKind::StackOverflow { frames: 64 });
}

#[test]
fn endless_bpf_loop_runs_out_of_fuel() {
    let body = code()
        .op(mov(0, 0))
        .op(mov(1, 1000))
        .op(add(1, -1))
        .op(insn(0x55, 1, 0, -2, 0))
        .op(exit())
        .function("body");
    let main = code()
        .op(mov(1, 8 << 20))
        .lddw(2, Fixup::Function(1))
        .op(mov(3, 0))
        .op(mov(4, 0))
        .helper(181)
        .op(exit())
        .function("main");
    for engine in BOTH {
        let mut instance =
            crate::support::instance(vec![main.clone(), body.clone()], vec![], engine);
        let trap = instance.call(0, &[], &mut Recorder::default()).expect_err("a trap");
        assert!(matches!(trap.kind(), TrapKind::OutOfFuel { .. }), "{trap}");
    }
}

#[test]
fn poison_says_why() {
    let mut poisoned = code().op(mov(0, 0)).op(exit());
    poisoned.fixups.insert(0, Fixup::Poison("task_struct has no field `gone`".into()));
    let (found, at) = kind(poisoned.function("main"), vec![]);
    assert_eq!(found, TrapKind::Poison("task_struct has no field `gone`".into()));
    assert_eq!(at, 0);
}

#[test]
fn host_errors_come_through_with_a_place() {
    let main = code().op(mov(1, 0)).call(Callee::Kfunc(1)).op(exit()).function("main");
    let (found, at) = kind(main, vec![]);
    assert_eq!((found, at), (TrapKind::Host("the host says no".into()), 1));
}

#[test]
fn helpers_refuse_what_is_no_map() {
    let main = code().op(mov(1, 3)).op(mov(2, 0)).helper(1).op(exit()).function("main");
    let (found, _) = kind(main, vec![]);
    assert!(matches!(found, TrapKind::Helper(_)), "{found}");
}

#[test]
fn a_trap_inside_a_callback_ends_the_whole_call() {
    let body = code().op(mov(1, 0)).op(insn(0x79, 0, 1, 0, 0)).op(exit()).function("body");
    let main = code()
        .op(mov(1, 3))
        .lddw(2, Fixup::Function(1))
        .op(mov(3, 0))
        .op(mov(4, 0))
        .helper(181)
        .op(exit())
        .function("main");
    for engine in BOTH {
        let mut instance =
            crate::support::instance(vec![main.clone(), body.clone()], vec![], engine);
        let trap = instance.call(0, &[], &mut Recorder::default()).expect_err("a trap");
        assert_eq!(trap.place().map(|place| place.function.as_str()), Some("body"));
        assert_eq!(*trap.kind(), TrapKind::NullLoad { addr: 0 });
    }
}

#[test]
fn null_reads_zero_where_configured() {
    let load = code().op(mov(1, 0)).op(insn(0x79, 0, 1, 4096, 0)).op(exit()).function("load");
    let store = code().op(mov(1, 0)).op(insn(0x7a, 1, 0, 0, 1)).op(exit()).function("store");
    let config = InstanceConfig { null_loads: NullLoads::ReadZero, ..Default::default() };
    for engine in BOTH {
        let image = image(vec![load.clone(), store.clone()], vec![], engine);
        let mut instance = image.instantiate(&config).expect("memory");
        let host = &mut Recorder::default();
        assert_eq!(instance.call(0, &[], host), Ok(0));
        let trap = instance.call(1, &[], host).expect_err("a trap");
        assert_eq!(*trap.kind(), TrapKind::NullStore { addr: 0 });
    }
}

#[test]
fn an_instance_survives_its_traps() {
    let good = code().op(mov(0, 5)).op(exit()).function("good");
    let bad = code().op(mov(1, 0)).op(insn(0x79, 0, 1, 0, 0)).op(exit()).function("bad");
    for engine in BOTH {
        let mut instance =
            crate::support::instance(vec![good.clone(), bad.clone()], vec![], engine);
        let host = &mut Recorder::default();
        for _ in 0..1000 {
            assert!(instance.call(1, &[], host).is_err());
            assert_eq!(instance.call(0, &[], host), Ok(5));
        }
    }
}

#[test]
fn threads_trap_independently() {
    let loads = code().op(insn(0x79, 1, 1, 0, 0)).op(insn(0x79, 0, 1, 0, 0)).op(exit());
    let image = image(vec![loads.function("main")], vec![], fairground_bpf::Engine::Jit);
    let traps: Vec<_> = std::thread::scope(|scope| {
        let run = |wild: u64| {
            let mut instance = image.instantiate(&InstanceConfig::default()).expect("memory");
            scope.spawn(move || {
                let mut last = None;
                for _ in 0..200 {
                    last = instance.call(0, &[wild], &mut Recorder::default()).err();
                }
                last.map(|trap| trap.kind().clone())
            })
        };
        let threads = [run(0x7000_0000), run(8)];
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let expected =
        vec![Some(TrapKind::WildLoad { addr: 0x7000_0000 }), Some(TrapKind::NullLoad { addr: 8 })];
    assert_eq!(traps, expected);
}

#[test]
fn threads_compile_one_image_together() {
    const FUNCTIONS: usize = 24;
    // Function n adds n to what function n + 1 returns; the last one loads from its argument.
    let call = |n: usize| {
        code()
            .call(Callee::Function(n + 1))
            .op(add(0, n as i32))
            .op(exit())
            .function(&format!("f{n}"))
    };
    let last = code().op(insn(0x79, 0, 1, 0, 0)).op(exit()).function("last");
    let functions: Vec<_> = (0..FUNCTIONS).map(call).chain([last]).collect();
    let image = image(functions, vec![], fairground_bpf::Engine::Jit);
    std::thread::scope(|scope| {
        for start in (0..FUNCTIONS).rev() {
            let mut instance = image.instantiate(&InstanceConfig::default()).expect("memory");
            let (own, expected) = (instance.alloc(8, 8).expect("memory"), start..FUNCTIONS);
            scope.spawn(move || {
                let host = &mut Recorder::default();
                // The start of an instance's first call; most of what it calls is compiled by other threads.
                let sum = instance.call_function(FuncRef(start), [own, 0, 0, 0, 0], host);
                assert_eq!(sum, Ok(expected.sum::<usize>() as u64));
                let trap = instance.call_function(FuncRef(start), [0x7000_0000, 0, 0, 0, 0], host);
                let trap = trap.expect_err("a wild load");
                assert_eq!(*trap.kind(), TrapKind::WildLoad { addr: 0x7000_0000 });
                assert_eq!(trap.place().expect("its place").function, "last");
            });
        }
    });
}

#[test]
fn division_never_traps() {
    let program =
        code().value(0, i64::MIN as u64).op(mov(1, -1)).op(insn(0x3f, 0, 1, 1, 0)).op(exit());
    assert_eq!(run(program), Ok(i64::MIN as u64));
}
