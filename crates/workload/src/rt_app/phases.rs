//! Phases, and the settings of a thread or a phase.

use std::ops::Range;

use super::events::{EVENTS, event_of, has_event};
use super::global::IDLE;
use super::json::{Member, Value};
use super::reader::Reader;
use super::steps::{Steps, Thread};
use crate::limits::CPU_MAX;
use crate::model::{CgroupId, Op};
use crate::policy::SchedPolicy;
use crate::units::CpuList;

/// Keys of the settings of a thread or a phase.
pub(super) const SETTINGS: [&str; 10] = [
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "cpus",
    "nodes_membind",
    "util_min",
    "util_max",
    "taskgroup",
];
/// The nice value in place of SCHED_IDLE.
const NICE_OF_IDLE: i8 = 19;
/// The largest value of a clamp (`SCHED_CAPACITY_SCALE`).
const CLAMP_MAX: i64 = 1_024;

/// The settings of a thread or a phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) policy: Option<SchedPolicy>,
    pub(super) nice: Option<i8>,
    pub(super) slice_ns: Option<u64>,
    pub(super) slice_span: Range<usize>,
    pub(super) cpus: Option<CpuList>,
    pub(super) cgroup: Option<CgroupId>,
}

impl Reader<'_> {
    pub(super) fn phases(
        &mut self,
        thread: &Thread<'_>,
        value: &Value,
        of_thread: &Settings,
    ) -> Steps {
        let mut all = Steps::default();
        let Some(phases) = self.object("phases", value) else { return all };
        if phases.is_empty() {
            let help = "write \"phase0\" : { \"run\" : 1000 }";
            self.problem(value.span.clone(), "there is no phase in `phases`", help);
        }
        let mut read = Vec::with_capacity(phases.len());
        let mut policy = of_thread.policy.unwrap_or_default();
        for phase in phases {
            let Some(members) = self.object(&phase.key, &phase.value) else { continue };
            let settings = self.settings(members, Some(policy));
            policy = settings.policy.unwrap_or(policy);
            read.push((phase, settings, self.phase(thread, phase, members)));
        }
        let pinned = read.iter().any(|(_, settings, _)| settings.cpus.is_some());
        // An `iorun` to /dev/null is left out.
        for (phase, settings, body) in read.into_iter().filter(|(.., body)| !body.is_empty()) {
            if let Some(policy) = settings.policy {
                all.push(Op::SetPolicy(policy), phase.span.clone());
            }
            if let Some(nice) = settings.nice {
                all.push(Op::SetNice(nice), phase.span.clone());
            }
            if let Some(slice_ns) = settings.slice_ns {
                all.push(Op::SetSlice(slice_ns), settings.slice_span);
            }
            if pinned {
                // A phase without `cpus` restores the thread's.
                let cpus = settings.cpus.or_else(|| of_thread.cpus.clone());
                all.push(Op::SetAffinity(cpus.unwrap_or_else(all_cpus)), phase.span.clone());
            }
            if let Some(cgroup) = settings.cgroup {
                all.push(Op::SetCgroup(cgroup), phase.span.clone());
            }
            all.append(body);
        }
        all
    }

    /// The events of a phase, in its loop.
    fn phase(&mut self, thread: &Thread<'_>, phase: &Member, members: &[Member]) -> Steps {
        for member in members {
            let key = member.key.as_str();
            if key == "loop" || SETTINGS.contains(&key) {
                continue;
            }
            if let Err(near) = event_of(key) {
                let known = ["loop"].into_iter().chain(SETTINGS).chain(EVENTS);
                self.unknown(member, "a phase", near, known);
            }
        }
        let body = self.events(thread, members);
        if !has_event(members) {
            let message = format!("the phase `{}` has no event", phase.key);
            self.problem(phase.span.clone(), message, "add one, as in \"run\" : 1000");
        }
        let iterations = self.find(members, "loop");
        let iterations = iterations.map_or(Some(1), |value| self.iterations(value));
        body.repeated(iterations, phase.span.clone())
    }

    /// The settings of a phase that begins with the policy `before`, or, `None`, of a thread.
    pub(super) fn settings(&mut self, members: &[Member], before: Option<SchedPolicy>) -> Settings {
        let mut settings = self.class(members, before);
        if let Some(value) = self.find(members, "dl-runtime") {
            let slice_ns = self.time("dl-runtime", value, 1);
            settings.slice_span = value.span.clone();
            let now = settings.policy.or(before).unwrap_or_default();
            if now.priority().is_some() {
                self.note(&value.span, "`dl-runtime` has no meaning for a real-time policy");
            } else if before.is_some() && settings.nice.is_none() {
                let text = "`dl-runtime` of a phase without `priority` is left out: rt-app sets nothing then";
                self.note(&value.span, text);
            } else {
                settings.slice_ns = slice_ns;
            }
        }
        for key in ["dl-period", "dl-deadline"] {
            if let Some(value) = self.find(members, key) {
                self.time(key, value, 0);
                let text = format!("`{key}` has no meaning here: there is no SCHED_DEADLINE");
                self.note(&value.span, text);
            }
        }
        for key in ["util_min", "util_max"] {
            if let Some(value) = self.find(members, key) {
                self.integer::<i64>(key, value, -1..=CLAMP_MAX);
                let text = format!("`{key}` has no meaning here: CPUs have one frequency");
                self.note(&value.span, text);
            }
        }
        settings.cpus = self.find(members, "cpus").and_then(|value| self.cpus("cpus", value));
        if let Some(value) = self.find(members, "nodes_membind") {
            self.cpus("nodes_membind", value);
            let text = "`nodes_membind` has no meaning here: where memory lies is not modelled";
            self.note(&value.span, text);
        }
        if let Some(value) = self.find(members, "taskgroup")
            && let Some(path) = self.text("taskgroup", value).filter(|path| !path.is_empty())
        {
            settings.cgroup = self.names.cgroup(path.trim_start_matches('/'));
        }
        settings
    }

    /// `policy` and `priority`. In a phase, a priority alone is one of the policy that the thread has, and a policy
    /// that the thread has already changes nothing.
    fn class(&mut self, members: &[Member], before: Option<SchedPolicy>) -> Settings {
        let value = self.find(members, "policy");
        let named = value.and_then(|value| self.policy("policy", value));
        let kept = before.unwrap_or(self.global.policy);
        let policy = named.unwrap_or(kept);
        let given = self.find(members, "priority");
        if policy.priority().is_some() {
            let priority = given.and_then(|value| self.integer("priority", value, 1..=99));
            let policy = match priority {
                Some(priority) => SchedPolicy::of_word(policy.word(), priority),
                None => Some(policy),
            };
            let changes = before.is_none() || named.is_some() || priority.is_some();
            return Settings { policy: policy.filter(|_| changes), ..Settings::default() };
        }
        let nice = given.and_then(|value| self.integer("priority", value, -20..=19));
        // No nice value counts under SCHED_IDLE.
        let is_idle = match value {
            Some(value) => value.text() == Some(IDLE),
            None => before.is_none() && self.global.is_idle,
        };
        let nice = if is_idle { Some(NICE_OF_IDLE) } else { nice };
        let leaves = kept.priority().is_some();
        let policy = (leaves || before.is_none()).then_some(SchedPolicy::Other);
        let nice = nice.or((leaves && before.is_some()).then_some(0));
        Settings { policy, nice, ..Settings::default() }
    }

    /// Numbers of CPUs or of nodes.
    fn cpus(&mut self, key: &str, value: &Value) -> Option<CpuList> {
        let list = self.list(key, value)?;
        if list.is_empty() {
            self.problem(value.span.clone(), format!("`{key}` is empty"), "write [ 0 ]");
            return None;
        }
        let mut ranges = Vec::with_capacity(list.len());
        for number in list {
            let cpu = self.integer(key, number, 0..=i64::from(CPU_MAX))?;
            ranges.push((cpu, cpu));
        }
        Some(CpuList::of(ranges))
    }
}

/// Every possible CPU.
pub(super) fn all_cpus() -> CpuList {
    CpuList(vec![(0, CPU_MAX)])
}
