//! Tasks that only yield: `yieldpair`.
//!
//! Two processes on one CPU call `sched_yield` forever. Nothing blocks and nothing is woken, so a round is one system
//! call and, if the scheduler lets the other task run, one switch. With a single task the call costs the same without
//! a switch; the difference is the cost of the decision and the switch.

use super::spec::Call;
use super::{Entry, Parameter, group, independent};
use crate::limits::CPU_MAX;
use crate::model::{CpuList, Duration, Op, Workload};

/// Limit of the tasks.
const TASKS_MAX: i64 = 1_024;
/// CPU time of an iteration of the loop around the call, ns: a few instructions. The machine has the cost of the call.
const LOOP_NS: u64 = 10;

/// The entry `yieldpair`.
pub(super) const YIELD_PAIR: Entry = Entry {
    name: "yieldpair",
    arguments: "[N]",
    summary: "2 tasks (or N) on one CPU that call sched_yield for ever",
    source: "the pair of tasks by which switch costs of old kernels were counted",
    limits: "what sched_yield means differs from scheduler to scheduler",
    parameters: &[Parameter {
        name: "cpu",
        default: "0",
        help: "the CPU that they are pinned to, or any",
    }],
    build,
};

fn build(call: &mut Call<'_, '_>) -> Workload {
    let count = match call.arguments.clone() {
        Some(piece) => call.number("the number of tasks", &piece, 1, TASKS_MAX),
        None => 2,
    };
    let count = u32::try_from(count).unwrap_or(2);
    let body = vec![Op::Run(Duration::Fixed(LOOP_NS)), Op::Yield];
    let mut task = group("yielder", count, vec![Op::Loop(None, body)]);
    let cpu = match call.value("cpu") {
        Some(piece) if piece.text == "any" => None,
        Some(piece) => Some(call.number("the CPU", &piece, 0, i64::from(CPU_MAX))),
        None => Some(0),
    };
    task.cpus = cpu.map(|cpu| {
        let cpu = u32::try_from(cpu).unwrap_or(0);
        CpuList(vec![(cpu, cpu)])
    });
    let mut workload = independent("tasks that call sched_yield for ever".to_owned(), vec![task]);
    workload.duration_ns = 1_000_000_000;
    workload
}
