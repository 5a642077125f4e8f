//! Fuel, prices of calls, and traps.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::access::UNREACHABLE;
use super::compile::signature;
use super::shims::Raise;
use super::translate::Translator;
use crate::vm::Vm;

impl Translator<'_, '_> {
    /// Leaves generated code with a trap at the current instruction; ends the block. The fuel must be flushed.
    pub(super) fn raise(&mut self, why: Raise) {
        let signature = self.b.import_signature(signature(4, 0));
        let address = self.iconst(self.source.shims.raise as i64);
        let (why, index, pc) = (why as i64, self.index as i64, self.pc as i64);
        let args = [self.vm, self.iconst(why), self.iconst(index), self.iconst(pc)];
        self.b.ins().call_indirect(signature, address, &args);
        self.b.ins().trap(UNREACHABLE);
    }

    pub(super) fn raise_if(&mut self, condition: Value, why: Raise) {
        let (cold, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(cold);
        self.b.ins().brif(condition, cold, &[], on, &[]);
        self.b.switch_to_block(cold);
        self.raise(why);
        self.b.switch_to_block(on);
    }

    /// Subtracts the instructions since the last flush from the fuel, in the variable and in the control block. What
    /// was executed of them when an access faults is known from its slot ([`Translator::pending_at`]).
    pub(super) fn flush(&mut self) {
        if self.pending > 0 {
            let fuel = self.b.use_var(self.fuel);
            let fuel = self.b.ins().iadd_imm_s(fuel, -self.pending);
            self.b.def_var(self.fuel, fuel);
            // Declared as one that may trap, so that Cranelift removes no store of the guest's before it in favour of
            // a later one: the later one would trap with another count.
            let flags = self.vm_flags().with_trap_code(Some(UNREACHABLE));
            self.b.ins().store(flags, fuel, self.vm, offset_of!(Vm, fuel) as i32);
            self.pending = 0;
            self.stored.clear();
        }
    }

    /// Before a store of the guest's: flushes if it may overwrite an earlier one since the last flush.
    pub(super) fn keep_stores(&mut self, bytes: u8, off: i16) {
        if self.stored.contains(&(bytes, off)) {
            // Without the instruction itself: it has not been executed if the earlier one traps.
            self.pending -= 1;
            self.flush();
            self.pending = 1;
        }
        self.stored.push((bytes, off));
    }

    /// Adds the price of the following call; `index` is that of the price.
    pub(super) fn pay(&mut self, index: u8) {
        let price = offset_of!(Vm, prices) + usize::from(index) * size_of::<u32>();
        let price = self.load_vm(types::I32, price);
        let price = self.b.ins().uextend(types::I64, price);
        let spent = self.load_vm(types::I64, offset_of!(Vm, spent));
        let spent = self.b.ins().iadd(spent, price);
        self.store_vm(spent, offset_of!(Vm, spent));
    }

    pub(super) fn check_fuel(&mut self) {
        let fuel = self.b.use_var(self.fuel);
        let empty = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, fuel, 0);
        self.raise_if(empty, Raise::OutOfFuel);
    }

    pub(super) fn reload_fuel(&mut self) {
        let fuel = self.load_vm(types::I64, offset_of!(Vm, fuel));
        self.b.def_var(self.fuel, fuel);
    }
}
