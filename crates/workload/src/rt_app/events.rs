//! Events: what a thread does, as operations.

use super::json::{Kind, Member};
use super::phases::Steps;
use super::threads::Thread;
use super::{IORUN_NS_PER_BYTE, Reader};
use crate::model::{Duration, Op};

/// The words of events. rt-app takes every key that begins with one for that event.
pub(super) const EVENTS: [&str; 20] = [
    "run", "runtime", "sleep", "timer", "lock", "unlock", "wait", "signal", "broad", "sync",
    "barrier", "suspend", "resume", "mem", "memrun", "iorun", "yield", "fork", "sem_wait",
    "sem_post",
];

/// The event of a key: a word, alone or followed by a digit, a sign or a capital letter (`run0`, `lock_a`). A small
/// letter after it is probably a misspelling, which rt-app would not notice: the word that rt-app would take is
/// reported.
pub(super) fn event_of(key: &str) -> Result<&'static str, Option<&'static str>> {
    if key == "broadcast" {
        return Ok("broad");
    }
    let longest = EVENTS.iter().filter(|word| key.starts_with(**word)).max_by_key(|w| w.len());
    let Some(&word) = longest else { return Err(None) };
    match key[word.len()..].chars().next() {
        Some(next) if next.is_ascii_lowercase() => Err(Some(word)),
        _ => Ok(word),
    }
}

/// Whether there is an event among the members, valid or not.
pub(super) fn has_event(members: &[Member]) -> bool {
    members.iter().any(|member| event_of(&member.key).is_ok())
}

