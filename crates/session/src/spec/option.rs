//! Rows of the table of options: each describes a field of a spec, and with it an option of the command line, a key of
//! an experiment and a keyword of Python.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::applies::Targets;
use super::words::{self, BadWord};

/// One word of a choice, and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChoiceWord {
    /// The word.
    pub word: &'static str,
    /// Its meaning, a phrase without a full stop.
    pub doc: &'static str,
}

/// Values that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On or off.
    Flag,
    /// A whole number from 0 to 2³² − 1.
    U32,
    /// A whole number from 0 to 2⁶⁴ − 1.
    U64,
    /// A whole number from 0 to the largest `usize`.
    Size,
    /// Any text.
    Text,
    /// A path.
    File,
    /// A text, or a table with the content of the file that it would name.
    Table,
    /// One of these words.
    Choice(&'static [ChoiceWord]),
}

/// How many values an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One; there is a default.
    One,
    /// None, or one.
    AtMostOne,
    /// Any number.
    Many,
}

/// The type of an option's field.
pub trait OptionType {
    /// The values.
    const KIND: Kind;
    /// How many.
    const COUNT: Count = Count::One;
}

macro_rules! kinds {
    ($($type:ty: $kind:ident),*) => {$(
        impl OptionType for $type {
            const KIND: Kind = Kind::$kind;
        }
    )*};
}
kinds!(bool: Flag, u32: U32, u64: U64, usize: Size, String: Text, PathBuf: File);

impl<T: OptionType> OptionType for Option<T> {
    const KIND: Kind = T::KIND;
    const COUNT: Count = Count::AtMostOne;
}

impl<T: OptionType> OptionType for Vec<T> {
    const KIND: Kind = T::KIND;
    const COUNT: Count = Count::Many;
}

/// An option of a run.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// The name in files and programs: `lead_in`.
    pub name: &'static str,
    /// The values.
    pub kind: Kind,
    /// How many values.
    pub count: Count,
    /// The default, as named values state it.
    pub default: fn() -> Value,
    /// The targets on which it has an effect.
    pub targets: Targets,
    /// The heading in the help of the command line; empty where there is none.
    pub heading: &'static str,
    /// Whether one word of the command line may hold several values, with commas.
    pub commas: bool,
    /// Whether several values make several runs.
    pub compared: bool,
    /// Whether each value is a name with a value, so that programs give a table.
    pub assigns: bool,
    /// Whether a value may name a file.
    pub or_file: bool,
    /// Whether a value may begin with a hyphen.
    pub hyphens: bool,
    /// Whether it is refused beside any target on which it has no effect.
    pub exclusive: bool,
    /// The value where the option stands alone on the command line.
    pub alone: Option<&'static str>,
    /// The environment's variable that has the value where the command line has none.
    pub environment: Option<&'static str>,
    /// The option that excludes it.
    pub conflicts: Option<&'static str>,
    /// The option without which it means nothing.
    pub requires: Option<&'static str>,
    /// What to do on a target where it has no effect, in place of it.
    pub instead: Option<&'static str>,
    usage: &'static str,
    doc: &'static str,
}

impl OptionRow {
    pub(super) const fn new<T: OptionType>(
        name: &'static str,
        (usage, doc): (&'static str, &'static str),
        default: fn() -> Value,
        targets: Targets,
    ) -> OptionRow {
        OptionRow {
            name,
            kind: T::KIND,
            count: T::COUNT,
            default,
            targets,
            heading: "",
            commas: false,
            compared: false,
            assigns: false,
            or_file: false,
            hyphens: false,
            exclusive: false,
            alone: None,
            environment: None,
            conflicts: None,
            requires: None,
            instead: None,
            usage,
            doc,
        }
    }

    /// Its meaning on the command line: a phrase without a full stop at its end.
    pub fn doc(&self) -> &'static str {
        self.doc.trim_start()
    }

    /// The meaning of its values in files and programs, where a flag that is on by default is turned off.
    pub fn value_doc(&self) -> String {
        match (self.default)() {
            Value::Bool(true) => format!("`false`: {}", self.doc()),
            _ => self.doc().to_owned(),
        }
    }

    /// The option's name on the command line, without hyphens before it; `None`: it is an operand.
    pub fn long(&self) -> Option<&'static str> {
        let option = self.usage.strip_prefix("--")?;
        Some(option.split_once(' ').map_or(option, |(long, _)| long))
    }

    /// The name of its value on the command line; `None`: it takes none.
    pub fn value_name(&self) -> Option<&'static str> {
        match self.usage.strip_prefix("--") {
            Some(option) => option.split_once(' ').map(|(_, value)| value),
            None => Some(self.usage),
        }
    }

    /// The default as a text: of a list with commas. `None`: it is no value, or a flag is off.
    pub fn default_text(&self) -> Option<String> {
        match (self.default)() {
            Value::String(text) if !text.is_empty() => Some(text),
            Value::Number(number) => Some(number.to_string()),
            Value::Array(items) if !items.is_empty() => {
                let items = items.iter().filter_map(Value::as_str);
                Some(items.collect::<Vec<_>>().join(","))
            }
            _ => None,
        }
    }
}

