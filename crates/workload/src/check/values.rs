//! Values, names and references.

use std::collections::BTreeSet;

use crate::cgroups::list_problems;
use crate::limits::{
    AMOUNT_MAX, GROUPS_MAX, LOOP_DEPTH_MAX, NAME_CHARS_MAX, OBJECTS_MAX, OPERATIONS_MAX,
    SOCKET_BUFFER_MIN, TASKS_MAX, TIME_MAX_NS,
};
use crate::model::{Carrier, Op, Pipe, Queue, TaskSpec, Workload};
use crate::objects::ObjectKind;
use crate::operations::operand::{Cpus, Period, Problem};
use crate::spans::{Finding, Subject};
use crate::walk::{OpPath, each_op};

pub(super) fn findings(workload: &Workload) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut add = |subject: Subject, (message, help): Problem| {
        findings.push(Finding::new(subject, message, help));
    };
    for problem in whole(workload) {
        add(Subject::Workload, problem);
    }
    let mut seen = BTreeSet::new();
    for kind in ObjectKind::NAMED {
        for index in 0..workload.count(kind) {
            let (subject, name) = (Subject::Object(kind, index), workload.name_of(kind, index));
            if let Some(problem) = name_problem(kind.word(), name) {
                add(subject.clone(), problem);
            }
            if !seen.insert((kind, name)) {
                let message = format!("a second {} is called `{name}`", kind.word());
                add(subject, (message, "give each a name of its own"));
            }
            for problem in object_problems(workload, kind, index) {
                add(Subject::Object(kind, index), problem);
            }
        }
    }
    for (index, message, help) in list_problems(&workload.cgroups) {
        add(Subject::Object(ObjectKind::Cgroup, index), (message, help));
    }
    let mut operations = 0_usize;
    each_op(workload, |path, op| {
        operations += 1;
        if let Some(problem) = op_problem(workload, path, op) {
            add(Subject::Op(path.clone()), problem);
        }
    });
    if operations > OPERATIONS_MAX {
        let message =
            format!("{operations} operations, more than OPERATIONS_MAX, {OPERATIONS_MAX}");
        add(Subject::Workload, (message, "write loops instead of repeated operations"));
    }
    findings
}

fn whole(workload: &Workload) -> Vec<Problem> {
    let mut problems = Vec::from_iter(name_problem("workload", &workload.name));
    if workload.duration_ns == 0 || workload.duration_ns > TIME_MAX_NS {
        problems.push((
            "the `duration` must be above 0 and at most TIME_MAX_NS, 1000000 s".into(),
            "write how long the workload runs, as in `duration = \"10s\"`",
        ));
    }
    if workload.tasks.is_empty() {
        problems.push(("the workload has no task".into(), "add a [[task]]"));
    }
    for kind in ObjectKind::NAMED {
        let count = workload.count(kind);
        if kind == ObjectKind::Task && count > GROUPS_MAX {
            let message = format!("{count} groups, more than GROUPS_MAX, {GROUPS_MAX}");
            problems.push((message, "use `count` for tasks that do the same"));
        } else if kind != ObjectKind::Task && count > OBJECTS_MAX {
            let message = format!("{count} {}s, more than OBJECTS_MAX, {OBJECTS_MAX}", kind.word());
            problems.push((message, "share them between tasks, or split the workload"));
        }
    }
    problems
}

fn name_problem(kind: &str, name: &str) -> Option<Problem> {
    let chars = name.chars().count();
    if chars == 0 {
        return Some((format!("the name of a {kind} is empty"), "write a name, as in \"worker\""));
    }
    if chars > NAME_CHARS_MAX {
        let message =
            format!("a name of {chars} characters is longer than NAME_CHARS_MAX, {NAME_CHARS_MAX}");
        return Some((message, "write a shorter name"));
    }
    if name.chars().any(char::is_control) {
        return Some((
            format!("the name {name:?} has a control character in it"),
            "use letters, digits and signs only",
        ));
    }
    if kind == "task" && name == "parent" {
        return Some((
            "a task cannot be called `parent`".into(),
            "choose another name: { signal = \"parent\" } means the task that forked this one",
        ));
    }
    let number = name.rsplit_once('/').map(|(_, number)| number);
    if kind == "task"
        && number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    {
        return Some((
            format!("the name `{name}` ends like the number of a task in a group"),
            "choose another name: \"worker/3\" means the fourth task of the group `worker`",
        ));
    }
    None
}

