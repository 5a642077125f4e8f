//! Walks through the programs of a workload.

use crate::model::{Op, Program, Workload};

/// An operation of the model: its group, whether it is in the handler, and the index at each depth of loops.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OpPath {
    pub(crate) task: usize,
    pub(crate) handler: bool,
    pub(crate) path: Vec<usize>,
}

impl OpPath {
    /// The place before the first operation of a program.
    pub(crate) fn start(task: usize, handler: bool) -> Self {
        Self { task, handler, path: Vec::new() }
    }
}

/// Every program: the tasks' own, and their signal handlers.
pub(crate) fn programs(workload: &Workload) -> impl Iterator<Item = (OpPath, &Program)> {
    workload.tasks.iter().enumerate().flat_map(|(task, spec)| {
        [(OpPath::start(task, false), &spec.program), (OpPath::start(task, true), &spec.on_signal)]
    })
}

/// Visits every operation, loops before their bodies.
pub(crate) fn each_op<'w>(workload: &'w Workload, mut visit: impl FnMut(&OpPath, &'w Op)) {
    for (mut path, program) in programs(workload) {
        each_op_of(program, &mut path, &mut visit);
    }
}

/// Visits every operation of one program, loops before their bodies. `path` is where it begins.
pub(crate) fn each_op_of<'w>(
    program: &'w Program,
    path: &mut OpPath,
    visit: &mut impl FnMut(&OpPath, &'w Op),
) {
    for (index, op) in program.iter().enumerate() {
        path.path.push(index);
        visit(path, op);
        if let Op::Loop(_, body) = op {
            each_op_of(body, path, visit);
        }
        path.path.pop();
    }
}

/// For each group, whether any task forks it.
pub(crate) fn forked(workload: &Workload) -> Vec<bool> {
    let mut forked = vec![false; workload.tasks.len()];
    each_op(workload, |_, op| {
        if let Op::Fork(group) = op {
            forked[*group] = true;
        }
    });
    forked
}

/// Whether a program runs forever or exits at this operation, so that what follows is unreachable.
pub(crate) fn never_returns(op: &Op) -> bool {
    match op {
        Op::RunForever | Op::Exit | Op::Loop(None, _) => true,
        Op::Loop(Some(_), body) => body.iter().any(never_returns),
        _ => false,
    }
}
