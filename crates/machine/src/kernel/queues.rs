//! Dispatch queues: putting tasks in, taking them out, moving them on.

use fairground_bpf::{Memory, Trap};

use super::{Kernel, Slot};
use crate::abi::{dsq as dsq_id, enq};
use crate::check::Invariant;
use crate::dsq::DsqRef;
use crate::dsq::{Dsq, DsqError};

impl Kernel {
    pub(crate) fn dsq_of(&self, target: DsqRef) -> Dsq {
        match target {
            DsqRef::Local(cpu) => self.cpus[cpu as usize].local,
            DsqRef::Global(node) => self.queues.global(node),
            DsqRef::User(dsq, _) => dsq,
        }
    }

    /// `dispatch_enqueue`: puts a task into a queue, by vtime with [`enq::DSQ_PRIQ`], else at the tail, or at the head
    /// with `SCX_ENQ_HEAD` or `SCX_ENQ_PREEMPT`. A built-in queue has no order by vtime, and a queue keeps to one
    /// order: a scheduler that breaks that is ejected.
    pub(crate) fn dispatch_enqueue(
        &mut self,
        mem: &Memory,
        target: DsqRef,
        slot: Slot,
        mut enq_flags: u64,
    ) -> Result<(), Trap> {
        self.touch(slot);
        let dsq = self.dsq_of(target);
        let id = match target {
            DsqRef::User(_, id) => id,
            DsqRef::Local(_) => dsq_id::LOCAL,
            DsqRef::Global(_) => dsq_id::GLOBAL,
        };
        if enq_flags & enq::DSQ_PRIQ != 0 && id & dsq_id::FLAG_BUILTIN != 0 {
            self.error("cannot use vtime ordering for built-in DSQs");
            enq_flags &= !enq::DSQ_PRIQ;
        }
        if self.check && self.queues.queue_of(slot.0).is_some() {
            let what = "it is in a dispatch queue and goes into another".to_owned();
            self.violate(Invariant::TwoPlaces, Some(slot), what);
        }
        let placed = if enq_flags & enq::DSQ_PRIQ != 0 {
            let vtime = self.task(slot).vtime(mem)?;
            self.queues.insert_vtime(dsq, slot.0, vtime)
        } else if enq_flags & (enq::HEAD | enq::PREEMPT) != 0 {
            self.queues.push_front(dsq, slot.0)
        } else {
            self.queues.push_back(dsq, slot.0)
        };
        if let Err(mixed) = placed {
            self.error(format!("DSQ ID 0x{id:016x} {mixed}"));
        }
        match target {
            DsqRef::Local(cpu) => return self.local_post_enqueue(mem, cpu, slot, enq_flags),
            DsqRef::Global(_) => self.leave_custody(slot),
            DsqRef::User(..) => self.enter_custody(slot),
        }
        Ok(())
    }

    /// The scheduler has a task from now on: `ops.dequeue()` is called when it leaves.
    #[inline]
    pub(crate) fn enter_custody(&mut self, slot: Slot) {
        if self.tells_dequeue {
            self.task_mut(slot).in_custody = true;
        }
    }

    /// `task_leave_custody`: a task is where it needs the scheduler no more. `ops.dequeue()` is called before the next
    /// callback, and at the latest at the end of the step.
    #[inline]
    pub(crate) fn leave_custody(&mut self, slot: Slot) {
        if self.tells_dequeue && std::mem::take(&mut self.task_mut(slot).in_custody) {
            self.left_custody.push_back((slot, self.this_cpu));
        }
    }

    /// `dispatch_dequeue`: takes a task off its queue, or off the list of those on their way to another CPU's local
    /// queue.
    #[inline]
    pub(crate) fn dispatch_dequeue(&mut self, slot: Slot) {
        self.touch(slot);
        if self.queues.remove(slot.0).is_none() && self.task(slot).ddsp.is_some() {
            let cpu = self.task(slot).cpu;
            self.rq(cpu).forget_deferred(slot);
        }
    }

