//! Helpers and kfuncs whose work is a few instructions: no call is made for them.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};

use super::translate::Translator;
use crate::layout::{Place, round8};
use crate::linked::{Callee, MapKind};
use crate::vm::{Context, TaskView, Vm};

impl Translator<'_, '_> {
    /// Translates a helper of this crate in line, if it is worth it; r0 becomes its result.
    pub(super) fn inline_helper(&mut self, number: u32) -> bool {
        let builtin = self.source.helper(number).is_some_and(|target| target.builtin);
        if !builtin {
            return false;
        }
        let result = match number {
            5 | 125 | 160 | 208 => self.load_context(offset_of!(Context, now_ns)),
            35 | 158 => self.load_context(offset_of!(Context, task)),
            8 => self.cpu(),
            1 => return self.array_lookup(None),
            195 => {
                let cpu = self.get(3);
                return self.array_lookup(Some(cpu));
            }
            156 => return self.task_storage_get(),
            _ => return false,
        };
        self.set(0, result);
        true
    }

    /// As [`Self::inline_helper`], for kfuncs.
    pub(super) fn inline_kfunc(&mut self, index: usize) -> bool {
        if !self.source.kfuncs[index].builtin {
            return false;
        }
        let result = match self.source.linked.kfuncs[index].as_str() {
            "scx_bpf_now" => self.load_context(offset_of!(Context, now_ns)),
            "bpf_rcu_read_lock"
            | "bpf_rcu_read_unlock"
            | "bpf_preempt_disable"
            | "bpf_preempt_enable"
            | "bpf_iter_num_destroy" => self.iconst(0),
            "bpf_rdonly_cast" | "bpf_cast_to_kern_ctx" => self.get(1),
            "bpf_iter_num_next" => {
                self.iter_num_next();
                return true;
            }
            _ => return false,
        };
        self.set(0, result);
        true
    }

    fn load_context(&mut self, offset: usize) -> Value {
        self.load_vm(types::I64, offset_of!(Vm, context) + offset)
    }

    fn cpu(&mut self) -> Value {
        let cpu = self.load_vm(types::I32, offset_of!(Vm, context) + offset_of!(Context, cpu));
        self.b.ins().uextend(types::I64, cpu)
    }

    /// A lookup in a known array: an index check and an address. `cpu` chooses the copy of a per-CPU array.
    fn array_lookup(&mut self, cpu: Option<Value>) -> bool {
        let Some(map) = self.map_in(1) else { return false };
        let def = &self.source.linked.maps[map];
        let kind = def.kind;
        let entries = i64::from(def.max_entries);
        let (base, slot) = match (self.source.layout.places[map], kind, cpu) {
            (Place::Fixed { addr, slot, .. }, MapKind::Array, None) => (addr, slot),
            (Place::PerCpu { offset, slot, .. }, MapKind::PerCpuArray, None) => {
                (self.source.layout.cpu_base + offset, slot)
            }
            _ => return false,
        };
        let key = self.get(2);
        let (place, off) = self.native(key);
        let flags = self.guest_flags();
        let index = self.b.ins().load(types::I32, flags, place, off);
        let found = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, index, entries);
        let index = self.b.ins().uextend(types::I64, index);
        let offset = self.b.ins().imul_imm_s(index, slot as i64);
        let mut value = self.b.ins().iadd_imm_s(offset, base as i64);
        if kind == MapKind::PerCpuArray {
            let cpu = self.cpu();
            let block = self.b.ins().imul_imm_s(cpu, self.source.layout.cpu_stride as i64);
            value = self.b.ins().iadd(value, block);
        }
        let zero = self.iconst(0);
        let result = self.b.ins().select(found, value, zero);
        self.set(0, result);
        true
    }

    /// `bpf_task_storage_get` of a known map: what exists is found in line, the rest by a call.
    fn task_storage_get(&mut self) -> bool {
        let Some(map) = self.map_in(1) else { return false };
        let def = &self.source.linked.maps[map];
        if def.kind != MapKind::TaskStorage {
            return false;
        }
        let slot = round8(def.value_size) as i64;
        // Both ways end in the same block, so the instructions so far must be counted before they part.
        self.flush();
        let (numbered, found) = (self.b.create_block(), self.b.create_block());
        let (slow, done) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(done, types::I64);

        let task = self.get(2);
        let base = self.load_vm(types::I64, offset_of!(Vm, slab_base));
        let bytes = self.load_vm(types::I64, offset_of!(Vm, slab_bytes));
        let offset = self.b.ins().isub(task, base);
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, offset, bytes);
        self.b.ins().brif(inside, numbered, &[], slow, &[]);

        self.b.switch_to_block(numbered);
        let inverse = self.load_vm(types::I64, offset_of!(Vm, slab_inverse));
        let stride = self.load_vm(types::I64, offset_of!(Vm, slab_stride));
        let product = self.b.ins().imul(offset, inverse);
        let number = self.b.ins().ushr_imm_u(product, 32);
        let exact = self.b.ins().imul(number, stride);
        let whole = self.b.ins().icmp(IntCC::Equal, exact, offset);
        let views = self.load_vm(types::I64, offset_of!(Vm, task_views));
        let view = (map * size_of::<TaskView>()) as i32;
        let flags = MemFlagsData::trusted();
        let present = offset_of!(TaskView, present) as i32;
        let present = self.b.ins().load(types::I64, flags, views, view + present);
        // The bytes of presence are behind a bound: the slab has no more tasks than the map.
        let at = self.b.ins().iadd(present, number);
        let here = self.b.ins().load(types::I8, flags, at, 0);
        let here = self.b.ins().icmp_imm_u(IntCC::NotEqual, here, 0);
        let hit = self.b.ins().band(whole, here);
        self.b.ins().brif(hit, found, &[], slow, &[]);

        self.b.switch_to_block(found);
        let values = offset_of!(TaskView, values) as i32;
        let values = self.b.ins().load(types::I64, flags, views, view + values);
        let delta = self.b.ins().imul_imm_s(number, slot);
        let value = self.b.ins().iadd(values, delta);
        self.b.ins().jump(done, &[value.into()]);

        self.b.switch_to_block(slow);
        self.host_call(self.source.helper(156), Callee::Helper(156));
        let value = self.get(0);
        self.b.ins().jump(done, &[value.into()]);

        self.b.switch_to_block(done);
        let value = self.b.block_params(done)[0];
        self.set(0, value);
        true
    }

    /// `bpf_iter_num_next(it)`: as the function of that name in this crate's kfuncs.
    fn iter_num_next(&mut self) {
        let it = self.get(1);
        let (place, off) = self.native(it);
        let flags = self.guest_flags();
        let before = self.b.ins().load(types::I32, flags, place, off);
        let end = self.b.ins().load(types::I32, flags, place, off + 4);
        let next = self.b.ins().iadd_imm_s(before, 1);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, next, end);
        let zero = self.b.ins().iconst(types::I32, 0);
        let none = self.iconst(0);
        let current = self.b.ins().select(more, next, zero);
        let end = self.b.ins().select(more, end, zero);
        self.b.ins().store(flags, current, place, off);
        self.b.ins().store(flags, end, place, off + 4);
        let result = self.b.ins().select(more, it, none);
        self.set(0, result);
    }
}
