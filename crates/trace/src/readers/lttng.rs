//! LTTng's kernel events by the names of their fields, as the text of babeltrace prints them and as a CTF trace has
//! them.
//!
//! The fields differ from the kernel's own: a task has a `tid`, and `prio` is the kernel's priority less 100
//! (`MAX_RT_PRIO`). The events that perf converts to CTF keep the kernel's fields (`pid`). At its begin LTTng lists the
//! tasks (`lttng_statedump_process_state`): those that no switch names are called as there.

use std::collections::HashMap;

use super::binary::TextBytes;
use super::interner::IdentityId;
use super::line::CPUS_MAX;
use super::stated::{Stated, Tasks, of_number};
use crate::event::{FieldValue, Role, Tag};
use crate::{EventKind, TaskState};

/// The kernel's priority of LTTng's 0.
const PRIO_OFFSET: i64 = 100;

/// A value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LttngValue<'a> {
    Number(i64),
    Text(&'a [u8]),
}

/// The fields of an event by their names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'v, 'a>(pub(super) &'v [(&'a str, LttngValue<'a>)]);

impl<'a> Named<'_, 'a> {
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.0.iter().find_map(|(found, value)| match value {
            LttngValue::Number(number) if *found == name => Some(*number),
            _ => None,
        })
    }

    pub(super) fn text(&self, name: &str) -> Option<TextBytes<'a>> {
        self.0.iter().find_map(|(found, value)| match value {
            LttngValue::Text(text) if *found == name => Some(TextBytes(text)),
            _ => None,
        })
    }

    fn cpu(&self, name: &str) -> Option<u32> {
        self.number(name)?.try_into().ok().filter(|cpu| *cpu < CPUS_MAX)
    }

    /// A task by the prefix of its fields: `""`, `prev_`, `next_`, `parent_`, `child_`.
    fn task(&self, prefix: &str, tasks: &mut Tasks<'_>) -> Option<IdentityId> {
        let field = |name| format!("{prefix}{name}");
        let (tid, offset) = match self.number(&field("tid")) {
            Some(tid) => (tid, PRIO_OFFSET),
            None => (self.number(&field("pid"))?, 0),
        };
        let prio = match self.number(&field("prio")) {
            Some(prio) => Some(prio.checked_add(offset)?.try_into().ok()?),
            None => None,
        };
        let comm = self.text(&field("comm"))?;
        Some(tasks.interner.identity_of_bytes(tid.try_into().ok()?, comm, prio))
    }
}

/// The meaning of an event; `None` where a known event lacks a field. `state` gives the meaning of `prev_state`.
pub(super) fn stated(
    event: &str,
    fields: Named<'_, '_>,
    state: impl FnOnce(u64) -> TaskState,
    tasks: &mut Tasks<'_>,
) -> Option<Stated> {
    // perf's conversion keeps the subsystem.
    let event = event.split_once(':').map_or(event, |(_, event)| event);
    Some(Stated::Event(match event {
        "sched_switch" => EventKind::Switch {
            prev: fields.task("prev_", tasks)?,
            prev_state: state(fields.number("prev_state")? as u64),
            next: fields.task("next_", tasks)?,
        },
        "sched_waking" => {
            let (task, target_cpu) = (fields.task("", tasks)?, fields.cpu("target_cpu")?);
            EventKind::Waking { task, waker: tasks.waker(), target_cpu }
        }
        "sched_wakeup" if fields.number("success") == Some(0) => return Some(Stated::Other),
        "sched_wakeup" => {
            let (task, target_cpu) = (fields.task("", tasks)?, fields.cpu("target_cpu")?);
            return Some(tasks.wakeup(task, target_cpu));
        }
        // A task that was there when the recording began.
        "lttng_statedump_process_state" => {
            let pid = fields.number("tid")?.try_into().ok()?;
            return Some(Stated::Name { pid, name: fields.text("name")?.text().into_owned() });
        }
        _ => {
            let Some(tag) = Tag::of_tracepoint(event) else { return Some(Stated::Other) };
            EventKind::of_fields(tag, |_, source, role| match role {
                Role::Task => Some(FieldValue::Task(fields.task(source, tasks)?)),
                role => of_number(role, fields.number(source)?),
            })?
        }
    }))
}

/// The CPUs that are in an interrupt, as far as their interrupts were recorded.
#[derive(Debug, Default)]
pub(super) struct Interrupts(HashMap<u32, u32>);

impl Interrupts {
    /// Notes an event of a CPU; returns whether it happened in an interrupt.
    pub(super) fn note(&mut self, cpu: u32, event: &str) -> bool {
        let depth = match interrupt(event) {
            Some(true) => {
                let depth = self.0.entry(cpu).or_default();
                *depth = depth.saturating_add(1);
                return true;
            }
            ends => {
                let Some(depth) = self.0.get_mut(&cpu) else { return false };
                // An interrupt does not switch tasks: its end was lost.
                *depth = if event == "sched_switch" { 0 } else { *depth };
                *depth = depth.saturating_sub(u32::from(ends.is_some()));
                *depth
            }
        };
        depth > 0
    }
}

/// Whether an event begins (true) or ends an interrupt on its CPU.
fn interrupt(event: &str) -> Option<bool> {
    let (kind, begins) = match event.strip_suffix("_entry") {
        Some(kind) => (kind, true),
        None => (event.strip_suffix("_exit")?, false),
    };
    let is_interrupt = matches!(kind, "irq_handler" | "irq_softirq" | "timer_hrtimer_expire")
        || kind.starts_with("x86_irq_vectors_");
    is_interrupt.then_some(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_by_their_events() {
        let mut interrupts = Interrupts::default();
        let events = [
            ("sched_waking", false),
            ("irq_handler_entry", true),
            ("timer_hrtimer_expire_entry", true),
            ("timer_hrtimer_expire_exit", true),
            ("sched_waking", true),
            ("irq_handler_exit", false),
            ("syscall_entry_read", false),
            ("irq_softirq_entry", true),
            ("sched_switch", false),
            ("irq_softirq_exit", false),
        ];
        for (event, wanted) in events {
            assert_eq!(interrupts.note(1, event), wanted, "{event}");
            assert!(!interrupts.note(0, "sched_waking"));
        }
    }
}
