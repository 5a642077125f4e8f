//! Removes what can never execute, once the constants of an object are known, as the kernel's verifier does
//! (`opt_hard_wire_dead_code_branches`, `opt_remove_dead_code`, `opt_remove_nops` in kernel/bpf/verifier.c).
//!
//! A constant is an immediate, an address, or what a load reads from read-only data, which is frozen when the program
//! is loaded: `const volatile` variables, weak symbols that are there or not, the kernel's configuration. A conditional
//! jump whose operands are constants is always taken, or never; the code that only it could reach is dead. Dead
//! instructions become [`Op::Nop`], which costs nothing. The loads of the constants stay, as they do in the kernel.
//!
//! Example, with `const volatile bool fair = false`:
//!
//! ```text
//! r1 = &fair             r1 = &fair
//! r1 = *(u8 *)(r1 + 0)   r1 = 0
//! if r1 == 0 goto +2     nop
//! call place_fairly      nop
//! goto +1                nop
//! call place             call place
//! ```

use crate::decode::{Alu, Op, Src, writes};
use crate::interp::alu;
use crate::layout::{Layout, MapStorage, handle_function};
use crate::linked::Callee;

/// Read-only data: the guest address of each section, and its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frozen(Vec<(u64, Vec<u8>)>);

/// The guest addresses and lengths of read-only data.
pub(crate) fn frozen_ranges(layout: &Layout) -> impl Iterator<Item = (u64, usize)> {
    layout.maps.iter().filter_map(|storage| match *storage {
        MapStorage::Fixed { addr, stride, entries, read_only: true } => {
            Some((addr, usize::try_from(stride * entries).ok()?))
        }
        _ => None,
    })
}

impl Frozen {
    pub(crate) fn new(sections: Vec<(u64, Vec<u8>)>) -> Self {
        Self(sections)
    }

