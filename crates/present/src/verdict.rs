//! Statements that head a result.

use fairground_report::{Document, Level, Verdict};
use fairground_session::Severity;

/// Adds a statement about a run, or, without a label, about the whole result.
pub fn add_verdict(document: &mut Document, label: &str, verdict: fairground_session::Verdict) {
    let level = match verdict.severity {
        Severity::Failure => Level::Failure,
        Severity::Warning => Level::Warning,
    };
    let (text, details) = (verdict.text, verdict.details);
    document.add_verdict(Verdict { run: label.to_owned(), level, text, details });
}
