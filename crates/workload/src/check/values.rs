//! Values, names and references.

use std::collections::BTreeSet;

use super::each_op;
use crate::limits::{
    AMOUNT_MAX, CPU_MAX, GROUPS_MAX, LOOP_DEPTH_MAX, NAME_CHARS_MAX, OBJECTS_MAX, OPERATIONS_MAX,
    SOCKET_BUFFER_MIN, TASKS_MAX, TIME_MAX_NS,
};
use crate::model::{Carrier, CpuList, Duration, Op, Role, Workload};
use crate::spans::{Finding, OpPath, Subject};

pub(super) fn findings(workload: &Workload) -> Vec<Finding> {
    let mut findings = Vec::new();
    whole(workload, &mut findings);
    let mut names = Vec::new();
    names.extend(
        workload.pipes.iter().enumerate().map(|(i, p)| (Subject::Pipe(i), "pipe", &p.name)),
    );
    names.extend(
        workload.queues.iter().enumerate().map(|(i, q)| (Subject::Queue(i), "queue", &q.name)),
    );
    names.extend(
        workload.locks.iter().enumerate().map(|(i, l)| (Subject::Lock(i), "lock", &l.name)),
    );
    names.extend(
        workload.timers.iter().enumerate().map(|(i, t)| (Subject::Timer(i), "timer", &t.name)),
    );
    let conditions = workload.conditions.iter().enumerate();
    names.extend(conditions.map(|(i, c)| (Subject::Condition(i), "condition", &c.name)));
    let barriers = workload.barriers.iter().enumerate();
    names.extend(barriers.map(|(i, b)| (Subject::Barrier(i), "barrier", &b.name)));
    names.extend(
        workload.tasks.iter().enumerate().map(|(i, t)| (Subject::Task(i), "task", &t.name)),
    );
    let mut seen = BTreeSet::new();
    for (subject, kind, name) in names {
        if let Some((message, help)) = name_problem(kind, name) {
            findings.push(Finding::new(subject.clone(), message, help));
        }
        if !seen.insert((kind, name)) {
            let message = format!("a second {kind} is called `{name}`");
            findings.push(Finding::new(subject, message, "give each a name of its own"));
        }
    }
    for (index, pipe) in workload.pipes.iter().enumerate() {
        if pipe.carrier == Carrier::Socket && pipe.capacity < SOCKET_BUFFER_MIN {
            let message = format!(
                "the socket `{}` has a buffer of less than SOCKET_BUFFER_MIN, {SOCKET_BUFFER_MIN}",
                pipe.name
            );
            findings.push(Finding::new(Subject::Pipe(index), message, "give it a larger one"));
        }
    }
    for (index, barrier) in workload.barriers.iter().enumerate() {
        if barrier.count == 0 {
            let message = format!("the barrier `{}` has the count 0", barrier.name);
            let help = "write a `count` from 1";
            findings.push(Finding::new(Subject::Barrier(index), message, help));
        }
    }
    objects(workload, &mut findings);
    for (index, message, help) in crate::cgroups::list_problems(&workload.cgroups) {
        findings.push(Finding::new(Subject::Cgroup(index), message, help));
    }
    tasks(workload, &mut findings);
    let mut operations = 0_usize;
    each_op(workload, |path, op| {
        operations += 1;
        if let Some((message, help)) = op_problem(workload, path, op) {
            findings.push(Finding::new(Subject::Op(path.clone()), message, help));
        }
    });
    if operations > OPERATIONS_MAX {
        let message =
            format!("{operations} operations, more than OPERATIONS_MAX, {OPERATIONS_MAX}");
        let help = "write loops instead of repeated operations";
        findings.push(Finding::new(Subject::Workload, message, help));
    }
    findings
}

fn whole(workload: &Workload, findings: &mut Vec<Finding>) {
    let mut problem =
        |message: String, help: &str| findings.push(Finding::new(Subject::Workload, message, help));
    if let Some((message, help)) = name_problem("workload", &workload.name) {
        problem(message, help);
    }
    if workload.duration_ns == 0 || workload.duration_ns > TIME_MAX_NS {
        problem(
            "the `duration` must be above 0 and at most TIME_MAX_NS, 1000000 s".into(),
            "write how long the workload runs, as in `duration = \"10s\"`",
        );
    }
    if workload.tasks.is_empty() {
        problem("the workload has no task".into(), "add a [[task]]");
    }
    if workload.tasks.len() > GROUPS_MAX {
        let message =
            format!("{} groups, more than GROUPS_MAX, {GROUPS_MAX}", workload.tasks.len());
        problem(message, "use `count` for tasks that do the same");
    }
    for (kind, count) in [
        ("pipes", workload.pipes.len()),
        ("queues", workload.queues.len()),
        ("locks", workload.locks.len()),
        ("conditions", workload.conditions.len()),
        ("barriers", workload.barriers.len()),
        ("timers", workload.timers.len()),
    ] {
        if count > OBJECTS_MAX {
            problem(
                format!("{count} {kind}, more than OBJECTS_MAX, {OBJECTS_MAX}"),
                "share them between tasks, or split the workload",
            );
        }
    }
}