    /// `consume_dispatch_q`: moves the first task of a queue that may run on a CPU into that CPU's local queue.
    pub(crate) fn consume(
        &mut self,
        mem: &Memory,
        cpu: u32,
        dsq: Dsq,
        enq_flags: u64,
    ) -> Result<bool, Trap> {
        let mut at = self.queues.first(dsq);
        while let Some(number) = at {
            let slot = Slot(number);
            if self.task(slot).cpu == cpu {
                self.queues.remove(number);
                self.move_local_to_local(mem, slot, enq_flags, cpu)?;
                return Ok(true);
            }
            if self.can_run_remote(slot, cpu, false) {
                self.queues.remove(number);
                self.move_remote_to_local(mem, slot, enq_flags, cpu)?;
                return Ok(true);
            }
            at = self.queues.next(number);
        }
        Ok(false)
    }

    /// `consume_global_dsq`: from the global queue of the CPU's node.
    pub(crate) fn consume_global(&mut self, mem: &Memory, cpu: u32) -> Result<bool, Trap> {
        let dsq = self.queues.global(self.topology.node_of(cpu));
        if self.queues.is_empty(dsq) { Ok(false) } else { self.consume(mem, cpu, dsq, 0) }
    }

    /// `move_local_task_to_local_dsq`: the task's run queue is the CPU's already.
    fn move_local_to_local(
        &mut self,
        mem: &Memory,
        slot: Slot,
        enq_flags: u64,
        cpu: u32,
    ) -> Result<(), Trap> {
        self.touch(slot);
        let local = self.cpus[cpu as usize].local;
        let placed = if enq_flags & (enq::HEAD | enq::PREEMPT) != 0 {
            self.queues.push_front(local, slot.0)
        } else {
            self.queues.push_back(local, slot.0)
        };
        debug_assert!(placed.is_ok(), "local queues hold FIFO tasks only");
        self.local_post_enqueue(mem, cpu, slot, enq_flags)
    }

    /// `move_task_between_dsqs`: moves a task that is in a non-local queue into another.
    pub(crate) fn move_between(
        &mut self,
        mem: &Memory,
        slot: Slot,
        target: DsqRef,
        enq_flags: u64,
    ) -> Result<(), Trap> {
        let from = self.task(slot).cpu;
        let target = match target {
            DsqRef::Local(cpu) if cpu != from && !self.can_run_remote(slot, cpu, true) => {
                DsqRef::Global(self.topology.node_of(from))
            }
            other => other,
        };
        if let (true, DsqRef::Local(cpu)) = (self.picks_in_order, target) {
            self.check_pick_order(slot, cpu);
        }
        self.queues.remove(slot.0);
        match target {
            DsqRef::Local(cpu) if cpu == from => {
                self.move_local_to_local(mem, slot, enq_flags, cpu)
            }
            DsqRef::Local(cpu) => self.move_remote_to_local(mem, slot, enq_flags, cpu),
            other => self.dispatch_enqueue(mem, other, slot, enq_flags),
        }
    }

    /// Whether a task that is about to leave its queue for a CPU is the first one there that may run on it.
    fn check_pick_order(&mut self, slot: Slot, cpu: u32) {
        let Some(dsq) = self.queues.queue_of(slot.0) else { return };
        if !self.queues.is_by_vtime(slot.0) {
            return;
        }
        let mut at = self.queues.first(dsq);
        while let Some(number) = at.filter(|number| !self.task(Slot(*number)).allows(cpu)) {
            at = self.queues.next(number);
        }
        if at != Some(slot.0) {
            let first = at.map_or("no task".to_owned(), |number| self.describe(Slot(number)));
            let what =
                format!("it is picked for CPU {cpu} before {first}, which stands further left");
            self.violate(Invariant::PickOrder, Some(slot), what);
        }
    }

    /// `destroy_dsq`: an empty queue goes; one that is in use ejects the scheduler; a missing one is ignored.
    pub(crate) fn destroy_dsq(&mut self, id: u64) {
        let Some(dsq) = self.queues.user(id) else { return };
        let queued = self.queues.len(dsq);
        if let Err(DsqError::InUse) = self.queues.destroy_user(id) {
            self.error(format!("attempting to destroy in-use dsq 0x{id:016x} (nr={queued})"));
        }
    }

    /// A step touched a task in a way that [`Kernel::task_mut`] does not see.
    #[inline]
    fn touch(&mut self, slot: Slot) {
        if self.check {
            self.checker.touch(slot.0);
        }
    }
}
