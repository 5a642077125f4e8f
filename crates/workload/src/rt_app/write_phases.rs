//! Programs cut into phases.

use super::phases::all_cpus;
use super::write_events::events;
use super::write_text::{Pair, iterations_text, number_list, policy_text};
use super::writer::{Item, What, Writer};
use crate::model::{Op, TaskSpec};
use crate::policy::SchedPolicy;
use crate::units::CpuList;

impl<'w> Writer<'w> {
    /// A list cut into phases: each begins with its settings, and is a loop or executes its events once.
    pub(super) fn phases(
        &mut self,
        task: &'w TaskSpec,
        index: usize,
        iterations: Option<u64>,
        list: &[Item<'w>],
    ) -> Vec<Vec<Pair>> {
        let mut cutter = Cutter::new(task, iterations);
        let mut at = 0;
        while at < list.len() {
            let sets =
                list[at..].iter().take_while(|item| matches!(item.what, What::Set(_))).count();
            for item in &list[at..at + sets] {
                self.at(item);
                cutter.set(self, item);
            }
            at += sets;
            let body = match list.get(at) {
                None => {
                    self.problem(
                        "no event follows this setting",
                        "remove it, or add a `run` after it",
                    );
                    break;
                }
                Some(Item { what: What::Loop(iterations, body), .. }) => {
                    at += 1;
                    self.innermost(body);
                    let mut pairs = vec![("loop".to_owned(), iterations_text(*iterations))];
                    pairs.extend(events(self, body, index));
                    pairs
                }
                Some(_) => {
                    let plain = |item: &&Item<'_>| matches!(item.what, What::Op(_) | What::Run(_));
                    let count = list[at..].iter().take_while(plain).count();
                    at += count;
                    events(self, &list[at - count..at], index)
                }
            };
            cutter.phase(self, body);
        }
        cutter.phases
    }

    /// A phase's loop may contain only events.
    fn innermost(&mut self, body: &[Item<'_>]) {
        for item in body {
            self.at(item);
            match item.what {
                What::Loop(..) => {
                    let help = "rt-app has two: the thread's and that of its phases";
                    self.problem("more loops inside one another than rt-app has", help);
                }
                What::Set(_) => {
                    let help = "rt-app sets such things where a phase begins: move it in front of the loop";
                    self.problem("something is set inside a loop of events", help);
                }
                What::Op(_) | What::Run(_) => {}
            }
        }
    }
}

/// Combines phases. In rt-app a phase without `cpus` restores those of the thread; in the model they stay.
struct Cutter<'w> {
    task: &'w TaskSpec,
    /// Whether the thread's phases repeat.
    repeats: bool,
    phases: Vec<Vec<Pair>>,
    sets: Vec<Pair>,
    policy: SchedPolicy,
    nice: i8,
    /// The last settings of the task.
    cpus: Option<&'w CpuList>,
    first_had_cpus: bool,
}

impl<'w> Cutter<'w> {
    fn new(task: &'w TaskSpec, iterations: Option<u64>) -> Self {
        Self {
            task,
            repeats: iterations != Some(1),
            phases: Vec::new(),
            sets: Vec::new(),
            policy: task.policy,
            nice: task.nice,
            cpus: None,
            first_had_cpus: false,
        }
    }

    fn set(&mut self, writer: &mut Writer<'w>, item: &Item<'w>) {
        let What::Set(op) = item.what else { return };
        let (key, value) = match op {
            Op::SetPolicy(policy) => {
                self.policy = *policy;
                let priority = policy.priority().map_or(i64::from(self.nice), i64::from);
                self.put("policy", policy_text(*policy));
                ("priority", Some(priority.to_string()))
            }
            Op::SetNice(nice) => {
                self.nice = *nice;
                if self.policy.priority().is_some() {
                    // It takes effect with the next normal policy.
                    return;
                }
                ("priority", Some(nice.to_string()))
            }
            Op::SetSlice(0) => {
                let help = "rt-app cannot: end the thread, or write the length that it had";
                writer.problem("the scheduler's own slice is asked for again", help);
                return;
            }
            Op::SetSlice(ns) => ("dl-runtime", writer.us(*ns)),
            Op::SetAffinity(cpus) => {
                if self.cpus.is_none()
                    && !self.phases.is_empty()
                    && self.repeats
                    && !self.first_had_cpus
                {
                    let help = "set them in front of the first operation of the loop too";
                    writer.problem("CPUs are set here, but not where the loop begins", help);
                }
                self.cpus = Some(cpus);
                self.first_had_cpus |= self.phases.is_empty();
                return;
            }
            Op::SetCgroup(cgroup) => ("taskgroup", Some(writer.path(*cgroup))),
            _ => return,
        };
        self.put(key, value.unwrap_or_default());
    }

    fn put(&mut self, key: &str, value: String) {
        self.sets.retain(|(known, _)| known != key);
        self.sets.push((key.to_owned(), value));
    }

    fn phase(&mut self, writer: &mut Writer<'w>, body: Vec<Pair>) {
        let mut phase = std::mem::take(&mut self.sets);
        let has = |key: &str| phase.iter().any(|(known, _)| known == key);
        // Without a priority rt-app ignores the slice.
        if has("dl-runtime") && !has("priority") {
            phase.insert(0, ("priority".to_owned(), self.nice.to_string()));
        }
        match self.cpus {
            Some(cpus) if *cpus == all_cpus() && self.task.cpus.is_some() => {
                writer.problem("all CPUs are allowed again", "write the CPUs of the machine");
            }
            Some(cpus) if *cpus != all_cpus() => {
                phase.push(("cpus".to_owned(), number_list(cpus)));
            }
            _ => {}
        }
        phase.extend(body);
        self.phases.push(phase);
    }
}
