//! Translates one function to Cranelift's intermediate representation.
//!
//! r0…r9 and the fuel are variables; r10 and the control block are values. The fuel is also in the control block: it is
//! stored at the end of each basic block and before calls, less the instructions since then.

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AliasRegion, AliasRegionData, Block, Function, InstBuilder, MemFlagsData, SourceLoc, Value,
    types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};

use super::compile::{signature, signature_of_code};
use super::shims::{Raise, Shims};
use crate::call::HostCall;
use crate::decode::{Cond, MAX_MAY_GOTO, Op, Src};
use crate::env::Host;
use crate::host_calls::HostCalls;
use crate::layout;
use crate::linked::Callee;
use crate::program::Program;
use crate::region::VM_TO_GUEST;
use crate::vm::{FRAME_BYTES, STACK_LOW, Vm};

/// The address of a host function.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostTarget {
    pub(super) builtin: bool,
    pub(super) address: usize,
}

/// The input of translation, without the host's type.
pub(super) struct Source<'a> {
    pub(super) program: &'a Program,
    /// By function: the number of arguments that it reads.
    pub(super) arities: &'a [usize],
    /// Address of the table of entries, by function.
    entries: usize,
    pub(super) shims: Shims,
    pub(super) kfuncs: Vec<HostTarget>,
    pub(super) helpers: BTreeMap<u32, HostTarget>,
    pub(super) price: Box<dyn Fn(Callee) -> Option<u8> + 'a>,
}

impl<'a> Source<'a> {
    pub(super) fn new<H: Host>(
        program: &'a Program,
        calls: &'a HostCalls<H>,
        arities: &'a [usize],
        entries: usize,
    ) -> Source<'a> {
        let target = |call: &HostCall<H>| match *call {
            HostCall::Env(function) => HostTarget { builtin: false, address: function as usize },
            HostCall::Builtin(function) => HostTarget { builtin: true, address: function as usize },
        };
        Source {
            program,
            arities,
            entries,
            shims: Shims::of::<H>(),
            kfuncs: calls.kfuncs.iter().map(target).collect(),
            helpers: calls.helpers.iter().map(|(number, call)| (*number, target(call))).collect(),
            price: Box::new(|callee| calls.price(callee)),
        }
    }
}

pub(super) struct Translator<'a, 'f> {
    pub(super) b: FunctionBuilder<'f>,
    pub(super) source: &'a Source<'a>,
    pub(super) index: usize,
    pub(super) vm: Value,
    pub(super) r10: Value,
    /// Native address of the frame's end: where r10 points.
    pub(super) frame: Value,
    pub(super) regs: [Variable; 10],
    pub(super) fuel: Variable,
    pub(super) may_goto: Option<Variable>,
    /// Instructions since the fuel variable was last lowered.
    pub(super) pending: i64,
    /// By slot of an access that may fault: [`Translator::pending`], with the access itself.
    pub(super) pending_at: BTreeMap<usize, i64>,
    /// Width and offset of the guest's stores since the last flush.
    pub(super) stored: Vec<(u8, i16)>,
    pub(super) blocks: BTreeMap<usize, Block>,
    /// By register: the map whose handle it is known to contain.
    pub(super) maps: [Option<usize>; 11],
    pub(super) guest_region: AliasRegion,
    pub(super) vm_region: AliasRegion,
    pub(super) pc: usize,
}

/// Builds `func` from function `index` of the source; returns [`Translator::pending_at`].
pub(super) fn translate(
    config: TargetFrontendConfig,
    func: &mut Function,
    context: &mut FunctionBuilderContext,
    source: &Source<'_>,
    index: usize,
) -> BTreeMap<usize, i64> {
    let region = |func: &mut Function, user_id, description: &'static str| {
        func.dfg.alias_regions.insert(AliasRegionData { user_id, description: description.into() })
    };
    let guest_region = region(func, 0, "guest");
    let vm_region = region(func, 1, "control block");
    let ops = &source.program.functions[index].ops;
    let uses_may_goto = ops.iter().any(|op| matches!(op, Op::MayGoto(_)));
    let mut b = FunctionBuilder::new(func, context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let regs = std::array::from_fn(|_| b.declare_var(types::I64));
    let fuel = b.declare_var(types::I64);
    let may_goto = uses_may_goto.then(|| b.declare_var(types::I64));
    let params = b.block_params(entry).to_vec();
    let (vm, r10) = (params[0], params[1]);
    let guest = b.ins().iadd_imm_s(vm, VM_TO_GUEST as i64);
    let frame = b.ins().iadd(guest, r10);
    let mut translator = Translator {
        b,
        source,
        index,
        vm,
        r10,
        frame,
        regs,
        fuel,
        may_goto,
        pending: 0,
        pending_at: BTreeMap::new(),
        stored: Vec::new(),
        blocks: BTreeMap::new(),
        maps: [None; 11],
        guest_region,
        vm_region,
        pc: 0,
    };
    translator.enter(&params[2..]);
    translator.body(ops);
    translator.b.seal_all_blocks();
    translator.b.finalize(config);
    translator.pending_at
}

