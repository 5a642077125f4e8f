//! The number of arguments (r1…r5) that each function reads and its callers must pass.

use crate::decode::{Op, Rmw, Src};
use crate::helpers;
use crate::linked::Callee;

/// A set of registers: bit n is rn.
type Registers = u16;

/// The number of arguments of each function, from a fixed point over the calls between them.
pub(super) fn arities(programs: &[&[Op]]) -> Vec<usize> {
    let mut arities = vec![0; programs.len()];
    loop {
        let mut changed = false;
        for (index, ops) in programs.iter().enumerate() {
            let live = live_at_entry(ops, &arities);
            let arity = (1..=5).rev().find(|reg| live & (1 << reg) != 0).unwrap_or(0);
            if arity > arities[index] {
                arities[index] = arity;
                changed = true;
            }
        }
        if !changed {
            return arities;
        }
    }
}

fn live_at_entry(ops: &[Op], arities: &[usize]) -> Registers {
    let mut live: Vec<Registers> = vec![0; ops.len() + 1];
    loop {
        let mut changed = false;
        for (slot, op) in ops.iter().enumerate().rev() {
            let after = match *op {
                Op::Goto(target) => live[target],
                Op::Branch { target, .. } | Op::MayGoto(target) => live[target] | live[slot + 1],
                Op::Exit | Op::Poison => 0,
                Op::Const { .. } => live[(slot + 2).min(ops.len())],
                _ => live[slot + 1],
            };
            let before = (after & !writes(op)) | reads(op, arities);
            changed |= before != live[slot];
            live[slot] = before;
        }
        if !changed {
            return live[0];
        }
    }
}

fn writes(op: &Op) -> Registers {
    match op {
        // Calls define r0 and clear r1…r5.
        Op::Call(_) => 0b11_1111,
        _ => crate::decode::writes(op).map_or(0, |reg| 1 << reg),
    }
}

fn reads(op: &Op, arities: &[usize]) -> Registers {
    let of = |src: Src| match src {
        Src::Reg(number) => 1 << number,
        Src::Imm(_) => 0,
    };
    match *op {
        Op::Alu { op: crate::decode::Alu::Mov, src, .. } => of(src),
        Op::Alu { dst, src, .. } => 1 << dst | of(src),
        Op::Neg { dst, .. } | Op::Swap { dst, .. } | Op::Truncate { dst, .. } => 1 << dst,
        Op::MovSx { src, .. } => 1 << src,
        Op::Load { base, .. } => 1 << base,
        Op::Store { base, value, .. } => 1 << base | of(value),
        Op::Atomic { op, base, src, .. } => {
            let compared = if op == Rmw::CmpXchg { 1 } else { 0 };
            1 << base | 1 << src | compared
        }
        Op::Branch { left, right, .. } => 1 << left | of(right),
        Op::Call(callee) => {
            let arity = match callee {
                Callee::Function(index) => arities[index],
                Callee::Helper(number) => helpers::arity(number),
                Callee::Kfunc(_) => 5,
            };
            ((1 << arity) - 1) << 1
        }
        Op::Exit => 1,
        Op::Const { .. } | Op::Goto(_) | Op::MayGoto(_) | Op::Poison | Op::Tail | Op::Nop => 0,
    }
}
