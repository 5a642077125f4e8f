//! From runs to a page with charts. Nothing is computed here that an analysis does not know; to add a chart, write a
//! function that makes one of [`Pictured`] runs and name it in [`page`].

mod charts;
mod contention;
mod distributions;
mod experiment;
mod overview;
mod plots;
mod timeline;
mod virtual_time;

pub(crate) use contention::{contention_summary, write_contention};
pub(crate) use experiment::write_experiment;
pub(crate) use overview::summary;
pub(crate) use plots::prepare;

use std::path::Path;

use fairground_analysis::Analysis;
use fairground_report::Document;
use fairground_report::page::{Chart, Page};
use fairground_session::{Failure, Outcome, Recording};
use fairground_trace::{Counter, Trace};

use crate::args::PageArgs;
use crate::export;

/// A run, or a recording, as the charts see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pictured<'a> {
    pub(crate) label: &'a str,
    pub(crate) analysis: &'a Analysis,
    pub(crate) trace: &'a Trace,
    /// The scheduler's own numbers over time.
    pub(crate) numbers: &'a [Counter],
}

impl<'a> From<&'a Outcome> for Pictured<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        let Outcome { label, analysis, trace, numbers, .. } = outcome;
        Self { label, analysis, trace, numbers }
    }
}

/// Recordings beside their analyses, as the charts see them.
pub(crate) fn recorded<'a>(
    recordings: impl IntoIterator<Item = (&'a Recording, &'a Analysis)>,
) -> Vec<Pictured<'a>> {
    let pictured = |(recording, analysis): (&'a Recording, &'a Analysis)| {
        let Recording { name, trace } = recording;
        Pictured { label: name, analysis, trace, numbers: &[] }
    };
    recordings.into_iter().map(pictured).collect()
}

/// Draws a result, where that was asked for.
pub(crate) fn write(
    args: &PageArgs,
    document: &Document,
    runs: &[Pictured<'_>],
) -> Result<(), Failure> {
    write_page(args, || page(document, runs))
}

fn write_page(args: &PageArgs, page: impl FnOnce() -> Page) -> Result<(), Failure> {
    if !args.is_wanted() {
        return Ok(());
    }
    let page = page();
    if let Some(path) = &args.html {
        let html = page.to_html();
        export::write_whole(path, |sink| sink.write_all(html.as_bytes()))?;
    }
    match &args.plots {
        Some(folder) => plots::write(folder, &page),
        None => Ok(()),
    }
}

fn page(document: &Document, runs: &[Pictured<'_>]) -> Page {
    /// A chart of all runs; `None` where nothing was measured for it.
    type Draw = fn(&[Pictured<'_>]) -> Option<Chart>;
    let charts: [Draw; 8] = [
        charts::shares,
        charts::errors,
        distributions::wakeup_latency,
        distributions::slices,
        timeline::timeline,
        virtual_time::virtual_time,
        contention::locks,
        charts::policy_instructions,
    ];
    Page {
        command: command_line(std::env::args()),
        overview: overview::overview(runs),
        charts: charts.iter().filter_map(|chart| chart(runs)).collect(),
        document: document.clone(),
    }
}

/// A count with its thousands set apart.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The command line, quoted so that a shell takes it again.
pub(crate) fn command_line(args: impl Iterator<Item = String>) -> String {
    let quoted = args.enumerate().map(|(index, arg)| match index {
        0 => Path::new(&arg).file_name().map_or(arg.clone(), |n| n.to_string_lossy().into_owned()),
        _ => shell_word(&arg),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A word that a shell reads as it is.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:=,@%+".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let args = ["/usr/bin/fairground", "compare", "hogs:3", "a b", "it's", ""];
        let line = command_line(args.into_iter().map(str::to_owned));
        assert_eq!(line, "fairground compare hogs:3 'a b' 'it'\\''s' ''");
    }

    #[test]
    fn thousands_are_set_apart() {
        let texts = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
    }
}
