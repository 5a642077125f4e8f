//! The result: figures per task, group, CPU, weight class and for the machine.

use crate::accounting::{Accounts, TaskAccount};
use crate::cgroups::{self, CgroupMetrics};
use crate::figures::jain_index;
use crate::pass::Pass;
use crate::{CpuMetrics, Figures, Irregularities, MachineMetrics, Options, ParamChange, Series};
use fairground_trace::{CgroupId, TaskId, Trace};
use std::collections::BTreeMap;

/// Everything that was measured in one window of one trace, by the rules in the documentation of the crate.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The first instant of the window, ns of the trace's clock.
    pub start_ns: u64,
    /// The last instant of the window, ns.
    pub end_ns: u64,
    /// The machine as a whole.
    pub machine: MachineMetrics,
    /// The CPUs by number.
    pub cpus: Vec<CpuMetrics>,
    /// The tasks by [`TaskId`], without the idle task.
    pub tasks: Vec<TaskMetrics>,
    /// The groups in the order of their first task.
    pub groups: Vec<GroupMetrics>,
    /// The control groups, the root first; empty where the trace has none.
    pub cgroups: Vec<CgroupMetrics>,
    /// The figures over time, when asked for.
    pub series: Option<Series>,
    /// Changes of tunables in the window.
    pub params: Vec<ParamChange>,
    /// Contradictions and losses in the trace.
    pub irregularities: Irregularities,
}

/// The figures of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskMetrics {
    /// Which task.
    pub task: TaskId,
    /// The kernel's pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The index of its group in [`Analysis::groups`].
    pub group: usize,
    /// Its weight at the end of the window.
    pub weight: u32,
    /// Its cgroup at the end of the window; `None` where the trace has none.
    pub cgroup: Option<CgroupId>,
    /// Whether the trace shows it on a CPU, from the trace's begin to the end of the window.
    pub has_run: bool,
    /// How long it has been waiting for a CPU when the window ends, ns: since the wait began, or since the last
    /// loss of events; `None` when it does not wait.
    pub waiting_ns: Option<u64>,
    /// Its figures.
    pub figures: Figures,
}

/// A task that waits for its first time on a CPU when the window ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverRan {
    /// Which task.
    pub task: TaskId,
    /// The kernel's pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// How long it has been waiting, ns: [`TaskMetrics::waiting_ns`].
    pub waiting_ns: u64,
}

/// The figures of all tasks whose names are alike up to a `/`: `hog/0` and `hog/1` are the group `hog`.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupMetrics {
    /// The common part of the name.
    pub name: String,
    /// Their figures together.
    pub figures: Figures,
}

impl GroupMetrics {
    /// The name of a task's group.
    pub fn name_of(task_name: &str) -> &str {
        task_name.split('/').next().unwrap_or(task_name)
    }
}

impl Analysis {
    /// Analyses a trace. The same trace and options give the same figures to the last bit.
    pub fn of(trace: &Trace, options: &Options) -> Self {
        let (group_names, group_of) = group_tasks(trace);
        let accounts = Pass::new(trace, options, &group_of, group_names.len()).run(trace);
        Self::from_accounts(trace, &group_names, accounts)
    }

    /// The figures of a pass during which tasks were met that have no group yet.
    pub(crate) fn from_stream(trace: &Trace, mut accounts: Accounts) -> Self {
        let (names, groups) = group_tasks(trace);
        for (task, group) in accounts.tasks.iter_mut().zip(groups) {
            task.group = group;
        }
        accounts.irregularities.loss = trace.loss.clone();
        Self::from_accounts(trace, &names, accounts)
    }

    fn from_accounts(trace: &Trace, group_names: &[&str], accounts: Accounts) -> Self {
        let cgroups = cgroups::metrics(trace, &accounts.tasks, &accounts.cgroup_weights);
        let Accounts { window_ns, tasks, cpus, series, machine, irregularities, params, .. } =
            accounts;
        let tasks = name_tasks(trace, tasks);
        let groups = group_names
            .iter()
            .zip(sum_groups(&tasks, group_names.len()))
            .map(|(name, figures)| GroupMetrics { name: (*name).to_owned(), figures })
            .collect();
        let mut analysis = Self {
            start_ns: window_ns.0,
            end_ns: window_ns.1,
            machine,
            cpus,
            tasks,
            groups,
            cgroups,
            series,
            params,
            irregularities,
        };
        analysis.machine.marks = analysis.groups.iter().map(|group| group.figures.marks).sum();
        analysis.machine.jain_index = jain_index(analysis.tasks.iter().map(|task| &task.figures));
        analysis
    }

