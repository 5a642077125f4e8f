//! Random programs: both engines give the same result or trap, memory, host calls and instruction count.

use crate::support::{BOTH, Code, Recorder, add, code, data, exit, image, insn, map, mov, mov_reg};
use fairground_bpf::{Callee, Engine, Fixup, Function, InstanceConfig, MapDef, MapKind, TrapKind};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof};
use proptest::proptest;
use proptest::test_runner::FileFailurePersistence;

/// Bytes of the data section that r6 points to.
const DATA: i16 = 256;
/// Bytes of stack below the loop counters.
const STACK: i16 = 256;

/// A step of a random program. Registers are 0…5, 7, 8, 9; r6 points to the data section.
#[derive(Clone, Debug)]
enum Step {
    Alu { code: u8, off: i16, dst: u8, src: u8, imm: i32 },
    Constant { dst: u8, value: u64 },
    Load { code: u8, dst: u8, stack: bool, at: i16 },
    Store { code: u8, src: u8, stack: bool, at: i16, imm: i32 },
    Atomic { code: u8, imm: i32, src: u8, stack: bool, at: i16 },
    If { code: u8, left: u8, right: u8, imm: i32, then: Vec<Step>, other: Vec<Step> },
    Loop { turns: u8, body: Vec<Step> },
    MayGoto { body: Vec<Step> },
    Call,
    Kfunc,
    Lookup { per_cpu: bool, key: i32 },
    Update { key: i32, delete: bool },
    Clock,
    Next { start: i32, turns: u8 },
    Wild { store: bool, address: u64 },
}

fn register() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![0u8, 1, 2, 3, 4, 5, 7, 8, 9])
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        prop::sample::select(vec![0, 1, 2, u64::MAX, 1 << 31, 1 << 32, 1 << 63, 0xffff_ffff]),
    ]
}

fn immediate() -> impl Strategy<Value = i32> {
    prop_oneof![any::<i32>(), -3..70i32, Just(i32::MIN)]
}

fn alu() -> impl Strategy<Value = Step> {
    let operations = prop_oneof![
        (prop::sample::select(vec![0x0u8, 1, 2, 3, 4, 5, 6, 7, 9, 0xa, 0xb, 0xc]), any::<bool>())
            .prop_map(|(op, reg)| (op << 4 | if reg { 8 } else { 0 }, 0i16)),
        (prop::sample::select(vec![0x3u8, 9]), any::<bool>())
            .prop_map(|(op, reg)| (op << 4 | if reg { 8 } else { 0 }, 1)),
        Just((0x80, 0)),
        prop::sample::select(vec![8i16, 16]).prop_map(|bits| (0xb8, bits)),
        Just((0xd0, 0)),
    ];
    (operations, any::<bool>(), register(), register(), immediate()).prop_map(
        |((code, off), wide, dst, src, imm)| {
            let imm = if code == 0xd0 { [16, 32, 64][imm as u32 as usize % 3] } else { imm };
            let class = if wide { 7 } else { 4 };
            Step::Alu { code: code | class, off, dst, src, imm }
        },
    )
}

fn memory() -> impl Strategy<Value = Step> {
    let at = 0..DATA - 8;
    prop_oneof![
        (
            prop::sample::select(vec![0x61u8, 0x69, 0x71, 0x79, 0x81, 0x89, 0x91]),
            register(),
            any::<bool>(),
            at.clone()
        )
            .prop_map(|(code, dst, stack, at)| Step::Load { code, dst, stack, at }),
        (
            prop::sample::select(vec![0x62u8, 0x63, 0x6a, 0x6b, 0x72, 0x73, 0x7a, 0x7b]),
            register(),
            any::<bool>(),
            at.clone(),
            immediate()
        )
            .prop_map(|(code, src, stack, at, imm)| Step::Store {
                code,
                src,
                stack,
                at,
                imm
            }),
        (
            prop::sample::select(vec![0xc3u8, 0xdb]),
            prop::sample::select(vec![
                0, 1, 0x40, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe1, 0xf1, 0x100, 0x110
            ]),
            register(),
            any::<bool>(),
            at
        )
            .prop_map(|(code, imm, src, stack, at)| Step::Atomic {
                code,
                imm,
                src,
                stack,
                at
            }),
    ]
}

