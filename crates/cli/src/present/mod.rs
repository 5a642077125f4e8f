//! Results on stdout, and the documents that the command line alone has; `fairground_present` makes the others.

mod agreement;
mod contention;
mod diagnosis;
mod experiment;

pub(crate) use contention::describe_contention;
pub(crate) use diagnosis::{changes_headline, describe_changes, describe_diagnosis};
pub(crate) use experiment::experiment_document;
pub(crate) use fairground_present::*;

use std::io::{self, IsTerminal, Write};

use fairground_report::{Document, Table, TextOptions};
use fairground_session::Failure;

use crate::args::{Cli, Format};
use crate::export::Form;
use crate::talk;

/// Whether results can be printed so: said before anything is measured.
pub(crate) fn check(format: Format) -> Result<(), Failure> {
    if format != Format::Parquet {
        return Ok(());
    }
    Form::Parquet.check()?;
    match io::stdout().is_terminal() {
        true => Err(Failure::new("--format parquet is nothing for a terminal")
            .help("send it into a file: > results.parquet")),
        false => Ok(()),
    }
}

/// How text is laid out on stdout.
fn text_options(cli: &Cli) -> TextOptions {
    let options = TextOptions { verbose: cli.verbose, ..TextOptions::for_stdout() };
    if cli.wide { TextOptions { width: None, ..options } } else { options }
}

/// Prints a document on stdout.
pub(crate) fn print(document: &Document, cli: &Cli) -> Result<(), Failure> {
    let text = match cli.format {
        // Its styles are sequences for the terminal; each text in it was made printable.
        Format::Table => return write_raw(&document.to_text(&text_options(cli))),
        Format::Json => talk::shown_json(&document.to_json()).into_owned(),
        Format::Csv => document.to_csv(),
        Format::Markdown => document.to_markdown(),
        Format::Parquet => return print_parquet(document),
    };
    write_stdout(&text)
}

/// Prints tables that are the whole result.
pub(crate) fn print_tables<const N: usize>(tables: [Table; N], cli: &Cli) -> Result<(), Failure> {
    print(&Document { tables: tables.into(), ..Document::default() }, cli)
}

/// Prints what was measured, and only then says what became of its pictures: measured is measured, whether they can
/// be drawn or not.
pub(crate) fn print_drawn(
    document: &Document,
    cli: &Cli,
    drawn: Result<(), Failure>,
) -> Result<(), Failure> {
    print(document, cli)?;
    drawn
}

#[cfg(feature = "parquet")]
fn print_parquet(document: &Document) -> Result<(), Failure> {
    let bytes = document.to_parquet().map_err(Failure::new)?;
    let mut out = io::stdout().lock();
    out.write_all(&bytes).and_then(|()| out.flush()).map_err(|e| Failure::io("<stdout>", &e))
}

#[cfg(not(feature = "parquet"))]
fn print_parquet(_: &Document) -> Result<(), Failure> {
    Form::Parquet.check()
}

/// Writes text to stdout, without characters that would control a terminal; a reader that went away is no error.
pub(crate) fn write_stdout(text: &str) -> Result<(), Failure> {
    write_raw(&talk::shown(text))
}

fn write_raw(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let line_end = if text.ends_with('\n') { "" } else { "\n" };
    write!(out, "{text}{line_end}")
        .and_then(|()| out.flush())
        .map_err(|e| Failure::io("<stdout>", &e))
}
