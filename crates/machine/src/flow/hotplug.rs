//! CPUs that come and go: `sched_cpu_activate`, `sched_cpu_deactivate` (`kernel/sched/core.c`, 7.2), and what sched_ext
//! does then (`handle_hotplug`, `rq_offline_scx`).
//!
//! A CPU goes when its stopper thread gets it, and is empty at that instant. A kernel has the tasks run there until
//! each of them is pushed off (`balance_push`); here they are pushed off at once, without `running` and `stopping`.

use fairground_trace::TaskState;

use super::enqueue::Sticky;
use super::{Machine, Step};
use crate::ExitKind;
use crate::abi::{ECODE_ACT_RESTART, ECODE_RSN_HOTPLUG, deq, enq};
use crate::kernel::{Hotplug, Slot};
use crate::op::Op;
use crate::real_time::Taker;

impl Machine {
    /// A CPU shall come or go, once those asked for before have.
    pub(crate) fn request_hotplug(&mut self, change: Hotplug) -> Step {
        self.kernel.online.requests.push_back(change);
        match self.kernel.online.requests.len() {
            1 => self.serve_hotplug(),
            _ => Ok(()),
        }
    }

    /// The requests, up to the first one that has to wait for a CPU.
    fn serve_hotplug(&mut self) -> Step {
        while let Some(change) = self.kernel.online.requests.front().copied() {
            if self.kernel.is_online(change.cpu) != change.online {
                if !change.online {
                    self.kernel.rq(change.cpu).stop_requested = true;
                    self.kernel.resched_curr(change.cpu);
                    return Ok(());
                }
                self.on_cpu(change.cpu, |machine| machine.come_online(change))?;
            }
            self.kernel.online.requests.pop_front();
        }
        Ok(())
    }

    /// `sched_cpu_activate`, and the pass after it. Callbacks: `update_idle` of the CPU that wakes up, `cpu_online`,
    /// then those of a pass.
    fn come_online(&mut self, change: Hotplug) -> Step {
        let meter = self.meter();
        self.kernel.book_idle(change.cpu);
        self.update_idle(change.cpu, false);
        self.kernel.set_online(self.program.memory(), change)?;
        self.handle_hotplug(change);
        self.kernel.tell_hotplug(change);
        self.schedule_after_stop(change.cpu, None, meter)
    }

    /// `sched_cpu_deactivate` and `sched_cpu_dying`, by the stopper of the executing CPU. Callbacks: those of what ran
    /// there (`stopping`, `cpu_release`, or `update_idle`); of each task that waits outside of the CPU's own queue
    /// `dequeue`, `quiescent`, `runnable`; `cpu_offline`; of each task `enqueue` on another CPU; `update_idle` of the
    /// CPU that rests.
    #[cold]
    #[inline(never)]
    pub(crate) fn go_offline(&mut self, cpu: u32) -> Step {
        let change = Hotplug { cpu, online: false };
        let meter = self.meter();
        let prev = self.kernel.cpus[cpu as usize].curr();
        self.kernel.rq(cpu).stop_requested = false;
        self.kernel.set_online(self.program.memory(), change)?;
        self.make_way(cpu, prev, Taker::Stop)?;
        self.kernel.leave_cpu(self.program.memory(), prev, TaskState::Runnable)?;
        self.kernel.book_idle(cpu);
        let now_ns = self.kernel.clock.now_ns();
        self.kernel.rq(cpu).run(None, now_ns);
        self.gather_tasks(cpu)?;
        self.handle_hotplug(change);
        for slot in self.tasks_on(cpu) {
            let target = self.select_fallback(slot)?;
            self.move_queued_task(slot, target)?;
        }
        self.kernel.silence(cpu);
        self.update_idle(cpu, true);
        let insns = self.book(crate::Path::Switch, meter);
        self.enter_next(cpu, (prev, TaskState::Runnable), None, insns)?;
        self.kernel.tell_hotplug(change);
        self.kernel.online.requests.pop_front();
        self.serve_hotplug()?;
        self.kernel.this_cpu = cpu;
        Ok(())
    }

    /// `rq_offline_scx`: the tasks that the scheduler has of a CPU go into the CPU's own queue, the last one that
    /// became runnable first.
    fn gather_tasks(&mut self, cpu: u32) -> Step {
        let local = self.kernel.cpus[cpu as usize].local;
        for slot in self.tasks_on(cpu).into_iter().rev() {
            let is_rt = self.kernel.task(slot).rt.is_rt();
            if is_rt || self.kernel.queues.queue_of(slot.0) == Some(local) {
                continue;
            }
            self.dequeue_task(slot, deq::SAVE | deq::MOVE | deq::NOCLOCK)?;
            self.enqueue_task(slot, enq::RESTORE | enq::MOVE | enq::NOCLOCK, Sticky::No)?;
        }
        Ok(())
    }

    /// The runnable tasks of a CPU, the one that became runnable first before the others.
    fn tasks_on(&self, cpu: u32) -> Vec<Slot> {
        let task = |slot: Slot| self.kernel.task(slot);
        let is_here = |slot: &Slot| {
            task(*slot).is_scheduled() && task(*slot).queued && task(*slot).cpu == cpu
        };
        let mut here: Vec<Slot> = self.kernel.tasks.slots().filter(is_here).collect();
        here.sort_by_key(|slot| task(*slot).runnable_at_ns);
        here
    }

    /// `select_fallback_rq`: a CPU for a task whose CPU it may not use. Where none of those on which it may run is
    /// online, it may run on all from now on. Callbacks then: those of [`Machine::allow`].
    pub(crate) fn select_fallback(&mut self, slot: Slot) -> Step<u32> {
        if let Some(cpu) = self.kernel.fallback_cpu(slot) {
            return Ok(cpu);
        }
        let all = self.kernel.all_cpus;
        self.allow(slot, &all)?;
        Ok(self.kernel.fallback_cpu(slot).unwrap_or(0))
    }

    /// `handle_hotplug`. Callback: `cpu_online` or `cpu_offline`; a scheduler without it has to leave.
    fn handle_hotplug(&mut self, Hotplug { cpu, online }: Hotplug) {
        let op = if online { Op::CpuOnline } else { Op::CpuOffline };
        if self.has(op) {
            let told = self.kernel.cids.told(cpu);
            self.call(op, None, &[told]);
            return;
        }
        let word = if online { "online" } else { "offline" };
        self.leave_for_hotplug(format!("cpu {cpu} going {word}, exiting scheduler"));
    }

    /// `check_hotplug_seq`: CPUs came or went since the loader opened the object.
    pub(crate) fn check_hotplug_seq(&mut self) {
        let (expected, actual) = (self.policy.ops.hotplug_seq, self.kernel.online.seq);
        if expected != 0 && expected != actual {
            self.leave_for_hotplug(format!(
                "expected hotplug seq {expected} did not match actual {actual}"
            ));
        }
    }

    fn leave_for_hotplug(&mut self, message: String) {
        let code = (ECODE_ACT_RESTART | ECODE_RSN_HOTPLUG) as i64;
        self.kernel.exit(ExitKind::UnregisteredByKernel, code, message);
    }
}
