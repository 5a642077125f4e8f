//! Inline translation of helpers and kfuncs that need a few instructions only.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};

use super::translate::Translator;
use crate::layout::{MapStorage, round8};
use crate::linked::{Callee, MapKind};
use crate::maps::TaskView;
use crate::vm::{Context, Vm};

impl Translator<'_, '_> {
    /// Translates a built-in helper inline and sets r0; false if it has no inline translation.
    pub(super) fn inline_helper(&mut self, number: u32) -> bool {
        let builtin = self.source.helpers.get(&number).is_some_and(|target| target.builtin);
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
        let result = match self.source.program.linked.kfuncs[index].as_str() {
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

    /// A lookup in a known array: a bounds check and an address computation. `cpu` selects the copy of a per-CPU array.
    fn array_lookup(&mut self, cpu: Option<Value>) -> bool {
        let Some(map) = self.map_in(1) else { return false };
        let def = &self.source.program.linked.maps[map];
        let kind = def.kind;
        let entries = i64::from(def.max_entries);
        let (base, stride) = match (self.source.program.layout.maps[map], kind, cpu) {
            (MapStorage::Fixed { addr, stride, .. }, MapKind::Array, None) => (addr, stride),
            (MapStorage::PerCpu { offset, stride, .. }, MapKind::PerCpuArray, None) => {
                (self.source.program.layout.cpu_base + offset, stride)
            }
            _ => return false,
        };
        let key = self.get(2);
        let (addr, off) = self.native(key);
        let flags = self.guest_flags();
        let index = self.b.ins().load(types::I32, flags, addr, off);
        let found = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, index, entries);
        let index = self.b.ins().uextend(types::I64, index);
        let offset = self.b.ins().imul_imm_s(index, stride as i64);
        let mut value = self.b.ins().iadd_imm_s(offset, base as i64);
        if kind == MapKind::PerCpuArray {
            let cpu = self.cpu();
            let block = self.b.ins().imul_imm_s(cpu, self.source.program.layout.cpu_stride as i64);
            value = self.b.ins().iadd(value, block);
        }
        let zero = self.iconst(0);
        let result = self.b.ins().select(found, value, zero);
        self.set(0, result);
        true
    }

    /// `bpf_task_storage_get` of a known map: an existing value is found inline, anything else by a call.
    fn task_storage_get(&mut self) -> bool {
        let Some(map) = self.map_in(1) else { return false };
        let def = &self.source.program.linked.maps[map];
        if def.kind != MapKind::TaskStorage {
            return false;
        }
        let stride = round8(def.value_size) as i64;
        // Both paths end in the same block, so the instructions so far are counted before the branch.
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
        let slab_stride = self.load_vm(types::I64, offset_of!(Vm, slab_stride));
        let product = self.b.ins().imul(offset, inverse);
        let number = self.b.ins().ushr_imm_u(product, 32);
        let exact = self.b.ins().imul(number, slab_stride);
        let whole = self.b.ins().icmp(IntCC::Equal, exact, offset);
        let views = self.load_vm(types::I64, offset_of!(Vm, task_views));
        let view = (map * size_of::<TaskView>()) as i32;
        let flags = MemFlagsData::trusted();
        let present = offset_of!(TaskView, present) as i32;
        let present = self.b.ins().load(types::I64, flags, views, view + present);
        // In bounds: the slab holds at most as many tasks as the map.
        let at = self.b.ins().iadd(present, number);
        let here = self.b.ins().load(types::I8, flags, at, 0);
        let here = self.b.ins().icmp_imm_u(IntCC::NotEqual, here, 0);
        let hit = self.b.ins().band(whole, here);
        self.b.ins().brif(hit, found, &[], slow, &[]);

        self.b.switch_to_block(found);
        let values = offset_of!(TaskView, values) as i32;
        let values = self.b.ins().load(types::I64, flags, views, view + values);
        let delta = self.b.ins().imul_imm_s(number, stride);
        let value = self.b.ins().iadd(values, delta);
        self.b.ins().jump(done, &[value.into()]);

        self.b.switch_to_block(slow);
        let target = self.source.helpers.get(&156).copied();
        self.host_call(target, Callee::Helper(156));
        let value = self.get(0);
        self.b.ins().jump(done, &[value.into()]);

        self.b.switch_to_block(done);
        let value = self.b.block_params(done)[0];
        self.set(0, value);
        true
    }

    /// `bpf_iter_num_next(it)`: as in `helpers/kfuncs.rs`.
    fn iter_num_next(&mut self) {
        let it = self.get(1);
        let (addr, off) = self.native(it);
        let flags = self.guest_flags();
        let before = self.b.ins().load(types::I32, flags, addr, off);
        let end = self.b.ins().load(types::I32, flags, addr, off + 4);
        let next = self.b.ins().iadd_imm_s(before, 1);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, next, end);
        let zero = self.b.ins().iconst(types::I32, 0);
        let none = self.iconst(0);
        let current = self.b.ins().select(more, next, zero);
        let end = self.b.ins().select(more, end, zero);
        self.b.ins().store(flags, current, addr, off);
        self.b.ins().store(flags, end, addr, off + 4);
        let result = self.b.ins().select(more, it, none);
        self.set(0, result);
    }
}
