//! Problems of a workload with their source locations, printed like a compiler's diagnostics.

use std::fmt;
use std::ops::Range;

use fairground_suggest::did_you_mean;

use crate::limits::PROBLEMS_SHOWN_MAX;

/// Characters of a source line that an excerpt shows.
const EXCERPT_CHARS_MAX: usize = 100;
/// Characters that an excerpt of a long line shows before the column of the problem.
const EXCERPT_LEAD_CHARS: usize = 30;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as it was named to [`crate::parse`], or the kind of source (`workload specification`).
    pub file: String,
    /// The line, from 1; 0 when the problem has no location in a text (a workload built by a program).
    pub line: usize,
    /// The column in characters, from 1; 0 together with `line`.
    pub column: usize,
    /// The problem and its reason.
    pub message: String,
    /// Further locations or facts, in order.
    pub notes: Vec<String>,
    /// The remedy.
    pub help: String,
    /// The line itself (a part of a long one) and the caret line below it; `None` without a location.
    excerpt: Option<(String, String)>,
}

impl Diagnostic {
    /// A problem without a location in a text.
    pub(crate) fn unplaced(subject: &str, message: String, help: String) -> Self {
        Self {
            file: subject.to_owned(),
            line: 0,
            column: 0,
            message,
            notes: Vec::new(),
            help,
            excerpt: None,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        let margin = if self.line == 0 { 1 } else { self.line.to_string().len() };
        write!(f, "\n{:margin$}--> {}", "", self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if let Some((line, carets)) = &self.excerpt {
            write!(f, "\n{:margin$} |\n{} | {line}\n{:margin$} | {carets}", "", self.line, "")?;
        }
        for note in &self.notes {
            write!(f, "\n{:margin$} = note: {note}", "")?;
        }
        if !self.help.is_empty() {
            write!(f, "\n{:margin$} = help: {}", "", self.help)?;
        }
        Ok(())
    }
}

/// All problems of one workload; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError {
    /// The problems, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl WorkloadError {
    /// Sorts by location; problems at one location keep their order.
    pub(crate) fn new(mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by_key(|d| (d.line, d.column));
        diagnostics.dedup();
        Self { diagnostics }
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().take(PROBLEMS_SHOWN_MAX).enumerate() {
            if index > 0 {
                write!(f, "\n\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        let hidden = self.diagnostics.len().saturating_sub(PROBLEMS_SHOWN_MAX);
        if hidden > 0 {
            write!(f, "\n\n… and {hidden} more problems")?;
        }
        Ok(())
    }
}

impl std::error::Error for WorkloadError {}

/// A text with its name; converts byte ranges to locations.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    file: &'t str,
    text: &'t str,
    /// The byte at which each line starts.
    lines: Vec<usize>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(file: &'t str, text: &'t str) -> Self {
        let starts = text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(at, _)| at + 1);
        Self { file, text, lines: std::iter::once(0).chain(starts).collect() }
    }

    /// `file:line:column` of a byte.
    pub(crate) fn location(&self, at: usize) -> String {
        let (line, column) = self.line_column(at);
        format!("{}:{line}:{column}", self.file)
    }

    /// Line and column, from 1.
    pub(crate) fn line_column(&self, at: usize) -> (usize, usize) {
        let at = self.boundary(at);
        let line = self.lines.partition_point(|&start| start <= at) - 1;
        (line + 1, self.text[self.lines[line]..at].chars().count() + 1)
    }

    pub(crate) fn diagnostic(
        &self,
        span: Range<usize>,
        message: String,
        help: String,
    ) -> Diagnostic {
        let start = self.boundary(span.start);
        let end = self.boundary(span.end.max(start));
        let (line, column) = self.line_column(start);
        let from = self.lines[line - 1];
        let until = self.text[from..].find('\n').map_or(self.text.len(), |length| from + length);
        let width = self.text[start..end.min(until).max(start)].chars().count().max(1);
        let excerpt = excerpt(self.text[from..until].trim_end_matches('\r'), column, width);
        Diagnostic {
            file: self.file.to_owned(),
            line,
            column,
            message,
            notes: Vec::new(),
            help,
            excerpt: Some(excerpt),
        }
    }

    /// The nearest character boundary at or before a byte, inside the text.
    fn boundary(&self, at: usize) -> usize {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// The line around a column, and the carets below it.
fn excerpt(line: &str, column: usize, width: usize) -> (String, String) {
    let count = line.chars().count();
    let skip =
        if count > EXCERPT_CHARS_MAX { (column - 1).saturating_sub(EXCERPT_LEAD_CHARS) } else { 0 };
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String =
        line.chars().skip(skip).take(EXCERPT_CHARS_MAX).map(printable).collect();
    let mut offset = column - 1 - skip;
    if skip > 0 {
        shown.insert(0, '…');
        offset += 1;
    }
    if skip + EXCERPT_CHARS_MAX < count {
        shown.push('…');
    }
    let width = width.min(EXCERPT_CHARS_MAX.saturating_sub(offset)).max(1);
    (shown, format!("{}{}", " ".repeat(offset), "^".repeat(width)))
}

/// ``did you mean `x`?`` or the list of known words.
pub(crate) fn suggestion<'w>(
    written: &str,
    known: impl IntoIterator<Item = &'w str> + Clone,
    kind: &str,
) -> String {
    if let Some(word) = did_you_mean(written, known.clone()) {
        return format!("did you mean `{word}`?");
    }
    let all: Vec<String> = known.into_iter().take(24).map(|word| format!("`{word}`")).collect();
    if all.is_empty() {
        format!("there is no {kind}")
    } else {
        format!("known {kind}: {}", all.join(", "))
    }
}
