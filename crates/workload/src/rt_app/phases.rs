//! Phases, and the settings of a thread or a phase.

use std::ops::Range;

use super::events::{EVENTS, event_of, has_event};
use super::json::{Member, Value};
use super::reader::Reader;
use super::steps::{Steps, Thread};
use crate::limits::CPU_MAX;
use crate::model::{CgroupId, CpuList, Op};

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
/// The largest value of a clamp (`SCHED_CAPACITY_SCALE`).
const CLAMP_MAX: i64 = 1_024;

/// The settings of a thread or a phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
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
        for phase in phases {
            let Some(members) = self.object(&phase.key, &phase.value) else { continue };
            read.push((phase, self.settings(members, true), self.phase(thread, phase, members)));
        }
        let pinned = read.iter().any(|(_, settings, _)| settings.cpus.is_some());
        // An `iorun` to /dev/null is left out.
        for (phase, settings, body) in read.into_iter().filter(|(.., body)| !body.is_empty()) {
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

    pub(super) fn settings(&mut self, members: &[Member], of_phase: bool) -> Settings {
        let mut settings = Settings::default();
        if let Some(value) = self.find(members, "policy") {
            self.policy("policy", value);
        }
        if let Some(value) = self.find(members, "priority") {
            settings.nice = self.integer("priority", value, -20..=19);
        }
        if let Some(value) = self.find(members, "dl-runtime") {
            let slice_ns = self.time("dl-runtime", value, 1);
            settings.slice_span = value.span.clone();
            if of_phase && settings.nice.is_none() {
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
