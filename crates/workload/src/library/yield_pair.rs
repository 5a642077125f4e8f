//! Tasks that only yield: `yieldpair`.
//!
//! Two processes on one CPU call `sched_yield` forever. Nothing blocks and nothing is woken, so a round is one system
//! call and, if the scheduler lets the other task run, one switch. With a single task the call costs the same without
//! a switch; the difference is the cost of the decision and the switch.

use super::parts::{looping, run, seconds};
use super::spec::{Call, Entry, parameter};
use crate::model::{Op, Workload};

/// Limit of the tasks.
const TASKS_MAX: u32 = 1_024;
/// CPU time of an iteration of the loop around the call, ns: a few instructions. The machine has the cost of the call.
const LOOP_NS: u64 = 10;

/// The entry `yieldpair`.
pub(super) const YIELD_PAIR: Entry = Entry {
    name: "yieldpair",
    arguments: "[N]",
    summary: "2 tasks (or N) on one CPU that call sched_yield for ever",
    source: "the pair of tasks by which switch costs of old kernels were counted",
    limits: "what sched_yield means differs from scheduler to scheduler",
    parameters: &[parameter("cpu", "0", "the CPU that they are pinned to, or any")],
    build,
};

fn build(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count_or("the number of tasks", 1..=TASKS_MAX, 2);
    let mut task = looping("yielder", count, vec![run(LOOP_NS), Op::Yield]);
    task.cpus = call.cpu();
    seconds(1, "tasks that call sched_yield for ever", vec![task])
}
