//! Events: what a thread does, as operations.

use std::ops::Range;

use super::constants::IORUN_NS_PER_BYTE;
use super::json::Member;
use super::reader::Reader;
use super::steps::{Steps, Thread};
use crate::model::Op;
use crate::objects::ObjectKind;
use crate::units::{Duration, time_text};

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
        let op = match event {
            "run" => Op::Run(Duration::Fixed(self.time(key, value, 1)?)),
            "runtime" => Op::Busy(Duration::Fixed(self.time(key, value, 1)?)),
            "sleep" => Op::Sleep(Duration::Fixed(self.time(key, value, 0)?)),
            "timer" => self.timer(thread, member)?,
            "mem" => {
                let bytes = self.amount(key, value, 1)?;
                memory(bytes, self.global.mem_buffer, &member.whole(), steps);
                return Some(());
            }
            "memrun" => return self.memrun(member, steps),
            "iorun" => return self.iorun(member, steps),
            "yield" => Op::Yield,
            "fork" => self.fork(member)?,
            "wait" | "sync" => return self.condition(event, member, steps),
            "suspend" => {
                self.suspend(thread, member, steps);
                return Some(());
            }
            "resume" => {
                let name = self.name(key, value)?;
                self.locked(name, member, |condition, _| Op::NotifyAll(condition), steps);
                return Some(());
            }
            "barrier" => {
                let barrier = self.object_of(ObjectKind::Barrier, member)?;
                self.names.come(barrier, thread.instances);
                Op::Barrier(barrier)
            }
            "lock" => Op::Lock(self.object_of(ObjectKind::Lock, member)?),
            "unlock" => Op::Unlock(self.object_of(ObjectKind::Lock, member)?),
            "signal" => Op::Notify(self.object_of(ObjectKind::Condition, member)?),
            "broad" => Op::NotifyAll(self.object_of(ObjectKind::Condition, member)?),
            "sem_wait" => Op::Receive(self.object_of(ObjectKind::Queue, member)?, 1),
            _ => Op::Send(self.object_of(ObjectKind::Queue, member)?),
        };
        steps.push(op, member.whole());
        Some(())
    }

    /// The object that an event names.
    fn object_of(&mut self, kind: ObjectKind, member: &Member) -> Option<usize> {
        let name = self.name(&member.key, &member.value)?;
        Some(self.names.index(kind, name, &member.whole()))
    }

    fn fork(&mut self, member: &Member) -> Option<Op> {
        let name = self.name(&member.key, &member.value)?;
        let group = self.names.forked.get(name).copied();
        if group.is_none() {
            let message = format!("there is no thread `{name}` to fork");
            let help = "write the name of one of the `tasks`";
            self.problem(member.value.span.clone(), message, help);
        }
        group.map(Op::Fork)
    }

    /// rt-app ignores the string, and a thread waits under its own name. Where nothing resumes that name, and something
    /// resumes the string, as in several of rt-app's own examples, the thread waits for that: there it would hang.
    fn suspend(&mut self, thread: &Thread<'_>, member: &Member, steps: &mut Steps) {
        let name = thread.member.key.as_str();
        let text = member.value.text().filter(|text| !text.is_empty() && *text != name);
        let is_meant = |text: &&str| self.resumed.contains(*text) && !self.resumed.contains(name);
        let meant = text.filter(is_meant);
        let note = match (meant, text) {
            (Some(text), _) => Some(format!(
                "waits for a `resume` of `{text}`; rt-app ignores the text, and would wait for a \
                 `resume` of the thread's own name, `{name}`, for ever"
            )),
            (None, Some(text)) => Some(format!(
                "`{text}` has no meaning here, nor in rt-app: `suspend` waits for a `resume` of \
                 the thread's own name, `{name}`"
            )),
            (None, None) => None,
        };
        note.into_iter().for_each(|note| self.note(&member.value.span, note));
        self.locked(meant.unwrap_or(name), member, Op::ConditionWait, steps);
    }

    /// An operation on the condition of a thread, under its lock.
    fn locked(
        &mut self,
        name: &str,
        member: &Member,
        op: fn(usize, usize) -> Op,
        steps: &mut Steps,
    ) {
        let whole = member.whole();
        let condition = self.names.index(ObjectKind::Condition, name, &whole);
        let lock = self.names.index(ObjectKind::Lock, name, &whole);
        for op in [Op::Lock(lock), op(condition, lock), Op::Unlock(lock)] {
            steps.push(op, whole.clone());
        }
    }

    /// `wait`, and `sync`, which signals first.
    fn condition(&mut self, event: &str, member: &Member, steps: &mut Steps) -> Option<()> {
        let whole = member.whole();
        let members = self.object(&member.key, &member.value)?;
        self.only(members, &format!("`{event}`"), &["ref", "mutex"]);
        let condition = self.part(member, members, "ref", EXAMPLE_WAIT)?;
        let lock = self.part(member, members, "mutex", EXAMPLE_WAIT)?;
        let condition = self.names.index(ObjectKind::Condition, condition, &whole);
        let lock = self.names.index(ObjectKind::Lock, lock, &whole);
        if event == "sync" {
            steps.push(Op::Notify(condition), whole.clone());
        }
        steps.push(Op::ConditionWait(condition, lock), whole);
        Some(())
    }

    /// A required name of an event's object.
    fn part<'v>(
        &mut self,
        member: &Member,
        members: &'v [Member],
        key: &str,
        example: &str,
    ) -> Option<&'v str> {
        let value = self.required(member, members, key, example)?;
        self.name(key, value)
    }

    fn timer(&mut self, thread: &Thread<'_>, member: &Member) -> Option<Op> {
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
        let period = self.required(member, members, "period", EXAMPLE_TIMER)?;
        let period_ns = self.time("period", period, 1)?;
        let timer = self.names.timer(thread.number, name?, period_ns, &member.whole());
        Some(Op::TimerWait(timer, period_ns))
    }

    fn memrun(&mut self, member: &Member, steps: &mut Steps) -> Option<()> {
        const EXAMPLE: &str = "{ \"type\" : \"read\", \"size\" : 65536, \"count\" : 65536 }";
        let whole = member.whole();
        let members = self.object(&member.key, &member.value)?;
        let keys = ["type", "size", "count", "stride", "pattern", "ref"];
        self.only(members, "`memrun`", &keys);
        let kind = self.part(member, members, "type", EXAMPLE)?;
        if kind != "read" && kind != "write" {
            let help = "write \"read\" or \"write\", or a `run` of the time that it takes";
            let message = match kind {
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
        let mut number = |key: &str| {
            let value = self.required(member, members, key, EXAMPLE)?;
            self.amount(key, value, 1)
        };
        let (size, count) = (number("size"), number("count"));
        memory(count?, size?, &whole, steps);
        Some(())
    }

    fn iorun(&mut self, member: &Member, steps: &mut Steps) -> Option<()> {
        let whole = member.whole();
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
            time_text(ns)
        );
        self.note(&whole, text);
        steps.push(Op::Io(Duration::Fixed(ns)), whole);
        Some(())
    }
}

const EXAMPLE_WAIT: &str = "{ \"ref\" : \"condition\", \"mutex\" : \"mutex\" }";
const EXAMPLE_TIMER: &str = "{ \"ref\" : \"unique\", \"period\" : 10000 }";

/// A number of bytes of a thread's memory, repeatedly from its beginning.
fn memory(bytes: u64, buffer: u64, span: &Range<usize>, steps: &mut Steps) {
    let mut once = Steps::default();
    once.push(Op::Touch(buffer), span.clone());
    if bytes >= buffer {
        steps.append(once.repeated(Some(bytes / buffer), span.clone()));
    }
    if !bytes.is_multiple_of(buffer) {
        steps.push(Op::Touch(bytes % buffer), span.clone());
    }
}
