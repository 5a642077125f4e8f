//! The operands of operations: their text in files and summaries, their limits, the objects that they name.

use crate::cgroups::weight_problem;
use crate::limits::{AMOUNT_MAX, CPU_MAX, TIME_MAX_NS};
use crate::model::{Role, TaskSpec, Workload};
use crate::objects::ObjectKind;
use crate::policy::SchedPolicy;
use crate::units::{CpuList, Duration, cpus_text, duration_text, quoted, time_text};

/// The problem with a value, and the remedy.
pub(crate) type Problem = (String, &'static str);

/// A kind of operand. An operation of two operands names an object with the first.
pub(crate) trait Operand {
    /// Its type in the model.
    type Value: PartialEq;

    /// Whether it is left out where it has its [usual](Operand::usual) value.
    const HAS_USUAL: bool = false;

    /// The usual value of a second operand, of the object of the first. `period_of` is the period of a timer, ns.
    fn usual(_object: usize, _period_of: impl FnOnce(usize) -> Option<u64>) -> Option<Self::Value> {
        None
    }

    /// Its text in files.
    fn text(value: &Self::Value, workload: &Workload) -> String;

    /// Its text in summaries.
    fn words(value: &Self::Value, workload: &Workload) -> String {
        Self::text(value, workload)
    }

    /// The problem with a value; the objects that it names exist.
    fn problem(_value: &Self::Value, _workload: &Workload) -> Option<Problem> {
        None
    }

    /// The object that it names.
    fn object(_value: &Self::Value) -> Option<(ObjectKind, usize)> {
        None
    }

    /// Replaces the index of the object that it names.
    fn renumber(_value: &mut Self::Value, _map: &impl Fn(ObjectKind, usize) -> usize) {}
}

/// A part of an operand's implementation.
macro_rules! part {
    ($type:ty, usual, $object:pat, $period_of:pat, $body:expr) => {
        const HAS_USUAL: bool = true;

        fn usual($object: usize, $period_of: impl FnOnce(usize) -> Option<u64>) -> Option<$type> {
            $body
        }
    };
    ($type:ty, problem, $value:pat, $workload:pat, $body:expr) => {
        fn problem($value: &$type, $workload: &Workload) -> Option<Problem> {
            $body
        }
    };
    ($type:ty, $text:ident, $value:pat, $workload:pat, $body:expr) => {
        fn $text($value: &$type, $workload: &Workload) -> String {
            $body
        }
    };
}

macro_rules! operand {
    ($(#[$doc:meta])* $operand:ident: $type:ty
        $(, $part:ident: |$value:pat_param, $workload:pat_param| $body:expr)*) => {
        $(#[$doc])*
        pub(crate) struct $operand;

        impl Operand for $operand {
            type Value = $type;

            $(part!($type, $part, $value, $workload, $body);)*
        }
    };
}

/// An operand that is the name of an object.
macro_rules! name {
    ($operand:ident, $kind:ident, $words:expr
        $(, $part:ident: |$value:pat_param, $workload:pat_param| $body:expr)*) => {
        pub(crate) struct $operand;

        impl Operand for $operand {
            type Value = usize;

            fn text(index: &usize, workload: &Workload) -> String {
                quoted(workload.name_of(ObjectKind::$kind, *index))
            }

            fn words(index: &usize, workload: &Workload) -> String {
                let words: fn(usize, &str, &Workload) -> String = $words;
                words(*index, workload.name_of(ObjectKind::$kind, *index), workload)
            }

            fn object(index: &usize) -> Option<(ObjectKind, usize)> {
                Some((ObjectKind::$kind, *index))
            }

            fn renumber(index: &mut usize, map: &impl Fn(ObjectKind, usize) -> usize) {
                *index = map(ObjectKind::$kind, *index);
            }

            $(part!(usize, $part, $value, $workload, $body);)*
        }
    };
}

name!(TaskName, Task, |_, name, _| name.to_owned());
name!(PipeName, Pipe, |_, name, _| name.to_owned());
name!(QueueName, Queue, |_, name, _| name.to_owned());
name!(LockName, Lock, |_, name, _| name.to_owned());
name!(KindOfLock, Lock, |lock, name, workload| {
    format!("{name} ({})", workload.locks[lock].kind.word())
});
name!(ConditionName, Condition, |_, name, _| name.to_owned());
name!(BarrierName, Barrier, |barrier, name, workload| {
    format!("{} at {name}", workload.barriers[barrier].count)
});
name!(TimerName, Timer, |_, name, _| name.to_owned());
name!(CgroupPath, Cgroup, |_, path, _| path.to_owned());
name!(ChildPath, Cgroup, |_, path, _| path.to_owned(), problem: |cgroup, _| {
    let message = "the root cgroup has no weight: it has no siblings";
    (*cgroup == 0).then(|| (message.into(), "set the weight of a cgroup below it"))
});

/// A receiver of a signal.
pub(crate) struct Receiver;

impl Operand for Receiver {
    type Value = Role;

    fn text(role: &Role, workload: &Workload) -> String {
        match role {
            Role::Parent => quoted("parent"),
            _ => quoted(&Self::words(role, workload)),
        }
    }

    fn words(role: &Role, workload: &Workload) -> String {
        match *role {
            Role::All(group) => workload.tasks[group].name.clone(),
            Role::One(group, number) => format!("{}/{number}", workload.tasks[group].name),
            Role::Parent => "the parent".to_owned(),
        }
    }

    fn problem(role: &Role, workload: &Workload) -> Option<Problem> {
        let Role::One(task, number) = *role else { return None };
        let TaskSpec { name, count, .. } = &workload.tasks[task];
        (number >= *count).then(|| {
            let message = format!(
                "there is no task {name}/{number}: the group has {count} and counts from 0"
            );
            (message, "write a smaller number, or a larger `count`")
        })
    }

    fn object(role: &Role) -> Option<(ObjectKind, usize)> {
        match *role {
            Role::All(task) | Role::One(task, _) => Some((ObjectKind::Task, task)),
            Role::Parent => None,
        }
    }

    fn renumber(role: &mut Role, map: &impl Fn(ObjectKind, usize) -> usize) {
        if let Role::All(task) | Role::One(task, _) = role {
            *task = map(ObjectKind::Task, *task);
        }
    }
}

operand! {
    /// A length of time, which may be 0.
    Length: Duration,
    text: |length, _| format!("\"{}\"", duration_text(*length)),
    words: |length, _| match *length {
        Duration::Fixed(ns) => time_text(ns),
        Duration::Uniform { low, high } => format!("{} to {}", time_text(low), time_text(high)),
    },
    problem: |length, _| {
        let (low, high) = length.bounds();
        let help = "write a time from 0 to TIME_MAX_NS, 1000000 s; a range from short to long";
        (low > high || high > TIME_MAX_NS).then(|| ("the time is out of range".into(), help))
    }
}

operand! {
    /// A length of computing, not 0.
    WorkLength: Duration,
    text: |length, workload| Length::text(length, workload),
    words: |length, workload| Length::words(length, workload),
    problem: |length, workload| match length.bounds() {
        (_, 0) => Some(("a run of 0 does nothing".into(), "write a time above 0, or remove it")),
        _ => Length::problem(length, workload),
    }
}

operand! {
    /// A timer's period, ns; usually the one that the timer has.
    Period: u64,
    usual: |timer, period_of| period_of(timer),
    text: |ns, _| format!("\"{}\"", time_text(*ns)),
    words: |ns, _| time_text(*ns),
    problem: |ns, _| {
        let help = "write a period above 0, as in \"1ms\"";
        (!Self::is_valid(*ns)).then(|| ("the period is out of range".into(), help))
    }
}

impl Period {
    /// Whether a length is one, ns.
    pub(crate) fn is_valid(ns: u64) -> bool {
        ns > 0 && ns <= TIME_MAX_NS
    }
}

operand! {
    /// The length of a task's slices, ns.
    SliceLength: u64,
    text: |ns, _| format!("\"{}\"", time_text(*ns)),
    words: |ns, _| time_text(*ns),
    problem: |ns, _| {
        let message = "the slice is longer than TIME_MAX_NS";
        (*ns > TIME_MAX_NS).then(|| (message.to_owned(), "write a shorter one"))
    }
}

/// An amount in words, for a noun.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn amount_problem(amount: u64, unit: &str) -> Option<Problem> {
    let is_bad = amount == 0 || amount > AMOUNT_MAX;
    let help = "write a number from 1 to 4294967296";
    is_bad.then(|| (format!("{amount} {unit} is out of range"), help))
}

operand! {
    /// A number of bytes; usually 1.
    Bytes: u64,
    usual: |_, _| Some(1),
    text: |bytes, _| bytes.to_string(),
    words: |bytes, _| counted(*bytes, "byte"),
    problem: |bytes, _| amount_problem(*bytes, "bytes")
}

operand! {
    /// A number of messages; usually 1.
    Messages: u32,
    usual: |_, _| Some(1),
    text: |count, _| count.to_string(),
    problem: |count, _| amount_problem(u64::from(*count), "messages")
}

operand! {
    /// A nice value.
    Nice: i8,
    text: |nice, _| nice.to_string(),
    problem: |nice, _| {
        let is_bad = !(-20..=19).contains(nice);
        is_bad.then(|| (format!("nice {nice} is out of range"), "write a value from -20 to 19"))
    }
}

operand! {
    /// A scheduling policy, with its priority.
    Policy: SchedPolicy,
    text: |policy, _| match (quoted(policy.word()), policy.priority()) {
        (name, None) => name,
        (name, Some(priority)) => format!("{{ name = {name}, priority = {priority} }}"),
    },
    words: |policy, _| policy.to_string(),
    problem: |policy, _| policy.problem()
}

operand! {
    /// A list of CPUs.
    Cpus: CpuList,
    text: |cpus, _| format!("\"{}\"", cpus_text(cpus)),
    words: |cpus, _| cpus_text(cpus),
    problem: |cpus, _| Self::wrong(cpus).map(|message| (message, Self::HELP))
}

impl Cpus {
    /// The help for a list with a problem.
    pub(crate) const HELP: &str = "write `cpus` as in \"0-3,8\"";

    /// The problem with a list.
    pub(crate) fn wrong(cpus: &CpuList) -> Option<String> {
        if cpus.0.is_empty() {
            return Some("the list of CPUs is empty".into());
        }
        let mut next = 0;
        for &(first, last) in &cpus.0 {
            if first > last || first < next || last > CPU_MAX {
                return Some(format!(
                    "the CPUs {first}-{last} are not in order or above {CPU_MAX}"
                ));
            }
            next = last + 1;
        }
        None
    }
}

operand! {
    /// A weight of a cgroup.
    Weight: u32,
    text: |weight, _| weight.to_string(),
    problem: |weight, _| weight_problem(*weight)
}

operand! {
    /// A text without control characters.
    Text: String,
    text: |text, _| quoted(text),
    words: |text, _| format!("{text:?}"),
    problem: |text, _| {
        let message = format!("the mark {text:?} has a control character in it");
        text.chars().any(char::is_control).then_some((message, "use plain text"))
    }
}
