//! Decodes instruction slots to operations. Rejects malformed instructions, so that the engines need no checks.

use crate::error::{Fault, LoadCause};
use crate::layout::{self, Layout};
use crate::linked::{Callee, Fixup, Function, Insn, LDDW, Linked};

/// The second operand: a register, or a sign-extended immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Src {
    Reg(u8),
    Imm(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alu {
    Add,
    Sub,
    Mul,
    Div,
    SDiv,
    Mod,
    SMod,
    Or,
    And,
    Xor,
    Lsh,
    Rsh,
    Arsh,
    Mov,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cond {
    Eq,
    Ne,
    Set,
    Gt,
    Ge,
    Lt,
    Le,
    SGt,
    SGe,
    SLt,
    SLe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rmw {
    Add,
    Or,
    And,
    Xor,
    Xchg,
    CmpXchg,
}

/// One operation. Jump targets are slots of the same function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// 64 bits if `wide`, else 32 with zero extension.
    Alu {
        wide: bool,
        op: Alu,
        dst: u8,
        src: Src,
    },
    Neg {
        wide: bool,
        dst: u8,
    },
    /// Sign extension of the low `bits` bits of `src`, to 64 or 32 bits.
    MovSx {
        wide: bool,
        bits: u8,
        dst: u8,
        src: u8,
    },
    /// Reverses the bytes of the low `bits` bits and clears the rest.
    Swap {
        bits: u8,
        dst: u8,
    },
    /// Clears all but the low `bits` bits.
    Truncate {
        bits: u8,
        dst: u8,
    },
    Const {
        dst: u8,
        value: u64,
    },
    Load {
        bytes: u8,
        signed: bool,
        dst: u8,
        base: u8,
        off: i16,
    },
    Store {
        bytes: u8,
        base: u8,
        off: i16,
        value: Src,
    },
    Atomic {
        bytes: u8,
        op: Rmw,
        fetch: bool,
        base: u8,
        off: i16,
        src: u8,
    },
    Goto(usize),
    Branch {
        wide: bool,
        cond: Cond,
        left: u8,
        right: Src,
        target: usize,
    },
    /// Jumps if it has been executed [`MAX_MAY_GOTO`] times.
    MayGoto(usize),
    Call(Callee),
    Exit,
    /// Traps with the text of the fixup.
    Poison,
    /// The second slot of a [`Op::Const`].
    Tail,
    /// An instruction that was removed ([`crate::fold`]): it is not counted.
    Nop,
}

/// Maximum iterations of loops with `may_goto` in a function: the kernel's `BPF_MAX_LOOPS`.
pub(crate) const MAX_MAY_GOTO: u64 = 8 << 20;

/// Decodes a function.
pub(crate) fn decode(
    linked: &Linked,
    function: &Function,
    layout: &Layout,
) -> Result<Vec<Op>, Fault> {
    let decoder = Decoder { linked, function, layout };
    let error =
        |slot: usize, reason: String| fault(function, slot, LoadCause::BadInstruction(reason));
    if function.insns.is_empty() {
        return Err(error(0, "the function has no instructions".into()));
    }
    let mut ops = Vec::with_capacity(function.insns.len());
    while ops.len() < function.insns.len() {
        let slot = ops.len();
        let op = decoder.op(slot).map_err(|reason| error(slot, reason))?;
        ops.push(op);
        if is_lddw(&function.insns[slot]) {
            if slot + 1 == function.insns.len() {
                return Err(error(slot, "a 64-bit immediate load lacks its second half".into()));
            }
            ops.push(Op::Tail);
        }
    }
    for (slot, op) in ops.iter().enumerate() {
        if let Op::Goto(target) | Op::Branch { target, .. } | Op::MayGoto(target) = *op
            && ops[target] == Op::Tail
        {
            return Err(error(
                slot,
                format!("jumps into the middle of instruction {}", target - 1),
            ));
        }
    }
    let last = ops.iter().rposition(|op| *op != Op::Tail).unwrap_or(0);
    if !matches!(ops[last], Op::Exit | Op::Goto(_) | Op::Poison) {
        return Err(error(last, "execution runs past the end of the function".into()));
    }
    Ok(ops)
}

/// A fault at an instruction.
pub(crate) fn fault(function: &Function, slot: usize, cause: LoadCause) -> Fault {
    Fault::at_instruction(&function.name, &function.section, slot, cause)
}

fn is_lddw(insn: &Insn) -> bool {
    insn.code == LDDW
}

struct Decoder<'a> {
    linked: &'a Linked,
    function: &'a Function,
    layout: &'a Layout,
}

impl Decoder<'_> {
    fn op(&self, slot: usize) -> Result<Op, String> {
        let insn = self.function.insns[slot];
        let fixup = self.function.fixups.get(&slot);
        if insn.dst > 10 || insn.src > 15 {
            return Err(format!("register r{} does not exist", insn.dst.max(insn.src)));
        }
        if let Some(Fixup::Poison(_)) = fixup {
            return Ok(Op::Poison);
        }
        let op = match insn.code & 7 {
            0 => self.load_const(&insn, fixup),
            1 => load(&insn),
            2 | 3 => store(&insn),
            4 | 7 => alu(&insn),
            _ => self.jump(slot, &insn, fixup),
        }?;
        if writes(&op) == Some(10) {
            return Err("writes to r10, the read-only frame pointer".into());
        }
        Ok(op)
    }

    fn load_const(&self, insn: &Insn, fixup: Option<&Fixup>) -> Result<Op, String> {
        if !is_lddw(insn) {
            return Err(unknown(insn));
        }
        let value = match fixup {
            Some(Fixup::Value(value)) => *value,
            Some(Fixup::Data { map, offset }) => self.layout.data_address(*map, *offset)?,
            Some(Fixup::Map(map)) if *map < self.linked.maps.len() => layout::map_handle(*map),
            Some(Fixup::Function(index)) if *index < self.linked.functions.len() => {
                layout::function_handle(*index)
            }
            other => return Err(format!("a 64-bit immediate load with the symbol {other:?}")),
        };
        Ok(Op::Const { dst: insn.dst, value })
    }

    fn jump(&self, slot: usize, insn: &Insn, fixup: Option<&Fixup>) -> Result<Op, String> {
        let wide = insn.code & 7 == 5;
        let target = |delta: i64| {
            let target = slot as i64 + 1 + delta;
            let inside = (0..self.function.insns.len() as i64).contains(&target);
            if inside { Ok(target as usize) } else { Err("jumps out of the function".to_owned()) }
        };
        let near = || target(i64::from(insn.off));
        match insn.code {
            0x05 => return Ok(Op::Goto(near()?)),
            0x06 => return Ok(Op::Goto(target(i64::from(insn.imm))?)),
            0xe5 => return Ok(Op::MayGoto(near()?)),
            0x85 => return self.call(fixup),
            0x95 => return Ok(Op::Exit),
            _ => {}
        }
        let cond = match insn.code >> 4 {
            0x1 => Cond::Eq,
            0x2 => Cond::Gt,
            0x3 => Cond::Ge,
            0x4 => Cond::Set,
            0x5 => Cond::Ne,
            0x6 => Cond::SGt,
            0x7 => Cond::SGe,
            0xa => Cond::Lt,
            0xb => Cond::Le,
            0xc => Cond::SLt,
            0xd => Cond::SLe,
            _ => return Err(unknown(insn)),
        };
        Ok(Op::Branch { wide, cond, left: insn.dst, right: source(insn)?, target: near()? })
    }

    fn call(&self, fixup: Option<&Fixup>) -> Result<Op, String> {
        match fixup {
            Some(Fixup::Call(callee)) => {
                let known = match callee {
                    Callee::Helper(_) => true,
                    Callee::Kfunc(index) => *index < self.linked.kfuncs.len(),
                    Callee::Function(index) => *index < self.linked.functions.len(),
                };
                if known { Ok(Op::Call(*callee)) } else { Err(format!("calls {callee:?}")) }
            }
            other => Err(format!("a call of the symbol {other:?}")),
        }
    }
}