fn name_problem(kind: &str, name: &str) -> Option<(String, &'static str)> {
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

fn objects(workload: &Workload, findings: &mut Vec<Finding>) {
    for (index, pipe) in workload.pipes.iter().enumerate() {
        if pipe.capacity == 0 || pipe.capacity > AMOUNT_MAX {
            let message = format!("pipe `{}` holds {} bytes", pipe.name, pipe.capacity);
            let help = "write a `capacity` from 1 to AMOUNT_MAX, 4294967296";
            findings.push(Finding::new(Subject::Pipe(index), message, help));
        }
    }
    for (index, queue) in workload.queues.iter().enumerate() {
        if queue.capacity == Some(0) {
            let message = format!("queue `{}` holds no message at all", queue.name);
            let help = "write a `capacity` above 0, or none for a queue without a limit";
            findings.push(Finding::new(Subject::Queue(index), message, help));
        }
        if queue.capacity.is_some_and(|capacity| queue.initial > capacity) {
            let message = format!(
                "queue `{}` starts with {} messages, more than it holds",
                queue.name, queue.initial
            );
            let help = "write a larger `capacity` or a smaller `initial`";
            findings.push(Finding::new(Subject::Queue(index), message, help));
        }
    }
    for (index, timer) in workload.timers.iter().enumerate() {
        if timer.period_ns == 0 || timer.period_ns > TIME_MAX_NS {
            let message = format!("timer `{}` has a period of {} ns", timer.name, timer.period_ns);
            let help = "write a period above 0, as in `period = \"1ms\"`";
            findings.push(Finding::new(Subject::Timer(index), message, help));
        }
    }
}

fn tasks(workload: &Workload, findings: &mut Vec<Finding>) {
    for (index, task) in workload.tasks.iter().enumerate() {
        let mut problem = |message: String, help: &str| {
            findings.push(Finding::new(Subject::Task(index), message, help));
        };
        let name = &task.name;
        if task.count == 0 || u64::from(task.count) > TASKS_MAX {
            problem(
                format!("task `{name}` has the count {}", task.count),
                "write a `count` from 1 to TASKS_MAX, 1000000",
            );
        }
        if !(-20..=19).contains(&task.nice) {
            let message = format!("task `{name}` has the nice value {}", task.nice);
            problem(message, "write a nice value from -20 to 19");
        }
        if let Some(message) = task.cpus.as_ref().and_then(cpus_problem) {
            problem(format!("task `{name}`: {message}"), "write `cpus` as in \"0-3,8\"");
        }
        if task.cgroup.is_some_and(|cgroup| cgroup >= workload.cgroups.len()) {
            let message = format!("task `{name}` is in a cgroup that does not exist");
            problem(message, "declare it: [cgroups.web]");
        }
        if task.start_ns.is_some_and(|ns| ns > TIME_MAX_NS) {
            problem(format!("task `{name}` starts after TIME_MAX_NS"), "let it start earlier");
        }
        if task.program.is_empty() {
            problem(
                format!("task `{name}` does nothing: its program is empty"),
                "say what it does, as in `program = [{ run = \"forever\" }]`",
            );
        }
    }
}

fn cpus_problem(cpus: &CpuList) -> Option<String> {
    if cpus.0.is_empty() {
        return Some("the list of CPUs is empty".into());
    }
    let mut next = 0;
    for &(first, last) in &cpus.0 {
        if first > last || first < next || last > CPU_MAX {
            return Some(format!("the CPUs {first}-{last} are not in order or above {CPU_MAX}"));
        }
        next = last + 1;
    }
    None
}

fn op_problem(workload: &Workload, path: &OpPath, op: &Op) -> Option<(String, &'static str)> {
    const FORM: &str = "write a time from 0 to TIME_MAX_NS, 1000000 s; a range from short to long";
    if path.path.len() > LOOP_DEPTH_MAX + 1 {
        return Some((
            format!("more than LOOP_DEPTH_MAX, {LOOP_DEPTH_MAX}, loops inside loops"),
            "write fewer loops with more `times`",
        ));
    }
    match op {
        Op::Run(Duration::Fixed(0) | Duration::Uniform { high: 0, .. })
        | Op::Busy(Duration::Fixed(0) | Duration::Uniform { high: 0, .. }) => {
            Some(("a run of 0 does nothing".into(), "write a time above 0, or remove it"))
        }
        Op::Run(duration) | Op::Busy(duration) | Op::Sleep(duration) | Op::Io(duration) => {
            let (low, high) = bounds(*duration);
            (low > high || high > TIME_MAX_NS).then(|| ("the time is out of range".into(), FORM))
        }
        Op::TimerWait(_, ns) if *ns == 0 || *ns > TIME_MAX_NS => {
            Some(("the period is out of range".into(), "write a period above 0, as in \"1ms\""))
        }
        Op::TimerWait(timer, _) | Op::TimerStart(timer) => {
            unknown("timer", *timer, workload.timers.len())
        }
        Op::PipeWrite(pipe, bytes) | Op::PipeRead(pipe, bytes) => {
            unknown("pipe", *pipe, workload.pipes.len()).or_else(|| amount(*bytes, "bytes"))
        }
        Op::Send(queue) => unknown("queue", *queue, workload.queues.len()),
        Op::Receive(queue, count) => unknown("queue", *queue, workload.queues.len())
            .or_else(|| amount(u64::from(*count), "messages")),
        Op::Signal(Role::All(task)) | Op::Fork(task) => {
            unknown("task", *task, workload.tasks.len())
        }
        Op::Signal(Role::One(task, number)) => match workload.tasks.get(*task) {
            None => unknown("task", *task, 0),
            Some(spec) if *number >= spec.count => Some((
                format!(
                    "there is no task {}/{number}: the group has {} and counts from 0",
                    spec.name, spec.count
                ),
                "write a smaller number, or a larger `count`",
            )),
            Some(_) => None,
        },
        Op::SetNice(nice) if !(-20..=19).contains(nice) => {
            Some((format!("nice {nice} is out of range"), "write a value from -20 to 19"))
        }
        Op::SetSlice(ns) if *ns > TIME_MAX_NS => {
            Some(("the slice is longer than TIME_MAX_NS".to_owned(), "write a shorter one"))
        }
        Op::SetAffinity(cpus) => {
            cpus_problem(cpus).map(|message| (message, "write `cpus` as in \"0-3,8\""))
        }
        Op::SetCgroup(cgroup) => unknown("cgroup", *cgroup, workload.cgroups.len()),
        Op::SetCgroupWeight(0, _) => Some((
            "the root cgroup has no weight: it has no siblings".into(),
            "set the weight of a cgroup below it",
        )),
        Op::SetCgroupWeight(cgroup, weight) => unknown("cgroup", *cgroup, workload.cgroups.len())
            .or_else(|| crate::cgroups::weight_problem(*weight)),
        Op::Mark(text) if text.chars().any(char::is_control) => {
            Some((format!("the mark {text:?} has a control character in it"), "use plain text"))
        }
        Op::Loop(times, body) => {
            let empty = *times == Some(0) || body.is_empty();
            let help = "put operations into it and let it iterate at least once, or remove it";
            empty.then(|| ("the loop does nothing".into(), help))
        }
        _ => meeting_problem(workload, op),
    }
}

/// The problem of an operation by which tasks wait for each other, if it has one.
fn meeting_problem(workload: &Workload, op: &Op) -> Option<(String, &'static str)> {
    match op {
        Op::Lock(lock) | Op::ReadLock(lock) | Op::WriteLock(lock) | Op::Unlock(lock) => {
            unknown("lock", *lock, workload.locks.len())
        }
        Op::ConditionWait(condition, lock) => {
            unknown("condition", *condition, workload.conditions.len())
                .or_else(|| unknown("lock", *lock, workload.locks.len()))
        }
        Op::Notify(condition) | Op::NotifyAll(condition) => {
            unknown("condition", *condition, workload.conditions.len())
        }
        Op::Barrier(barrier) => unknown("barrier", *barrier, workload.barriers.len()),
        _ => None,
    }
}

fn unknown(kind: &str, index: usize, count: usize) -> Option<(String, &'static str)> {
    const HELP: &str = "refer to what the workload declares";
    (index >= count).then(|| (format!("there is no {kind} number {index}"), HELP))
}

fn amount(amount: u64, what: &str) -> Option<(String, &'static str)> {
    let bad = amount == 0 || amount > AMOUNT_MAX;
    bad.then(|| (format!("{amount} {what} is out of range"), "write a number from 1 to 4294967296"))
}

/// The shortest and the longest value of a duration, ns.
pub(super) fn bounds(duration: Duration) -> (u64, u64) {
    match duration {
        Duration::Fixed(ns) => (ns, ns),
        Duration::Uniform { low, high } => (low, high),
    }
}
