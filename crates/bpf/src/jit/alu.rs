//! Arithmetic.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::translate::Translator;
use crate::decode::{Alu, Op, Src};
use crate::vm::Vm;

impl Translator<'_, '_> {
    /// Translates an operation that uses registers only.
    pub(super) fn alu(&mut self, op: &Op) {
        match *op {
            Op::Alu { wide: true, op: Alu::Mov, dst, src } => {
                let value = self.operand(src, false);
                let map = if let Src::Reg(number) = src { self.map_in(number) } else { None };
                self.set(dst, value);
                if let (Some(_), Src::Reg(number)) = (map, src) {
                    self.copy_map(dst, number);
                }
            }
            Op::Alu { wide, op, dst, src } => {
                let left = self.get_width(dst, wide);
                let right = self.operand(src, !wide);
                let value = self.binary(op, left, right, src);
                self.set_width(dst, value, wide);
            }
            Op::Neg { wide, dst } => {
                let value = self.get_width(dst, wide);
                let value = self.b.ins().ineg(value);
                self.set_width(dst, value, wide);
            }
            Op::MovSx { wide, bits, dst, src } => {
                let value = self.get(src);
                let value = self.b.ins().ireduce(narrow(bits), value);
                let to = if wide { types::I64 } else { types::I32 };
                let value = self.b.ins().sextend(to, value);
                self.set_width(dst, value, wide);
            }
            Op::Swap { bits, dst } => {
                let value = self.get(dst);
                let value =
                    if bits == 64 { value } else { self.b.ins().ireduce(narrow(bits), value) };
                let value = self.b.ins().bswap(value);
                let value =
                    if bits == 64 { value } else { self.b.ins().uextend(types::I64, value) };
                self.set(dst, value);
            }
            Op::Truncate { bits, dst } if bits < 64 => {
                let value = self.get(dst);
                let value = self.b.ins().ireduce(narrow(bits), value);
                let value = self.b.ins().uextend(types::I64, value);
                self.set(dst, value);
            }
            _ => {}
        }
    }

    fn set_width(&mut self, dst: u8, value: Value, wide: bool) {
        let value = if wide { value } else { self.b.ins().uextend(types::I64, value) };
        self.set(dst, value);
    }

    fn binary(&mut self, op: Alu, left: Value, right: Value, src: Src) -> Value {
        match op {
            Alu::Add => self.b.ins().iadd(left, right),
            Alu::Sub => self.b.ins().isub(left, right),
            Alu::Mul => self.b.ins().imul(left, right),
            Alu::Or => self.b.ins().bor(left, right),
            Alu::And => self.b.ins().band(left, right),
            Alu::Xor => self.b.ins().bxor(left, right),
            Alu::Lsh => self.b.ins().ishl(left, right),
            Alu::Rsh => self.b.ins().ushr(left, right),
            Alu::Arsh => self.b.ins().sshr(left, right),
            Alu::Mov => right,
            Alu::Div | Alu::Mod | Alu::SDiv | Alu::SMod => self.divide(op, left, right, src),
        }
    }

    /// Division by zero gives 0, the remainder of it the dividend; the most negative number divided by -1 is itself.
    fn divide(&mut self, op: Alu, left: Value, right: Value, src: Src) -> Value {
        self.count_division();
        let signed = matches!(op, Alu::SDiv | Alu::SMod);
        let quotient = matches!(op, Alu::Div | Alu::SDiv);
        let ty = self.b.func.dfg.value_type(left);
        let by = match src {
            Src::Imm(value) if ty == types::I32 => Some(i64::from(value as i32)),
            Src::Imm(value) => Some(value),
            Src::Reg(_) => None,
        };
        let zero = self.b.ins().iconst(ty, 0);
        if by == Some(0) {
            return if quotient { zero } else { left };
        }
        let of_zero = if quotient { zero } else { left };
        if !signed {
            if by.is_some() {
                return self.divide_unsigned(quotient, left, right);
            }
            let none = self.b.ins().icmp_imm_u(IntCC::Equal, right, 0);
            let one = self.b.ins().iconst(ty, 1);
            let safe = self.b.ins().select(none, one, right);
            let value = self.divide_unsigned(quotient, left, safe);
            return self.b.ins().select(none, of_zero, value);
        }
        let negated = if quotient { self.b.ins().ineg(left) } else { zero };
        let none = self.b.ins().icmp_imm_s(IntCC::Equal, right, 0);
        let minus = self.b.ins().icmp_imm_s(IntCC::Equal, right, -1);
        let special = self.b.ins().bor(none, minus);
        let one = self.b.ins().iconst(ty, 1);
        let safe = self.b.ins().select(special, one, right);
        let value =
            if quotient { self.b.ins().sdiv(left, safe) } else { self.b.ins().srem(left, safe) };
        let value = self.b.ins().select(none, of_zero, value);
        self.b.ins().select(minus, negated, value)
    }

    fn count_division(&mut self) {
        let at = offset_of!(Vm, divisions);
        let counted = self.load_vm(types::I64, at);
        let counted = self.b.ins().iadd_imm_s(counted, 1);
        self.store_vm(counted, at);
    }

    fn divide_unsigned(&mut self, quotient: bool, left: Value, right: Value) -> Value {
        if quotient { self.b.ins().udiv(left, right) } else { self.b.ins().urem(left, right) }
    }
}

fn narrow(bits: u8) -> cranelift_codegen::ir::Type {
    match bits {
        8 => types::I8,
        16 => types::I16,
        _ => types::I32,
    }
}
