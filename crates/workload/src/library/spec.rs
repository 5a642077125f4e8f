//! The workloads of the library as entries, and the grammar of a specification: `name[:arguments][,key=value]…`,
//! several joined by `+`.

use std::fmt::{self, Write as _};
use std::ops::{Range, RangeInclusive};

use crate::diagnostic::{Diagnostic, Source, suggestion};
use crate::limits::{CPU_MAX, PARTS_MAX, TIME_MAX_NS};
use crate::model::Workload;
use crate::units::{CpuList, Duration, TextError, parse_cpus, parse_duration, parse_time};

/// A `key=value` parameter of a workload of the library.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The key.
    pub name: &'static str,
    /// The default, as it would be written.
    pub default: &'static str,
    /// Its meaning.
    pub help: &'static str,
}

pub(super) const fn parameter(
    name: &'static str,
    default: &'static str,
    help: &'static str,
) -> Parameter {
    Parameter { name, default, help }
}

pub(super) const NICE: Parameter = parameter("nice", "0", "their nice value, -20 to 19");
pub(super) const CPUS: Parameter =
    parameter("cpus", "any", "the CPUs on which they may run, as in 0-3");

/// A workload of the library.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name, as in `slice:16`.
    pub name: &'static str,
    /// The form of the arguments after the colon; empty when there are none.
    pub arguments: &'static str,
    /// A summary of one line.
    pub summary: &'static str,
    /// Its source: a program, a mail, a paper.
    pub source: &'static str,
    /// Its limits: what it does not show.
    pub limits: &'static str,
    /// Its parameters, besides [`COMMON_PARAMETERS`].
    pub parameters: &'static [Parameter],
    pub(super) build: fn(&mut Call<'_, '_>) -> Workload,
}

/// The parameters of every workload of the library.
pub const COMMON_PARAMETERS: &[Parameter] =
    &[parameter("duration", "10s", "how long the workload runs")];

/// A part of the specification with its location.
#[derive(Clone, Debug)]
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    pub(super) span: Range<usize>,
}

impl<'t> Token<'t> {
    pub(super) fn whole(text: &'t str) -> Self {
        Self { text, span: 0..text.len() }
    }

    /// Without surrounding spaces.
    fn trimmed(&self) -> Self {
        let start = self.span.start + (self.text.len() - self.text.trim_start().len());
        let text = self.text.trim();
        Self { text, span: start..start + text.len() }
    }

    fn cut(&self, from: usize, to: usize) -> Self {
        let text = &self.text[from..to];
        Self { text, span: self.span.start + from..self.span.start + to }.trimmed()
    }

    /// The parts between separators.
    pub(super) fn split(&self, separator: impl Fn(char) -> bool) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut from = 0;
        for (at, c) in self.text.char_indices() {
            if separator(c) {
                parts.push(self.cut(from, at));
                from = at + c.len_utf8();
            }
        }
        parts.push(self.cut(from, self.text.len()));
        parts
    }

    /// The parts before and after the first separator.
    pub(super) fn split_once(&self, separator: impl Fn(char) -> bool) -> (Self, Option<Self>) {
        match self.text.char_indices().find(|&(_, c)| separator(c)) {
            Some((at, c)) => (self.cut(0, at), Some(self.cut(at + c.len_utf8(), self.text.len()))),
            None => (self.clone(), None),
        }
    }
}

/// An integer type of a parameter.
pub(super) trait Number: TryFrom<i64> + PartialOrd + Copy + fmt::Display {}

impl<T: TryFrom<i64> + PartialOrd + Copy + fmt::Display> Number for T {}