fn simple() -> impl Strategy<Value = Step> {
    let wild = prop::sample::select(vec![0u64, 24, 0x7000_0000, 0x10_0000, u64::MAX - 3]);
    prop_oneof![
        30 => alu(),
        20 => memory(),
        8 => (register(), number()).prop_map(|(dst, value)| Step::Constant { dst, value }),
        5 => Just(Step::Call),
        5 => Just(Step::Kfunc),
        5 => (any::<bool>(), 0..6i32).prop_map(|(per_cpu, key)| Step::Lookup { per_cpu, key }),
        5 => (0..6i32, any::<bool>()).prop_map(|(key, delete)| Step::Update { key, delete }),
        2 => Just(Step::Clock),
        2 => (immediate(), 0..4u8).prop_map(|(start, turns)| Step::Next { start, turns }),
        2 => (any::<bool>(), wild).prop_map(|(store, address)| Step::Wild { store, address }),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let conditions = vec![0x1u8, 2, 3, 4, 5, 6, 7, 0xa, 0xb, 0xc, 0xd];
    let step = simple().prop_recursive(3, 40, 6, move |inner| {
        let body = || prop::collection::vec(inner.clone(), 0..6);
        let code = (prop::sample::select(conditions.clone()), any::<bool>(), any::<bool>())
            .prop_map(|(op, reg, wide)| {
                op << 4 | if reg { 8 } else { 0 } | if wide { 5 } else { 6 }
            });
        prop_oneof![
            (code, register(), register(), immediate(), body(), body()).prop_map(
                |(code, left, right, imm, then, other)| {
                    Step::If { code, left, right, imm, then, other }
                }
            ),
            (1..5u8, body()).prop_map(|(turns, body)| Step::Loop { turns, body }),
            body().prop_map(|body| Step::MayGoto { body }),
        ]
    });
    prop::collection::vec(step, 1..14)
}

/// A function under construction. The nesting depth selects the stack slot of a loop's counter.
struct Builder {
    code: Code,
    depth: i16,
    callee: Option<usize>,
}

impl Builder {
    fn emit(&mut self, insns: &[fairground_bpf::Insn]) {
        self.code.insns.extend_from_slice(insns);
    }

    fn with(&mut self, build: impl FnOnce(Code) -> Code) {
        self.code = build(std::mem::take(&mut self.code));
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
    }

    fn place(stack: bool, at: i16) -> (u8, i16) {
        if stack { (10, at - STACK) } else { (6, at) }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Alu { code, off, dst, src, imm } => {
                let src = if code & 8 != 0 && code & 0xf0 != 0xd0 { src } else { 0 };
                let signed_mod_or_div = matches!(code >> 4, 3 | 9) && off == 1;
                let off = if code & 0xf0 == 0xb0 || signed_mod_or_div { off } else { 0 };
                self.emit(&[insn(code, dst, src, off, imm)]);
            }
            Step::Constant { dst, value } => self.with(|code| code.value(dst, value)),
            Step::Load { code, dst, stack, at } => {
                let (base, off) = Self::place(stack, at);
                self.emit(&[insn(code, dst, base, off, 0)]);
            }
            Step::Store { code, src, stack, at, imm } => {
                let (base, off) = Self::place(stack, at);
                let src = if code & 1 == 1 { src } else { 0 };
                self.emit(&[insn(code, base, src, off, imm)]);
            }
            Step::Atomic { code, imm, src, stack, at } => {
                let (base, off) = Self::place(stack, at);
                let (dst, src) = if imm == 0x100 { (src, base) } else { (base, src) };
                self.emit(&[insn(code, dst, src, off, imm)]);
            }
            Step::If { code, left, right, imm, ref then, ref other } => {
                self.branch(
                    insn(code, left, if code & 8 != 0 { right } else { 0 }, 0, imm),
                    then,
                    other,
                );
            }
            Step::Loop { turns, ref body } => self.counted(turns, body),
            Step::MayGoto { ref body } => {
                let at = self.code.insns.len();
                self.emit(&[insn(0xe5, 0, 0, 0, 0)]);
                self.steps(body);
                self.code.insns[at].off = (self.code.insns.len() - at - 1) as i16;
            }
            Step::Call => {
                if let Some(index) = self.callee {
                    self.with(|code| code.call(Callee::Function(index)));
                }
            }
            Step::Kfunc => self.with(|code| code.call(Callee::Kfunc(0))),
            Step::Lookup { .. } | Step::Update { .. } => self.map(step),
            Step::Clock => self.with(|code| code.helper(5)),
            Step::Next { start, turns } => self.numbers(start, turns),
            Step::Wild { store, address } => {
                let access = if store { insn(0x7b, 1, 2, 0, 0) } else { insn(0x79, 2, 1, 0, 0) };
                self.with(|code| code.value(1, address).op(access));
            }
        }
    }

    fn branch(&mut self, jump: fairground_bpf::Insn, then: &[Step], other: &[Step]) {
        let at = self.code.insns.len();
        self.emit(&[jump]);
        self.steps(other);
        let skip = self.code.insns.len();
        self.emit(&[insn(0x05, 0, 0, 0, 0)]);
        self.code.insns[at].off = (skip - at) as i16;
        self.steps(then);
        self.code.insns[skip].off = (self.code.insns.len() - skip - 1) as i16;
    }

    /// A loop whose counter is above the random stack.
    fn counted(&mut self, turns: u8, body: &[Step]) {
        let slot = -STACK - 8 - 8 * self.depth;
        self.emit(&[insn(0x7a, 10, 0, slot, i32::from(turns))]);
        let top = self.code.insns.len();
        self.depth += 1;
        self.steps(body);
        self.depth -= 1;
        self.emit(&[insn(0x79, 1, 10, slot, 0), add(1, -1), insn(0x7b, 10, 1, slot, 0)]);
        let off = top as i64 - self.code.insns.len() as i64 - 1;
        self.emit(&[insn(0x55, 1, 0, off as i16, 0)]);
    }

    fn key(&mut self, key: i32, map: usize) {
        self.emit(&[insn(0x62, 10, 0, -8, key), mov_reg(2, 10), add(2, -8)]);
        self.with(|code| code.lddw(1, Fixup::Map(map)));
    }

    /// Lookups increment the value that they find.
    fn map(&mut self, step: &Step) {
        match *step {
            Step::Lookup { per_cpu, key } => {
                self.key(key, if per_cpu { 2 } else { 1 });
                self.with(|code| code.helper(1));
                self.emit(&[insn(0x15, 0, 0, 2, 0), mov(1, 1), insn(0xdb, 0, 1, 0, 0)]);
            }
            Step::Update { key, delete: false } => {
                self.key(key, 3);
                self.emit(&[mov_reg(3, 6), mov(4, 0)]);
                self.with(|code| code.helper(2));
            }
            _ => {
                let key = if let Step::Update { key, .. } = *step { key } else { 0 };
                self.key(key, 3);
                self.with(|code| code.helper(3));
            }
        }
    }

    /// A number iterator and `turns` of its values, summed into r7.
    fn numbers(&mut self, start: i32, turns: u8) {
        self.emit(&[mov_reg(1, 10), add(1, -16), mov(2, start), mov(3, start.wrapping_add(2))]);
        self.with(|code| code.call(Callee::Kfunc(2)));
        for _ in 0..turns {
            self.emit(&[mov_reg(1, 10), add(1, -16)]);
            self.with(|code| code.call(Callee::Kfunc(3)));
            self.emit(&[insn(0x15, 0, 0, 2, 0), insn(0x61, 0, 0, 0, 0), insn(0x0f, 7, 0, 0, 0)]);
        }
    }
}

