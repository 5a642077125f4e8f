//! `SCX_ENQ_IMMED` (7.1): a task in a local queue runs at once, or goes to the scheduler again; and the queues whose
//! tasks go to it again.

use fairground_bpf::{Memory, Trap};

use super::{Kernel, Slot};
use crate::abi::{dsq, enq, ent};
use crate::dsq::DsqRef;

/// A queue whose tasks go to the scheduler again once the callback is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reenqueue {
    pub(crate) queue: DsqRef,
    /// All of its tasks (`SCX_REENQ_ANY`), not only those that were to run at once.
    pub(crate) any: bool,
}

/// Why a task goes to the scheduler again (`SCX_TASK_REENQ_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Again {
    /// It does not.
    No = 0,
    /// A kernel function was called.
    Asked = 1,
    /// It could not run at once.
    NotAtOnce = 2,
    /// It ran at once, and lost the CPU.
    Preempted = 3,
}

impl Again {
    /// Its bits in `p->scx.flags`.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        (self as u32) << ent::REENQ_REASON_SHIFT
    }
}

impl Kernel {
    /// Tasks of a queue go to the scheduler again.
    pub(crate) fn ask_again(&mut self, queue: DsqRef, any: bool) {
        match self.reenqueues.iter_mut().find(|known| known.queue == queue) {
            Some(known) => known.any |= any,
            None => self.reenqueues.push(Reenqueue { queue, any }),
        }
    }

    /// `scx_vet_enq_flags`: the flags of an insertion into a queue; `None`: the scheduler is ejected for them.
    pub(crate) fn vet_enq_flags(&mut self, dsq_id: u64, enq_flags: u64) -> Option<u64> {
        let is_local = dsq_id == dsq::LOCAL || dsq_id & dsq::LOCAL_ON == dsq::LOCAL_ON;
        if enq_flags & enq::IMMED != 0 && !is_local {
            self.error(format!("SCX_ENQ_IMMED on a non-local DSQ 0x{dsq_id:x}"));
            return None;
        }
        Some(if self.always_immed && is_local { enq_flags | enq::IMMED } else { enq_flags })
    }

    /// `rq_is_open`: whether a task that comes into the local queue of a CPU can run there at once.
    pub(crate) fn is_open(&self, cpu: u32, enq_flags: u64) -> bool {
        let rq = &self.cpus[cpu as usize];
        let runs_rt = rq.curr().is_some_and(|slot| self.task(slot).rt.is_rt());
        let taken = self.rt.is_used() && (runs_rt || self.rt.first(cpu).is_some());
        !taken && (rq.is_idle() || rq.in_balance || enq_flags & enq::PREEMPT != 0)
    }

    /// `dsq_inc_nr` of a local queue: a task came into it, or one came that was to run at once before.
    #[inline(never)]
    pub(crate) fn comes_at_once(
        &mut self,
        mem: &Memory,
        cpu: u32,
        slot: Slot,
        enq_flags: u64,
    ) -> Result<(), Trap> {
        if enq_flags & enq::IMMED != 0 {
            self.uses_immed = true;
            self.task_mut(slot).immed = true;
            self.task(slot).publish_flags(mem, &self.states)?;
        }
        let waits = self.queues.len(self.cpus[cpu as usize].local) > 1;
        if self.task(slot).immed && (waits || !self.is_open(cpu, enq_flags)) {
            self.ask_again(DsqRef::Local(cpu), false);
        }
        Ok(())
    }

    /// The end of `balance_one`: tasks that were to run at once wait behind others.
    pub(crate) fn look_for_immed(&mut self, cpu: u32) {
        let local = self.cpus[cpu as usize].local;
        if self.queues.len(local) < 2 {
            return;
        }
        let mut at = self.queues.first(local);
        while let Some(number) = at {
            if self.task(Slot(number)).immed {
                return self.ask_again(DsqRef::Local(cpu), false);
            }
            at = self.queues.next(number);
        }
    }

    /// `local_task_should_reenq` for the tasks of a local queue in their order, and all tasks of another queue: those
    /// that go to the scheduler again, and why.
    pub(crate) fn tasks_again(&mut self, ask: Reenqueue) -> Vec<(Slot, Again)> {
        let dsq = self.dsq_of(ask.queue);
        let local = match ask.queue {
            DsqRef::Local(cpu) => Some(cpu),
            _ => None,
        };
        let open = local.is_none_or(|cpu| self.is_open(cpu, 0));
        let (mut found, mut is_first) = (Vec::new(), true);
        let mut at = self.queues.first(dsq);
        while let Some(number) = at {
            let slot = Slot(number);
            let keeps = is_first && open;
            if local.is_some() && self.task(slot).immed && !keeps {
                self.counters.reenqueued_immed += 1;
                found.push((slot, Again::NotAtOnce));
            } else if ask.any {
                found.push((slot, Again::Asked));
            }
            is_first = false;
            at = self.queues.next(number);
        }
        found
    }
}
