//! Operations without a body, read as the table of operations declares them.

use super::fields::{Parser, Section, Value};
use super::policy::PRIORITIES;
use crate::diagnostic::suggestion;
use crate::limits::{AMOUNT_MAX, CGROUP_WEIGHT_MAX};
use crate::model::{Op, Role};
use crate::objects::ObjectKind;
use crate::operations::operand::{self, Operand};
use crate::operations::table::operations;
use crate::policy::SchedPolicy;
use crate::units::{parse_cpus, parse_duration, parse_time};

/// Operations that are a table and not in the table of operations, each with an example of its value.
const OTHER_WORDS: [(&str, &str); 3] =
    [("loop", "[ … ]"), ("sem_wait", "\"slots\""), ("sem_post", "\"slots\"")];

/// The words of operations that are a table, `{ word = … }`.
pub(super) fn table_words() -> impl Iterator<Item = &'static str> + Clone {
    TABLE_OPERATIONS.iter().chain(&OTHER_WORDS).map(|(word, _)| *word)
}

/// How an operation is written, for a message.
pub(super) fn example(word: &str) -> String {
    let known = TABLE_OPERATIONS.iter().chain(&OTHER_WORDS).find(|(known, _)| *known == word);
    let written = format!("write {{ {word} = {} }}", known.map_or("…", |(_, example)| example));
    match bare_operation(word).and_then(|op| op.words(&Default::default())) {
        Some(words) => format!("{written}; to {words}, write \"{word}\" alone"),
        None => written,
    }
}

/// An operand in a file.
trait ReadOperand: Operand {
    /// Its value; `None` after a problem was reported. `key` is the word of the operation, or the operand's own.
    fn read(
        parser: &mut Parser<'_>,
        key: &'static str,
        value: Value<'_, '_>,
    ) -> Option<Self::Value>;
}

macro_rules! read_as {
    ($($operand:ident: |$parser:ident, $key:ident, $value:ident| $read:expr;)*) => {
        $(impl ReadOperand for operand::$operand {
            fn read(
                $parser: &mut Parser<'_>,
                $key: &'static str,
                $value: Value<'_, '_>,
            ) -> Option<Self::Value> {
                $read
            }
        })*
    };
}

read_as! {
    TaskName: |parser, _key, value| parser.reference(ObjectKind::Task.word(), value);
    PipeName: |parser, _key, value| parser.reference(ObjectKind::Pipe.word(), value);
    QueueName: |parser, _key, value| parser.reference(ObjectKind::Queue.word(), value);
    LockName: |parser, _key, value| parser.reference(ObjectKind::Lock.word(), value);
    KindOfLock: |parser, key, value| operand::LockName::read(parser, key, value);
    ConditionName: |parser, _key, value| parser.reference(ObjectKind::Condition.word(), value);
    BarrierName: |parser, _key, value| parser.reference(ObjectKind::Barrier.word(), value);
    TimerName: |parser, _key, value| parser.reference(ObjectKind::Timer.word(), value);
    CgroupPath: |parser, _key, value| parser.reference(ObjectKind::Cgroup.word(), value);
    ChildPath: |parser, key, value| operand::CgroupPath::read(parser, key, value);
    Receiver: |parser, _key, value| parser.role(value);
    Length: |parser, key, value| parser.converted(key, value, parse_duration);
    WorkLength: |parser, key, value| parser.converted(key, value, parse_duration);
    Period: |parser, key, value| {
        let ns = parser.converted(key, value, parse_time)?;
        if ns == 0 {
            let message = "a timer cannot have the period 0".to_owned();
            parser.problem(value.span(), message, example("timer"));
        }
        Some(ns)
    };
    SliceLength: |parser, key, value| parser.converted(key, value, parse_time);
    Bytes: |parser, key, value| parser.amount(key, value, 1..=AMOUNT_MAX);
    Messages: |parser, key, value| parser.integer(key, value, 1..=i64::from(u32::MAX));
    Nice: |parser, key, value| parser.integer(key, value, -20..=19);
    Policy: |parser, _key, value| parser.policy_change(value);
    Cpus: |parser, key, value| parser.converted(key, value, parse_cpus);
    Weight: |parser, key, value| parser.integer(key, value, 1..=i64::from(CGROUP_WEIGHT_MAX));
    Text: |parser, key, value| parser.text(key, value).map(str::to_owned);
}

/// Reads an operation where the word is that of a row.
macro_rules! read_row {
    ($parser:ident, $word:ident, $value:ident, $op:ident () bare $bare:literal) => {};
    ($parser:ident, $word:ident, $value:ident, $op:ident () $row:literal is $fixed:literal) => {
        if $word == $row && $value.get_ref().as_str() == Some($fixed) {
            return Some(Op::$op);
        }
    };
    ($parser:ident, $word:ident, $value:ident,
        $op:ident ($key:ident: $operand:ident) $row:literal = $example:literal) => {
        if $word == $row {
            return <operand::$operand as ReadOperand>::read($parser, $row, $value).map(Op::$op);
        }
    };
    ($parser:ident, $word:ident, $value:ident,
        $op:ident ($key:ident: $operand:ident, $other:ident: $second:ident)
        $row:literal = $example:literal) => {
        if $word == $row {
            let keys = [stringify!($key), stringify!($other)];
            let (first, second) =
                $parser.pair::<operand::$operand, operand::$second>($row, $value, keys)?;
            return Some(Op::$op(first, second));
        }
    };
}

