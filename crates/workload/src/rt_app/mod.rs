//! Workloads as files of rt-app (`scheduler-tools/rt-app`, JSON): read into the model and written from it.
//!
//! The reader follows rt-app's own parser (`src/rt-app_parse_config.c` of 2026) for keys that it knows, and is strict
//! otherwise: an unknown key is an error. Keys that concern rt-app itself (logs, calibration, plots) become notes.
//! [`parse_rt_app`] translates:
//!
//! * a thread is a group of tasks; `instance` its count; `delay` its start; a thread that others fork, a group that is
//!   forked;
//! * events are operations: `suspend`, `resume` and `sync` the sequences of operations that they are in rt-app;
//! * `loop` and phases are loops; the settings of a phase (`priority`, `dl-runtime`, `cpus`, `taskgroup`) are set
//!   before its loop;
//! * a timer begins with the thread, as rt-app counts from there; `unique…` is the thread's own, any other name is
//!   shared.

mod constants;
mod events;
mod global;
mod json;
mod names;
mod phases;
mod reader;
mod steps;
mod threads;
mod write;
mod write_events;
mod write_phases;
mod write_text;
mod writer;

use std::collections::BTreeSet;

use std::path::Path;

use crate::check;
use crate::diagnostic::{Diagnostic, Source, WorkloadError, suggestion};
use crate::limits::{FILE_BYTES_MAX, NAME_CHARS_MAX};
use crate::model::{Workload, independent};
use crate::spans::Spans;
pub use constants::{IORUN_NS_PER_BYTE, RT_APP_DURATION_NS, RT_APP_MEM_BUFFER};
use names::Names;
use reader::{Global, Reader};
pub use write::{RtAppText, to_rt_app};

/// A parsed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtApp {
    /// The workload.
    pub workload: Workload,
    /// Notes on members that have another meaning here than in rt-app, or none, each with its location.
    pub notes: Vec<String>,
}

/// Reads a file of rt-app. `file` is its name in messages, and without folders and extension the workload's name.
///
/// # Errors
/// The first problem of JSON itself; or all unknown or invalid keys, types, values and names; or what the checks of
/// [`crate::check`](crate::check()) find.
pub fn parse_rt_app(file: &str, text: &str) -> Result<RtApp, WorkloadError> {
    let source = Source::new(file, text);
    let one = |diagnostic: Diagnostic| WorkloadError::new(vec![diagnostic]);
    if text.len() > FILE_BYTES_MAX {
        let message = format!("the file has more than FILE_BYTES_MAX, {FILE_BYTES_MAX}, bytes");
        return Err(one(source.diagnostic(0..0, message, "split the workload".to_owned())));
    }
    let root = json::parse(text).map_err(|error| {
        let message = format!("this is not JSON: {}", error.message);
        one(source.diagnostic(error.span, message, error.help.to_owned()))
    })?;
    let mut reader = Reader {
        source: &source,
        problems: Vec::new(),
        notes: Vec::new(),
        names: Names::default(),
        resumed: resumed(&root),
        global: Global::default(),
        spans: Spans::default(),
    };
    let mut workload = reader.file(file, &root);
    if !reader.problems.is_empty() {
        return Err(WorkloadError::new(reader.problems));
    }
    let hangs = check::hangs(&workload, &source, &reader.spans).map_err(in_words_of_events)?;
    workload.hangs = !hangs.is_empty();
    let mut notes = reader.notes;
    notes.extend(hangs.into_iter().map(|hang| {
        format!("{}: rt-app waits there for ever, and so does this", words_of_events(&hang))
    }));
    Ok(RtApp { workload, notes })
}

/// The checks refer to operations: their remedies in the events of such a file.
fn in_words_of_events(mut error: WorkloadError) -> WorkloadError {
    for diagnostic in &mut error.diagnostics {
        diagnostic.help = words_of_events(&diagnostic.help);
    }
    error
}

fn words_of_events(text: &str) -> String {
    let words = [
        ("a { notify = … }", "a \"resume\", \"signal\" or \"broad\""),
        ("a { send = … }", "a \"sem_post\""),
        ("no task notifies the condition", "no event resumes or signals"),
        ("no task sends to queue", "no event posts the semaphore"),
    ];
    words.iter().fold(text.to_owned(), |text, (operation, events)| text.replace(operation, events))
}

/// The names that `resume` has anywhere in a value. The depth of values is limited where they are parsed.
fn resumed(value: &json::Value) -> BTreeSet<String> {
    let of_member = |member: &json::Member| {
        let is_resume = events::event_of(&member.key) == Ok("resume");
        let name = member.value.text().filter(|_| is_resume).map(str::to_owned);
        name.into_iter().chain(resumed(&member.value)).collect::<Vec<_>>()
    };
    match &value.kind {
        json::Kind::Object(members) => members.iter().flat_map(of_member).collect(),
        json::Kind::List(values) => values.iter().flat_map(resumed).collect(),
        _ => BTreeSet::new(),
    }
}

impl Reader<'_> {
    fn file(&mut self, file: &str, root: &json::Value) -> Workload {
        let mut workload = Workload {
            name: name_of(file),
            duration_ns: RT_APP_DURATION_NS,
            ..independent("a workload of rt-app".to_owned(), Vec::new())
        };
        let json::Kind::Object(members) = &root.kind else {
            let message = format!("the file is {}, not an object", root.words());
            self.problem(root.span.clone(), message, "write { \"tasks\" : { … } }");
            return workload;
        };
        self.only(members, "the file", &["tasks", "global", "resources"]);
        let global = self.find(members, "global");
        self.global(global, root);
        if let Some(resources) = self.find(members, "resources") {
            self.resources(resources);
        }
        match self.find(members, "tasks") {
            Some(tasks) => workload.tasks = self.threads(tasks),
            None => {
                let keys = members.iter().map(|member| member.key.as_str());
                let help = match suggestion("tasks", keys, "keys") {
                    like if like.starts_with("did") => "the threads are below \"tasks\"",
                    _ => "write \"tasks\" : { \"thread0\" : { \"run\" : 1000 } }",
                };
                self.problem(root.span.start..root.span.start + 1, "the file has no `tasks`", help);
            }
        }
        workload.duration_ns = self.global.duration_ns;
        let names = std::mem::take(&mut self.names);
        names.fill(&mut workload, &mut self.spans, self.global.pi_enabled);
        workload
    }
}

/// The file's name without folders and extension, as far as it is valid.
fn name_of(file: &str) -> String {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let plain = stem.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect::<String>();
    if plain.is_empty() { "rt-app".to_owned() } else { plain }
}
