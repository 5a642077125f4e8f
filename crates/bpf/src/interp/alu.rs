//! Arithmetic and comparison, as RFC 9669 defines them.

use crate::decode::{Alu, Cond, Op, Src};

/// Carries out a register-only operation.
pub(crate) fn apply(op: Op, r: &mut [u64; 11]) {
    match op {
        Op::Alu { wide, op, dst, src } => {
            let left = r[usize::from(dst)];
            let right = match src {
                Src::Reg(number) => r[usize::from(number)],
                Src::Imm(value) => value as u64,
            };
            r[usize::from(dst)] = if wide {
                alu64(op, left, right)
            } else {
                u64::from(alu32(op, left as u32, right as u32))
            };
        }
        Op::Neg { wide, dst } => {
            let value = r[usize::from(dst)].wrapping_neg();
            r[usize::from(dst)] = if wide { value } else { value & 0xffff_ffff };
        }
        Op::MovSx { wide, bits, dst, src } => {
            let value = sign_extend(r[usize::from(src)], u32::from(bits));
            r[usize::from(dst)] = if wide { value } else { value & 0xffff_ffff };
        }
        Op::Swap { bits, dst } => {
            let value = r[usize::from(dst)];
            r[usize::from(dst)] = value.swap_bytes() >> (64 - u32::from(bits));
        }
        Op::Truncate { bits, dst } => {
            r[usize::from(dst)] &= u64::MAX >> (64 - u32::from(bits));
        }
        _ => unreachable!("only register operations come here"),
    }
}

pub(crate) fn sign_extend(value: u64, bits: u32) -> u64 {
    ((value << (64 - bits)) as i64 >> (64 - bits)) as u64
}

/// Defines an arithmetic operation on registers of one width. Division by zero gives 0, its remainder the dividend.
macro_rules! arithmetic {
    ($name:ident, $unsigned:ty, $signed:ty) => {
        fn $name(op: Alu, left: $unsigned, right: $unsigned) -> $unsigned {
            match op {
                Alu::Add => left.wrapping_add(right),
                Alu::Sub => left.wrapping_sub(right),
                Alu::Mul => left.wrapping_mul(right),
                Alu::Div => left.checked_div(right).unwrap_or(0),
                Alu::SDiv if right == 0 => 0,
                Alu::SDiv => (left as $signed).wrapping_div(right as $signed) as $unsigned,
                Alu::Mod => left.checked_rem(right).unwrap_or(left),
                Alu::SMod if right == 0 => left,
                Alu::SMod => (left as $signed).wrapping_rem(right as $signed) as $unsigned,
                Alu::Or => left | right,
                Alu::And => left & right,
                Alu::Xor => left ^ right,
                Alu::Lsh => left.wrapping_shl(right as u32),
                Alu::Rsh => left.wrapping_shr(right as u32),
                Alu::Arsh => (left as $signed).wrapping_shr(right as u32) as $unsigned,
                Alu::Mov => right,
            }
        }
    };
}

arithmetic!(alu64, u64, i64);
arithmetic!(alu32, u32, i32);

/// Whether a conditional jump is taken.
pub(crate) fn holds(wide: bool, cond: Cond, left: u64, right: u64) -> bool {
    let (left, right) =
        if wide { (left, right) } else { (left & 0xffff_ffff, right & 0xffff_ffff) };
    let (sleft, sright) = if wide {
        (left as i64, right as i64)
    } else {
        (i64::from(left as u32 as i32), i64::from(right as u32 as i32))
    };
    match cond {
        Cond::Eq => left == right,
        Cond::Ne => left != right,
        Cond::Set => left & right != 0,
        Cond::Gt => left > right,
        Cond::Ge => left >= right,
        Cond::Lt => left < right,
        Cond::Le => left <= right,
        Cond::SGt => sleft > sright,
        Cond::SGe => sleft >= sright,
        Cond::SLt => sleft < sright,
        Cond::SLe => sleft <= sright,
    }
}