macro_rules! reader {
    (($workload:ident) $(
        $(#[$doc:meta])*
        $variant:ident $(($($key:ident: $type:ty as $operand:ident),+))? {
            word: $(bare $bare:literal)?
                $($word:literal $(= $example:literal)? $(is $fixed:literal)?)?,
            effect: $effect:expr,
            words: $words:expr,
        }
    )*) => {
        /// Operations that are a table, each with an example of its value.
        const TABLE_OPERATIONS: &[(&str, &str)] = &[$($($(($word, $example),)?)?)*];
        /// Operations that are a bare string.
        pub(super) const BARE_WORDS: &[&str] = &[$($($bare,)?)*];

        /// The operation that a word alone is.
        pub(super) fn bare_operation(word: &str) -> Option<Op> {
            match word {
                $($($bare => Some(Op::$variant),)?)*
                _ => None,
            }
        }

        impl Parser<'_> {
            /// An operation of a table and without a body.
            pub(super) fn leaf(&mut self, word: &str, value: Value<'_, '_>) -> Option<Op> {
                let parser = self;
                $(read_row!(parser, word, value, $variant ($($($key: $operand),+)?)
                    $(bare $bare)? $($word $(= $example)? $(is $fixed)?)?);)*
                let semaphore = parser.reference("semaphore", value)?;
                Some(match word {
                    "sem_wait" => Op::Receive(semaphore, 1),
                    _ => Op::Send(semaphore),
                })
            }
        }
    };
}
operations!(reader);

impl<'s> Parser<'s> {
    /// `{ pipe = "data", bytes = 64 }`; the first alone where the second is usual.
    fn pair<First: ReadOperand<Value = usize>, Second: ReadOperand>(
        &mut self,
        word: &'static str,
        value: Value<'_, '_>,
        keys: [&'static str; 2],
    ) -> Option<(usize, Second::Value)> {
        if Second::HAS_USUAL && value.get_ref().is_str() {
            let first = First::read(self, keys[0], value)?;
            return Some((first, Second::usual(first, |timer| self.periods.get(timer).copied())?));
        }
        let mut section = self.operands(word, value, keys, Second::HAS_USUAL)?;
        let second = match section.table.contains_key(keys[1]) {
            true => {
                Some(section.read(keys[1], |parser, value| Second::read(parser, keys[1], value))?)
            }
            false => None,
        };
        let first = section.read(keys[0], |parser, value| First::read(parser, keys[0], value))?;
        let periods = &section.parser.periods;
        let usual = || Second::usual(first, |timer| periods.get(timer).copied());
        Some((first, second.or_else(usual)?))
    }

    /// The section of an operation whose value is a table with two keys.
    fn operands<'p, 't, 'i>(
        &'p mut self,
        word: &str,
        value: Value<'t, 'i>,
        keys: [&'static str; 2],
        has_usual: bool,
    ) -> Option<Section<'p, 's, 't, 'i>> {
        let help = example(word);
        let bad = |found: &str| format!("`{word}` cannot be {found}");
        let table = self.table(value, bad, help.as_str())?;
        let mut section = Section::new(self, table, value.span(), format!("`{word}`"), &keys);
        for key in keys.iter().take(if has_usual { 1 } else { 2 }) {
            section.require(key, &help);
        }
        Some(section)
    }

    /// `{ policy = { name = "fifo", priority = 50 } }`, or `{ policy = "other" }`.
    fn policy_change(&mut self, value: Value<'_, '_>) -> Option<SchedPolicy> {
        if value.get_ref().is_str() {
            let name = self.text("policy", value)?;
            return self.policy(name, None, value.span());
        }
        let mut section = self.operands("policy", value, ["name", "priority"], false)?;
        let priority = section.integer("priority", PRIORITIES);
        let name = section.text("name");
        let (name, priority) = (name?, priority?);
        self.policy(name, Some(priority), value.span())
    }

    /// `"parent"`, `"worker"` or `"worker/3"`.
    fn role(&mut self, value: Value<'_, '_>) -> Option<Role> {
        let name = self.text("signal", value)?;
        if name == "parent" {
            return Some(Role::Parent);
        }
        let tasks = self.names.entry("task").or_default();
        if let Some((group, number)) = name.rsplit_once('/')
            && let Some(&task) = tasks.get(group)
            && let Ok(number) = number.parse()
        {
            return Some(Role::One(task, number));
        }
        if let Some(&task) = tasks.get(name) {
            return Some(Role::All(task));
        }
        let help = suggestion(name, tasks.keys().map(String::as_str).chain(["parent"]), "tasks");
        self.problem(value.span(), format!("there is no task `{name}` to signal"), help);
        None
    }
}
