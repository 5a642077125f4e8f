//! Cgroups: the callbacks about the tree, and tasks that move in it.

use fairground_bpf::{Memory, Trap};
use fairground_trace::EventKind;
use fairground_workload::Bandwidth;

use super::{Cgroup, CgroupRef, Control};
use crate::abi::{deq, enq};
use crate::flow::{Machine, Step, Sticky};
use crate::kernel::{Kernel, Slot};
use crate::layout::offsets::{cgroup as field, cgroup_init_args as init_args};
use crate::op::Op;

/// A quota without a limit (`RUNTIME_INF`).
const RUNTIME_INF: u64 = u64::MAX;

/// The largest errno (`MAX_ERRNO`).
const ERRNO_MAX: i32 = 4095;

impl Kernel {
    /// Writes a task's cgroup where programs see it.
    pub(crate) fn publish_cgroup(&self, mem: &Memory, slot: Slot) -> Result<(), Trap> {
        let task = self.task(slot);
        self.cgroups.publish_in(mem, task.addr, task.cgroup)
    }

    /// A cgroup that a program names: a trap when there is none at that address.
    pub(crate) fn need_cgroup(&self, addr: u64, kfunc: &str) -> Result<CgroupRef, Trap> {
        self.cgroups
            .at(addr)
            .ok_or_else(|| Trap::host(format!("{kfunc}(): no cgroup lies at address {addr:#x}")))
    }
}

impl Machine {
    /// `scx_cgroup_init`: every cgroup is initialised, parents first, before any task. Callback: `cgroup_init`.
    pub(crate) fn init_cgroups(&mut self) -> Step {
        for cgroup in self.kernel.cgroups.pre_order() {
            if self.kernel.exit.is_some() {
                return Ok(());
            }
            if self.has(Op::CgroupInit) {
                let args = self.cgroup_init_args;
                let Cgroup { weight, max, .. } = *self.kernel.cgroups.get(cgroup);
                let mem = self.program.memory();
                mem.store_u32(args + init_args::WEIGHT, weight)?;
                mem.store_u64(args + init_args::BW_PERIOD_US, max.period_us)?;
                mem.store_u64(args + init_args::BW_QUOTA_US, max.quota_us.unwrap_or(RUNTIME_INF))?;
                mem.store_u64(args + init_args::BW_BURST_US, max.burst_us)?;
                let addr = self.kernel.cgroups.addr(cgroup);
                let result = self.call(Op::CgroupInit, None, &[addr, args]) as i32;
                if result != 0 {
                    self.kernel.error(format!("ops.cgroup_init() failed ({result})"));
                    return Ok(());
                }
            }
            self.kernel.cgroups.get_mut(cgroup).inited = true;
        }
        Ok(())
    }

    /// `scx_cgroup_exit`: the scheduler leaves the cgroups, children first, before it leaves the tasks. Callback:
    /// `cgroup_exit`.
    pub(crate) fn exit_cgroups(&mut self) {
        for cgroup in self.kernel.cgroups.post_order() {
            let inited = std::mem::take(&mut self.kernel.cgroups.get_mut(cgroup).inited);
            if inited && self.has(Op::CgroupExit) {
                let addr = self.kernel.cgroups.addr(cgroup);
                self.call(Op::CgroupExit, None, &[addr]);
            }
        }
    }

    /// `scx_group_set_weight`. Callback: `cgroup_set_weight`, if the weight is another one.
    pub(crate) fn set_cgroup_weight(&mut self, cgroup: CgroupRef, weight: u32) -> Step {
        if self.kernel.cgroups.get(cgroup).weight == weight {
            return Ok(());
        }
        if self.has(Op::CgroupSetWeight) {
            let addr = self.kernel.cgroups.addr(cgroup);
            self.call(Op::CgroupSetWeight, None, &[addr, u64::from(weight)]);
        }
        self.kernel.cgroups.get_mut(cgroup).weight = weight;
        let tg = self.kernel.cgroups.task_group(cgroup);
        self.program.memory().store_u32(tg + field::TG_WEIGHT, weight)?;
        let cpu = self.kernel.this_cpu;
        self.kernel.emit(cpu, 0, EventKind::CgroupWeight { cgroup: cgroup.id(), weight });
        Ok(())
    }

    /// A file of a cgroup is written.
    pub(crate) fn set_cgroup(&mut self, cgroup: CgroupRef, control: Control) -> Step {
        match control {
            Control::Weight(weight) => self.set_cgroup_weight(cgroup, weight)?,
            Control::Max(max) => self.set_cgroup_bandwidth(cgroup, max),
            Control::Idle(idle) => self.set_cgroup_idle(cgroup, idle),
        }
        Ok(())
    }

    /// `scx_group_set_bandwidth`. Callback: `cgroup_set_bandwidth`, if anything is another value.
    fn set_cgroup_bandwidth(&mut self, cgroup: CgroupRef, max: Bandwidth) {
        let differs = self.kernel.cgroups.get(cgroup).max != max;
        if differs && self.has(Op::CgroupSetBandwidth) {
            let addr = self.kernel.cgroups.addr(cgroup);
            let quota_us = max.quota_us.unwrap_or(RUNTIME_INF);
            let args = [addr, max.period_us, quota_us, max.burst_us];
            self.call(Op::CgroupSetBandwidth, None, &args);
        }
        self.kernel.cgroups.get_mut(cgroup).max = max;
    }

