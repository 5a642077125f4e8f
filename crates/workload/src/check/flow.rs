//! The flow of each program: loops without time, unreachable operations, waits that no task can end.

use super::each_op;
use super::values::bounds;
use crate::limits::TIMELESS_TURNS_MAX;
use crate::model::{Op, Program, Role, Workload};
use crate::spans::{Finding, OpPath, Subject};

pub(super) fn findings(workload: &Workload) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (task, spec) in workload.tasks.iter().enumerate() {
        for (handler, program) in [(false, &spec.program), (true, &spec.on_signal)] {
            let mut path = OpPath { task, handler, path: Vec::new() };
            never_reached(program, &mut path, &mut findings);
        }
    }
    each_op(workload, |path, op| {
        if let Op::Loop(times, body) = op {
            let turns = timeless_turns(workload, *times, body);
            if turns > TIMELESS_TURNS_MAX {
                let message = match times {
                    None => "this loop never ends and no time passes in it".to_owned(),
                    Some(_) => format!(
                        "this loop turns {turns} times and no time passes in it \
                         (more than TIMELESS_TURNS_MAX, {TIMELESS_TURNS_MAX})"
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
fn timeless_turns(workload: &Workload, times: Option<u64>, body: &Program) -> u64 {
    let mut inner = 1_u64;
    for op in body {
        match op {
            Op::Loop(times, body) => match timeless_turns(workload, *times, body) {
                0 => return 0,
                turns => inner = inner.max(turns),
            },
            op if takes_time_or_waits(workload, op) => return 0,
            _ => {}
        }
    }
    times.map_or(u64::MAX, |times| times.saturating_mul(inner))
}

fn takes_time_or_waits(workload: &Workload, op: &Op) -> bool {
    match op {
        Op::Run(duration) | Op::Busy(duration) | Op::Sleep(duration) | Op::Io(duration) => {
            bounds(*duration).1 > 0
        }
        Op::Send(queue) => workload.queues[*queue].capacity.is_some(),
        Op::RunForever
        | Op::TimerWait(..)
        | Op::PipeWrite(..)
        | Op::PipeRead(..)
        | Op::Receive(..)
        | Op::WaitChildren
        | Op::ConditionWait(..)
        | Op::Exit => true,
        Op::Barrier(barrier) => workload.barriers[*barrier].count > 1,
        _ => false,
    }
}

/// Whether a program runs forever or exits, so that what follows is unreachable.
pub(super) fn never_returns(op: &Op) -> bool {
    match op {
        Op::RunForever | Op::Exit | Op::Loop(None, _) => true,
        Op::Loop(Some(_), body) => body.iter().any(never_returns),
        _ => false,
    }
}

fn never_reached(program: &Program, path: &mut OpPath, findings: &mut Vec<Finding>) {
    for (index, op) in program.iter().enumerate() {
        path.path.push(index);
        if let Op::Loop(_, body) = op {
            never_reached(body, path, findings);
        }
        let last = index + 1 == program.len();
        let subject = Subject::Op(path.clone());
        path.path.pop();
        if never_returns(op) && !last {
            path.path.push(index + 1);
            let next = Subject::Op(path.clone());
            path.path.pop();
            let why = if matches!(op, Op::Exit) { "ends the task" } else { "goes on for ever" };
            let mut finding = Finding::new(
                next,
                format!("never reached: the operation before it {why}"),
                "remove it, or move it to the front, or give the loop a number of `times`",
            );
            finding.notes.push((subject, format!("this {why}")));
            findings.push(finding);
            return;
        }
    }
}

/// The number of tasks that can arrive at each barrier; unlimited where tasks are forked.
fn comers(workload: &Workload) -> Vec<u64> {
    let mut forked = vec![false; workload.tasks.len()];
    each_op(workload, |_, op| {
        if let Op::Fork(group) = op {
            forked[*group] = true;
        }
    });
    let mut comes = vec![vec![false; workload.tasks.len()]; workload.barriers.len()];
    each_op(workload, |path, op| {
        if let Op::Barrier(barrier) = op {
            comes[*barrier][path.task] = true;
        }
    });
    let count = |group: usize| match forked[group] {
        true => u64::MAX,
        false => u64::from(workload.tasks[group].count),
    };
    let total = |groups: &Vec<bool>| {
        let coming = groups.iter().enumerate().filter(|(_, comes)| **comes);
        coming.fold(0_u64, |sum, (group, _)| sum.saturating_add(count(group)))
    };
    comes.iter().map(total).collect()
}

/// Reads and receives without any writer, and similar waits.
fn unanswered(workload: &Workload, findings: &mut Vec<Finding>) {
    let mut written = vec![false; workload.pipes.len()];
    let mut read = vec![false; workload.pipes.len()];
    let mut sent = vec![false; workload.queues.len()];
    let mut received = vec![false; workload.queues.len()];
    let mut forked = vec![false; workload.tasks.len()];
    let mut notified = vec![false; workload.conditions.len()];
    let met = comers(workload);
    each_op(workload, |_, op| match op {
        Op::Notify(condition) | Op::NotifyAll(condition) => notified[*condition] = true,
        Op::PipeWrite(pipe, _) => written[*pipe] = true,
        Op::PipeRead(pipe, _) => read[*pipe] = true,
        Op::Send(queue) => sent[*queue] = true,
        Op::Receive(queue, _) => received[*queue] = true,
        Op::Fork(group) => forked[*group] = true,
        _ => {}
    });
    each_op(workload, |path, op| {
        let (message, help) = match op {
            Op::PipeRead(pipe, _) if !written[*pipe] => {
                let name = &workload.pipes[*pipe].name;
                (format!("no task writes to pipe `{name}`"), "add a { write = … } to another task")
            }
            Op::PipeWrite(pipe, _) if !read[*pipe] => {
                let name = &workload.pipes[*pipe].name;
                let message = format!("no task reads pipe `{name}`: it fills up");
                (message, "add a { read = … } to another task")
            }
            Op::Receive(queue, _) if !sent[*queue] && workload.queues[*queue].initial == 0 => {
                let name = &workload.queues[*queue].name;
                (format!("no task sends to queue `{name}`"), "add a { send = … } to another task")
            }
            Op::Send(queue) if !received[*queue] && workload.queues[*queue].capacity.is_some() => {
                let name = &workload.queues[*queue].name;
                let message = format!("no task receives from queue `{name}`: it fills up");
                (message, "add a { receive = … } to another task, or remove its `capacity`")
            }
            Op::ConditionWait(condition, _) if !notified[*condition] => {
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
            Op::Signal(Role::Parent) if !forked[path.task] => {
                let name = &workload.tasks[path.task].name;
                let message = format!("`{name}` has no parent: no task forks it");
                (message, "name the task to signal, or let another task fork this one")
            }
            _ => return,
        };
        findings.push(Finding::new(Subject::Op(path.clone()), message, help));
    });
}