fn function(name: &str, steps: &[Step], callee: Option<usize>) -> Function {
    let start = code().op(mov_reg(7, 1)).lddw(6, Fixup::Data { map: 0, offset: 0 });
    let mut builder = Builder { code: start, depth: 0, callee };
    for reg in [8, 9, 0, 3, 4] {
        builder.emit(&[mov(reg, i32::from(reg) * 1000)]);
    }
    builder.steps(steps);
    for (at, reg) in [1u8, 2, 3, 4, 5, 7, 8, 9].into_iter().enumerate() {
        builder.emit(&[insn(0x7b, 6, reg, DATA + 8 * at as i16, 0)]);
    }
    builder.code.op(exit()).function(name)
}

fn maps() -> Vec<MapDef> {
    vec![
        data(".bss", false, &[0x5a; DATA as usize + 64]),
        map("array", MapKind::Array, 4, 8, 4),
        map("cpus", MapKind::PerCpuArray, 4, 8, 4),
        map("hash", MapKind::Hash, 4, 16, 3),
    ]
}

#[derive(Debug, PartialEq)]
struct Seen {
    result: Result<u64, (String, TrapKind, String, usize)>,
    insns: u64,
    divisions: u64,
    memory: Vec<Vec<u8>>,
    host: Recorder,
}

fn observe(functions: &[Function], engine: Engine, remove_dead_code: bool) -> Seen {
    let image = image(functions.to_vec(), maps(), engine);
    let config =
        InstanceConfig { cpus: 2, fuel_per_call: 100_000, remove_dead_code, ..Default::default() };
    let mut instance = image.instantiate(&config).expect("memory");
    let mut host = Recorder::default();
    instance.context().cpu = 1;
    instance.context().now_ns = 123_456_789_012;
    let result = instance.call(0, &[3, 1 << 40], &mut host);
    let (insns, divisions) = (instance.insns(), instance.divisions());
    let mut memory = Vec::new();
    for (index, map) in maps().iter().enumerate() {
        for key in 0..6u32 {
            for cpu in 0..2 {
                let found = instance.maps().lookup(index, &key.to_le_bytes(), cpu).expect("a map");
                let bytes = |at| instance.memory().read_vec(at, map.value_size as usize);
                memory.push(found.map_or(vec![], |at| bytes(at).expect("values are readable")));
            }
        }
    }
    let result = result.map_err(|trap| {
        let place = trap.place().expect("engines add the location");
        (trap.to_string(), trap.kind().clone(), place.function.clone(), place.insn)
    });
    Seen { result, insns, divisions, memory, host }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        max_shrink_iters: 2000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    })]

    #[test]
    fn engines_agree(main in steps(), callee in steps()) {
        let mut functions =
            [function("main", &main, Some(1)), function("callee", &callee, None)];
        "struct_ops/main".clone_into(&mut functions[0].section);
        let [oracle, jit] = BOTH.map(|engine| observe(&functions, engine, false));
        assert_eq!(oracle, jit);
        let [mut removed, jit] = BOTH.map(|engine| observe(&functions, engine, true));
        assert_eq!(removed, jit);
        // Without dead code, fuel lasts longer.
        if !matches!(oracle.result, Err((_, TrapKind::OutOfFuel { .. }, ..))) {
            assert!(removed.insns <= oracle.insns);
            removed.insns = oracle.insns;
            assert_eq!(oracle, removed);
        }
    }
}
