//! Registers, guest memory and the control block.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, TrapCode, Type, Value, types};

use super::translate::Translator;
use crate::decode::{Op, Rmw, Src};
use crate::region::VM_TO_GUEST;
use crate::vm::FRAME_BYTES;

/// The trap code after a call that does not return.
pub(super) const UNREACHABLE: TrapCode = TrapCode::unwrap_user(201);
/// Number of trap codes that identify instructions.
const TRAP_CODES: usize = 200;

/// The trap code of faults of the instruction at `slot`. Cranelift may fold a load into the instruction that uses its
/// result, at the source location of the latter. The trap code identifies which of the nearby instructions faulted.
fn trap_code(slot: usize) -> TrapCode {
    TrapCode::unwrap_user((slot % TRAP_CODES) as u8 + 1)
}

/// The slot of the instruction that faulted with `code` at the source location of slot `near`.
pub(super) fn faulting_slot(ops: &[Op], code: TrapCode, near: usize) -> Option<usize> {
    let first = usize::from(code.as_raw().get() - 1);
    // Higher codes are Cranelift's, for divisions, which cannot trap: translation guards them.
    let last = if first < TRAP_CODES { ops.len() } else { 0 };
    (first..last)
        .step_by(TRAP_CODES)
        .filter(|slot| {
            let op = &ops[*slot];
            matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } | Op::Call(_))
        })
        .min_by_key(|slot| slot.abs_diff(near))
}

impl Translator<'_, '_> {
    pub(super) fn get(&mut self, number: u8) -> Value {
        match self.regs.get(usize::from(number)) {
            Some(variable) => self.b.use_var(*variable),
            None => self.r10,
        }
    }

    pub(super) fn get_width(&mut self, number: u8, wide: bool) -> Value {
        let value = self.get(number);
        if wide { value } else { self.b.ins().ireduce(types::I32, value) }
    }

    pub(super) fn set(&mut self, number: u8, value: Value) {
        self.maps[usize::from(number)] = None;
        if let Some(variable) = self.regs.get(usize::from(number)) {
            self.b.def_var(*variable, value);
        }
    }

    /// The map that a register is known to hold.
    pub(super) fn map_in(&self, number: u8) -> Option<usize> {
        self.maps[usize::from(number)]
    }

    pub(super) fn copy_map(&mut self, dst: u8, src: u8) {
        self.maps[usize::from(dst)] = self.maps[usize::from(src)];
    }

    pub(super) fn operand(&mut self, src: Src, narrow: bool) -> Value {
        match src {
            Src::Reg(number) => self.get_width(number, !narrow),
            Src::Imm(value) if narrow => {
                self.b.ins().iconst(types::I32, i64::from(value as i32 as u32))
            }
            Src::Imm(value) => self.iconst(value),
        }
    }

    pub(super) fn iconst(&mut self, value: i64) -> Value {
        self.b.ins().iconst(types::I64, value)
    }

    pub(super) fn vm_flags(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.vm_region))
    }

    /// Loads a field of the control block.
    pub(super) fn load_vm(&mut self, ty: Type, offset: usize) -> Value {
        let flags = self.vm_flags();
        self.b.ins().load(ty, flags, self.vm, offset as i32)
    }

    pub(super) fn store_vm(&mut self, value: Value, offset: usize) {
        let flags = self.vm_flags();
        self.b.ins().store(flags, value, self.vm, offset as i32);
    }

    /// The native address of an access: base, constant offset, and memory flags.
    pub(super) fn native_access(
        &mut self,
        base: u8,
        off: i16,
        bytes: u8,
    ) -> (Value, i32, MemFlagsData) {
        let flags = self.guest_flags();
        let off = i32::from(off);
        if base == 10 && off >= -(FRAME_BYTES as i32) && off + i32::from(bytes) <= 0 {
            return (self.frame, off, flags.with_notrap());
        }
        let address = self.get(base);
        let (native, start) = self.native(address);
        (native, start + off, flags)
    }

    /// The native address of a guest address, forced into the region, in two parts.
    pub(super) fn native(&mut self, address: Value) -> (Value, i32) {
        let low = self.b.ins().ireduce(types::I32, address);
        let low = self.b.ins().uextend(types::I64, low);
        (self.b.ins().iadd(self.vm, low), VM_TO_GUEST as i32)
    }

    /// Flags of an access that may fault.
    pub(super) fn guest_flags(&mut self) -> MemFlagsData {
        self.pending_at.insert(self.pc, self.pending);
        MemFlagsData::new()
            .with_alias_region(Some(self.guest_region))
            .with_trap_code(Some(trap_code(self.pc)))
    }

    pub(super) fn load(&mut self, bytes: u8, signed: bool, dst: u8, base: u8, off: i16) {
        let (addr, off, flags) = self.native_access(base, off, bytes);
        let flags = load_flags(flags);
        let loaded = self.b.ins().load(int(bytes), flags, addr, off);
        let value = match (bytes, signed) {
            (8, _) => loaded,
            (_, false) => self.b.ins().uextend(types::I64, loaded),
            (_, true) => self.b.ins().sextend(types::I64, loaded),
        };
        self.set(dst, value);
    }

    pub(super) fn store(&mut self, bytes: u8, base: u8, off: i16, value: Value) {
        self.keep_stores(bytes, off);
        let (addr, off, flags) = self.native_access(base, off, bytes);
        let value = if bytes == 8 { value } else { self.b.ins().ireduce(int(bytes), value) };
        self.b.ins().store(flags, value, addr, off);
    }

    /// A plain load, operation and store: one thread runs an instance.
    pub(super) fn atomic(
        &mut self,
        bytes: u8,
        op: Rmw,
        fetch: bool,
        (base, off): (u8, i16),
        src: u8,
    ) {
        let (addr, off, flags) = self.native_access(base, off, bytes);
        let ty = int(bytes);
        let old = self.b.ins().load(ty, load_flags(flags), addr, off);
        let operand = self.get_width(src, bytes == 8);
        let new = match op {
            Rmw::Add => self.b.ins().iadd(old, operand),
            Rmw::Or => self.b.ins().bor(old, operand),
            Rmw::And => self.b.ins().band(old, operand),
            Rmw::Xor => self.b.ins().bxor(old, operand),
            Rmw::Xchg => operand,
            Rmw::CmpXchg => {
                let expected = self.get_width(0, bytes == 8);
                let equal = self.b.ins().icmp(IntCC::Equal, old, expected);
                self.b.ins().select(equal, operand, old)
            }
        };
        self.b.ins().store(flags, new, addr, off);
        if fetch {
            let old = if bytes == 8 { old } else { self.b.ins().uextend(types::I64, old) };
            self.set(if op == Rmw::CmpXchg { 0 } else { src }, old);
        }
    }
}

/// Sets the byte order of loads, which stores leave unset. Otherwise Cranelift removes a store of the value just
/// loaded from the same address, and the store must trap if the address is read-only.
fn load_flags(flags: MemFlagsData) -> MemFlagsData {
    flags.with_endianness(Endianness::Little)
}

fn int(bytes: u8) -> Type {
    match bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}
