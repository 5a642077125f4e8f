//! Writes a workload as a file of rt-app, as far as rt-app can express it.
//!
//! rt-app has two nested loops, the thread's and a phase's, and sets nice values, slices, CPUs and groups only where a
//! phase begins. A program is cut into such phases; one that cannot be cut is an error that names the operation.

use std::collections::BTreeSet;

use super::write_events::events;
use super::write_text::{Pair, Thread, file, iterations_text, number_list, policy_text};
use super::writer::{Buffer, Item, What, Writer};
use crate::check;
use crate::diagnostic::WorkloadError;
use crate::limits::CGROUP_WEIGHT_DEFAULT;
use crate::model::{LockKind, Op, Program, TaskSpec, Workload};
use crate::objects::ObjectKind;
use crate::spans::{Finding, Locator, Subject};
use crate::walk::{OpPath, each_op_of, forked};

/// The run that represents an endless computation, repeated, ns.
const FOREVER_NS: u64 = 1_000_000_000;

/// A written file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtAppText {
    /// The file.
    pub text: String,
    /// Differences between the workload and what rt-app does with the file.
    pub notes: Vec<String>,
}

/// Everything that rt-app cannot express, each with its task and operation; and what [`crate::check`](crate::check())
/// finds.
pub fn to_rt_app(workload: &Workload) -> Result<RtAppText, WorkloadError> {
    check::check(workload)?;
    let mut writer = Writer {
        workload,
        findings: Vec::new(),
        notes: Vec::new(),
        buffer: Buffer::of(workload),
        at: OpPath::start(0, false),
    };
    let threads: Vec<Thread> = (0..workload.tasks.len()).map(|task| writer.thread(task)).collect();
    let global = writer.global();
    if writer.findings.is_empty() {
        return Ok(RtAppText { text: file(&threads, &global), notes: writer.notes });
    }
    Err(Locator { workload, text: None }.error(writer.findings))
}

impl<'w> Writer<'w> {
    fn global(&mut self) -> Vec<Pair> {
        let workload = self.workload;
        let seconds = workload.duration_ns.div_ceil(1_000_000_000);
        if !workload.duration_ns.is_multiple_of(1_000_000_000) {
            self.notes.push(format!(
                "the duration is rounded up to {seconds} s: rt-app counts in seconds"
            ));
        }
        let mut global = vec![
            ("duration".to_owned(), seconds.to_string()),
            ("default_policy".to_owned(), "\"SCHED_OTHER\"".to_owned()),
        ];
        let mut kinds: Vec<LockKind> = workload.locks.iter().map(|lock| lock.kind).collect();
        kinds.dedup();
        for (index, lock) in workload.locks.iter().enumerate() {
            if !matches!(lock.kind, LockKind::Mutex | LockKind::RtMutex) || kinds.len() > 1 {
                let message = format!("the lock `{}` is a {}", lock.name, lock.kind.word());
                let help = "rt-app has mutexes, all with priority inheritance or all without";
                self.findings.push(Finding::new(
                    Subject::Object(ObjectKind::Lock, index),
                    message,
                    help,
                ));
            }
        }
        if kinds == [LockKind::RtMutex] {
            global.push(("pi_enabled".to_owned(), "true".to_owned()));
        }
        if let Some(bytes) = self.buffer.unusual() {
            global.push(("mem_buffer_size".to_owned(), bytes.to_string()));
        }
        if self.buffer.has_io {
            global.push(("io_device".to_owned(), "\"rt-app.io\"".to_owned()));
            self.notes.push(
                "`io_device` is a file in the current folder: name the device that you mean"
                    .to_owned(),
            );
        }
        for (index, cgroup) in workload.cgroups.iter().enumerate() {
            let found = if cgroup.weight != CGROUP_WEIGHT_DEFAULT {
                let help = "rt-app sets no weights: leave it at 100";
                Some((format!("has the weight {}", cgroup.weight), help))
            } else if cgroup.max.is_limited() || cgroup.idle {
                let help = "rt-app sets neither: leave out `max` and `idle`";
                Some(("has a limit or is idle".to_owned(), help))
            } else {
                None
            };
            if let Some((what, help)) = found {
                let message = format!("the cgroup `{}` {what}", cgroup.path);
                self.findings.push(Finding::new(
                    Subject::Object(ObjectKind::Cgroup, index),
                    message,
                    help,
                ));
            }
        }
        global
    }