fn object_problems(workload: &Workload, kind: ObjectKind, index: usize) -> Vec<Problem> {
    match kind {
        ObjectKind::Pipe => pipe_problems(&workload.pipes[index]),
        ObjectKind::Queue => queue_problems(&workload.queues[index]),
        ObjectKind::Task => task_problems(workload, &workload.tasks[index]),
        ObjectKind::Barrier if workload.barriers[index].count == 0 => {
            let message =
                format!("the barrier `{}` has the count 0", workload.barriers[index].name);
            vec![(message, "write a `count` from 1")]
        }
        ObjectKind::Timer if !Period::is_valid(workload.timers[index].period_ns) => {
            let timer = &workload.timers[index];
            let message = format!("timer `{}` has a period of {} ns", timer.name, timer.period_ns);
            vec![(message, "write a period above 0, as in `period = \"1ms\"`")]
        }
        _ => Vec::new(),
    }
}

fn pipe_problems(pipe: &Pipe) -> Vec<Problem> {
    let mut problems = Vec::new();
    if pipe.carrier == Carrier::Socket && pipe.capacity < SOCKET_BUFFER_MIN {
        let message = format!(
            "the socket `{}` has a buffer of less than SOCKET_BUFFER_MIN, {SOCKET_BUFFER_MIN}",
            pipe.name
        );
        problems.push((message, "give it a larger one"));
    }
    if pipe.capacity == 0 || pipe.capacity > AMOUNT_MAX {
        let message = format!("pipe `{}` holds {} bytes", pipe.name, pipe.capacity);
        problems.push((message, "write a `capacity` from 1 to AMOUNT_MAX, 4294967296"));
    }
    problems
}

fn queue_problems(queue: &Queue) -> Vec<Problem> {
    let mut problems = Vec::new();
    if queue.capacity.is_some_and(|capacity| queue.initial > capacity) {
        let message = format!(
            "queue `{}` starts with {} messages, more than it holds",
            queue.name, queue.initial
        );
        problems.push((message, "write a larger `capacity` or a smaller `initial`"));
    }
    problems
}

fn task_problems(workload: &Workload, task: &TaskSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    let name = &task.name;
    if task.count == 0 || u64::from(task.count) > TASKS_MAX {
        let message = format!("task `{name}` has the count {}", task.count);
        problems.push((message, "write a `count` from 1 to TASKS_MAX, 1000000"));
    }
    if !(-20..=19).contains(&task.nice) {
        let message = format!("task `{name}` has the nice value {}", task.nice);
        problems.push((message, "write a nice value from -20 to 19"));
    }
    if let Some((message, help)) = task.policy.problem() {
        problems.push((format!("task `{name}`: {message}"), help));
    }
    if let Some(message) = task.cpus.as_ref().and_then(Cpus::wrong) {
        problems.push((format!("task `{name}`: {message}"), Cpus::HELP));
    }
    if task.cgroup.is_some_and(|cgroup| cgroup >= workload.cgroups.len()) {
        let message = format!("task `{name}` is in a cgroup that does not exist");
        problems.push((message, "declare it: [cgroups.web]"));
    }
    if task.start_ns.is_some_and(|ns| ns > TIME_MAX_NS) {
        problems.push((format!("task `{name}` starts after TIME_MAX_NS"), "let it start earlier"));
    }
    if task.program.is_empty() {
        let message = format!("task `{name}` does nothing: its program is empty");
        problems.push((message, "say what it does, as in `program = [{ run = \"forever\" }]`"));
    }
    problems
}

fn op_problem(workload: &Workload, path: &OpPath, op: &Op) -> Option<Problem> {
    if path.path.len() > LOOP_DEPTH_MAX + 1 {
        return Some((
            format!("more than LOOP_DEPTH_MAX, {LOOP_DEPTH_MAX}, loops inside loops"),
            "write fewer loops with more `times`",
        ));
    }
    if let Some((kind, index)) = op.references().find(|(kind, at)| *at >= workload.count(*kind)) {
        let message = format!("there is no {} number {index}", kind.word());
        return Some((message, "refer to what the workload declares"));
    }
    let Op::Loop(times, body) = op else { return op.operand_problem(workload) };
    let is_empty = *times == Some(0) || body.is_empty();
    let help = "put operations into it and let it iterate at least once, or remove it";
    is_empty.then(|| ("the loop does nothing".into(), help))
}