    /// The figures of a task; `None` for the idle task and for one that the trace does not have.
    pub fn task(&self, task: TaskId) -> Option<&TaskMetrics> {
        self.tasks.get(task.index().checked_sub(1)?)
    }

    /// The tasks that are runnable when the window ends and that the trace shows on no CPU up to there, the one
    /// that has waited longest first. In a recording of a running machine a task may have run before the recording
    /// began.
    pub fn never_ran(&self) -> Vec<NeverRan> {
        let never_ran = |task: &TaskMetrics| {
            let waiting_ns = task.waiting_ns.filter(|_| !task.has_run)?;
            Some(NeverRan { task: task.task, pid: task.pid, name: task.name.clone(), waiting_ns })
        };
        let mut found: Vec<NeverRan> = self.tasks.iter().filter_map(never_ran).collect();
        found.sort_by_key(|task| (u64::MAX - task.waiting_ns, task.task));
        found
    }

    /// The control group of that path.
    pub fn cgroup(&self, path: &str) -> Option<&CgroupMetrics> {
        self.cgroups.iter().find(|cgroup| cgroup.path == path)
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&GroupMetrics> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// The figures of all tasks that `select` picks, together.
    pub fn select(&self, select: impl Fn(&TaskMetrics) -> bool) -> Figures {
        sum(self.tasks.iter().filter(|task| select(task)))
    }

    /// The tasks of that name, or of the group of that name.
    pub fn tasks_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a TaskMetrics> {
        self.tasks
            .iter()
            .filter(move |task| task.name == name || GroupMetrics::name_of(&task.name) == name)
    }

    /// The names that tell tasks apart, in the order of [`Analysis::tasks`]: its name; `name[pid]` where several
    /// tasks have that name; `name[pid]#2` for the second task of a pid that was used again.
    pub fn task_labels(&self) -> Vec<String> {
        let (mut named, mut seen) = (BTreeMap::new(), BTreeMap::new());
        for task in &self.tasks {
            *named.entry(task.name.as_str()).or_insert(0) += 1;
        }
        let label = |task: &TaskMetrics| {
            if named[task.name.as_str()] == 1 {
                return task.name.clone();
            }
            let nth = seen.entry((task.name.clone(), task.pid)).or_insert(0);
            *nth += 1;
            match *nth {
                1 => format!("{}[{}]", task.name, task.pid),
                nth => format!("{}[{}]#{nth}", task.name, task.pid),
            }
        };
        self.tasks.iter().map(label).collect()
    }

    /// The length of the window, ns.
    pub fn window_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// The names of the groups, and the group of each task. Task 0 has none and gets number 0.
pub(crate) fn group_tasks(trace: &Trace) -> (Vec<&str>, Vec<usize>) {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut names = Vec::new();
    let mut group_of = Vec::with_capacity(trace.tasks().len());
    for (id, info) in trace.tasks().iter().enumerate() {
        if id == 0 {
            group_of.push(0);
            continue;
        }
        let name = GroupMetrics::name_of(&info.comm);
        let number = *numbers.entry(name).or_insert(names.len());
        if number == names.len() {
            names.push(name);
        }
        group_of.push(number);
    }
    (names, group_of)
}

fn name_tasks(trace: &Trace, tasks: Vec<TaskAccount>) -> Vec<TaskMetrics> {
    let infos = trace.tasks().iter().enumerate();
    infos
        .zip(tasks)
        .skip(1)
        .map(|((id, info), account)| TaskMetrics {
            task: TaskId(id as u32),
            pid: info.pid,
            name: info.comm.clone(),
            group: account.group,
            weight: account.weight,
            cgroup: (!trace.cgroups().is_empty()).then_some(CgroupId(account.cgroup as u32)),
            has_run: account.has_run,
            waiting_ns: account.waiting_ns,
            figures: account.figures,
        })
        .collect()
}

/// One pass over the tasks: its cost does not depend on the number of groups.
fn sum_groups(tasks: &[TaskMetrics], count: usize) -> Vec<Figures> {
    let mut groups = vec![Figures::default(); count];
    for task in tasks {
        groups[task.group].absorb(&task.figures);
    }
    groups.iter_mut().for_each(|group| group.members.sort_unstable());
    groups
}

fn sum<'a>(tasks: impl Iterator<Item = &'a TaskMetrics>) -> Figures {
    let mut figures = Figures::default();
    for task in tasks {
        figures.absorb(&task.figures);
    }
    figures.members.sort_unstable();
    figures
}