/// What a row says beyond what every row has, in the words of the table.
impl OptionRow {
    pub(super) const fn heading(self, heading: &'static str) -> Self {
        Self { heading, ..self }
    }

    pub(super) const fn commas(self) -> Self {
        Self { commas: true, ..self }
    }

    pub(super) const fn compared(self) -> Self {
        Self { compared: true, ..self }
    }

    pub(super) const fn assigns(self) -> Self {
        Self { assigns: true, ..self }
    }

    pub(super) const fn or_file(self) -> Self {
        Self { or_file: true, ..self }
    }

    pub(super) const fn hyphens(self) -> Self {
        Self { hyphens: true, ..self }
    }

    pub(super) const fn exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }

    pub(super) const fn alone(self, value: &'static str) -> Self {
        Self { alone: Some(value), ..self }
    }

    pub(super) const fn environment(self, variable: &'static str) -> Self {
        Self { environment: Some(variable), ..self }
    }

    pub(super) const fn conflicts(self, other: &'static str) -> Self {
        Self { conflicts: Some(other), ..self }
    }

    pub(super) const fn requires(self, other: &'static str) -> Self {
        Self { requires: Some(other), ..self }
    }

    pub(super) const fn instead(self, remedy: &'static str) -> Self {
        Self { instead: Some(remedy), ..self }
    }
}

/// Options that a command takes together.
pub trait OptionGroup: Default + DeserializeOwned {
    /// The heading of its rows in the help of the command line; empty where there is none.
    const HEADING: &'static str;
    /// The rows of its own fields.
    const OWN: &'static [OptionRow];
    /// Its rows, with those of the groups within it.
    const TABLES: &'static [&'static [OptionRow]];

    /// Its rows, in the order of the table.
    fn options() -> impl Iterator<Item = &'static OptionRow> + Clone {
        Self::TABLES.iter().copied().flatten()
    }

    /// Checks each value for itself.
    ///
    /// # Errors
    /// The first name or value that is wrong.
    fn check_words(words: &Map<String, Value>) -> Result<(), BadWord> {
        words.iter().try_for_each(|(name, value)| {
            let value = words::plain(name, value, Self::options())?;
            let alone = Map::from_iter([(name.clone(), value)]);
            words::read::<Self>(alone).map(drop).map_err(|why| BadWord::value(name, why))
        })
    }

    /// Reads named values; what is not named has its default.
    ///
    /// # Errors
    /// The first name or value that is wrong.
    fn from_words(words: &Map<String, Value>) -> Result<Self, BadWord> {
        let plain = words
            .iter()
            .map(|(name, value)| Ok((name.clone(), words::plain(name, value, Self::options())?)));
        let plain = plain.collect::<Result<Map<_, _>, BadWord>>()?;
        words::read(plain).map_err(|why| {
            // The first value that is wrong for itself says more.
            Self::check_words(words).err().unwrap_or_else(|| BadWord::value("run", why))
        })
    }
}

/// Declares groups of options: of each row come the field of the structure, its default, and its [`OptionRow`].
///
/// A row is its doc, `NAME: TYPE = DEFAULT => USAGE, TARGETS`, and what else there is to say: a method of [`OptionRow`].
macro_rules! options {
    ($(
        $(#[$about:meta])*
        pub struct $group:ident $(under $heading:literal)? {$(
            $(#[doc = $doc:literal])+
            $field:ident: $type:ty = $default:expr => $usage:literal, $targets:expr
                $(, $more:ident $(($argument:expr))?)*;
        )*} $(with {$(
            $(#[doc = $part_doc:literal])+
            $part:ident: $part_type:ty,
        )*})?
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $group {
            $(
                $(#[doc = $doc])+
                pub $field: $type,
            )*
            $($(
                $(#[doc = $part_doc])+
                #[serde(flatten)]
                pub $part: $part_type,
            )*)?
        }

        impl Default for $group {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    $($($part: Default::default(),)*)?
                }
            }
        }

        impl crate::spec::option::OptionGroup for $group {
            const HEADING: &'static str = concat!("" $(, $heading)?);
            const OWN: &'static [crate::spec::option::OptionRow] = &[$({
                fn default() -> serde_json::Value {
                    let default: $type = $default;
                    serde_json::to_value(default).unwrap_or_default()
                }
                let usage = ($usage, concat!($($doc),+));
                crate::spec::option::OptionRow::new::<$type>(stringify!($field), usage, default, $targets)
                    .heading(Self::HEADING)
                    $(.$more($($argument)?))*
            }),*];
            const TABLES: &'static [&'static [crate::spec::option::OptionRow]] = &[
                Self::OWN,
                $($(<$part_type as crate::spec::option::OptionGroup>::OWN,)*)?
            ];
        }
    )*};
}
pub(super) use options;
