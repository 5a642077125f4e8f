//! The objects `global` and `resources`.

use super::constants::{RT_APP_DURATION_NS, RT_APP_MEM_BUFFER, RT_APP_PRIORITY};
use super::json::{Kind, Value};
use super::reader::Reader;
use crate::diagnostic::suggestion;
use crate::policy::SchedPolicy;

const GLOBAL_KEYS: [&str; 14] = [
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "frag",
];
/// Types that an object of `resources` may have.
const RESOURCE_TYPES: [&str; 16] = [
    "mutex",
    "wait",
    "signal",
    "broadcast",
    "sync",
    "sleep",
    "run",
    "runtime",
    "timer",
    "suspend",
    "resume",
    "mem",
    "iorun",
    "yield",
    "barrier",
    "fork",
];
/// The device to which a write takes no time.
const NO_DEVICE: &str = "/dev/null";
/// The longest run that a file can ask for, s.
const DURATION_MAX_S: i64 = 1_000_000;

impl Reader<'_> {
    pub(super) fn global(&mut self, global: Option<&Value>, root: &Value) {
        let members = match global {
            Some(value) => self.object("global", value).unwrap_or_default(),
            None => &[],
        };
        self.only(members, "`global`", &GLOBAL_KEYS);
        self.duration(
            members.iter().find(|member| member.key == "duration").map(|m| &m.value),
            root,
        );
        for member in members.iter().filter(|member| GLOBAL_KEYS.contains(&member.key.as_str())) {
            let key = member.key.as_str();
            let Some(value) = self.find(members, key) else { continue };
            if !std::ptr::eq(value, &raw const member.value) {
                // The second of two, which has been reported.
                continue;
            }
            match key {
                "default_policy" => {
                    self.global.policy = self.policy(key, value).unwrap_or(SchedPolicy::Other);
                    self.global.is_idle = value.text() == Some(IDLE);
                }
                "pi_enabled" => self.global.pi_enabled = self.truth(key, value).unwrap_or(false),
                "io_device" => {
                    self.global.has_device = self.text(key, value).is_some_and(|d| d != NO_DEVICE);
                }
                "mem_buffer_size" => {
                    let bytes = self.amount(key, value, 1);
                    self.global.mem_buffer = bytes.unwrap_or(RT_APP_MEM_BUFFER);
                }
                "duration" => {}
                _ => self.own_affair(key, value),
            }
        }
    }

    fn duration(&mut self, value: Option<&Value>, root: &Value) {
        let seconds = value.and_then(|value| self.integer("duration", value, -1..=DURATION_MAX_S));
        match (seconds, value) {
            (Some(0), Some(value)) => {
                let help = "write seconds, or -1 to run until all threads end";
                self.problem(value.span.clone(), "a `duration` of 0 is no run", help);
            }
            (Some(seconds @ 1_i64..), _) => {
                self.global.duration_ns = seconds.unsigned_abs() * 1_000_000_000;
            }
            (None, Some(_)) => {}
            (_, value) => {
                let span = value.map_or(root.span.start..root.span.start, |v| v.span.clone());
                let text = format!(
                    "no `duration`: rt-app runs until its threads end, this for {} s unless --duration says otherwise",
                    RT_APP_DURATION_NS / 1_000_000_000
                );
                self.note(&span, text);
            }
        }
    }

    /// A key that concerns rt-app itself.
    fn own_affair(&mut self, key: &str, value: &Value) {
        let (right, form, why) = match key {
            "calibration" => (
                matches!(value.kind, Kind::Integer(_) | Kind::Text(_)),
                "\"CPU0\", or ns a loop",
                "a `run` takes as long as it says; what measures the CPU's speed is fairground's",
            ),
            "frag" => (
                matches!(value.kind, Kind::Integer(_)),
                "a number",
                "rt-app itself reads it no more",
            ),
            "lock_pages" => {
                (is_truth(value), "true or false", "no memory of a task is ever paged out")
            }
            "log_size" => (
                matches!(value.kind, Kind::Integer(_) | Kind::Text(_)),
                "\"file\", \"disable\", or MB",
                LOGS,
            ),
            "ftrace" => (
                matches!(value.kind, Kind::Text(_) | Kind::Truth(_)),
                "\"none\", or names with commas between them",
                LOGS,
            ),
            "gnuplot" | "cumulative_slack" => (is_truth(value), "true or false", LOGS),
            _ => (matches!(value.kind, Kind::Text(_)), "a string", LOGS),
        };
        if right {
            return self.note(&value.span, format!("`{key}` has no meaning here: {why}"));
        }
        let message = format!("`{key}` cannot be {}", value.words());
        self.problem(value.span.clone(), message, format!("write {form}"));
    }

    /// A scheduling policy, a real-time one with rt-app's default priority.
    pub(super) fn policy(&mut self, key: &str, value: &Value) -> Option<SchedPolicy> {
        const ALL: [&str; 6] =
            ["SCHED_OTHER", "SCHED_BATCH", IDLE, "SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"];
        let policy = self.text(key, value)?;
        match policy {
            "SCHED_OTHER" => return Some(SchedPolicy::Other),
            "SCHED_BATCH" => {
                let text = "`SCHED_BATCH` runs as SCHED_OTHER, which is the same class: a hint about \
                            wake-ups is left out";
                self.note(&value.span, text);
                return Some(SchedPolicy::Other);
            }
            IDLE => {
                let text = "`SCHED_IDLE` runs as SCHED_OTHER of nice 19, the least of that class: a \
                            weight of 15 and not of 3";
                self.note(&value.span, text);
                return Some(SchedPolicy::Other);
            }
            "SCHED_FIFO" => return Some(SchedPolicy::Fifo(RT_APP_PRIORITY)),
            "SCHED_RR" => return Some(SchedPolicy::Rr(RT_APP_PRIORITY)),
            _ => {}
        }
        if ALL.contains(&policy) {
            let help = "write \"policy\" : \"SCHED_FIFO\" with a \"priority\", which runs before all others, too";
            let message = format!("`{policy}`: no task here has this policy");
            self.problem(value.span.clone(), message, help);
            return None;
        }
        let help = suggestion(policy, ALL, "policies");
        self.problem(value.span.clone(), format!("there is no policy `{policy}`"), help);
        None
    }

    /// The objects that events referred to before they created them.
    pub(super) fn resources(&mut self, value: &Value) {
        let Some(members) = self.object("resources", value) else { return };
        for member in members {
            let Some(inner) = self.object(&member.key, &member.value) else { continue };
            self.only(inner, "a resource", &["type"]);
            let Some(kind) = self.find(inner, "type") else { continue };
            let Some(text) = self.text("type", kind) else { continue };
            if !RESOURCE_TYPES.contains(&text) {
                let help = suggestion(text, RESOURCE_TYPES, "types");
                self.problem(
                    kind.span.clone(),
                    format!("`{text}` is not a type of resource"),
                    help,
                );
            }
        }
        let text = "`resources` has no meaning any more: what an event names is there";
        self.note(&value.span, text);
    }
}

/// The policy whose tasks run when no other wants to.
pub(super) const IDLE: &str = "SCHED_IDLE";

fn is_truth(value: &Value) -> bool {
    matches!(value.kind, Kind::Truth(_))
}

const LOGS: &str = "that is about rt-app's own logs; fairground measures by itself";
