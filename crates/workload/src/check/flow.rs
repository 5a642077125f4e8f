//! The flow of each program: loops without time, unreachable operations, waits that no task can end.

use crate::limits::TIMELESS_ITERATIONS_MAX;
use crate::model::{Op, Program, Role, Workload};
use crate::objects::ObjectKind;
use crate::spans::{Finding, Subject};
use crate::walk::{OpPath, each_op, forked, never_returns, programs};

pub(super) fn findings(workload: &Workload) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (mut path, program) in programs(workload) {
        never_reached(program, &mut path, &mut findings);
    }
    each_op(workload, |path, op| {
        if let Op::Loop(times, body) = op {
            let iterations = timeless_iterations(workload, *times, body);
            if iterations > TIMELESS_ITERATIONS_MAX {
                let message = match times {
                    None => "this loop never ends and no time passes in it".to_owned(),
                    Some(_) => format!(
                        "this loop iterates {iterations} times and no time passes in it \
                         (more than TIMELESS_ITERATIONS_MAX, {TIMELESS_ITERATIONS_MAX})"
                    ),
                };
                let help = "add an operation that takes time or waits, as in { run = \"1us\" } or \
                            { sleep = \"1ms\" }";
                findings.push(Finding::new(Subject::Op(path.clone()), message, help));
            }
        }
    });
    unanswered(workload, &mut findings);
    findings
}

/// Iterations of a loop in which no time passes, inner loops included; 0 when time passes.
fn timeless_iterations(workload: &Workload, times: Option<u64>, body: &Program) -> u64 {
    let mut inner = 1_u64;
    for op in body {
        match op {
            Op::Loop(times, body) => match timeless_iterations(workload, *times, body) {
                0 => return 0,
                iterations => inner = inner.max(iterations),
            },
            op if op.effect(workload).takes_time() => return 0,
            _ => {}
        }
    }
    times.map_or(u64::MAX, |times| times.saturating_mul(inner))
}

fn never_reached(program: &Program, path: &mut OpPath, findings: &mut Vec<Finding>) {
    for (index, op) in program.iter().enumerate() {
        path.path.push(index);
        if let Op::Loop(_, body) = op {
            never_reached(body, path, findings);
        }
        let mut next = path.clone();
        path.path.pop();
        if !never_returns(op) || index + 1 == program.len() {
            continue;
        }
        let subject = Subject::Op(next.clone());
        next.path.pop();
        next.path.push(index + 1);
        let why = if matches!(op, Op::Exit) { "ends the task" } else { "goes on for ever" };
        let mut finding = Finding::new(
            Subject::Op(next),
            format!("never reached: the operation before it {why}"),
            "remove it, or move it to the front, or give the loop a number of `times`",
        );
        finding.notes.push((subject, format!("this {why}")));
        findings.push(finding);
        return;
    }
}

/// The operations of the tasks on each object, by its index.
struct Uses {
    written: Vec<bool>,
    read: Vec<bool>,
    sent: Vec<bool>,
    received: Vec<bool>,
    notified: Vec<bool>,
    /// The groups that come to each barrier.
    comes: Vec<Vec<bool>>,
    forked: Vec<bool>,
}

impl Uses {
    fn of(workload: &Workload) -> Uses {
        let none = |kind| vec![false; workload.count(kind)];
        let mut uses = Uses {
            written: none(ObjectKind::Pipe),
            read: none(ObjectKind::Pipe),
            sent: none(ObjectKind::Queue),
            received: none(ObjectKind::Queue),
            notified: none(ObjectKind::Condition),
            comes: vec![none(ObjectKind::Task); workload.barriers.len()],
            forked: forked(workload),
        };
        each_op(workload, |path, op| match op {
            Op::Notify(condition) | Op::NotifyAll(condition) => uses.notified[*condition] = true,
            Op::PipeWrite(pipe, _) => uses.written[*pipe] = true,
            Op::PipeRead(pipe, _) => uses.read[*pipe] = true,
            Op::Send(queue) => uses.sent[*queue] = true,
            Op::Receive(queue, _) => uses.received[*queue] = true,
            Op::Barrier(barrier) => uses.comes[*barrier][path.task] = true,
            _ => {}
        });
        uses
    }

    /// The number of tasks that can arrive at a barrier; unlimited where tasks are forked.
    fn comers(&self, workload: &Workload, barrier: usize) -> u64 {
        let groups = workload.tasks.iter().zip(&self.forked).zip(&self.comes[barrier]);
        let coming = groups.filter(|(_, comes)| **comes);
        coming.fold(0_u64, |sum, ((task, forked), _)| {
            sum.saturating_add(if *forked { u64::MAX } else { u64::from(task.count) })
        })
    }
}

/// Reads and receives without any writer, and similar waits.
fn unanswered(workload: &Workload, findings: &mut Vec<Finding>) {
    let uses = Uses::of(workload);
    let met: Vec<u64> =
        (0..workload.barriers.len()).map(|barrier| uses.comers(workload, barrier)).collect();
    each_op(workload, |path, op| {
        let (message, help) = match op {
            Op::PipeRead(pipe, _) if !uses.written[*pipe] => {
                let name = &workload.pipes[*pipe].name;
                (format!("no task writes to pipe `{name}`"), "add a { write = … } to another task")
            }
            Op::PipeWrite(pipe, _) if !uses.read[*pipe] => {
                let name = &workload.pipes[*pipe].name;
                let message = format!("no task reads pipe `{name}`: it fills up");
                (message, "add a { read = … } to another task")
            }
            Op::Receive(queue, _) if !uses.sent[*queue] && workload.queues[*queue].initial == 0 => {
                let name = &workload.queues[*queue].name;
                (format!("no task sends to queue `{name}`"), "add a { send = … } to another task")
            }
            Op::Send(queue)
                if !uses.received[*queue] && workload.queues[*queue].capacity.is_some() =>
            {
                let name = &workload.queues[*queue].name;
                let message = format!("no task receives from queue `{name}`: it fills up");
                (message, "add a { receive = … } to another task, or remove its `capacity`")
            }
            Op::ConditionWait(condition, _) if !uses.notified[*condition] => {
                let name = &workload.conditions[*condition].name;
                let message = format!("no task notifies the condition `{name}`");
                (message, "add a { notify = … } to another task")
            }
            Op::Barrier(barrier)
                if met[*barrier] < u64::from(workload.barriers[*barrier].count) =>
            {
                let barrier = &workload.barriers[*barrier];
                let message = format!(
                    "fewer than {} tasks ever come to the barrier `{}`",
                    barrier.count, barrier.name
                );
                (message, "write a smaller `count`, or let more tasks come")
            }
            Op::Signal(Role::Parent) if !uses.forked[path.task] => {
                let name = &workload.tasks[path.task].name;
                let message = format!("`{name}` has no parent: no task forks it");
                (message, "name the task to signal, or let another task fork this one")
            }
            _ => return,
        };
        let finding = Finding::new(Subject::Op(path.clone()), message, help);
        let has_parent = !matches!(op, Op::Signal(_));
        findings.push(if has_parent { finding.hanging() } else { finding });
    });
}