    /// The number of so many bytes at an address, if all of them are frozen.
    fn load(&self, addr: u64, bytes: u8) -> Option<u64> {
        self.0.iter().find_map(|(start, section)| {
            let at = usize::try_from(addr.checked_sub(*start)?).ok()?;
            let found = section.get(at..)?.get(..usize::from(bytes))?;
            Some(found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        })
    }
}

/// The registers where they are constant; r10 never is.
type Registers = [Option<u64>; 11];

/// The function without what can never execute. Slots keep their numbers.
pub(crate) fn fold(ops: &[Op], frozen: &Frozen) -> Vec<Op> {
    let before = constants(ops, frozen);
    let is_dead = |slot: usize| before[slot].is_none();
    // Whether nothing executes between an instruction and the target of its jump.
    let leads_on = |slot: usize, target: usize| target > slot && (slot + 1..target).all(is_dead);
    let folded = |(slot, op): (usize, &Op)| {
        let Some(registers) = &before[slot] else { return Op::Nop };
        match *op {
            Op::Branch { target, .. } => match outcome(op, registers) {
                Some(true) if leads_on(slot, target) => Op::Nop,
                Some(true) => Op::Goto(target),
                Some(false) => Op::Nop,
                None => *op,
            },
            Op::Goto(target) if leads_on(slot, target) => Op::Nop,
            Op::Load { bytes, signed, dst, base, off } => {
                let value = read(registers, frozen, (bytes, signed, base, off));
                value.map_or(*op, |value| mov(dst, value))
            }
            _ => *op,
        }
    };
    ops.iter().enumerate().map(folded).collect()
}

/// Which functions these can call, or name as a callback, directly or not.
pub(crate) fn reachable(functions: &[Vec<Op>], mut pending: Vec<usize>) -> Vec<bool> {
    let mut found = vec![false; functions.len()];
    while let Some(index) = pending.pop() {
        if std::mem::replace(&mut found[index], true) {
            continue;
        }
        pending.extend(functions[index].iter().filter_map(|op| match *op {
            Op::Call(Callee::Function(callee)) => Some(callee),
            Op::Const { value, .. } => {
                handle_function(value).filter(|index| *index < functions.len())
            }
            _ => None,
        }));
    }
    found
}

fn mov(dst: u8, value: u64) -> Op {
    Op::Alu { wide: true, op: Alu::Mov, dst, src: Src::Imm(value as i64) }
}

/// The constants in the registers before each instruction; `None` for one that is never executed. A fixed point:
/// where paths meet, what differs is no constant.
fn constants(ops: &[Op], frozen: &Frozen) -> Vec<Option<Registers>> {
    let mut before: Vec<Option<Registers>> = vec![None; ops.len()];
    before[0] = Some([None; 11]);
    let mut pending = vec![0];
    // A register of an instruction stops being a constant at most once, so this ends.
    while let Some(slot) = pending.pop() {
        let Some(registers) = before[slot] else { continue };
        let after = apply(&ops[slot], registers, frozen);
        for next in successors(ops, slot, &registers).into_iter().flatten() {
            let met =
                before.get(next).and_then(|known| known.as_ref()).map(|known| meet(known, &after));
            let met = met.unwrap_or(after);
            if next < ops.len() && before[next] != Some(met) {
                before[next] = Some(met);
                pending.push(next);
            }
        }
        // The second half of a constant executes with the first.
        if matches!(ops[slot], Op::Const { .. }) {
            before[slot + 1] = Some(after);
        }
    }
    before
}

fn meet(known: &Registers, other: &Registers) -> Registers {
    std::array::from_fn(|number| known[number].filter(|value| other[number] == Some(*value)))
}

/// The instructions that may follow one.
fn successors(ops: &[Op], slot: usize, registers: &Registers) -> [Option<usize>; 2] {
    match ops[slot] {
        Op::Goto(target) => [Some(target), None],
        Op::Branch { target, .. } => match outcome(&ops[slot], registers) {
            Some(true) => [Some(target), None],
            Some(false) => [Some(slot + 1), None],
            None => [Some(target), Some(slot + 1)],
        },
        Op::MayGoto(target) => [Some(target), Some(slot + 1)],
        Op::Exit | Op::Poison => [None, None],
        Op::Const { .. } => [Some(slot + 2), None],
        _ => [Some(slot + 1), None],
    }
}

/// Whether a conditional jump is always taken, or never.
fn outcome(op: &Op, registers: &Registers) -> Option<bool> {
    let Op::Branch { wide, cond, left, right, .. } = *op else { return None };
    let right = operand(registers, right)?;
    Some(alu::holds(wide, cond, registers[usize::from(left)]?, right))
}

fn operand(registers: &Registers, src: Src) -> Option<u64> {
    match src {
        Src::Reg(number) => registers[usize::from(number)],
        Src::Imm(value) => Some(value as u64),
    }
}

/// The constant value that a load reads, if there is one.
fn read(
    registers: &Registers,
    frozen: &Frozen,
    (bytes, signed, base, off): (u8, bool, u8, i16),
) -> Option<u64> {
    let addr = registers[usize::from(base)]?.checked_add_signed(i64::from(off))?;
    let value = frozen.load(addr, bytes)?;
    Some(if signed { alu::sign_extend(value, u32::from(bytes) * 8) } else { value })
}

/// The constants after an instruction.
fn apply(op: &Op, mut registers: Registers, frozen: &Frozen) -> Registers {
    let before = registers;
    let known = |number: u8| before[usize::from(number)].is_some();
    if let Op::Call(_) = op {
        registers[..6].fill(None);
    }
    let Some(dst) = writes(op) else { return registers };
    let is_constant = match *op {
        Op::Alu { op: Alu::Mov, src, .. } => operand(&before, src).is_some(),
        Op::Alu { dst, src, .. } => known(dst) && operand(&before, src).is_some(),
        Op::Neg { dst, .. } | Op::Swap { dst, .. } | Op::Truncate { dst, .. } => known(dst),
        Op::MovSx { src, .. } => known(src),
        _ => false,
    };
    registers[usize::from(dst)] = match *op {
        Op::Const { value, .. } => Some(value),
        Op::Load { bytes, signed, base, off, .. } => {
            read(&before, frozen, (bytes, signed, base, off))
        }
        _ if is_constant => {
            let mut values = before.map(|value| value.unwrap_or(0));
            alu::apply(*op, &mut values);
            Some(values[usize::from(dst)])
        }
        _ => None,
    };
    registers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Cond;

    const AT: u64 = 0x20_0000;

    fn frozen() -> Frozen {
        Frozen::new(vec![(AT, vec![0, 1, 0xff, 0xff])])
    }

    fn load(dst: u8, base: u8, off: i16, bytes: u8, signed: bool) -> Op {
        Op::Load { bytes, signed, dst, base, off }
    }

    fn branch(left: u8, right: i64, target: usize) -> Op {
        let (wide, cond, right) = (true, Cond::Eq, Src::Imm(right));
        Op::Branch { wide, cond, left, right, target }
    }

    const CALL: Op = Op::Call(Callee::Helper(1));

    #[test]
    fn the_branch_of_a_constant_is_decided() {
        let ops = |off| {
            let address = Op::Const { dst: 1, value: AT };
            let decided = branch(1, 0, 6);
            [
                address,
                Op::Tail,
                load(1, 1, off, 1, false),
                decided,
                CALL,
                Op::Goto(7),
                CALL,
                Op::Exit,
            ]
        };
        let [address, tail, _, _, _, _, _, exit] = ops(0);
        let (nop, goto) = (Op::Nop, Op::Goto(7));
        assert_eq!(fold(&ops(0), &frozen()), [address, tail, mov(1, 0), nop, nop, nop, CALL, exit]);
        // The jump over dead code is removed, too.
        assert_eq!(fold(&ops(1), &frozen()), [address, tail, mov(1, 1), nop, CALL, nop, nop, exit]);
        // What is beyond the data is unknown.
        assert_eq!(fold(&ops(4), &frozen())[2..4], ops(4)[2..4]);
        assert!(fold(&ops(4), &frozen()).contains(&goto));
    }

    #[test]
    fn loads_of_all_widths() {
        let ops = [
            Op::Const { dst: 1, value: AT + 4 },
            Op::Tail,
            load(2, 1, -2, 2, false),
            load(3, 1, -2, 2, true),
            load(4, 1, -4, 4, false),
            load(5, 1, -4, 8, false),
            Op::Exit,
        ];
        let folded = fold(&ops, &frozen());
        assert_eq!(folded[2], mov(2, 0xffff));
        assert_eq!(folded[3], mov(3, u64::MAX));
        assert_eq!(folded[4], mov(4, 0xffff_0100));
        assert_eq!(folded[5], ops[5], "half of it is beyond the data");
    }

    #[test]
    fn what_a_loop_changes_is_no_constant() {
        let add = Op::Alu { wide: true, op: Alu::Add, dst: 1, src: Src::Imm(1) };
        let ops =
            [mov(1, 0), mov(2, 7), branch(1, 9, 6), branch(2, 8, 6), add, Op::Goto(2), Op::Exit];
        let folded = fold(&ops, &frozen());
        assert_eq!(folded[2], ops[2]);
        assert_eq!(folded[3], Op::Nop);
        assert_eq!(folded[4..], ops[4..]);
    }

    #[test]
    fn a_call_leaves_no_constant_in_its_registers() {
        let ops = [mov(1, 0), mov(6, 0), CALL, branch(1, 0, 5), branch(6, 0, 5), Op::Exit];
        let folded = fold(&ops, &frozen());
        assert_eq!(folded[3..5], [ops[3], Op::Nop]);
    }

    #[test]
    fn functions_that_nothing_calls_are_unreachable() {
        let call = |index| Op::Call(Callee::Function(index));
        let name = Op::Const { dst: 2, value: crate::layout::function_handle(3) };
        let far = Op::Const { dst: 2, value: crate::layout::function_handle(9) };
        let functions = [
            vec![call(1), Op::Exit],
            vec![name, Op::Tail, Op::Exit],
            vec![call(0), Op::Exit],
            vec![call(3), far, Op::Tail, Op::Exit],
        ];
        assert_eq!(reachable(&functions, vec![0]), [true, true, false, true]);
    }
}
