//! Dispatching: from a scheduler's decision to a task in a dispatch queue.

use fairground_bpf::{Memory, Trap};

use super::{DirectDispatch, Kernel, OpsState, Slot};
use crate::abi::{dsq, enq};
use crate::dsq::DsqRef;

/// One entry of the dispatch buffer (`struct scx_dsp_buf_ent`).
#[derive(Clone, Copy, Debug)]
struct DispatchEntry {
    slot: Slot,
    /// The task's `qseq` at that time; 0: the scheduler did not own it.
    qseq: u64,
    dsq_id: u64,
    enq_flags: u64,
}

/// The dispatch buffer (`scx_dsp_ctx`) of the CPU in `ops.dispatch()`.
#[derive(Debug)]
pub(crate) struct DispatchBuffer {
    entries: Vec<DispatchEntry>,
    capacity: u32,
    /// Tasks that the current call of `ops.dispatch()` has dispatched or moved.
    dispatched: u32,
}

impl DispatchBuffer {
    /// A buffer of so many entries (`dispatch_max_batch`).
    pub(crate) fn new(capacity: u32) -> DispatchBuffer {
        DispatchBuffer { entries: Vec::with_capacity(capacity as usize), capacity, dispatched: 0 }
    }

    /// `ops.dispatch()` is called.
    pub(crate) fn begin(&mut self) {
        self.dispatched = 0;
    }

    /// Whether that call has dispatched or moved anything so far.
    pub(crate) fn has_dispatched(&self) -> bool {
        self.dispatched > 0
    }

    /// A task was moved to the CPU's local queue at once.
    pub(crate) fn count_move(&mut self) {
        self.dispatched += 1;
    }

    /// Entries that are free (`scx_bpf_dispatch_nr_slots`).
    pub(crate) fn free(&self) -> u64 {
        u64::from(self.capacity) - self.entries.len() as u64
    }

    /// Takes the last entry back (`scx_bpf_dispatch_cancel`). False: there is none.
    pub(crate) fn cancel(&mut self) -> bool {
        self.entries.pop().is_some()
    }
}

impl Kernel {
    /// `scx_dispatch_commit`: within an enqueue the decision for that task, within `ops.dispatch()` an entry of the
    /// buffer.
    pub(crate) fn dispatch_commit(&mut self, slot: Slot, dsq_id: u64, enq_flags: u64) {
        match self.direct {
            DirectDispatch::Open(subject) if subject == slot => {
                self.direct = DirectDispatch::Done;
                self.task_mut(slot).ddsp = Some((dsq_id, enq_flags));
            }
            DirectDispatch::Open(subject) => {
                self.direct = DirectDispatch::Done;
                let (subject, other) = (self.describe(subject), self.describe(slot));
                self.error(format!(
                    "scheduling for {subject} but trying to direct-dispatch {other}"
                ));
            }
            DirectDispatch::Done => {
                let task = self.describe(slot);
                self.error(format!("{task} already direct-dispatched"));
            }
            DirectDispatch::Closed => {
                if self.buffer.free() == 0 {
                    self.error("dispatch buffer overflow");
                    return;
                }
                let task = self.task(slot);
                let qseq = if task.ops_state == OpsState::Queued { task.qseq } else { 0 };
                self.buffer.entries.push(DispatchEntry { slot, qseq, dsq_id, enq_flags });
            }
        }
    }