    /// `scx_group_set_idle`. Callback: `cgroup_set_idle`, also if it is no change.
    fn set_cgroup_idle(&mut self, cgroup: CgroupRef, idle: bool) {
        if self.has(Op::CgroupSetIdle) {
            let addr = self.kernel.cgroups.addr(cgroup);
            self.call(Op::CgroupSetIdle, None, &[addr, u64::from(idle)]);
        }
        self.kernel.cgroups.get_mut(cgroup).idle = idle;
    }

    /// `cgroup_migrate` of tasks that move together, as the threads of a process do: all of them or none.
    ///
    /// Those that are there already are skipped (`cgroup_migrate_prepare_dst`).
    ///
    /// Callbacks (`scx_cgroup_can_attach`, then `sched_move_task` for one task after the other): `cgroup_prep_move` of
    /// all; when one is refused, `cgroup_cancel_move` of those before it, and no task moves. Then for each: if it is
    /// runnable `dequeue` (if the scheduler owned it), `stopping` (if it runs) and `quiescent`; `cgroup_move`; and
    /// `runnable`, `enqueue` or, if it runs, `running` again.
    pub(crate) fn move_to_cgroup(&mut self, slots: &[Slot], to: CgroupRef) -> Step {
        let elsewhere = |slot: &&Slot| self.kernel.task(**slot).cgroup != to;
        let slots: Vec<Slot> = slots.iter().filter(elsewhere).copied().collect();
        if !self.prepare_move(&slots, to) {
            self.kernel.counters.cgroup_moves_refused += 1;
            return Ok(());
        }
        for &slot in &slots {
            self.move_task(slot, to)?;
        }
        slots.into_iter().try_for_each(|slot| self.raise_attach(slot, to))
    }

    /// `scx_cgroup_can_attach`.
    fn prepare_move(&mut self, slots: &[Slot], to: CgroupRef) -> bool {
        let to_addr = self.kernel.cgroups.addr(to);
        for (index, &slot) in slots.iter().enumerate() {
            let task = self.kernel.task(slot);
            let (addr, from) = (task.addr, task.cgroup);
            if self.has(Op::CgroupPrepMove) {
                let from_addr = self.kernel.cgroups.addr(from);
                let args = [addr, from_addr, to_addr];
                let result = self.call(Op::CgroupPrepMove, Some(slot), &args) as i32;
                if result != 0 {
                    if !(-ERRNO_MAX..0).contains(&result) {
                        self.kernel.error(format!(
                            "ops.cgroup_prep_move() returned an invalid errno {result}"
                        ));
                    }
                    self.cancel_move(&slots[..index], to_addr);
                    return false;
                }
            }
            self.kernel.task_mut(slot).moving_from = Some(from);
        }
        true
    }

    fn cancel_move(&mut self, slots: &[Slot], to_addr: u64) {
        for &slot in slots {
            let Some(from) = self.kernel.task_mut(slot).moving_from.take() else { continue };
            if self.has(Op::CgroupCancelMove) {
                let (addr, from) = (self.kernel.task(slot).addr, self.kernel.cgroups.addr(from));
                self.call(Op::CgroupCancelMove, Some(slot), &[addr, from, to_addr]);
            }
        }
    }

    /// `sched_move_task` and `scx_cgroup_move_task`.
    fn move_task(&mut self, slot: Slot, to: CgroupRef) -> Step {
        let task = self.kernel.task(slot);
        let (cpu, queued, addr, id) = (task.cpu, task.queued, task.addr, task.id);
        let runs = self.kernel.runs(slot);
        if queued {
            self.dequeue_task(slot, deq::SAVE | deq::MOVE | deq::NOCLOCK)?;
        }
        let task = self.kernel.task_mut(slot);
        task.cgroup = to;
        let moved_from = task.moving_from.take();
        self.kernel.publish_cgroup(self.program.memory(), slot)?;
        if let Some(from) = moved_from
            && self.has(Op::CgroupMove)
        {
            let args = [addr, self.kernel.cgroups.addr(from), self.kernel.cgroups.addr(to)];
            self.call(Op::CgroupMove, Some(slot), &args);
        }
        if queued {
            let flags = enq::RESTORE | enq::MOVE | enq::NOCLOCK;
            let sticky = if runs { Sticky::Here } else { Sticky::No };
            self.enqueue_task(slot, flags, sticky)?;
        }
        if runs {
            self.set_next(slot)?;
            self.kernel.resched_curr(cpu);
        }
        self.kernel.run_deferred(self.program.memory(), cpu)?;
        if let Some(from) = moved_from {
            let kind = EventKind::CgroupMove { task: id, from: from.id(), to: to.id() };
            self.kernel.emit(self.kernel.this_cpu, 0, kind);
        }
        Ok(())
    }
}
