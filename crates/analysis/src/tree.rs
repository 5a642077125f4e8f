//! A task and all that it started.

use crate::GroupMetrics;
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

/// The tasks of that pid or, if there is none, of that name or of the group of that name.
pub fn tasks_called(trace: &Trace, name_or_pid: &str) -> Vec<TaskId> {
    let numbered = trace.tasks().iter().enumerate().skip(1);
    let pid: Option<u32> = name_or_pid.parse().ok();
    let of = |is: &dyn Fn(&fairground_trace::TaskInfo) -> bool| -> Vec<TaskId> {
        let found = numbered.clone().filter(|(_, info)| is(info));
        found.map(|(at, _)| TaskId(at as u32)).collect()
    };
    let by_pid = pid.map(|pid| of(&|info| info.pid == pid)).unwrap_or_default();
    if !by_pid.is_empty() {
        return by_pid;
    }
    let is_called = |comm: &str| comm == name_or_pid || GroupMetrics::name_of(comm) == name_or_pid;
    of(&|info| is_called(&info.comm))
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

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::{Event, TaskInfo};

    /// The idle task, then `sh` (100), `make` (101), `cc` (102), `cc` (103), `worker/0` (104), `worker/1` (105): `sh`
    /// forks `make`, which forks the first `cc`.
    fn family() -> Trace {
        let mut trace = Trace::new(1);
        for (nth, comm) in ["sh", "make", "cc", "cc", "worker/0", "worker/1"].iter().enumerate() {
            trace.add_task(TaskInfo::new(100 + nth as u32, comm));
        }
        for (parent, child) in [(1, 2), (2, 3)] {
            let kind = EventKind::Fork { parent: TaskId(parent), child: TaskId(child) };
            trace.push(Event { time_ns: u64::from(parent), cpu: 0, insns: 0, kind });
        }
        trace
    }

    fn members(is_in: &[bool]) -> Vec<usize> {
        (0..is_in.len()).filter(|task| is_in[*task]).collect()
    }

    #[test]
    fn a_tree_has_its_roots_and_what_they_forked_at_any_depth() {
        let trace = family();
        assert_eq!(members(&tree(&trace, &[TaskId(1)])), [1, 2, 3]);
        assert_eq!(members(&tree(&trace, &[TaskId(2)])), [2, 3]);
        assert_eq!(members(&tree(&trace, &[TaskId(4), TaskId(2)])), [2, 3, 4]);
        assert!(members(&tree(&trace, &[])).is_empty());
        assert!(members(&tree(&trace, &[TaskId(99)])).is_empty(), "a task of another trace");
    }

    #[test]
    fn tasks_are_called_by_pid_name_or_group() {
        let trace = family();
        let called =
            |name: &str| tasks_called(&trace, name).iter().map(|t| t.0).collect::<Vec<_>>();
        assert_eq!(called("cc"), [3, 4]);
        assert_eq!(called("104"), [5]);
        assert_eq!(called("worker/1"), [6]);
        assert_eq!(called("worker"), [5, 6]);
        assert!(called("c").is_empty() && called("7").is_empty() && called("0").is_empty());
    }

    #[test]
    fn a_name_of_digits_is_meant_where_no_task_has_that_pid() {
        let mut trace = family();
        trace.add_task(TaskInfo::new(200, "100"));
        trace.add_task(TaskInfo::new(201, "999"));
        let called =
            |name: &str| tasks_called(&trace, name).iter().map(|t| t.0).collect::<Vec<_>>();
        assert_eq!((called("100"), called("999")), (vec![1], vec![8]));
    }

    #[test]
    fn the_command_is_the_task_of_that_pid_and_none_of_that_name() {
        let mut trace = family();
        assert_eq!(command_tree(&trace), None);
        trace.origin.command_pid = Some(101);
        assert_eq!(command_tree(&trace).map(|is_in| members(&is_in)), Some(vec![2, 3]));
        trace.origin.command_pid = Some(300);
        trace.add_task(TaskInfo::new(201, "300"));
        assert_eq!(command_tree(&trace), None);
    }
}