    /// `find_dsq_for_dispatch`: the queue of an identifier; a wrong one ejects the scheduler and means the global
    /// queue.
    pub(crate) fn dsq_for_dispatch(&mut self, cpu: u32, dsq_id: u64, slot: Slot) -> DsqRef {
        if dsq_id == dsq::LOCAL {
            return DsqRef::Local(cpu);
        }
        let global = DsqRef::Global(self.topology.node_of(self.task(slot).cpu));
        if dsq_id & dsq::LOCAL_ON == dsq::LOCAL_ON {
            let target = i64::from((dsq_id & dsq::LOCAL_CPU_MASK) as u32 as i32);
            return match self.named_cpu(target, "in SCX_DSQ_LOCAL_ON dispatch verdict") {
                Some(cpu) => DsqRef::Local(cpu),
                None => global,
            };
        }
        if dsq_id == dsq::GLOBAL {
            return global;
        }
        match self.queues.user(dsq_id) {
            Some(dsq) => DsqRef::User(dsq, dsq_id),
            None => {
                let task = self.describe(slot);
                self.error(format!("non-existent DSQ {dsq_id:#x} for {task}"));
                global
            }
        }
    }

    /// `direct_dispatch`: carries out what `ops.select_cpu()` or `ops.enqueue()` decided. The local queue of another
    /// CPU has to wait until the run queue is unlocked: [`Kernel::run_deferred`].
    pub(crate) fn direct_dispatch(
        &mut self,
        mem: &Memory,
        slot: Slot,
        enq_flags: u64,
    ) -> Result<(), Trap> {
        let Some((dsq_id, flags)) = self.task(slot).ddsp else { return Ok(()) };
        let cpu = self.task(slot).cpu;
        let flags = flags | enq_flags;
        let target = self.dsq_for_dispatch(cpu, dsq_id, slot);
        self.task_mut(slot).ops_state = OpsState::None;
        if matches!(target, DsqRef::Local(other) if other != cpu) {
            self.task_mut(slot).ddsp = Some((dsq_id, flags));
            self.rq(cpu).defer(slot);
            return Ok(());
        }
        self.task_mut(slot).ddsp = None;
        self.dispatch_enqueue(mem, target, slot, flags)
    }

    /// `process_ddsp_deferred_locals`: direct dispatches to local queues of other CPUs.
    #[inline(always)]
    pub(crate) fn run_deferred(&mut self, mem: &Memory, cpu: u32) -> Result<(), Trap> {
        match self.cpus[cpu as usize].has_deferred() {
            true => self.run_all_deferred(mem, cpu),
            false => Ok(()),
        }
    }

    fn run_all_deferred(&mut self, mem: &Memory, cpu: u32) -> Result<(), Trap> {
        while let Some(slot) = self.rq(cpu).next_deferred() {
            let Some((dsq_id, flags)) = self.task_mut(slot).ddsp.take() else { continue };
            if let DsqRef::Local(target) = self.dsq_for_dispatch(cpu, dsq_id, slot) {
                self.dispatch_to_local(mem, cpu, target, slot, flags)?;
            } else {
                let global = DsqRef::Global(self.topology.node_of(cpu));
                self.dispatch_enqueue(mem, global, slot, flags)?;
            }
        }
        Ok(())
    }

    /// `dispatch_to_local_dsq`: into the local queue of `target`, on behalf of `cpu`. Off the task's affinity it ejects
    /// the scheduler and leaves the task in the global queue.
    pub(crate) fn dispatch_to_local(
        &mut self,
        mem: &Memory,
        cpu: u32,
        target: u32,
        slot: Slot,
        enq_flags: u64,
    ) -> Result<(), Trap> {
        let from = self.task(slot).cpu;
        if from == target && cpu == target {
            return self.dispatch_enqueue(mem, DsqRef::Local(target), slot, enq_flags);
        }
        if from != target && !self.can_run_remote(slot, target, true) {
            let global = DsqRef::Global(self.topology.node_of(from));
            return self.dispatch_enqueue(mem, global, slot, enq_flags);
        }
        self.task_mut(slot).ops_state = OpsState::None;
        if from == target {
            self.dispatch_enqueue(mem, DsqRef::Local(target), slot, enq_flags)?;
        } else {
            self.move_remote_to_local(mem, slot, enq_flags, target)?;
        }
        if self.cpus[target as usize].is_idle() && !self.cpus[target as usize].in_balance {
            self.resched_curr(target);
        }
        Ok(())
    }