fn unknown(insn: &Insn) -> String {
    format!(
        "unknown instruction (opcode {:#04x}, offset {}, immediate {})",
        insn.code, insn.off, insn.imm
    )
}

fn source(insn: &Insn) -> Result<Src, String> {
    if insn.code & 8 == 0 {
        Ok(Src::Imm(i64::from(insn.imm)))
    } else if insn.src <= 10 {
        Ok(Src::Reg(insn.src))
    } else {
        Err(format!("register r{} does not exist", insn.src))
    }
}

fn register(number: u8) -> Result<u8, String> {
    if number <= 10 { Ok(number) } else { Err(format!("register r{number} does not exist")) }
}

fn width(insn: &Insn) -> u8 {
    match insn.code >> 3 & 3 {
        0 => 4,
        1 => 2,
        2 => 1,
        _ => 8,
    }
}

fn load(insn: &Insn) -> Result<Op, String> {
    let signed = match insn.code >> 5 {
        3 => false,
        4 if width(insn) < 8 => true,
        _ => return Err(unknown(insn)),
    };
    let base = register(insn.src)?;
    Ok(Op::Load { bytes: width(insn), signed, dst: insn.dst, base, off: insn.off })
}

fn store(insn: &Insn) -> Result<Op, String> {
    let (bytes, base, off) = (width(insn), insn.dst, insn.off);
    match (insn.code & 7, insn.code >> 5) {
        (2, 3) => Ok(Op::Store { bytes, base, off, value: Src::Imm(i64::from(insn.imm)) }),
        (3, 3) => Ok(Op::Store { bytes, base, off, value: Src::Reg(register(insn.src)?) }),
        (3, 6) => atomic(insn),
        _ => Err(unknown(insn)),
    }
}

