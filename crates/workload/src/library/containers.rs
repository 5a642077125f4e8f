//! Users or containers side by side, each with a weight and tasks of its own.

use std::collections::BTreeMap;

use super::load::run_and_sleep;
use super::spec::{Call, Token};
use super::{COUNT_MAX, Entry, Parameter, group, independent};
use crate::cgroups::{find, path_problem, tree};
use crate::limits::{CGROUP_WEIGHT_DEFAULT, CGROUP_WEIGHT_MAX, PARTS_MAX};
use crate::model::{Duration, TaskSpec, Workload};

pub(super) const CONTAINERS: Entry = Entry {
    name: "containers",
    arguments: "PATH=WEIGHT:TASKS…",
    summary: "control groups with tasks in them, PATH=WEIGHT:TASKS each, parted by blanks; \
              PATH=WEIGHT alone holds others",
    source: "the wish of the 2007 threads to renice users or containers, with fair scheduling within each",
    limits: "tasks share nothing but the CPU",
    parameters: &[
        Parameter { name: "run", default: "1ms", help: "how long a task runs" },
        Parameter {
            name: "sleep",
            default: "0s",
            help: "how long it then sleeps; 0: it computes for ever",
        },
    ],
    build: containers,
};

fn containers(call: &mut Call<'_, '_>) -> Workload {
    let words = match &call.arguments {
        Some(arguments) => arguments.split(char::is_whitespace),
        None => Vec::new(),
    };
    let mut words: Vec<Token<'_>> = words.into_iter().filter(|w| !w.text.is_empty()).collect();
    if words.is_empty() {
        let help = "write them, as in `containers:web=300:4 batch=100:8`".to_owned();
        call.problem(call.name.span.clone(), "no container is named".to_owned(), help);
    }
    if let Some(word) = words.get(PARTS_MAX) {
        let message = format!("more than PARTS_MAX, {PARTS_MAX}, containers");
        call.problem(word.span.clone(), message, "write a file".to_owned());
        words.truncate(PARTS_MAX);
    }
    let program =
        run_and_sleep(call.duration("run", 1_000_000), Duration::Fixed(call.time("sleep", 0)));
    let (mut weights, mut tasks) = (BTreeMap::new(), Vec::<(TaskSpec, String)>::new());
    for word in words {
        let Some((path, weight, count)) = container(call, &word) else { continue };
        if weights.insert(path.clone(), weight).is_some() {
            let help = "name each once; more tasks of another kind take a file".to_owned();
            call.problem(word.span.clone(), format!("`{path}` is named twice"), help);
        }
        if let Some(count) = count {
            let name = path.replace('/', "-");
            let taken = tasks.iter().map(|(task, _)| &task.name);
            let name = super::free_name(taken, name);
            tasks.push((group(&name, count, program.clone()), path));
        }
    }
    let cgroups = tree(weights);
    let pair = |(mut task, path): (TaskSpec, String)| {
        task.cgroup = find(&cgroups, &path);
        task
    };
    let tasks = tasks.into_iter().map(pair).collect();
    let mut workload = independent("control groups with tasks in them".to_owned(), tasks);
    workload.cgroups = cgroups;
    workload
}

/// `path=weight:tasks` or `path=weight`; without `=weight` the default one.
fn container(call: &mut Call<'_, '_>, word: &Token<'_>) -> Option<(String, u32, Option<u32>)> {
    let (head, count) = word.split_once(|c| c == ':');
    let (path, weight) = head.split_once(|c| c == '=');
    if let Some((message, help)) = path_problem(path.text) {
        call.problem(path.span.clone(), message, help.to_owned());
        return None;
    }
    let number = |call: &mut Call<'_, '_>, what, piece: &Token<'_>, high| {
        u32::try_from(call.number(what, piece, 1, high)).unwrap_or(1)
    };
    let weight = weight.map_or(CGROUP_WEIGHT_DEFAULT, |piece| {
        number(call, "a weight", &piece, i64::from(CGROUP_WEIGHT_MAX))
    });
    let count = count.map(|piece| number(call, "the number of tasks", &piece, COUNT_MAX));
    Some((path.text.to_owned(), weight, count))
}
