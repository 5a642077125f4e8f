//! A small assembler, and a host that records calls.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::sync::Arc;

use fairground_bpf::{
    Callee, Engine, Env, Fixup, FuncRef, Function, Host, Image, Insn, Instance, InstanceConfig,
    Linked, MapDef, MapKind, TargetTypes, Trap,
};

/// Records prints and timers; counts for random numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Recorder {
    pub(crate) lines: Vec<String>,
    pub(crate) timers: Vec<(u64, FuncRef, [u64; 5], u64)>,
    pub(crate) calls: Vec<[u64; 5]>,
    pub(crate) random: u32,
}

impl Host for Recorder {
    fn random_u32(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.random
    }

    fn print(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    fn timer_start(
        &mut self,
        timer: u64,
        callback: FuncRef,
        args: [u64; 5],
        time_ns: u64,
        _flags: u64,
    ) -> i64 {
        self.timers.push((timer, callback, args, time_ns));
        0
    }

    fn timer_cancel(&mut self, _timer: u64) -> i64 {
        1
    }
}

pub(crate) const BOTH: [Engine; 2] = [Engine::Interpreter, Engine::Jit];

pub(crate) fn insn(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> Insn {
    Insn { code, dst, src, off, imm }
}

pub(crate) fn mov(dst: u8, imm: i32) -> Insn {
    insn(0xb7, dst, 0, 0, imm)
}

pub(crate) fn mov_reg(dst: u8, src: u8) -> Insn {
    insn(0xbf, dst, src, 0, 0)
}

pub(crate) fn add(dst: u8, imm: i32) -> Insn {
    insn(0x07, dst, 0, 0, imm)
}

pub(crate) fn exit() -> Insn {
    insn(0x95, 0, 0, 0, 0)
}

/// A function under construction.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) insns: Vec<Insn>,
    pub(crate) fixups: BTreeMap<usize, Fixup>,
}

impl Code {
    pub(crate) fn op(mut self, insn: Insn) -> Self {
        self.insns.push(insn);
        self
    }

    pub(crate) fn ops(mut self, insns: &[Insn]) -> Self {
        self.insns.extend_from_slice(insns);
        self
    }

    pub(crate) fn lddw(mut self, dst: u8, fixup: Fixup) -> Self {
        self.fixups.insert(self.insns.len(), fixup);
        self.op(insn(0x18, dst, 0, 0, 0)).op(insn(0, 0, 0, 0, 0))
    }

    pub(crate) fn value(self, dst: u8, value: u64) -> Self {
        self.lddw(dst, Fixup::Value(value))
    }

    pub(crate) fn call(mut self, callee: Callee) -> Self {
        self.fixups.insert(self.insns.len(), Fixup::Call(callee));
        self.op(insn(0x85, 0, 0, 0, 0))
    }

    pub(crate) fn helper(self, number: u32) -> Self {
        self.call(Callee::Helper(number))
    }

    pub(crate) fn function(self, name: &str) -> Function {
        Function {
            name: name.to_owned(),
            section: ".text".to_owned(),
            insns: self.insns,
            fixups: self.fixups,
        }
    }
}

pub(crate) fn code() -> Code {
    Code::default()
}

pub(crate) fn map(
    name: &str,
    kind: MapKind,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
) -> MapDef {
    let name = name.to_owned();
    MapDef {
        name,
        kind,
        key_size,
        value_size,
        max_entries,
        flags: 0,
        initial: vec![],
        kptrs: vec![],
    }
}

pub(crate) fn data(name: &str, read_only: bool, initial: &[u8]) -> MapDef {
    let map = map(name, MapKind::Data { read_only }, 4, initial.len() as u32, 1);
    MapDef { initial: initial.to_vec(), ..map }
}

pub(crate) fn env() -> Env<Recorder> {
    let mut env = Env::new(TargetTypes::new());
    env.kfuncs.push(("record", |host: &mut Recorder, _, args| {
        host.calls.push(args);
        Ok(args.iter().fold(0, |sum, arg| sum ^ arg))
    }));
    env.kfuncs.push(("fail", |_, _, _| Err(Trap::host("the host says no"))));
    env
}

pub(crate) fn image(
    functions: Vec<Function>,
    maps: Vec<MapDef>,
    engine: Engine,
) -> Arc<Image<Recorder>> {
    let kfuncs =
        ["record", "fail", "bpf_iter_num_new", "bpf_iter_num_next"].map(str::to_owned).to_vec();
    let linked = Linked { functions, maps, kfuncs, ..Linked::default() };
    let image = Image::from_linked("test", linked, &env(), engine).expect("a valid program");
    assert_eq!(image.engine(), engine, "tests run where the JIT does");
    image
}

pub(crate) fn instance(
    functions: Vec<Function>,
    maps: Vec<MapDef>,
    engine: Engine,
) -> Instance<Recorder> {
    image(functions, maps, engine).instantiate(&InstanceConfig::default()).expect("memory")
}

/// r0 of a single function, the same from both engines, with the same count.
pub(crate) fn run(code: Code) -> Result<u64, Trap> {
    run_with(code.function("main"), vec![], &[])
}

pub(crate) fn run_with(main: Function, maps: Vec<MapDef>, args: &[u64]) -> Result<u64, Trap> {
    let [oracle, jit] = BOTH.map(|engine| {
        let mut instance = instance(vec![main.clone()], maps.clone(), engine);
        let result = instance.call(0, args, &mut Recorder::default());
        let insns = result.is_ok().then(|| instance.insns());
        (result, insns)
    });
    assert_eq!(oracle, jit, "interpreter and JIT differ");
    jit.0
}
