//! RCU's thread (`rcu_gp_kthread`, `kernel/rcu/tree.c`): the one kernel thread that a process which comes or goes sets to work.
//!
//! What a process leaves behind is given back when a grace period is over. The thread that sees to that sleeps on a timer of
//! the tick: it wakes up at the tick after the first such process, looks around, and again at the next. Where processes come and
//! go all the time it wakes up at each tick, and takes the CPU from whoever has it. To the scheduler it is a task as any other.

use fairground_workload::{Op, Program, Queue, Workload};

use super::housekeeping::other_task;
use super::{Machine, Step};
use crate::CostModel;
use crate::events::Slot as EventSlot;
use crate::kernel::agenda;

/// Its name.
const NAME: &str = "rcu_preempt";
/// Ticks at which the thread wakes up for a grace period.
const TICKS_PER_GRACE_PERIOD: u32 = 2;

/// The thread, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rcu {
    /// The queue on which it waits, beyond those of the workload.
    queue: u32,
    /// Wake-ups that the present grace period still needs.
    left: u32,
}

/// The workload with the thread in it, where the costs say that it works and something forks.
pub(crate) fn with_thread(workload: &Workload, cost: &CostModel) -> (Workload, Option<Rcu>) {
    let mut workload = workload.clone();
    if cost.rcu_ns == 0 || !workload.tasks.iter().any(|task| forks(&task.program)) {
        return (workload, None);
    }
    let queue = workload.queues.len();
    let turn =
        vec![Op::Receive(queue, 1), Op::Run(fairground_workload::Duration::Fixed(cost.rcu_ns))];
    workload.queues.push(Queue { name: format!("other/{NAME}"), capacity: None, initial: 0 });
    workload.tasks.push(other_task(NAME, None, vec![Op::Loop(None, turn)]));
    (workload, Some(Rcu { queue: queue as u32, left: 0 }))
}

fn forks(program: &Program) -> bool {
    program.iter().any(|op| match op {
        Op::Fork(_) => true,
        Op::Loop(_, body) => forks(body),
        _ => false,
    })
}

impl Machine {
    /// A process came or went (`call_rcu`): a grace period has to pass from now on.
    pub(crate) fn needs_grace_period(&mut self) {
        let Some(rcu) = &mut self.rcu else { return };
        let armed = std::mem::replace(&mut rcu.left, TICKS_PER_GRACE_PERIOD) > 0;
        if !armed {
            self.arm_rcu();
        }
    }

    fn arm_rcu(&mut self) {
        let (now, period) = (self.kernel.now_ns, self.kernel.tick_ns);
        let at = (now / period + 1) * period;
        self.kernel.events.arm(EventSlot::Machine(agenda::RCU), at);
    }

    /// The thread's timer (`process_timeout`), in the tick of the CPU where the thread went to sleep; an idle CPU has that tick
    /// for it.
    pub(crate) fn rcu_event(&mut self) -> Step {
        let now = self.kernel.now_ns;
        if self.tick_armed && self.tick_due_ns == now {
            self.kernel.events.arm(EventSlot::Machine(agenda::RCU), now);
            return Ok(());
        }
        let Some(rcu) = &mut self.rcu else { return Ok(()) };
        rcu.left -= 1;
        let (queue, more) = (rcu.queue, rcu.left > 0);
        if more {
            self.arm_rcu();
        }
        // Who still works on the last wake-up looks around without being woken.
        let Some(thread) = self.actors.post(queue) else { return Ok(()) };
        let Some(slot) = self.slot_of(thread) else { return Ok(()) };
        let cpu = self.kernel.task(slot).cpu;
        self.on_cpu(cpu, |machine| {
            if machine.kernel.cpus[cpu as usize].is_idle() {
                machine.wake_from_idle(cpu);
                let ns = machine.kernel.cost.tick_ns;
                machine.kernel.charge(cpu, ns);
            }
            machine.in_interrupt(|machine| machine.wake_up(slot, false))?;
            Ok(())
        })
    }
}
