//! Operations as the [table](table) declares them: their words, texts, objects, problems and effects.

pub(crate) mod operand;
pub(crate) mod table;

use crate::model::{Op, Program, Workload};
use crate::objects::ObjectKind;
use crate::units::Duration;
use operand::{Operand, Problem};
use table::operations;

/// The time that an operation takes by itself, on a CPU of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// None.
    AtOnce,
    /// Computes for this long.
    Computes(Duration),
    /// Sleeps for this long.
    Sleeps(Duration),
    /// As long as others let it.
    Waits,
}

/// The effect of an operation while the task is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The time that it takes.
    pub(crate) pace: Pace,
    /// The operation in words where a task that holds a spin lock may not do it.
    pub(crate) forbidden: Option<&'static str>,
}

impl Effect {
    const AT_ONCE: Effect = Effect { pace: Pace::AtOnce, forbidden: None };

    fn computes(length: Duration) -> Self {
        Self { pace: Pace::Computes(length), ..Self::AT_ONCE }
    }

    fn sleeps(length: Duration) -> Self {
        Self { pace: Pace::Sleeps(length), ..Self::AT_ONCE }
    }

    fn waits() -> Self {
        Self { pace: Pace::Waits, ..Self::AT_ONCE }
    }

    fn forbidden(self, words: &'static str) -> Self {
        Self { forbidden: Some(words), ..self }
    }

    /// Whether time may pass.
    pub(crate) fn takes_time(self) -> bool {
        match self.pace {
            Pace::AtOnce => false,
            Pace::Computes(length) | Pace::Sleeps(length) => length.bounds().1 > 0,
            Pace::Waits => true,
        }
    }
}

/// An operand of an operation in a file: its key, its text, whether that is the usual one.
type OperandText = (&'static str, String, bool);

/// The value of an operation: its only operand, or a table of them without those that are usual.
fn value_text(operands: &[OperandText]) -> String {
    match operands {
        [(_, text, _)] | [(_, text, _), (_, _, true)] => text.clone(),
        _ => {
            let members = operands.iter().map(|(key, text, _)| format!("{key} = {text}"));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The first two objects.
fn two<const N: usize>(
    objects: [Option<(ObjectKind, usize)>; N],
) -> [Option<(ObjectKind, usize)>; 2] {
    let mut objects = objects.into_iter().flatten();
    [objects.next(), objects.next()]
}

macro_rules! forms {
    (($workload:ident) $(
        $(#[$doc:meta])*
        $variant:ident $(($($key:ident: $type:ty as $operand:ident),+))? {
            word: $(bare $bare:literal)?
                $($word:literal $(= $example:literal)? $(is $fixed:literal)?)?,
            effect: $effect:expr,
            words: $words:expr,
        }
    )*) => {
        #[allow(unused_variables)]
        impl Op {
            /// The words of all operations in files.
            pub const WORDS: &[&str] = &[$(concat!($($bare)? $($word)?),)* "loop"];

            /// Its word in files.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Op::$variant { .. } => concat!($($bare)? $($word)?),)*
                    Op::Loop(..) => "loop",
                }
            }

            /// The text of its value in files; `None`: its word stands alone. A loop's is the writer's.
            pub(crate) fn value_text(&self, workload: &Workload) -> Option<String> {
                let object = self.references().next().map_or(0, |(_, index)| index);
                match self {
                    $($(Op::$variant($($key),+) => Some(value_text(&[$((
                        stringify!($key),
                        <operand::$operand as Operand>::text($key, workload),
                        <operand::$operand as Operand>::usual(object, |timer| {
                            workload.timers.get(timer).map(|timer| timer.period_ns)
                        })
                        .is_some_and(|usual| usual == *$key),
                    )),+])),)?)*
                    $($($(Op::$variant => Some(concat!("\"", $fixed, "\"").to_owned()),)?)?)*
                    _ => None,
                }
            }

            /// The operation in a summary; `None`: a loop.
            pub(crate) fn words(&self, $workload: &Workload) -> Option<String> {
                Some(match self {
                    $(Op::$variant $(($($key),+))? => {
                        $($(let $key = <operand::$operand as Operand>::words($key, $workload);)+)?
                        $words
                    })*
                    Op::Loop(..) => return None,
                })
            }

            /// The effect; of a loop without its body.
            pub(crate) fn effect(&self, $workload: &Workload) -> Effect {
                match self {
                    $(Op::$variant $(($($key),+))? => $effect,)*
                    Op::Loop(..) => Effect::AT_ONCE,
                }
            }

            /// The problem with an operand. The objects that the operation names exist.
            pub(crate) fn operand_problem(&self, workload: &Workload) -> Option<Problem> {
                match self {
                    $(Op::$variant $(($($key),+))? => None
                        $($(.or_else(|| <operand::$operand as Operand>::problem($key, workload)))+)?,)*
                    Op::Loop(..) => None,
                }
            }

            /// The objects that the operation itself names, without those that a loop's body names.
            pub fn references(&self) -> impl Iterator<Item = (ObjectKind, usize)> + use<> {
                let objects = match self {
                    $(Op::$variant $(($($key),+))? => {
                        two([$($(<operand::$operand as Operand>::object($key)),+)?])
                    })*
                    Op::Loop(..) => [None; 2],
                };
                objects.into_iter().flatten()
            }

            /// Replaces the index of every object that the operation itself names.
            fn renumber(&mut self, map: &impl Fn(ObjectKind, usize) -> usize) {
                match self {
                    $(Op::$variant $(($($key),+))? => {
                        $($(<operand::$operand as Operand>::renumber($key, map);)+)?
                    })*
                    Op::Loop(..) => {}
                }
            }
        }
    };
}
operations!(forms);

/// Replaces the index of every object that a program names.
pub(crate) fn renumber(program: &mut Program, map: &impl Fn(ObjectKind, usize) -> usize) {
    for op in program {
        op.renumber(map);
        if let Op::Loop(_, body) = op {
            renumber(body, map);
        }
    }
}
