//! Forks: every group starts, and none forks without end.

use crate::limits::TASKS_MAX;
use crate::model::{Op, Program, Workload};
use crate::objects::ObjectKind;
use crate::spans::{Finding, Subject};
use crate::walk::{OpPath, each_op, forked, never_returns};

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
    let order = children_first(workload, &forks);
    if let Some(cycle) = cycle(workload, &forks, &order) {
        return vec![cycle_finding(workload, &cycle)];
    }
    let mut findings = Vec::new();
    never_started(workload, &mut findings);
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
    too_many(workload, &forks, &order, &mut findings);
    findings
}

/// Whether a task that gets here never exits.
fn never_ends(op: &Op) -> bool {
    never_returns(op) && !ends_task(op)
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
        let Some(Op::Loop(iterations, body)) = program.get(index) else { break };
        if body.iter().any(|op| matches!(op, Op::WaitChildren)) {
            (times, endless) = (1, false);
        } else {
            endless |= iterations.is_none();
            times = times.saturating_mul(iterations.unwrap_or(1));
        }
        program = body;
    }
    (times, endless)
}

/// The forks of one group. All of them are in the order of their groups.
fn forks_of(forks: &[Fork], task: usize) -> &[Fork] {
    let own = &forks[forks.partition_point(|fork| fork.path.task < task)..];
    &own[..own.partition_point(|fork| fork.path.task == task)]
}

/// Forks that lead back to their own group. `acyclic`: groups that lead to none such.
fn cycle<'f>(workload: &Workload, forks: &'f [Fork], acyclic: &[usize]) -> Option<Vec<&'f Fork>> {
    let mut leads_back = vec![true; workload.tasks.len()];
    acyclic.iter().for_each(|&task| leads_back[task] = false);
    let mut at = leads_back.iter().position(|leads_back| *leads_back)?;
    let (mut seen, mut way) = (vec![None; workload.tasks.len()], Vec::new());
    while seen[at].is_none() {
        seen[at] = Some(way.len());
        let fork = forks_of(forks, at).iter().find(|fork| leads_back[fork.child])?;
        way.push(fork);
        at = fork.child;
    }
    Some(way.split_off(seen[at]?))
}

fn cycle_finding(workload: &Workload, cycle: &[&Fork]) -> Finding {
    let name = |task: usize| &workload.tasks[task].name;
    let subject = |fork: &Fork| Subject::Op(fork.path.clone());
    let mut finding = Finding::new(
        cycle.first().map_or(Subject::Workload, |fork| subject(fork)),
        "cyclic forks: they would create tasks without end".into(),
        "remove one of these forks",
    );
    finding.notes.extend(cycle.iter().map(|fork| {
        let note = format!("`{}` forks `{}`", name(fork.path.task), name(fork.child));
        (subject(fork), note)
    }));
    finding
}

fn never_started(workload: &Workload, findings: &mut Vec<Finding>) {
    for ((index, task), forked) in workload.tasks.iter().enumerate().zip(forked(workload)) {
        if task.start_ns.is_none() && !forked {
            let message = format!(
                "task `{}` never starts: it has no `start` and no task forks it",
                task.name
            );
            let help = "give it a `start`, as in \"0s\", or let another task fork it";
            findings.push(Finding::new(Subject::Object(ObjectKind::Task, index), message, help));
        }
    }
}

/// The number of tasks over the whole run, forks multiplied by their loops.
fn too_many(workload: &Workload, forks: &[Fork], order: &[usize], findings: &mut Vec<Finding>) {
    let mut family = vec![1_u64; workload.tasks.len()];
    let mut reported = false;
    for &task in order {
        for fork in forks_of(forks, task) {
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

/// The groups in an order with every child before its parents, without those that lead to a cycle.
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