impl Reader<'_> {
    /// The events among the members of a thread or a phase, in their order; repeated keys are repeated events.
    pub(super) fn events(&mut self, thread: &Thread<'_>, members: &[Member]) -> Steps {
        let mut steps = Steps::default();
        for member in members {
            if let Ok(event) = event_of(&member.key) {
                let before = self.problems.len();
                let done = self.event(event, thread, member, &mut steps);
                debug_assert!(done.is_some() || self.problems.len() > before);
            }
        }
        steps
    }

    /// `None` after a problem was reported.
    fn event(
        &mut self,
        event: &'static str,
        thread: &Thread<'_>,
        member: &Member,
        steps: &mut Steps,
    ) -> Option<()> {
        let (key, value) = (member.key.as_str(), &member.value);
        let whole = member.span.start..value.span.end;
        match event {
            "run" | "runtime" => {
                let time = Duration::Fixed(self.time(key, value, 1)?);
                let op = if event == "run" { Op::Run(time) } else { Op::Busy(time) };
                steps.push(op, whole);
            }
            "sleep" => {
                let ns = self.time(key, value, 0)?;
                steps.push(Op::Sleep(Duration::Fixed(ns)), whole);
            }
            "timer" => {
                let op = self.timer(thread, member)?;
                steps.push(op, whole);
            }
            "mem" => {
                let bytes = self.amount(key, value, 1)?;
                memory(bytes, self.global.mem_buffer, &whole, steps);
            }
            "memrun" => self.memrun(member, steps)?,
            "iorun" => self.iorun(member, steps)?,
            "yield" => steps.push(Op::Yield, whole),
            "fork" => {
                let name = self.name(key, value)?;
                let Some(&group) = self.names.forked.get(name) else {
                    let message = format!("there is no thread `{name}` to fork");
                    let help = "write the name of one of the `tasks`";
                    self.problem(value.span.clone(), message, help);
                    return None;
                };
                steps.push(Op::Fork(group), whole);
            }
            _ => self.meeting(event, thread, member, steps)?,
        }
        Some(())
    }

    /// Events by which threads wait for each other.
    fn meeting(
        &mut self,
        event: &'static str,
        thread: &Thread<'_>,
        member: &Member,
        steps: &mut Steps,
    ) -> Option<()> {
        let (key, value) = (member.key.as_str(), &member.value);
        let whole = member.span.start..value.span.end;
        match event {
            "wait" | "sync" => return self.condition(event, member, steps),
            "suspend" => {
                // The string is ignored: a thread waits under its own name.
                let name = &thread.member.key;
                if let Kind::Text(text) = &value.kind
                    && !text.is_empty()
                    && text != name
                {
                    self.note(
                        &value.span,
                        format!(
                            "`{text}` has no meaning here, nor in rt-app: `suspend` waits for a \
                             `resume` of the thread's own name, `{name}`"
                        ),
                    );
                }
                let condition = self.names.conditions.index(name, &whole);
                let lock = self.names.locks.index(name, &whole);
                steps.push(Op::Lock(lock), whole.clone());
                steps.push(Op::ConditionWait(condition, lock), whole.clone());
                steps.push(Op::Unlock(lock), whole);
            }
            "resume" => {
                let name = self.name(key, value)?;
                let condition = self.names.conditions.index(name, &whole);
                let lock = self.names.locks.index(name, &whole);
                steps.push(Op::Lock(lock), whole.clone());
                steps.push(Op::NotifyAll(condition), whole.clone());
                steps.push(Op::Unlock(lock), whole);
            }
            "barrier" => {
                let name = self.name(key, value)?;
                let barrier = self.names.barriers.index(name, &whole);
                self.names.comers.resize(self.names.comers.len().max(barrier + 1), 0);
                self.names.comers[barrier] += u64::from(thread.instances);
                steps.push(Op::Barrier(barrier), whole);
            }
            "lock" | "unlock" => {
                let name = self.name(key, value)?;
                let lock = self.names.locks.index(name, &whole);
                steps.push(if event == "lock" { Op::Lock(lock) } else { Op::Unlock(lock) }, whole);
            }
            "signal" | "broad" => {
                let name = self.name(key, value)?;
                let condition = self.names.conditions.index(name, &whole);
                let one = event == "signal";
                let op = if one { Op::Notify(condition) } else { Op::NotifyAll(condition) };
                steps.push(op, whole);
            }
            _ => {
                let name = self.name(key, value)?;
                let queue = self.names.semaphores.index(name, &whole);
                let waits = event == "sem_wait";
                steps.push(if waits { Op::Receive(queue, 1) } else { Op::Send(queue) }, whole);
            }
        }
        Some(())
    }

    /// `wait`, and `sync`, which signals first.
    fn condition(&mut self, event: &str, member: &Member, steps: &mut Steps) -> Option<()> {
        let whole = member.span.start..member.value.span.end;
        let members = self.object(&member.key, &member.value)?;
        self.only(members, &format!("`{event}`"), &["ref", "mutex"]);
        let condition = self.part(member, members, "ref", EXAMPLE_WAIT)?;
        let lock = self.part(member, members, "mutex", EXAMPLE_WAIT)?;
        let condition = self.names.conditions.index(&condition, &whole);
        let lock = self.names.locks.index(&lock, &whole);
        if event == "sync" {
            steps.push(Op::Notify(condition), whole.clone());
        }
        steps.push(Op::ConditionWait(condition, lock), whole);
        Some(())
    }

    /// A required name of an event's object.
    fn part(
        &mut self,
        member: &Member,
        members: &[Member],
        key: &str,
        example: &str,
    ) -> Option<String> {
        let Some(value) = self.find(members, key) else {
            let message = format!("`{}` has no `{key}`", member.key);
            self.problem(member.span.clone(), message, format!("write {example}"));
            return None;
        };
        self.name(key, value).map(str::to_owned)
    }

    fn timer(&mut self, thread: &Thread<'_>, member: &Member) -> Option<Op> {
        let whole = member.span.start..member.value.span.end;
        let members = self.object(&member.key, &member.value)?;
        self.only(members, "`timer`", &["ref", "period", "mode"]);
        if let Some(value) = self.find(members, "mode")
            && let Some(mode) = self.text("mode", value)
            && mode != "relative"
            && mode != "absolute"
        {
            let message = format!("`{mode}` is not a timer mode");
            self.problem(value.span.clone(), message, "write \"relative\" or \"absolute\"");
        }
        let name = self.part(member, members, "ref", EXAMPLE_TIMER);
        let Some(period) = self.find(members, "period") else {
            let message = format!("`{}` has no `period`", member.key);
            self.problem(member.span.clone(), message, format!("write {EXAMPLE_TIMER}"));
            return None;
        };
        let period_ns = self.time("period", period, 1)?;
        let timer = self.names.timer(thread.number, &name?, period_ns, &whole);
        Some(Op::TimerWait(timer, period_ns))
    }

    fn memrun(&mut self, member: &Member, steps: &mut Steps) -> Option<()> {
        const EXAMPLE: &str = "{ \"type\" : \"read\", \"size\" : 65536, \"count\" : 65536 }";
        let whole = member.span.start..member.value.span.end;
        let members = self.object(&member.key, &member.value)?;
        let keys = ["type", "size", "count", "stride", "pattern", "ref"];
        self.only(members, "`memrun`", &keys);
        let kind = self.part(member, members, "type", EXAMPLE)?;
        if kind != "read" && kind != "write" {
            let help = "write \"read\" or \"write\", or a `run` of the time that it takes";
            let message = match kind.as_str() {
                "chase" => {
                    "a chase through pointers takes the latency of memory, which is not modelled"
                        .to_owned()
                }
                _ => format!("`{kind}` is not a type of `memrun`"),
            };
            self.problem(whole, message, help);
            return None;
        }
        if let Some(value) = self.find(members, "ref") {
            let message = "memory that threads share is not modelled";
            self.problem(value.span.clone(), message, "remove the `ref`: each has its own then");
        }
        for key in ["stride", "pattern"] {
            if let Some(value) = self.find(members, key) {
                self.note(&value.span, format!("`{key}` belongs to the type `chase`"));
            }
        }
        let mut number = |key: &str| match self.find(members, key) {
            Some(value) => self.amount(key, value, 1),
            None => {
                let message = format!("`{}` has no `{key}`", member.key);
                self.problem(member.span.clone(), message, format!("write {EXAMPLE}"));
                None
            }
        };
        let (size, count) = (number("size"), number("count"));
        memory(count?, size?, &whole, steps);
        Some(())
    }

    fn iorun(&mut self, member: &Member, steps: &mut Steps) -> Option<()> {
        let whole = member.span.start..member.value.span.end;
        let bytes = self.amount(&member.key, &member.value, 1)?;
        if !self.global.has_device {
            let text =
                "`iorun` is left out: the `io_device` is /dev/null, to which a write takes no time";
            self.note(&whole, text);
            return Some(());
        }
        let ns = bytes * IORUN_NS_PER_BYTE;
        let text = format!(
            "`iorun` of {bytes} bytes becomes a wait of {} for the device, {IORUN_NS_PER_BYTE} ns \
             a byte: what the real one would take is not known here",
            crate::units::time_text(ns)
        );
        self.note(&whole, text);
        steps.push(Op::Io(Duration::Fixed(ns)), whole);
        Some(())
    }
}

const EXAMPLE_WAIT: &str = "{ \"ref\" : \"condition\", \"mutex\" : \"mutex\" }";
const EXAMPLE_TIMER: &str = "{ \"ref\" : \"unique\", \"period\" : 10000 }";

/// A number of bytes of a thread's memory, repeatedly from its beginning.
fn memory(bytes: u64, buffer: u64, span: &std::ops::Range<usize>, steps: &mut Steps) {
    let mut once = Steps::default();
    once.push(Op::Touch(buffer), span.clone());
    if bytes >= buffer {
        steps.append(once.repeated(Some(bytes / buffer), span.clone()));
    }
    if !bytes.is_multiple_of(buffer) {
        steps.push(Op::Touch(bytes % buffer), span.clone());
    }
}
