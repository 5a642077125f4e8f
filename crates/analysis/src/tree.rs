//! A task and all that it started.

use fairground_trace::{EventKind, TaskId, Trace};

/// By task: whether it is one of these, or was forked by one of them, directly or not.
pub fn tree(trace: &Trace, roots: &[TaskId]) -> Vec<bool> {
    let mut is_in = vec![false; trace.tasks().len()];
    for root in roots {
        if let Some(entry) = is_in.get_mut(root.index()) {
            *entry = true;
        }
    }
    for event in trace.events() {
        if let EventKind::Fork { parent, child } = event.kind
            && is_in.get(parent.index()) == Some(&true)
            && let Some(entry) = is_in.get_mut(child.index())
        {
            *entry = true;
        }
    }
    is_in
}

/// The tasks of that pid or, if there is none, of that name.
pub fn tasks_called(trace: &Trace, name_or_pid: &str) -> Vec<TaskId> {
    let numbered = trace.tasks().iter().enumerate().skip(1);
    let pid: Option<u32> = name_or_pid.parse().ok();
    let of = |is: &dyn Fn(&fairground_trace::TaskInfo) -> bool| -> Vec<TaskId> {
        let found = numbered.clone().filter(|(_, info)| is(info));
        found.map(|(at, _)| TaskId(at as u32)).collect()
    };
    let by_pid = pid.map(|pid| of(&|info| info.pid == pid)).unwrap_or_default();
    if by_pid.is_empty() { of(&|info| info.comm == name_or_pid) } else { by_pid }
}

/// By task: whether it belongs to the command that was recorded; `None` where the recording names none, or does not
/// have it.
pub fn command_tree(trace: &Trace) -> Option<Vec<bool>> {
    let pid = trace.origin.command_pid?;
    let roots = tasks_called(trace, &pid.to_string());
    // A pid that was used again names another task, later.
    let root = roots.first().filter(|root| trace.tasks()[root.index()].pid == pid)?;
    Some(tree(trace, &[*root]))
}
