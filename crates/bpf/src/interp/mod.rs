//! The interpreter: executes one operation at a time, as RFC 9669 defines it. The JIT is tested against it.

pub(crate) mod alu;

use crate::call::{Call, HostCall};
use crate::decode::{Alu, MAX_MAY_GOTO, Op, Rmw, Src};
use crate::env::Host;
use crate::host_calls::HostCalls;
use crate::linked::Callee;
use crate::memory::Memory;
use crate::program::Program;
use crate::region::{Access, GUEST_SIZE};
use crate::trap::{Trap, TrapKind};
use crate::vm::{FRAME_BYTES, MAX_FRAMES, STACK_LOW, Vm};

/// Runs a function on the frame at `Vm::sp`.
///
/// # Safety
/// As [`crate::exec::invoke`]; `program` and `calls` are those of the instance's image.
pub(crate) unsafe fn run<H: Host>(
    vm: *mut Vm,
    program: &Program,
    calls: &HostCalls<H>,
    function: usize,
    args: &[u64; 5],
) -> Result<u64, Trap> {
    // SAFETY: by contract; memory is shared by design.
    let memory = unsafe { &(*(*vm).state).memory };
    // SAFETY: by contract.
    let sp = unsafe { (*vm).sp };
    let mut frame =
        Frame { vm, program, calls, memory, function, r: [0; 11], may_goto: MAX_MAY_GOTO };
    frame.r[1..6].copy_from_slice(args);
    frame.r[10] = sp;
    let mut pc = 0;
    if sp <= STACK_LOW {
        let trap = Trap::new(TrapKind::StackOverflow { frames: MAX_FRAMES });
        return Err(trap.at(&program.functions[function].name, 0));
    }
    let name = &program.functions[function].name;
    loop {
        match frame.step(pc) {
            Ok(Next::At(next)) => pc = next,
            Ok(Next::Return) => return Ok(frame.r[0]),
            Err(trap) => return Err(trap.at(name, pc)),
        }
    }
}

enum Next {
    At(usize),
    Return,
}

struct Frame<'a, H> {
    vm: *mut Vm,
    program: &'a Program,
    calls: &'a HostCalls<H>,
    memory: &'a Memory,
    function: usize,
    r: [u64; 11],
    may_goto: u64,
}

