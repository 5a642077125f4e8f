//! Options of a run on the command line, made from the rows of `session`'s table.

use std::ops::Deref;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use fairground_session::{ChoiceWord, Count, Kind, NamedChoice, OptionGroup, OptionRow};
use serde_json::{Map, Value};

/// A group of options as arguments of a command.
#[derive(Clone, Debug)]
pub(crate) struct SpecArgs<S>(pub(crate) S);

impl<S> Deref for SpecArgs<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: OptionGroup> Args for SpecArgs<S> {
    fn augment_args(command: Command) -> Command {
        S::options().fold(command, |command, row| command.arg(argument(row)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: OptionGroup> FromArgMatches for SpecArgs<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut words = Map::new();
        for row in S::options() {
            let source = matches.value_source(row.name);
            if source.is_some_and(|source| source != ValueSource::DefaultValue) {
                words.insert(row.name.to_owned(), word(row, matches)?);
            }
        }
        let invalid = |why| Error::raw(ErrorKind::ValueValidation, format!("{why}\n"));
        S::from_words(&words).map(SpecArgs).map_err(invalid)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The argument of a row.
fn argument(row: &'static OptionRow) -> Arg {
    let mut arg = Arg::new(row.name).help(row.doc());
    arg = match row.long() {
        Some(long) => arg.long(long),
        None => arg.required(true),
    };
    arg = match (row.kind, row.count) {
        (Kind::Flag, _) if is_on(row) => arg.action(ArgAction::SetFalse),
        (Kind::Flag, _) => arg.action(ArgAction::SetTrue),
        (_, Count::Many) => arg.action(ArgAction::Append),
        (_, Count::One | Count::AtMostOne) => arg.action(ArgAction::Set),
    };
    arg = match row.kind {
        Kind::Flag => arg,
        Kind::U32 => arg.value_parser(value_parser!(u32)),
        Kind::U64 => arg.value_parser(value_parser!(u64)),
        Kind::Size => arg.value_parser(value_parser!(usize)),
        Kind::Text | Kind::Table => arg.value_parser(value_parser!(String)),
        Kind::File => arg.value_parser(value_parser!(PathBuf)),
        Kind::Choice(words) => arg.value_parser(one_of(words)),
    };
    if let Some(name) = row.value_name() {
        arg = arg.value_name(name);
    }
    if !row.heading.is_empty() {
        arg = arg.help_heading(row.heading);
    }
    if row.commas {
        arg = arg.value_delimiter(',');
    }
    if let Some(value) = row.alone {
        arg = arg.num_args(0..=1).require_equals(true).default_missing_value(value);
    }
    if let Some(variable) = row.environment {
        arg = arg.env(variable);
    }
    if let Some(other) = row.conflicts {
        arg = arg.conflicts_with(other);
    }
    if let Some(other) = row.requires {
        arg = arg.requires(other);
    }
    let default = row.long().and_then(|_| row.default_text());
    arg.allow_hyphen_values(row.hyphens).default_values(default.map(clap::builder::OsStr::from))
}

/// Whether a flag is on by default, so that the command line turns it off.
fn is_on(row: &OptionRow) -> bool {
    (row.default)() == Value::Bool(true)
}

/// The value of an option that is there.
fn word(row: &OptionRow, matches: &ArgMatches) -> Result<Value, Error> {
    let (name, many) = (row.name, row.count == Count::Many);
    match row.kind {
        Kind::Flag => Ok(Value::Bool(matches.get_flag(name))),
        Kind::U32 => Ok(number(matches.get_one::<u32>(name))),
        Kind::U64 => Ok(number(matches.get_one::<u64>(name))),
        Kind::Size => Ok(number(matches.get_one::<usize>(name))),
        Kind::Text | Kind::Table | Kind::Choice(_) => {
            let texts = matches.get_many::<String>(name).into_iter().flatten();
            Ok(listed(many, texts.cloned().map(Value::String).collect()))
        }
        Kind::File => {
            let paths = matches.get_many::<PathBuf>(name).into_iter().flatten();
            let text = |path: &PathBuf| match path.to_str() {
                Some(text) => Ok(Value::String(text.to_owned())),
                None => {
                    let why = format!("{}: a path that is no UTF-8\n", path.display());
                    Err(Error::raw(ErrorKind::InvalidUtf8, why))
                }
            };
            Ok(listed(many, paths.map(text).collect::<Result<_, _>>()?))
        }
    }
}

fn number<N: Copy + Into<Value>>(number: Option<&N>) -> Value {
    number.map_or(Value::Null, |number| (*number).into())
}

/// All values where there may be several, else the first.
fn listed(many: bool, values: Vec<Value>) -> Value {
    match many {
        true => Value::Array(values),
        false => values.into_iter().next().unwrap_or_default(),
    }
}

fn one_of(words: &'static [ChoiceWord]) -> PossibleValuesParser {
    let value = |word: &ChoiceWord| PossibleValue::new(word.word).help(word.doc);
    PossibleValuesParser::new(words.iter().map(value))
}

/// A parser of a choice, for an option of one command.
pub(crate) fn choice<C: NamedChoice + Send + Sync>() -> impl TypedValueParser<Value = C> {
    one_of(C::WORDS).try_map(|word| C::parse(&word))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use fairground_session::{RunSpec, TargetSpec};
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line<S: OptionGroup + Clone + Send + Sync + 'static> {
        #[command(flatten)]
        spec: SpecArgs<S>,
    }

    fn typed(line: &str) -> RunSpec {
        Line::<RunSpec>::try_parse_from(line.split_whitespace()).expect(line).spec.0
    }

    #[test]
    fn the_command_line_and_named_values_say_the_same() {
        let named = |value: Value| RunSpec::from_words(value.as_object().expect("words"));
        let plain = named(json!({ "workload": "hogs:2" })).expect("words");
        assert_eq!(typed("run hogs:2"), plain, "every option has one default");
        let line = "run hogs:2 --on vm:6.1,sim --sched cfs --set a=on --cost tick_ns=3 --cpus 3 --locks rt-2006 \
                    --timers jiffies --no-recording --lead-in 3ms --at 1s:a=off --engine interpreter --hold 2ms \
                    --profile a.toml --profile b.toml --kernel ./bzImage --max-events 7 --seed 9 --expect a=-1";
        let words = json!({
            "workload": "hogs:2", "on": ["vm:6.1", "sim"], "sched": "cfs", "set": { "a": true },
            "cost": { "tick_ns": 3 }, "cpus": 3, "locks": "rt-2006", "timers": "jiffies",
            "record": false, "lead_in": "3ms", "at": ["1s:a=off"], "engine": "interpreter", "hold": "2ms",
            "profile": ["a.toml", "b.toml"], "kernel": "./bzImage", "max_events": 7, "seed": 9,
            "expect": "a=-1",
        });
        assert_eq!(typed(line), named(words).expect("words"));
    }

    #[test]
    fn an_option_may_stand_alone() {
        let shown = |line: &str| typed(line).variables.show_globals;
        assert_eq!(shown("run hogs:2 --show-globals"), ["*"]);
        assert_eq!(shown("run --show-globals hogs:2"), ["*"]);
        assert_eq!(shown("run hogs:2 --show-globals=a,b"), ["a", "b"]);
        assert!(shown("run hogs:2").is_empty());
    }

    #[test]
    fn each_row_is_an_argument() {
        let command = Line::<RunSpec>::command();
        let arguments: Vec<_> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        assert_eq!(arguments, RunSpec::names());
        assert!(Line::<TargetSpec>::try_parse_from(["run"]).is_ok(), "a group has no operand");
        for line in ["run", "run hogs:2 --stacks --no-recording", "run hogs:2 --idle-bound 1ms"] {
            assert!(Line::<RunSpec>::try_parse_from(line.split_whitespace()).is_err(), "{line}");
        }
    }
}