    /// `task_can_run_on_remote_rq`: whether the scheduler may move a task to a CPU; with `report`, a wrong CPU ejects
    /// it, and one that is offline is counted.
    pub(crate) fn can_run_remote(&mut self, slot: Slot, cpu: u32, report: bool) -> bool {
        let allowed = self.task(slot).allows(cpu);
        if !allowed && report {
            let task = self.describe(slot);
            self.error(format!("SCX_DSQ_LOCAL[_ON] target CPU {cpu} not allowed for {task}"));
        }
        let online = self.is_online(cpu);
        self.counters.local_dispatches_offline += u64::from(allowed && !online && report);
        allowed && online
    }

    /// `move_remote_task_to_local_dsq`: deactivate there, activate here. The task is between run queues meanwhile, so
    /// no callback is called.
    pub(crate) fn move_remote_to_local(
        &mut self,
        mem: &Memory,
        slot: Slot,
        enq_flags: u64,
        cpu: u32,
    ) -> Result<(), Trap> {
        let from = self.task(slot).cpu;
        self.rq(from).sub_running(mem)?;
        self.set_task_cpu(mem, slot, cpu)?;
        self.rq(cpu).add_running(mem)?;
        self.task_mut(slot).ddsp = None;
        self.dispatch_enqueue(mem, DsqRef::Local(cpu), slot, enq_flags)
    }

    /// `finish_dispatch`: a buffered decision becomes effective, if the task is still the scheduler's.
    fn finish_dispatch(
        &mut self,
        mem: &Memory,
        cpu: u32,
        entry: DispatchEntry,
    ) -> Result<(), Trap> {
        let task = self.task(entry.slot);
        if task.ops_state != OpsState::Queued || entry.qseq != task.qseq {
            self.counters.stale_dispatches += 1;
            return Ok(());
        }
        self.task_mut(entry.slot).ops_state = OpsState::Dispatching;
        let target = self.dsq_for_dispatch(cpu, entry.dsq_id, entry.slot);
        self.task_mut(entry.slot).ops_state = OpsState::None;
        match target {
            DsqRef::Local(to) => self.dispatch_to_local(mem, cpu, to, entry.slot, entry.enq_flags),
            other => self.dispatch_enqueue(mem, other, entry.slot, entry.enq_flags),
        }
    }

    /// `flush_dispatch_buf`.
    pub(crate) fn flush_dispatch_buffer(&mut self, mem: &Memory, cpu: u32) -> Result<(), Trap> {
        for at in 0..self.buffer.entries.len() {
            let entry = self.buffer.entries[at];
            self.finish_dispatch(mem, cpu, entry)?;
        }
        self.buffer.dispatched += self.buffer.entries.len() as u32;
        self.buffer.entries.clear();
        Ok(())
    }

    /// `local_dsq_post_enq`: a task came into a local queue. With `SCX_ENQ_PREEMPT` what runs there loses its slice.
    pub(crate) fn local_post_enqueue(
        &mut self,
        mem: &Memory,
        cpu: u32,
        slot: Slot,
        enq_flags: u64,
    ) -> Result<(), Trap> {
        if self.uses_immed || enq_flags & enq::IMMED != 0 {
            self.comes_at_once(mem, cpu, slot, enq_flags)?;
        }
        self.leave_custody(slot);
        let rq = &self.cpus[cpu as usize];
        if rq.in_balance {
            return Ok(());
        }
        match rq.curr() {
            None => self.resched_curr(cpu),
            Some(curr)
                if enq_flags & enq::PREEMPT != 0 && curr != slot && !self.task(curr).rt.is_rt() =>
            {
                self.task(curr).set_slice(mem, 0)?;
                self.resched_curr(cpu);
            }
            Some(_) => {}
        }
        Ok(())
    }
}