/// One `name:arguments,key=value…`, with the problems found while it is read.
pub(super) struct Call<'t, 's> {
    pub(super) entry: &'static Entry,
    pub(super) name: Token<'t>,
    pub(super) arguments: Option<Token<'t>>,
    /// The duration of the run, if the arguments contain it.
    pub(super) duration: Option<(u64, Token<'t>)>,
    options: Vec<(Token<'t>, Token<'t>)>,
    source: &'s Source<'s>,
    pub(super) problems: &'s mut Vec<Diagnostic>,
}

impl<'t, 's> Call<'t, 's> {
    /// Splits one call and looks its name and keys up.
    pub(super) fn read(
        piece: &Token<'t>,
        entries: &'static [Entry],
        source: &'s Source<'s>,
        problems: &'s mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let piece = piece.trimmed();
        let mut parts = piece.split(|c| c == ',').into_iter();
        let head = parts.next().unwrap_or_else(|| piece.clone());
        let (name, arguments) = head.split_once(|c| c == ':' || c.is_whitespace());
        let Some(entry) = entries.iter().find(|entry| entry.name == name.text) else {
            let names = entries.iter().map(|entry| entry.name);
            let (message, help) = if name.text.is_empty() {
                ("a name is missing".to_owned(), suggestion("", names, "workloads"))
            } else {
                let message = format!("there is no workload `{}` in the library", name.text);
                (message, suggestion(name.text, names, "workloads"))
            };
            problems.push(source.diagnostic(name.span, message, help));
            return None;
        };
        let (options, duration) = (Vec::new(), None);
        let mut call = Self { entry, name, arguments, duration, options, source, problems };
        for part in parts {
            call.option(&part);
        }
        Some(call)
    }

    fn option(&mut self, part: &Token<'t>) {
        let (key, value) = part.split_once(|c| c == '=');
        let Some(value) = value else {
            let help = format!("write `key=value`; {}", self.usage());
            self.problem(part.span.clone(), format!("`{}` has no value", part.text), help);
            return;
        };
        let known = self.entry.parameters.iter().chain(COMMON_PARAMETERS).map(|p| p.name);
        if !known.clone().any(|name| name == key.text) {
            let message = format!("`{}` has no parameter `{}`", self.entry.name, key.text);
            let help = suggestion(key.text, known, "parameters");
            self.problem(key.span, message, help);
        } else if self.options.iter().any(|(other, _)| other.text == key.text) {
            let message = format!("`{}` is given twice", key.text);
            self.problem(key.span, message, "write it once".to_owned());
        } else {
            self.options.push((key, value));
        }
    }

    /// The syntax of the entry.
    pub(super) fn usage(&self) -> String {
        let mut usage = format!("`{}", self.entry.name);
        if !self.entry.arguments.is_empty() {
            let _ = write!(usage, ":{}", self.entry.arguments);
        }
        for parameter in self.entry.parameters {
            let _ = write!(usage, "[,{}={}]", parameter.name, parameter.default);
        }
        usage + "`"
    }

    pub(super) fn problem(&mut self, span: Range<usize>, message: String, help: String) {
        self.problems.push(self.source.diagnostic(span, message, help));
    }

    /// The value of a parameter, if it is given.
    pub(super) fn value(&self, key: &str) -> Option<Token<'t>> {
        self.options.iter().find(|(name, _)| name.text == key).map(|(_, value)| value.clone())
    }

