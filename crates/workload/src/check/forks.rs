//! Forks: every group starts, and none forks without end.

use super::each_op;
use super::flow::never_returns;
use crate::limits::TASKS_MAX;
use crate::model::{Op, Program, Workload};
use crate::spans::{Finding, OpPath, Subject};

/// One fork in a program.
struct Fork {
    path: OpPath,
    child: usize,
    /// Upper bound of its executions; an endless loop counts once (it has its own check).
    times: u64,
    /// Whether it is in an endless loop whose body does not wait for the children.
    endless: bool,
}

pub(super) fn findings(workload: &Workload) -> Vec<Finding> {
    let forks = forks(workload);
    let mut findings = Vec::new();
    if let Some(cycle) = cycle(workload, &forks) {
        findings.push(cycle_finding(workload, &forks, &cycle));
        return findings;
    }
    never_started(workload, &forks, &mut findings);
    for fork in forks.iter().filter(|fork| fork.endless) {
        let child = &workload.tasks[fork.child];
        if child.program.iter().any(never_ends) {
            let message = format!("unbounded forks: this loop forks `{}` for ever", child.name);
            let help = format!(
                "let `{}` end, put a \"wait\" into the loop, or give the loop a number of `times`",
                child.name
            );
            findings.push(Finding::new(Subject::Op(fork.path.clone()), message, help));
        }
    }
    too_many(workload, &forks, &mut findings);
    findings
}

/// Whether a task that gets here never exits.
fn never_ends(op: &Op) -> bool {
    !matches!(op, Op::Exit) && never_returns(op) && !ends_task(op)
}

fn ends_task(op: &Op) -> bool {
    match op {
        Op::Exit => true,
        Op::Loop(_, body) => body.iter().any(ends_task),
        _ => false,
    }
}

fn forks(workload: &Workload) -> Vec<Fork> {
    let mut forks = Vec::new();
    each_op(workload, |path, op| {
        if let Op::Fork(child) = op {
            let (times, endless) = repetitions(workload, path);
            forks.push(Fork { path: path.clone(), child: *child, times, endless });
        }
    });
    forks
}

/// The number of executions of an operation, from the loops around it.
fn repetitions(workload: &Workload, path: &OpPath) -> (u64, bool) {
    let spec = &workload.tasks[path.task];
    let mut program: &Program = if path.handler { &spec.on_signal } else { &spec.program };
    let (mut times, mut endless) = (1_u64, false);
    for &index in &path.path[..path.path.len() - 1] {
        let Some(Op::Loop(turns, body)) = program.get(index) else { break };
        if body.iter().any(|op| matches!(op, Op::WaitChildren)) {
            (times, endless) = (1, false);
        } else {
            endless |= turns.is_none();
            times = times.saturating_mul(turns.unwrap_or(1));
        }
        program = body;
    }
    (times, endless)
}

/// Forks that lead back to their own group, by index.
fn cycle(workload: &Workload, forks: &[Fork]) -> Option<Vec<usize>> {
    let mut by_parent = vec![Vec::new(); workload.tasks.len()];
    for (index, fork) in forks.iter().enumerate() {
        by_parent[fork.path.task].push(index);
    }
    // 0: not seen, 1: on the path, 2: done. An explicit stack, since a chain may be as long as there are groups.
    let mut state = vec![0_u8; workload.tasks.len()];
    for root in 0..workload.tasks.len() {
        if state[root] != 0 {
            continue;
        }
        state[root] = 1;
        let mut way: Vec<(usize, usize, Option<usize>)> = vec![(root, 0, None)];
        while let Some((task, next, _)) = way.last_mut() {
            let Some(&fork) = by_parent[*task].get(*next) else {
                state[*task] = 2;
                way.pop();
                continue;
            };
            *next += 1;
            let child = forks[fork].child;
            match state[child] {
                0 => {
                    state[child] = 1;
                    way.push((child, 0, Some(fork)));
                }
                1 => {
                    let from = way.iter().position(|&(task, ..)| task == child).unwrap_or(0);
                    let within = way[from + 1..].iter().filter_map(|&(_, _, fork)| fork);
                    return Some(within.chain([fork]).collect());
                }
                _ => {}
            }
        }
    }
    None
}

