//! Tasks that bypass dispatch, above all on a CPU that goes on or off line. The kernel runs tasks there before it is
//! on line (`scx_rq_online`, Linux 6.12), and takes them from the CPU's own queue, in the order of their arrival: it
//! calls neither `enqueue` nor `dispatch`. A scheduler that insists on a pick there gets none.

use crate::rig::US;
use crate::rig::callbacks::{Callbacks, Task, load};
use fairground_policies::Policy;

/// `MAX_CPUS`: the number of a queue is that of its CPU below this, and its index above.
const MAX_CPUS: u64 = 1024;

/// `fifo` has one queue for all CPUs, and has no callbacks for tasks.
fn with_queues_per_cpu() -> impl Iterator<Item = &'static Policy> {
    fairground_policies::all().iter().filter(|policy| policy.name != "fifo")
}

/// Two runnable tasks on such a CPU.
fn two_tasks(scheduler: &str) -> (Callbacks, [Task; 2]) {
    let mut kernel = Callbacks::new(&load(scheduler), &[]);
    let tasks = [kernel.task(0), kernel.task(0)];
    for task in tasks {
        kernel.wake_offline(task);
    }
    (kernel, tasks)
}

/// Each preemption is a switch to the next task, so one at each switch leaves no time to any task. A single one is
/// harmless. On a CPU on line the kernel does the same with tasks that must not migrate at present: a better one that
/// waits for dispatch stays behind.
#[test]
fn tasks_are_not_preempted_for_ever_on_a_cpu_that_does_not_dispatch() {
    for (policy, others) in with_queues_per_cpu().flat_map(|policy| [(policy, 0), (policy, 1)]) {
        let (mut kernel, tasks) = two_tasks(policy.name);
        for _ in 0..10 {
            kernel.switch_offline(tasks[0]);
            kernel.pass(20_000 * US);
            kernel.tick();
            kernel.switch_offline(tasks[1]);
            kernel.pass(20_000 * US);
            kernel.tick();
        }
        for _ in 0..others {
            let better = kernel.task(-15);
            kernel.restore(better);
        }
        let before = kernel.kicks();
        for switch in 0..20 {
            kernel.switch_offline(tasks[switch % 2]);
            kernel.pass(50 * US);
        }
        let kicks = kernel.kicks() - before;
        assert!(kicks <= 1, "{}, {others} waiting: {kicks} preemptions", policy.name);
    }
}

/// There only the tick ends a slice.
#[test]
fn eevdf_ends_slices_there_and_asks_for_a_choice_again_once_it_was_given_one() {
    let (mut kernel, [a, b]) = two_tasks("eevdf");
    for next in [a, b, a, b] {
        kernel.switch_offline(next);
        let ticks = (1..=10).find(|_| {
            kernel.pass(1000 * US);
            kernel.tick()
        });
        assert!(ticks.is_some(), "its slice ends");
    }
    kernel.schedule();
    let before = kernel.kicks();
    kernel.switch_offline(a);
    assert_eq!(kernel.kicks(), before, "no task waits for a pick");
    let better = kernel.task(-15);
    kernel.restore(better);
    let before = kernel.kicks();
    kernel.switch_offline(b);
    assert_eq!(kernel.kicks(), before + 1, "it came past a dispatch that works");
}

/// Before a CPU goes off line the kernel runs no task of another CPU there (`task_can_run_on_remote_rq`). Tasks that
/// such a CPU has taken would never run.
#[test]
fn what_a_cpu_took_and_may_not_run_goes_back() {
    for policy in with_queues_per_cpu() {
        let mut kernel = Callbacks::new(&load(policy.name), &[]);
        for _ in 0..3 {
            let task = kernel.task(0);
            kernel.wake(task);
        }
        assert!(kernel.queues().iter().all(|queue| queue % MAX_CPUS == 0), "{}", policy.name);
        kernel.refuse(1);
        assert_eq!(kernel.schedule(), None, "{}", policy.name);
        let queues = kernel.queues();
        assert_eq!(queues.len(), 3, "{}", policy.name);
        assert!(queues.iter().all(|queue| queue % MAX_CPUS == 1), "{}: {queues:?}", policy.name);
        let counts = [1, 3].map(|word| kernel.word("cpu_tasks", word) as u32);
        assert_eq!(counts, [0, 3], "{}: the books follow", policy.name);
        assert_eq!(kernel.kicks(), 3, "{}: that CPU is told", policy.name);
    }
}