impl Translator<'_, '_> {
    /// Defines every variable; checks that the frame is within the stack.
    fn enter(&mut self, args: &[Value]) {
        let zero = self.iconst(0);
        for (number, variable) in self.regs.into_iter().enumerate() {
            let arg = number.checked_sub(1).and_then(|at| args.get(at));
            self.b.def_var(variable, arg.copied().unwrap_or(zero));
        }
        let fuel = self.load_vm(types::I64, offset_of!(Vm, fuel));
        self.b.def_var(self.fuel, fuel);
        if let Some(variable) = self.may_goto {
            let turns = self.iconst(MAX_MAY_GOTO as i64);
            self.b.def_var(variable, turns);
        }
        let overflow =
            self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, self.r10, STACK_LOW as i64);
        self.raise_if(overflow, Raise::StackOverflow);
    }

    fn body(&mut self, ops: &[Op]) {
        for slot in leaders(ops) {
            let block = self.b.create_block();
            self.blocks.insert(slot, block);
        }
        let first = self.blocks[&0];
        self.b.ins().jump(first, &[]);
        let mut open = false;
        for (slot, op) in ops.iter().enumerate() {
            if let Some(block) = self.blocks.get(&slot).copied() {
                if open {
                    self.flush();
                    self.b.ins().jump(block, &[]);
                }
                self.b.switch_to_block(block);
                self.maps = [None; 11];
                self.pending = 0;
                self.stored.clear();
                open = true;
            }
            if matches!(op, Op::Tail | Op::Nop) || !open {
                continue;
            }
            self.pc = slot;
            self.b.set_srcloc(SourceLoc::new(slot as u32));
            self.pending += 1;
            open = self.op(op, slot);
        }
    }

    /// Translates one operation; returns whether execution continues after it.
    fn op(&mut self, op: &Op, slot: usize) -> bool {
        match *op {
            Op::Const { dst, value } => {
                let constant = self.iconst(value as i64);
                self.set(dst, constant);
                self.maps[usize::from(dst)] = layout::handle_map(value);
            }
            Op::Load { bytes, signed, dst, base, off } => self.load(bytes, signed, dst, base, off),
            Op::Store { bytes, base, off, value } => {
                let value = self.operand(value, false);
                self.store(bytes, base, off, value);
            }
            Op::Atomic { bytes, op, fetch, base, off, src } => {
                self.atomic(bytes, op, fetch, (base, off), src);
            }
            Op::Goto(target) => {
                self.flush();
                let block = self.edge(slot, target);
                self.b.ins().jump(block, &[]);
                return false;
            }
            Op::Branch { wide, cond, left, right, target } => {
                let taken = self.condition(wide, cond, left, right);
                self.branch(taken, slot, target);
                return false;
            }
            Op::MayGoto(target) => {
                self.may_goto(slot, target);
                return false;
            }
            Op::Call(callee) => self.call(callee),
            Op::Exit => {
                self.flush();
                let result = self.get(0);
                self.b.ins().return_(&[result]);
                return false;
            }
            Op::Poison => {
                self.flush();
                self.raise(Raise::Poison);
                return false;
            }
            Op::Tail | Op::Nop => {}
            Op::Alu { .. }
            | Op::Neg { .. }
            | Op::MovSx { .. }
            | Op::Swap { .. }
            | Op::Truncate { .. } => self.alu(op),
        }
        true
    }

    fn condition(&mut self, wide: bool, cond: Cond, left: u8, right: Src) -> Value {
        let left = self.get_width(left, wide);
        let right = self.operand(right, !wide);
        let code = match cond {
            Cond::Set => {
                let both = self.b.ins().band(left, right);
                return self.b.ins().icmp_imm_u(IntCC::NotEqual, both, 0);
            }
            Cond::Eq => IntCC::Equal,
            Cond::Ne => IntCC::NotEqual,
            Cond::Gt => IntCC::UnsignedGreaterThan,
            Cond::Ge => IntCC::UnsignedGreaterThanOrEqual,
            Cond::Lt => IntCC::UnsignedLessThan,
            Cond::Le => IntCC::UnsignedLessThanOrEqual,
            Cond::SGt => IntCC::SignedGreaterThan,
            Cond::SGe => IntCC::SignedGreaterThanOrEqual,
            Cond::SLt => IntCC::SignedLessThan,
            Cond::SLe => IntCC::SignedLessThanOrEqual,
        };
        self.b.ins().icmp(code, left, right)
    }

    /// Ends the block with a jump to `target` if `taken`, else to the next slot.
    fn branch(&mut self, taken: Value, slot: usize, target: usize) {
        self.flush();
        let next = self.blocks[&(slot + 1)];
        let to = if target > slot { self.blocks[&target] } else { self.b.create_block() };
        self.b.ins().brif(taken, to, &[], next, &[]);
        if target <= slot {
            self.b.switch_to_block(to);
            let block = self.edge(slot, target);
            self.b.ins().jump(block, &[]);
        }
    }

    /// The block of a taken jump's target. Checks the fuel before a backward jump.
    fn edge(&mut self, slot: usize, target: usize) -> Block {
        if target <= slot {
            self.check_fuel();
        }
        self.blocks[&target]
    }

    fn may_goto(&mut self, slot: usize, target: usize) {
        let Some(variable) = self.may_goto else { return };
        let turns = self.b.use_var(variable);
        let none = self.b.ins().icmp_imm_u(IntCC::Equal, turns, 0);
        let fewer = self.b.ins().iadd_imm_s(turns, -1);
        let left = self.b.ins().select(none, turns, fewer);
        self.b.def_var(variable, left);
        self.branch(none, slot, target);
    }

    fn call(&mut self, callee: Callee) {
        if let Some(index) = (self.source.price)(callee) {
            self.pay(index);
        }
        match callee {
            Callee::Function(index) => self.call_function(index),
            Callee::Helper(number) => {
                if !self.inline_helper(number) {
                    let target = self.source.helpers.get(&number).copied();
                    self.host_call(target, Callee::Helper(number));
                }
            }
            Callee::Kfunc(index) => {
                if !self.inline_kfunc(index) {
                    let target = self.source.kfuncs.get(index).copied();
                    self.host_call(target, Callee::Kfunc(index));
                }
            }
        }
        let zero = self.iconst(0);
        for number in 1..=5 {
            self.set(number, zero);
        }
    }

    fn call_function(&mut self, index: usize) {
        self.flush();
        self.check_fuel();
        let below = self.b.ins().iadd_imm_s(self.r10, -(FRAME_BYTES as i64));
        let mut args = vec![self.vm, below];
        for number in 1..=self.source.arities[index] {
            args.push(self.get(number as u8));
        }
        let entry = self.entry(index);
        let signature = self.b.import_signature(signature_of_code(self.source.arities[index]));
        let call = self.b.ins().call_indirect(signature, entry, &args);
        let result = self.b.inst_results(call)[0];
        self.reload_fuel();
        self.set(0, result);
    }

    /// The address of a function's code, which is compiled now if this is its first call.
    fn entry(&mut self, index: usize) -> Value {
        let (first, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(first);
        self.b.append_block_param(on, types::I64);
        let slot = self.iconst((self.source.entries + index * size_of::<usize>()) as i64);
        let known = self.b.ins().load(types::I64, MemFlagsData::trusted(), slot, 0);
        self.b.ins().brif(known, on, &[known.into()], first, &[]);
        self.b.switch_to_block(first);
        let args = [self.vm, self.iconst(index as i64)];
        let (made, trapped) = self.call_shim(self.source.shims.compile, &args);
        self.raise_if(trapped, Raise::Pending);
        self.b.ins().jump(on, &[made.into()]);
        self.b.switch_to_block(on);
        self.b.block_params(on)[0]
    }

    /// Calls a host function through its shim; sets r0 to the result.
    pub(super) fn host_call(&mut self, target: Option<HostTarget>, callee: Callee) {
        let Some(target) = target else {
            // Unreachable: every callee of an image is resolved.
            self.raise(Raise::Pending);
            let after = self.b.create_block();
            self.b.switch_to_block(after);
            return;
        };
        let (arity, calls_back) = match callee {
            Callee::Helper(number) if target.builtin => {
                (crate::helpers::arity(number), crate::helpers::calls_back(number))
            }
            _ => (5, false),
        };
        self.flush();
        if calls_back {
            let below = self.b.ins().iadd_imm_s(self.r10, -(FRAME_BYTES as i64));
            self.store_vm(below, offset_of!(Vm, sp));
        }
        let shim = if target.builtin { self.source.shims.builtin } else { self.source.shims.env };
        let mut args = vec![self.vm];
        for number in 1..=5 {
            let arg = if number <= arity { self.get(number as u8) } else { self.iconst(0) };
            args.push(arg);
        }
        args.push(self.iconst(target.address as i64));
        let (result, trapped) = self.call_shim(shim, &args);
        if calls_back {
            self.reload_fuel();
        }
        let trapped = self.b.ins().icmp_imm_u(IntCC::NotEqual, trapped, 0);
        self.raise_if(trapped, Raise::Pending);
        self.set(0, result);
    }

    fn call_shim(&mut self, shim: usize, args: &[Value]) -> (Value, Value) {
        let signature = self.b.import_signature(signature(args.len(), 2));
        let address = self.iconst(shim as i64);
        let call = self.b.ins().call_indirect(signature, address, args);
        let results = self.b.inst_results(call);
        (results[0], results[1])
    }
}

/// The slots at which basic blocks start.
fn leaders(ops: &[Op]) -> Vec<usize> {
    let mut starts = vec![0];
    for (slot, op) in ops.iter().enumerate() {
        match *op {
            Op::Goto(target) => starts.push(target),
            Op::Branch { target, .. } | Op::MayGoto(target) => starts.extend([target, slot + 1]),
            _ => {}
        }
    }
    starts.sort_unstable();
    starts.dedup();
    starts
}