    fn thread(&mut self, index: usize) -> Thread {
        let task = &self.workload.tasks[index];
        self.at = OpPath::start(index, false);
        if !task.on_signal.is_empty() {
            self.of_task(
                format!("`{}` handles signals", task.name),
                "rt-app has none: use a condition",
            );
        }
        let mut head = self.head(task);
        let items = self.items(&task.program, &mut Vec::new());
        let mut items: Vec<Item<'w>> = self.without_timer_starts(task, items);
        if let [Item { what: What::Set(Op::SetSlice(ns)), .. }, ..] = items[..] {
            let us = self.us(*ns);
            head.push(("dl-runtime".to_owned(), us.unwrap_or_default()));
            items.remove(0);
        }
        if matches!(items.last(), Some(Item { what: What::Op(Op::Exit), .. })) {
            items.pop();
        }
        let whole = matches!(items[..], [Item { what: What::Loop(..), .. }]);
        let (iterations, list) = match items.pop() {
            Some(Item { what: What::Loop(iterations, body), .. }) if whole => (iterations, body),
            Some(last) => {
                items.push(last);
                (Some(1), items)
            }
            None => (Some(1), items),
        };
        let mut thread = Thread { name: task.name.clone(), head, ..Thread::default() };
        thread.head.push(("loop".to_owned(), iterations_text(iterations)));
        if list.iter().all(|item| matches!(item.what, What::Op(_) | What::Run(_))) {
            thread.events = events(self, &list, index);
            if list.is_empty() {
                self.of_task(
                    format!("`{}` does nothing that rt-app knows", task.name),
                    "let it compute",
                );
            }
        } else {
            thread.phases = self.phases(task, index, iterations, &list);
        }
        thread
    }

    /// The members before the phases: count, start, and initial settings.
    fn head(&mut self, task: &'w TaskSpec) -> Vec<Pair> {
        let mut head = Vec::new();
        let mut pair = |key: &str, value: String| head.push((key.to_owned(), value));
        match (task.start_ns, task.count) {
            (None, _) => pair("instance", "0".to_owned()),
            (_, 1) => {}
            (_, count) => pair("instance", count.to_string()),
        }
        if let Some(ns) = task.start_ns.filter(|ns| *ns > 0)
            && let Some(us) = self.us(ns)
        {
            pair("delay", us);
            if forked(self.workload)[self.at.task] {
                self.of_task(
                    format!("`{}` starts late and is forked too", task.name),
                    "rt-app counts the delay of a fork from its own start: make it two groups",
                );
            }
        }
        match task.policy.priority() {
            Some(priority) => {
                pair("policy", policy_text(task.policy));
                pair("priority", priority.to_string());
            }
            None if task.nice != 0 => pair("priority", task.nice.to_string()),
            None => {}
        }
        if let Some(cpus) = &task.cpus {
            pair("cpus", number_list(cpus));
        }
        if let Some(cgroup) = task.cgroup {
            pair("taskgroup", self.path(cgroup));
        }
        head
    }

    /// The operations with their locations, without those that rt-app does not need.
    fn items(&mut self, program: &'w Program, path: &mut Vec<usize>) -> Vec<Item<'w>> {
        let mut items = Vec::with_capacity(program.len());
        for (index, op) in program.iter().enumerate() {
            path.push(index);
            let what = match op {
                Op::Mark(_) => {
                    let note = "marks are left out: rt-app writes its own (`ftrace`)".to_owned();
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                    None
                }
                Op::RunForever => {
                    let run = Item { path: path.clone(), what: What::Run(FOREVER_NS) };
                    Some(What::Loop(None, vec![run]))
                }
                Op::SetNice(_)
                | Op::SetPolicy(_)
                | Op::SetSlice(_)
                | Op::SetAffinity(_)
                | Op::SetCgroup(_) => Some(What::Set(op)),
                Op::Loop(iterations, body) if !self.buffer.is_event(op) => {
                    Some(What::Loop(*iterations, self.items(body, path)))
                }
                op => Some(What::Op(op)),
            };
            items.extend(what.map(|what| Item { path: path.clone(), what }));
            path.pop();
        }
        items
    }

    /// Timers begin with the thread in rt-app.
    fn without_timer_starts(&mut self, task: &TaskSpec, items: Vec<Item<'w>>) -> Vec<Item<'w>> {
        let start = |item: &Item<'_>| match item.what {
            What::Op(Op::TimerStart(timer)) => Some(*timer),
            _ => None,
        };
        let started: BTreeSet<usize> = items.iter().map_while(start).collect();
        let count = items.iter().map_while(start).count();
        let mut late = false;
        each_op_of(&task.program, &mut self.at.clone(), &mut |_, op| {
            late |= matches!(op, Op::TimerWait(timer, _) if !started.contains(timer));
        });
        if late {
            self.notes.push(format!(
                "the first period of a timer of `{}` begins with the thread in rt-app, here with the first wait",
                task.name
            ));
        }
        items.into_iter().skip(count).collect()
    }
}