    /// The value of a parameter: as given, or its default.
    pub(super) fn setting(&self, key: &str) -> Token<'t> {
        let span = self.name.span.clone();
        self.value(key).unwrap_or_else(|| Token { text: self.default(key), span })
    }

    fn default(&self, key: &str) -> &'static str {
        let mut parameters = self.entry.parameters.iter();
        parameters.find(|parameter| parameter.name == key).map_or("", |found| found.default)
    }

    /// A number in a range; its least when there is a problem.
    pub(super) fn number<T: Number>(
        &mut self,
        what: &str,
        piece: &Token<'_>,
        range: RangeInclusive<T>,
    ) -> T {
        let digits = piece.text.strip_prefix('-').unwrap_or(piece.text);
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let number = piece.text.parse::<i64>().ok().and_then(|number| T::try_from(number).ok());
        match number {
            Some(number) if plain && range.contains(&number) => number,
            _ => {
                let (low, high) = (range.start(), range.end());
                let message =
                    format!("{what} must be an integer from {low} to {high}, not `{}`", piece.text);
                let usage = self.usage();
                self.problem(piece.span.clone(), message, format!("write {usage}"));
                *low
            }
        }
    }

    /// A number by its key.
    pub(super) fn integer<T: Number>(
        &mut self,
        key: &str,
        what: &str,
        range: RangeInclusive<T>,
    ) -> T {
        let piece = self.setting(key);
        self.number(what, &piece, range)
    }

    /// The number after the colon.
    pub(super) fn count<T: Number>(&mut self, what: &str, range: RangeInclusive<T>) -> T {
        if self.arguments.is_none() {
            let help = format!("write {}", self.usage());
            self.problem(self.name.span.clone(), format!("{what} is missing"), help);
        }
        let least = *range.start();
        self.count_or(what, range, least)
    }

    /// The number after the colon, if it is given.
    pub(super) fn count_or<T: Number>(
        &mut self,
        what: &str,
        range: RangeInclusive<T>,
        default: T,
    ) -> T {
        match self.arguments.clone() {
            Some(piece) => self.number(what, &piece, range),
            None => default,
        }
    }

    /// The words of the arguments.
    pub(super) fn words(&self) -> Vec<Token<'t>> {
        let words =
            self.arguments.iter().flat_map(|arguments| arguments.split(char::is_whitespace));
        words.filter(|word| !word.text.is_empty()).collect()
    }

    /// Cuts a list of words off at the limit.
    pub(super) fn limit(&mut self, words: &mut Vec<Token<'t>>, what: &str, remedy: &str) {
        if let Some(word) = words.get(PARTS_MAX) {
            let message = format!("more than PARTS_MAX, {PARTS_MAX}, {what}");
            self.problem(word.span.clone(), message, remedy.to_owned());
            words.truncate(PARTS_MAX);
        }
    }

    /// One of several words by its key, the first when there is a problem.
    pub(super) fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> T {
        let piece = self.setting(key);
        match choices.iter().find(|(word, _)| *word == piece.text) {
            Some((_, choice)) => *choice,
            None => {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                let message = format!("`{key}` cannot be {:?}", piece.text);
                self.problem(piece.span, message, format!("write {}", words.join(" or ")));
                choices[0].1
            }
        }
    }

    /// The parameter `nice`.
    pub(super) fn nice(&mut self) -> i8 {
        self.integer("nice", "a nice value", -20..=19)
    }

    /// A duration by its key, ns.
    pub(super) fn time(&mut self, key: &str) -> u64 {
        self.converted(key, parse_time).unwrap_or(1).min(TIME_MAX_NS)
    }

    /// A duration by its key that must not be 0, ns.
    pub(super) fn positive(&mut self, key: &str) -> u64 {
        let Some(ns) = self.converted(key, parse_time) else { return 1 };
        if ns == 0 {
            let help = format!("write a time above 0, as in `{key}={}`", self.default(key));
            self.problem(self.setting(key).span, format!("`{key}` is 0"), help);
        }
        ns.max(1)
    }

    /// A duration or a range of durations by its key.
    pub(super) fn duration(&mut self, key: &str) -> Duration {
        self.converted(key, parse_duration).unwrap_or(Duration::Fixed(1))
    }

    /// The CPUs of the parameter `cpus`; `None`: any.
    pub(super) fn cpus(&mut self) -> Option<CpuList> {
        if self.setting("cpus").text == "any" {
            return None;
        }
        self.converted("cpus", parse_cpus)
    }

    /// The one CPU of the parameter `cpu`; `None`: any.
    pub(super) fn cpu(&mut self) -> Option<CpuList> {
        if self.setting("cpu").text == "any" {
            return None;
        }
        Some(CpuList::one(self.integer("cpu", "the CPU", 0..=CPU_MAX)))
    }

    fn converted<T>(&mut self, key: &str, convert: fn(&str) -> Result<T, TextError>) -> Option<T> {
        let value = self.setting(key);
        match convert(value.text) {
            Ok(converted) => Some(converted),
            Err(error) => {
                self.problem(value.span, format!("in `{key}`: {}", error.message), error.help);
                None
            }
        }
    }
}
