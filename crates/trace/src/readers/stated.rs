//! An event as a line of text or a binary record states it.

use super::interner::{IdentityId, Interner, NOT_NAMED, Named};
use super::line::CPUS_MAX;
use super::stack_text::function;
use crate::event::{FieldValue, Role};
use crate::{CgroupId, EventKind, Label, LockFlags};

/// The kernel's functions that are the scheduler's tick: up to 6.8, and after.
pub(super) const TICK_FUNCTIONS: [&str; 2] = ["tick_sched_timer", "tick_nohz_handler"];

/// In place of the label of an event that has a text beside it.
pub(super) const NO_LABEL: Label = Label(0);

/// The label of a print in place of an event that is left out: only its time counts.
pub(super) const LEFT_OUT: Label = Label(u32::MAX);

/// The meaning of a line or record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stated {
    /// An event. Its tasks are numbers of the [`Interner`].
    Event(EventKind<IdentityId>),
    /// A wake-up that `waker` caused, which counts where the recording has no `sched_waking`.
    Wakeup { task: IdentityId, target_cpu: u32, waker: IdentityId },
    /// An event with a text: that of its label, or the path of the cgroup to which a task moved or whose weight
    /// changed.
    WithText(EventKind<IdentityId>, String),
    /// Gives the preceding lost-events line its time.
    LostHere,
    /// The name of a task that no event names. It is no event itself.
    Name { pid: u32, name: String },
    /// Of a kind that is not used.
    Other,
}

/// The numbers of the tasks of one event.
#[derive(Debug)]
pub(super) struct Tasks<'a> {
    pub(super) interner: &'a mut Interner,
    /// The task that the CPU was running, if that is known.
    pub(super) running: Option<Named<'a>>,
    /// The event happened in a hard or soft interrupt.
    pub(super) in_interrupt: bool,
}

impl Tasks<'_> {
    /// A task that the event's own fields name.
    #[inline]
    pub(super) fn named(&mut self, named: Named<'_>) -> IdentityId {
        self.interner.identity(named)
    }

    /// A task that the event names by its pid alone; 0 is the idle task, or none.
    pub(super) fn by_pid(&mut self, pid: u32) -> IdentityId {
        self.interner.by_pid(pid)
    }

    /// The task that the CPU was running, or [`NOT_NAMED`].
    #[inline]
    pub(super) fn running(&mut self) -> IdentityId {
        self.running.map_or(NOT_NAMED, |named| self.interner.identity(named))
    }

    /// Who wakes another task: the running task, or the idle task where an interrupt does it.
    #[inline]
    pub(super) fn waker(&mut self) -> IdentityId {
        if self.in_interrupt { self.by_pid(0) } else { self.running() }
    }

    /// A task is queued (`sched_wakeup`): by the running task, or by an interrupt.
    #[inline]
    pub(super) fn wakeup(&mut self, task: IdentityId, target_cpu: u32) -> Stated {
        Stated::Wakeup { task, target_cpu, waker: self.waker() }
    }

    /// The running task begins to wait for a lock; without flags it has the lock. Where the task is not named the event
    /// says nothing.
    pub(super) fn contention(&mut self, flags: Option<LockFlags>, lock: String) -> Stated {
        let (task, holder) = (self.running(), self.by_pid(0));
        if task == NOT_NAMED {
            return Stated::Other;
        }
        let kind = match flags {
            Some(flags) => EventKind::ContentionBegin { task, lock: NO_LABEL, flags, holder },
            None => EventKind::ContentionEnd { task, lock: NO_LABEL },
        };
        Stated::WithText(kind, lock)
    }

    /// A task moves to the cgroup of a path.
    pub(super) fn cgroup_move(&mut self, pid: u32, path: String) -> Stated {
        // The numbers of the cgroups become known when the trace is built.
        let (task, from, to) = (self.by_pid(pid), CgroupId::ROOT, CgroupId::ROOT);
        Stated::WithText(EventKind::CgroupMove { task, from, to }, path)
    }

    /// The stack of the running task, `outer;…;inner`.
    pub(super) fn stack(&mut self, folded: String) -> Stated {
        let task = Some(self.running()).filter(|task| *task != NOT_NAMED);
        let task = task.unwrap_or_else(|| self.by_pid(0));
        Stated::WithText(EventKind::Stack { task, label: NO_LABEL }, folded)
    }

    /// The function, `name+0x2a/0x90` or an address, in which a task waits uninterruptibly, or waited until it is woken
    /// now (`sched_blocked_reason`): as much of its stack as is known.
    pub(super) fn blocked(&mut self, pid: u32, caller: &str) -> Stated {
        // simpleperf prints addresses as decimal numbers.
        let is_number = caller.bytes().all(|byte| byte.is_ascii_digit());
        let is_known = pid != 0 && !is_number && !caller.trim_start_matches(['0', 'x']).is_empty();
        let Some(function) = function(caller).filter(|_| is_known) else { return Stated::Other };
        let task = self.by_pid(pid);
        Stated::WithText(EventKind::Stack { task, label: NO_LABEL }, function.to_owned())
    }

    /// A timer expired: the scheduler's tick, or another one.
    pub(super) fn timer(&mut self, is_tick: bool) -> Stated {
        if is_tick {
            Stated::Event(EventKind::Tick { task: self.running() })
        } else {
            Stated::Other
        }
    }
}

