//! The grammar of a specification: `name[:arguments][,key=value]…`, several joined by `+`.

use std::fmt::Write as _;
use std::ops::Range;

use super::{COMMON_PARAMETERS, Entry};
use crate::diagnostic::{Diagnostic, Source, suggestion};
use crate::limits::TIME_MAX_NS;
use crate::model::{CpuList, Duration};
use crate::units::{TextError, parse_cpus, parse_duration, parse_time};

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

    pub(super) fn value(&self, key: &str) -> Option<Token<'t>> {
        self.options.iter().find(|(name, _)| name.text == key).map(|(_, value)| value.clone())
    }

    /// A number in a range.
    pub(super) fn number(&mut self, what: &str, piece: &Token<'_>, low: i64, high: i64) -> i64 {
        let digits = piece.text.strip_prefix('-').unwrap_or(piece.text);
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        match piece.text.parse::<i64>() {
            Ok(number) if plain && (low..=high).contains(&number) => number,
            _ => {
                let message =
                    format!("{what} must be an integer from {low} to {high}, not `{}`", piece.text);
                let usage = self.usage();
                self.problem(piece.span.clone(), message, format!("write {usage}"));
                low
            }
        }
    }

    /// The number after the colon.
    pub(super) fn count(&mut self, what: &str, high: i64) -> u32 {
        let Some(arguments) = self.arguments.clone() else {
            let help = format!("write {}", self.usage());
            self.problem(self.name.span.clone(), format!("{what} is missing"), help);
            return 1;
        };
        // The range fits: high is at most the number of tasks.
        u32::try_from(self.number(what, &arguments, 1, high)).unwrap_or(1)
    }

    /// A duration by its key, ns.
    pub(super) fn time(&mut self, key: &'static str, default_ns: u64) -> u64 {
        self.converted(key, parse_time).unwrap_or(default_ns).min(TIME_MAX_NS)
    }

    /// A duration or a range of durations by its key.
    pub(super) fn duration(&mut self, key: &'static str, default_ns: u64) -> Duration {
        self.duration_or(key, Duration::Fixed(default_ns))
    }

    /// The same with a range as the default.
    pub(super) fn duration_or(&mut self, key: &'static str, default: Duration) -> Duration {
        self.converted(key, parse_duration).unwrap_or(default)
    }

    pub(super) fn cpus(&mut self, key: &'static str) -> Option<CpuList> {
        if self.value(key)?.text == "any" {
            return None;
        }
        self.converted(key, parse_cpus)
    }

    fn converted<T>(&mut self, key: &str, convert: fn(&str) -> Result<T, TextError>) -> Option<T> {
        let value = self.value(key)?;
        match convert(value.text) {
            Ok(converted) => Some(converted),
            Err(error) => {
                self.problem(value.span, format!("in `{key}`: {}", error.message), error.help);
                None
            }
        }
    }
}
