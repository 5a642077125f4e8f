//! Workloads by name: the benchmarks of the published results, and loads for tests and benchmarks.

mod containers;
mod critical;
mod drawn;
mod interactive;
mod jobs;
mod load;
mod messages;
mod parts;
mod phases;
mod pipe_chain;
mod rhythm;
mod ring;
mod schbench;
mod servers;
mod slice;
mod spec;
mod yield_pair;

use crate::check::check;
use crate::diagnostic::{Source, WorkloadError};
use crate::join::join;
use crate::limits::{NAME_CHARS_MAX, PARTS_MAX};
use crate::model::Workload;
pub use ring::LAT_CTX_MATRIX;
pub use spec::{COMMON_PARAMETERS, Entry, Parameter};
use spec::{Call, Token};

/// The name of a specification in messages.
const SPECIFICATION: &str = "workload specification";

const ENTRIES: &[Entry] = &[
    jobs::AIM7,
    interactive::AUDIO,
    load::BENCH_LOAD,
    containers::CONTAINERS,
    critical::CRITICAL,
    jobs::DBENCH,
    interactive::DRAG,
    drawn::DRAWN,
    phases::FAIRTEST,
    rhythm::FORKSTORM,
    messages::HACKBENCH,
    load::HOGS,
    ring::LAT_CTX,
    load::LOOP,
    phases::MASSIVE_INTR,
    load::MIX,
    servers::NETPERF_STREAM,
    rhythm::PERIODIC,
    messages::PIPE,
    pipe_chain::PIPE_CHAIN,
    schbench::SCHBENCH,
    slice::SLICE,
    load::SLEEPERS,
    servers::VOLANO,
    yield_pair::YIELD_PAIR,
];

/// All workloads of the library, by name.
pub fn entries() -> &'static [Entry] {
    ENTRIES
}

/// Builds a workload from a specification: `name[:arguments][,key=value]…`, several joined by `+`.
///
/// ```
/// let workload = fairground_workload::from_spec("hogs:2,nice=5 + sleepers:3,run=20us,sleep=1ms")?;
/// assert_eq!(workload.tasks.len(), 2);
/// # Ok::<(), fairground_workload::WorkloadError>(())
/// ```
///
/// # Errors
/// All problems of the specification, with their columns (the specification is line 1 of its text).
pub fn from_spec(text: &str) -> Result<Workload, WorkloadError> {
    let source = Source::new(SPECIFICATION, text);
    let mut problems = Vec::new();
    let mut parts = Vec::new();
    let mut durations: Vec<(u64, Token<'_>)> = Vec::new();
    let pieces = Token::whole(text).split(|c| c == '+');
    if let Some(piece) = pieces.get(PARTS_MAX) {
        let message = format!("more than PARTS_MAX, {PARTS_MAX}, workloads in one specification");
        let help = "use counts, or write a file".to_owned();
        return Err(WorkloadError::new(vec![source.diagnostic(piece.span.clone(), message, help)]));
    }
    for piece in pieces {
        let Some(mut call) = Call::read(&piece, ENTRIES, &source, &mut problems) else { continue };
        let mut workload = (call.entry.build)(&mut call);
        if let Some(value) = call.value("duration") {
            workload.duration_ns = call.time("duration");
            durations.push((workload.duration_ns, value));
        }
        if let Some((ns, piece)) = call.duration.take() {
            durations.push((ns, piece));
        }
        parts.push(workload);
    }
    if let [(first_ns, _), rest @ ..] = durations.as_slice()
        && let Some((_, piece)) = rest.iter().find(|(ns, _)| ns != first_ns)
    {
        let message = "two different durations for one workload".to_owned();
        let help = "write `duration` once".to_owned();
        problems.push(source.diagnostic(piece.span.clone(), message, help));
    }
    if !problems.is_empty() {
        return Err(WorkloadError::new(problems));
    }
    let longest_ns = parts.iter().map(|part| part.duration_ns).max().unwrap_or(0);
    let mut parts = parts.into_iter();
    let Some(mut workload) = parts.next() else {
        let help = "name a workload, as in `hogs:3`".to_owned();
        let problem = source.diagnostic(0..0, "the specification is empty".into(), help);
        return Err(WorkloadError::new(vec![problem]));
    };
    for part in parts {
        join(&mut workload, part);
    }
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    workload.name = words.chars().take(NAME_CHARS_MAX).collect();
    workload.duration_ns = durations.first().map_or(longest_ns, |&(ns, _)| ns);
    check(&workload)?;
    Ok(workload)
}
