//! Threads: the object `tasks`.

use std::collections::BTreeSet;

use super::events::{EVENTS, event_of, has_event};
use super::json::{Kind, Member, Value};
use super::phases::SETTINGS;
use super::reader::Reader;
use super::steps::{Steps, Thread};
use crate::cgroups::path_problem;
use crate::limits::CGROUPS_MAX;
use crate::model::{Op, TaskSpec};
use crate::spans::TaskSpans;

/// Keys of a thread beside settings and events.
const THREAD_KEYS: [&str; 4] = ["instance", "delay", "loop", "phases"];
/// Limit of `instance`.
const INSTANCES_MAX: i64 = 1_000_000;

impl Reader<'_> {
    pub(super) fn threads(&mut self, value: &Value) -> Vec<TaskSpec> {
        let Some(members) = self.object("tasks", value) else { return Vec::new() };
        if members.is_empty() {
            let help = "write \"thread0\" : { \"run\" : 1000 }";
            self.problem(value.span.clone(), "there is no thread in `tasks`", help);
        }
        let threads = self.heads(members);
        let mut tasks = Vec::new();
        for thread in &threads {
            let Some(inner) = self.object(&thread.member.key, &thread.member.value) else {
                continue;
            };
            let (spec, steps) = self.thread(thread, inner);
            let (program, locations) = steps.into_parts();
            let mut groups = vec![TaskSpec { program, ..spec }];
            if thread.forked && thread.instances > 1 {
                let name = format!("{}-forked", thread.member.key);
                groups.push(TaskSpec { name, count: 1, start_ns: None, ..groups[0].clone() });
            }
            for group in groups {
                let whole = thread.member.span.clone();
                let program = locations.clone();
                self.spans.tasks.push(TaskSpans { whole, program, ..TaskSpans::default() });
                tasks.push(group);
            }
        }
        tasks
    }

    /// Collects what programs need to know of all threads: forked groups, cgroups, modes of timers.
    fn heads<'v>(&mut self, members: &'v [Member]) -> Vec<Thread<'v>> {
        let mut forks: Vec<&str> = Vec::new();
        for (number, member) in members.iter().enumerate() {
            each_event(&member.value, &mut |event, inner| match event {
                "fork" => forks.extend(inner.value.text()),
                "timer" => self.names.timer_mode(number, &inner.value),
                "taskgroup" => self.cgroup_named(inner),
                _ => {}
            });
        }
        if self.names.cgroups.len() >= CGROUPS_MAX {
            let message = format!("more than CGROUPS_MAX, {CGROUPS_MAX}, taskgroups");
            self.problem(0..0, message, "let threads share them");
            self.names.cgroups.clear();
        }
        self.names.tree = self.names.cgroup_tree();
        forks.sort_unstable();
        let mut threads: Vec<Thread<'v>> = Vec::with_capacity(members.len());
        let (mut groups, mut seen) = (0, BTreeSet::new());
        for (number, member) in members.iter().enumerate() {
            let instance = self.find(member.value.members(), "instance");
            let instances =
                instance.and_then(|value| self.integer("instance", value, 0..=INSTANCES_MAX));
            let instances = instances.unwrap_or(1);
            let forked = forks.binary_search(&member.key.as_str()).is_ok();
            if instances == 0 && !forked {
                let message =
                    format!("`{}` never runs: `instance` is 0 and no thread forks it", member.key);
                let help = "write an `instance` from 1, or let another thread fork it";
                self.problem(member.span.clone(), message, help);
            }
            if !seen.insert(member.key.as_str()) {
                let message = format!("a second thread has the name `{}`", member.key);
                let help = "give each a name of its own; rt-app would keep one of them";
                self.problem(member.span.clone(), message, help);
            }
            if forked {
                let second = usize::from(instances > 1);
                self.names.forked.insert(member.key.clone(), groups + second);
                groups += second;
            }
            groups += 1;
            threads.push(Thread { member, number, instances, forked });
        }
        threads
    }

    fn cgroup_named(&mut self, member: &Member) {
        let Some(path) = member.value.text().filter(|path| !path.is_empty()) else { return };
        let problem = match path.strip_prefix('/') {
            None => Some((format!("the taskgroup `{path}` does not begin with `/`"), "write one")),
            Some("") => None,
            Some(below) => path_problem(below),
        };
        match problem {
            Some((message, help)) => self.problem(member.value.span.clone(), message, help),
            None => {
                let path = path.trim_start_matches('/').to_owned();
                self.names.cgroups.entry(path).or_insert(member.value.span.clone());
            }
        }
    }

    fn thread(&mut self, thread: &Thread<'_>, members: &[Member]) -> (TaskSpec, Steps) {
        let phases = self.find(members, "phases");
        for member in members {
            self.thread_key(member, phases.is_some());
        }
        let settings = self.settings(members, None);
        let delay_ns = self.find(members, "delay").and_then(|value| self.time("delay", value, 0));
        let iterations =
            self.find(members, "loop").map(|value| (self.iterations(value), value.span.clone()));
        if delay_ns.is_some_and(|ns| ns > 0) && thread.forked {
            let help = "begin it with a `sleep`; rt-app counts the delay from its own start";
            let message = format!("`{}` is forked and has a `delay`", thread.member.key);
            self.problem(thread.member.span.clone(), message, help);
        }
        let body = match phases {
            Some(phases) => self.phases(thread, phases, &settings),
            None => {
                let body = self.events(thread, members);
                if !has_event(members) {
                    let message = format!("the thread `{}` has no event", thread.member.key);
                    let help = "say what it does, as in \"run\" : 1000";
                    self.problem(thread.member.span.clone(), message, help);
                }
                body
            }
        };
        let (times, span) = iterations.unwrap_or((None, thread.member.span.clone()));
        let body = body.repeated(times, span);
        let mut steps = Steps::default();
        for (timer, span) in body.timers() {
            steps.push(Op::TimerStart(timer), span);
        }
        if let Some(slice_ns) = settings.slice_ns {
            steps.push(Op::SetSlice(slice_ns), settings.slice_span.clone());
        }
        steps.append(body);
        let starts = !(thread.forked && thread.instances == 0);
        let start_ns = starts.then(|| delay_ns.unwrap_or(0));
        let name = thread.member.key.clone();
        let spec = TaskSpec {
            policy: settings.policy.unwrap_or_default(),
            nice: settings.nice.unwrap_or(0),
            cpus: settings.cpus,
            cgroup: settings.cgroup,
            ..TaskSpec::new(name, thread.instances.max(1), start_ns, Vec::new())
        };
        (spec, steps)
    }

    /// Whether a key is allowed in a thread.
    fn thread_key(&mut self, member: &Member, has_phases: bool) {
        let key = member.key.as_str();
        if THREAD_KEYS.contains(&key) || SETTINGS.contains(&key) {
            return;
        }
        match event_of(key) {
            Ok(_) if has_phases => {
                let help = match key {
                    "runtime" => "move it into a phase; the length of a slice is `dl-runtime`",
                    _ => "move it into a phase",
                };
                let message = format!("`{key}` beside `phases` is never executed");
                self.problem(member.span.clone(), message, help);
            }
            Ok(_) => {
                if key == "runtime" {
                    self.note(
                        &member.span,
                        "`runtime` beside a thread's other keys: rt-app takes it for the event and \
                         for the length of the thread's slice too; here it is the event alone",
                    );
                }
            }
            Err(near) => {
                let known = THREAD_KEYS.iter().chain(&SETTINGS).chain(&EVENTS).copied();
                self.unknown(member, "a thread", near, known);
            }
        }
    }
}

/// The events of a thread and its phases, by the event's word; also its taskgroups.
fn each_event<'v>(thread: &'v Value, visit: &mut impl FnMut(&'static str, &'v Member)) {
    for member in thread.members() {
        match (member.key.as_str(), &member.value.kind) {
            ("phases", Kind::Object(phases)) => {
                phases.iter().for_each(|phase| each_event(&phase.value, visit));
            }
            ("taskgroup", _) => visit("taskgroup", member),
            (key, _) => {
                if let Ok(event) = event_of(key) {
                    visit(event, member);
                }
            }
        }
    }
}
