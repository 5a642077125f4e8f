//! Users or containers side by side, each with a weight and tasks of its own.

use std::collections::BTreeMap;

use super::parts::{COUNT_MAX, group, run_and_sleep, seconds};
use super::spec::{Call, Entry, Token, parameter};
use crate::cgroups::{Cgroup, find, path_problem, tree};
use crate::join::free_name;
use crate::limits::{CGROUP_WEIGHT_DEFAULT, CGROUP_WEIGHT_MAX};
use crate::model::{TaskSpec, Workload};
use crate::units::Duration;

pub(super) const CONTAINERS: Entry = Entry {
    name: "containers",
    arguments: "PATH=WEIGHT:TASKS…",
    summary: "control groups with tasks in them, PATH=WEIGHT:TASKS each, parted by blanks; \
              PATH=WEIGHT alone holds others",
    source: "the wish of the 2007 threads to renice users or containers, with fair scheduling within each",
    limits: "tasks share nothing but the CPU",
    parameters: &[
        parameter("run", "1ms", "how long a task runs"),
        parameter("sleep", "0s", "how long it then sleeps; 0: it computes for ever"),
    ],
    build: containers,
};

fn containers(call: &mut Call<'_, '_>) -> Workload {
    let mut words = call.words();
    if words.is_empty() {
        let help = "write them, as in `containers:web=300:4 batch=100:8`".to_owned();
        call.problem(call.name.span.clone(), "no container is named".to_owned(), help);
    }
    call.limit(&mut words, "containers", "write a file");
    let program = run_and_sleep(call.duration("run"), Duration::Fixed(call.time("sleep")));
    let (mut weights, mut tasks) = (BTreeMap::new(), Vec::<(TaskSpec, String)>::new());
    for word in words {
        let Some((path, weight, count)) = container(call, &word) else { continue };
        if weights.insert(path.clone(), weight).is_some() {
            let help = "name each once; more tasks of another kind take a file".to_owned();
            call.problem(word.span.clone(), format!("`{path}` is named twice"), help);
        }
        if let Some(count) = count {
            let taken = tasks.iter().map(|(task, _)| &task.name);
            let name = free_name(taken, path.replace('/', "-"));
            tasks.push((group(name, count, program.clone()), path));
        }
    }
    let cgroups = tree(weights.into_iter().map(|(path, weight)| Cgroup::new(path, weight)));
    let placed =
        tasks.into_iter().map(|(task, path)| TaskSpec { cgroup: find(&cgroups, &path), ..task });
    let tasks = placed.collect();
    Workload { cgroups, ..seconds(10, "control groups with tasks in them", tasks) }
}

/// `path=weight:tasks` or `path=weight`; without `=weight` the default one.
fn container(call: &mut Call<'_, '_>, word: &Token<'_>) -> Option<(String, u32, Option<u32>)> {
    let (head, count) = word.split_once(|c| c == ':');
    let (path, weight) = head.split_once(|c| c == '=');
    if let Some((message, help)) = path_problem(path.text) {
        call.problem(path.span.clone(), message, help.to_owned());
        return None;
    }
    let weight = weight.map_or(CGROUP_WEIGHT_DEFAULT, |piece| {
        call.number("a weight", &piece, 1..=CGROUP_WEIGHT_MAX)
    });
    let count = count.map(|piece| call.number("the number of tasks", &piece, 1..=COUNT_MAX));
    Some((path.text.to_owned(), weight, count))
}