fn atomic(insn: &Insn) -> Result<Op, String> {
    let (bytes, off, src) = (width(insn), insn.off, register(insn.src)?);
    match insn.imm {
        0x100 => return Ok(Op::Load { bytes, signed: false, dst: insn.dst, base: src, off }),
        0x110 => return Ok(Op::Store { bytes, base: insn.dst, off, value: Src::Reg(src) }),
        _ if bytes < 4 => return Err(unknown(insn)),
        _ => {}
    }
    let (op, fetch) = match insn.imm {
        0x00 | 0x01 => (Rmw::Add, insn.imm & 1 == 1),
        0x40 | 0x41 => (Rmw::Or, insn.imm & 1 == 1),
        0x50 | 0x51 => (Rmw::And, insn.imm & 1 == 1),
        0xa0 | 0xa1 => (Rmw::Xor, insn.imm & 1 == 1),
        0xe1 => (Rmw::Xchg, true),
        0xf1 => (Rmw::CmpXchg, true),
        _ => return Err(unknown(insn)),
    };
    Ok(Op::Atomic { bytes, op, fetch, base: insn.dst, off, src })
}

fn alu(insn: &Insn) -> Result<Op, String> {
    let (wide, dst) = (insn.code & 7 == 7, insn.dst);
    let op = match (insn.code >> 4, insn.off) {
        (0x0, 0) => Alu::Add,
        (0x1, 0) => Alu::Sub,
        (0x2, 0) => Alu::Mul,
        (0x3, 0) => Alu::Div,
        (0x3, 1) => Alu::SDiv,
        (0x4, 0) => Alu::Or,
        (0x5, 0) => Alu::And,
        (0x6, 0) => Alu::Lsh,
        (0x7, 0) => Alu::Rsh,
        (0x8, 0) if insn.code & 8 == 0 => return Ok(Op::Neg { wide, dst }),
        (0x9, 0) => Alu::Mod,
        (0x9, 1) => Alu::SMod,
        (0xa, 0) => Alu::Xor,
        (0xb, 0) => Alu::Mov,
        // An address-space cast is a move: both address spaces are the same region.
        (0xb, 1) if wide && insn.code & 8 != 0 => Alu::Mov,
        (0xb, bits @ (8 | 16 | 32)) if insn.code & 8 != 0 && (wide || bits < 32) => {
            return Ok(Op::MovSx { wide, bits: bits as u8, dst, src: register(insn.src)? });
        }
        (0xc, 0) => Alu::Arsh,
        (0xd, 0) => return swap(insn, wide, dst),
        _ => return Err(unknown(insn)),
    };
    Ok(Op::Alu { wide, op, dst, src: source(insn)? })
}

fn swap(insn: &Insn, unconditional: bool, dst: u8) -> Result<Op, String> {
    let bits = match insn.imm {
        16 | 32 | 64 => insn.imm as u8,
        _ => return Err(unknown(insn)),
    };
    match (unconditional, insn.code & 8 != 0) {
        (true, false) | (false, true) => Ok(Op::Swap { bits, dst }),
        (false, false) => Ok(Op::Truncate { bits, dst }),
        (true, true) => Err(unknown(insn)),
    }
}

/// The register that an operation writes; `None` for calls.
pub(crate) fn writes(op: &Op) -> Option<u8> {
    match *op {
        Op::Alu { dst, .. }
        | Op::Neg { dst, .. }
        | Op::MovSx { dst, .. }
        | Op::Swap { dst, .. }
        | Op::Truncate { dst, .. }
        | Op::Const { dst, .. }
        | Op::Load { dst, .. } => Some(dst),
        Op::Atomic { op: Rmw::CmpXchg, .. } => Some(0),
        Op::Atomic { fetch: true, src, .. } => Some(src),
        _ => None,
    }
}