/// The value of a field that a recording has as a number; `None` where it is impossible.
pub(super) fn of_number(role: Role, number: i64) -> Option<FieldValue<IdentityId>> {
    Some(match role {
        Role::Cpu => FieldValue::Cpu(u32::try_from(number).ok().filter(|cpu| *cpu < CPUS_MAX)?),
        Role::Nice => FieldValue::Nice(i8::try_from(number).ok()?),
        Role::Weight => FieldValue::Weight(u32::try_from(number).ok()?),
        Role::Number => FieldValue::Number(number as u64),
        Role::Signed => FieldValue::Signed(number),
        _ => return None,
    })
}

/// A line that the scheduler's program printed.
pub(super) fn printed(text: &str) -> Stated {
    Stated::WithText(EventKind::Print { label: NO_LABEL }, text.to_owned())
}

/// The facts about all events that a reader in chunks needs before the first one: the CPUs, and kinds that may occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scope {
    /// CPU numbers are below it.
    pub(super) cpus: u32,
    pub(super) wakeups: bool,
    pub(super) wakings: bool,
    pub(super) cgroups: bool,
    /// Events that refer to the label table.
    pub(super) labels: bool,
    /// Events that say something of scheduling: stacks, losses and ticks alone do not.
    pub(super) scheduling: bool,
}

impl Scope {
    /// That of one event.
    #[inline]
    pub(super) fn of(cpu: u32, kind: EventKind<IdentityId>) -> Self {
        let mut scope = Self {
            cpus: cpu + 1,
            wakeups: matches!(kind, EventKind::Wakeup { .. }),
            wakings: matches!(kind, EventKind::Waking { .. }),
            scheduling: !matches!(
                kind,
                EventKind::Stack { .. }
                    | EventKind::Print { label: LEFT_OUT }
                    | EventKind::Lost { .. }
                    | EventKind::Tick { .. }
            ),
            ..Self::default()
        };
        kind.each_field(|_, _, value| match value {
            FieldValue::Cpu(cpu) => scope.cpus = scope.cpus.max(cpu + 1),
            FieldValue::Cgroup(_) => scope.cgroups = true,
            FieldValue::Label(_) => scope.labels = true,
            _ => {}
        });
        scope
    }

    /// Both.
    #[must_use]
    #[inline]
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            cpus: self.cpus.max(other.cpus),
            wakeups: self.wakeups | other.wakeups,
            wakings: self.wakings | other.wakings,
            cgroups: self.cgroups | other.cgroups,
            labels: self.labels | other.labels,
            scheduling: self.scheduling | other.scheduling,
        }
    }
}

/// The value of `key` among words of the form `key=value`; the key is given with its `=`.
pub(super) fn value<'a>(words: &'a str, key: &str) -> Option<&'a str> {
    words.split(' ').find_map(|word| word.strip_prefix(key))
}