fn cycle_finding(workload: &Workload, forks: &[Fork], cycle: &[usize]) -> Finding {
    let name = |task: usize| &workload.tasks[task].name;
    let subject = cycle.first().map_or(Subject::Workload, |&f| Subject::Op(forks[f].path.clone()));
    let mut finding = Finding::new(
        subject,
        "cyclic forks: they would create tasks without end".into(),
        "remove one of these forks",
    );
    for &fork in cycle {
        let fork = &forks[fork];
        let note = format!("`{}` forks `{}`", name(fork.path.task), name(fork.child));
        finding.notes.push((Subject::Op(fork.path.clone()), note));
    }
    finding
}

fn never_started(workload: &Workload, forks: &[Fork], findings: &mut Vec<Finding>) {
    let mut forked = vec![false; workload.tasks.len()];
    for fork in forks {
        forked[fork.child] = true;
    }
    for (index, task) in workload.tasks.iter().enumerate() {
        if task.start_ns.is_none() && !forked[index] {
            let message = format!(
                "task `{}` never starts: it has no `start` and no task forks it",
                task.name
            );
            let help = "give it a `start`, as in \"0s\", or let another task fork it";
            findings.push(Finding::new(Subject::Task(index), message, help));
        }
    }
}

/// The number of tasks over the whole run, forks multiplied by their loops.
fn too_many(workload: &Workload, forks: &[Fork], findings: &mut Vec<Finding>) {
    let order = children_first(workload, forks);
    let mut family = vec![1_u64; workload.tasks.len()];
    let mut by_parent = vec![Vec::new(); workload.tasks.len()];
    for fork in forks {
        by_parent[fork.path.task].push(fork);
    }
    let mut reported = false;
    for task in order {
        for fork in &by_parent[task] {
            let child = u64::from(workload.tasks[fork.child].count);
            let added = fork.times.saturating_mul(child).saturating_mul(family[fork.child]);
            family[task] = family[task].saturating_add(added);
            if family[task] > TASKS_MAX && !reported {
                reported = true;
                let message = format!(
                    "this fork and what follows from it make more than TASKS_MAX, {TASKS_MAX}, tasks"
                );
                let help = "fork fewer times, or \"wait\" for the children within the loop";
                findings.push(Finding::new(Subject::Op(fork.path.clone()), message, help));
            }
        }
    }
    let started = workload.tasks.iter().zip(&family).filter(|(task, _)| task.start_ns.is_some());
    let total = started.fold(0_u64, |total, (task, &family)| {
        total.saturating_add(u64::from(task.count).saturating_mul(family))
    });
    if total > TASKS_MAX && !reported {
        let message = format!("{total} tasks, more than TASKS_MAX, {TASKS_MAX}");
        findings.push(Finding::new(Subject::Workload, message, "write smaller counts"));
    }
}

/// The groups in an order with every child before its parents; there are no cycles at this point.
fn children_first(workload: &Workload, forks: &[Fork]) -> Vec<usize> {
    let mut open = vec![0_usize; workload.tasks.len()];
    let mut parents = vec![Vec::new(); workload.tasks.len()];
    for fork in forks {
        open[fork.path.task] += 1;
        parents[fork.child].push(fork.path.task);
    }
    let mut order: Vec<usize> = (0..open.len()).filter(|&task| open[task] == 0).collect();
    let mut at = 0;
    while let Some(&task) = order.get(at) {
        at += 1;
        for &parent in &parents[task] {
            open[parent] -= 1;
            if open[parent] == 0 {
                order.push(parent);
            }
        }
    }
    order
}