impl<H: Host> Frame<'_, H> {
    fn src(&self, src: Src) -> u64 {
        match src {
            Src::Reg(number) => self.r[usize::from(number)],
            Src::Imm(value) => value as u64,
        }
    }

    fn step(&mut self, pc: usize) -> Result<Next, Trap> {
        let op = self.program.functions[self.function].ops[pc];
        if op == Op::Nop {
            return Ok(Next::At(pc + 1));
        }
        // SAFETY: by the contract of `run`; nothing refers to the counts.
        unsafe {
            (*self.vm).fuel -= 1;
            (&mut (*(*self.vm).state).executed)[self.function][pc] += 1;
        }
        match op {
            Op::Load { bytes, signed, dst, base, off } => {
                let value = self.load(base, off, bytes)?;
                let bits = u32::from(bytes) * 8;
                self.r[usize::from(dst)] =
                    if signed { alu::sign_extend(value, bits) } else { value };
            }
            Op::Store { bytes, base, off, value } => {
                self.store(base, off, bytes, self.src(value))?;
            }
            Op::Atomic { bytes, op, fetch, base, off, src } => {
                self.atomic(bytes, op, fetch, (base, off), src)?;
            }
            Op::Const { dst, value } => {
                self.r[usize::from(dst)] = value;
                return Ok(Next::At(pc + 2));
            }
            Op::Goto(target) => return self.jump(pc, target),
            Op::Branch { wide, cond, left, right, target } => {
                if alu::holds(wide, cond, self.r[usize::from(left)], self.src(right)) {
                    return self.jump(pc, target);
                }
            }
            Op::MayGoto(target) => {
                if self.may_goto == 0 {
                    return self.jump(pc, target);
                }
                self.may_goto -= 1;
            }
            Op::Call(callee) => self.call(callee)?,
            Op::Exit => return Ok(Next::Return),
            Op::Poison => {
                return Err(Trap::new(TrapKind::Poison(self.program.poison(self.function, pc))));
            }
            Op::Tail | Op::Nop => unreachable!("decoding refused every way into a second slot"),
            Op::Alu { op: Alu::Div | Alu::SDiv | Alu::Mod | Alu::SMod, .. } => {
                // SAFETY: by the contract of `run`.
                unsafe { (*self.vm).divisions += 1 };
                alu::apply(op, &mut self.r);
            }
            Op::Alu { .. }
            | Op::Neg { .. }
            | Op::MovSx { .. }
            | Op::Swap { .. }
            | Op::Truncate { .. } => alu::apply(op, &mut self.r),
        }
        Ok(Next::At(pc + 1))
    }

    /// Takes a jump; checks the fuel before a backward one.
    fn jump(&self, pc: usize, target: usize) -> Result<Next, Trap> {
        if target <= pc {
            self.check_fuel()?;
        }
        Ok(Next::At(target))
    }

    fn check_fuel(&self) -> Result<(), Trap> {
        // SAFETY: by the contract of `run`.
        if unsafe { (*self.vm).fuel } < 0 {
            // SAFETY: as above.
            return Err(unsafe { (*(*self.vm).state).out_of_fuel() });
        }
        Ok(())
    }

    fn call(&mut self, callee: Callee) -> Result<(), Trap> {
        let args = [self.r[1], self.r[2], self.r[3], self.r[4], self.r[5]];
        let below = self.r[10] - FRAME_BYTES;
        // SAFETY: by the contract of `run`.
        unsafe { (*self.vm).sp = below };
        if let Some(price) = self.calls.price(callee) {
            // SAFETY: as above.
            let vm = unsafe { &mut *self.vm };
            vm.spent += u64::from(vm.prices[usize::from(price)]);
        }
        let result = match callee {
            Callee::Function(index) => {
                self.check_fuel()?;
                // SAFETY: by the contract of `run`; decoding checked the index.
                unsafe { run(self.vm, self.program, self.calls, index, &args) }
            }
            Callee::Kfunc(index) => self.host_call(self.calls.kfuncs[index], args),
            Callee::Helper(number) => match self.calls.helpers.get(&number) {
                Some(call) => self.host_call(*call, args),
                None => Err(Trap::helper(format!("helper {number} is not resolved"))),
            },
        };
        self.r[0] = result?;
        self.r[1..6].fill(0);
        Ok(())
    }

    fn host_call(&self, call: HostCall<H>, args: [u64; 5]) -> Result<u64, Trap> {
        // SAFETY: by the contract of `run`; only memory is borrowed, which is shared by design.
        unsafe { Call::<H>::new(self.vm) }.host_call(call, args)
    }

    /// The effective address; an address outside of the 32-bit space traps, as the JIT's guard pages do.
    fn address(&self, base: u8, off: i16, bytes: u8, access: Access) -> Result<u64, Trap> {
        let addr = i64::from(self.r[usize::from(base)] as u32) + i64::from(off);
        let end = addr + i64::from(bytes);
        if addr < 0 || end > GUEST_SIZE as i64 {
            let store = access == Access::ReadWrite;
            let kind = self.memory.fault_kind(guard_address(addr), store);
            return Err(Trap::new(kind));
        }
        Ok(addr as u64)
    }

    fn load(&self, base: u8, off: i16, bytes: u8) -> Result<u64, Trap> {
        let addr = self.address(base, off, bytes, Access::Read)?;
        match bytes {
            1 => self.memory.load_u8(addr).map(u64::from),
            2 => self.memory.load_u16(addr).map(u64::from),
            4 => self.memory.load_u32(addr).map(u64::from),
            _ => self.memory.load_u64(addr),
        }
    }

    fn store(&self, base: u8, off: i16, bytes: u8, value: u64) -> Result<(), Trap> {
        let addr = self.address(base, off, bytes, Access::ReadWrite)?;
        match bytes {
            1 => self.memory.store_u8(addr, value as u8),
            2 => self.memory.store_u16(addr, value as u16),
            4 => self.memory.store_u32(addr, value as u32),
            _ => self.memory.store_u64(addr, value),
        }
    }

    fn atomic(
        &mut self,
        bytes: u8,
        op: Rmw,
        fetch: bool,
        (base, off): (u8, i16),
        src: u8,
    ) -> Result<(), Trap> {
        let addr = self.address(base, off, bytes, Access::ReadWrite)?;
        self.memory.range(addr, u64::from(bytes), Access::ReadWrite)?;
        let old = self.load(base, off, bytes)?;
        let operand = self.r[usize::from(src)];
        let expected = if bytes == 4 { self.r[0] & 0xffff_ffff } else { self.r[0] };
        let new = match op {
            Rmw::Add => old.wrapping_add(operand),
            Rmw::Or => old | operand,
            Rmw::And => old & operand,
            Rmw::Xor => old ^ operand,
            Rmw::Xchg => operand,
            Rmw::CmpXchg if old == expected => operand,
            Rmw::CmpXchg => old,
        };
        self.store(base, off, bytes, new)?;
        if op == Rmw::CmpXchg {
            self.r[0] = old;
        } else if fetch {
            self.r[usize::from(src)] = old;
        }
        Ok(())
    }
}

/// The address that a trap outside of the 32-bit space reports: modulo 2⁶⁴ below guest address 0.
fn guard_address(addr: i64) -> u64 {
    addr as u64
}
