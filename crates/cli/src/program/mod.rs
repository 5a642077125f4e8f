//! What the original programs print: the lines of a run in the form of the program that its workload imitates
//! (`run --as-program`). Figures come from the run; the format is the program's own `printf`. A column that a run does
//! not tell is `-`.

mod fairness;
mod jobs;
mod lmbench;
mod pipes;
mod schbench;
mod servers;
mod text;
mod top;
mod vmstat;

use fairground_session::{Failure, Outcome, library_names};
use fairground_trace::{EventKind, TaskId};
use fairground_workload::{Op, TaskSpec, Workload};

pub(crate) use top::{TOP_COLUMNS, TopLine, top_of};

/// A program that a workload of the library imitates.
#[derive(Debug)]
pub(crate) struct Form {
    /// The workload.
    workload: &'static str,
    /// The program.
    pub(crate) program: &'static str,
    /// Its lines, or why there are none.
    lines: fn(&Run<'_>) -> Result<String, String>,
}

const fn form(
    workload: &'static str,
    program: &'static str,
    lines: fn(&Run<'_>) -> Result<String, String>,
) -> Form {
    Form { workload, program, lines }
}

/// Programs that measure and print.
const MEASURING: &[Form] = &[
    form("aim7", "AIM VII, multitask", jobs::aim7),
    form("dbench", "dbench", jobs::dbench),
    form("hackbench", "hackbench", fairness::hackbench),
    form("lat_ctx", "lmbench's lat_ctx", lmbench::lat_ctx),
    form("massive_intr", "massive_intr", fairness::massive_intr),
    form("netperf-stream", "netperf -t TCP_STREAM", servers::netperf),
    form("pipe", "perf bench sched pipe", pipes::perf_pipe),
    form("pipe-chain", "dd, and vmstat 1 beside it", pipes::dd),
    form("schbench", "schbench", schbench::schbench),
    form("slice", "slice", fairness::slice),
    form("volano", "VolanoMark", servers::volano),
];

/// Programs that print nothing, and were watched with `top`.
const WATCHED: &[Form] = &[
    form("fairtest", "top", top::of_run),
    form("hogs", "top", top::of_run),
    form("loop", "top", top::of_run),
];

/// The form of a workload, by its name in the library: that of the one program that measures; loads beside it print
/// nothing.
pub(crate) fn form_of(specification: &str) -> Result<&'static Form, Failure> {
    let names = library_names(specification);
    let find = |forms: &'static [Form]| {
        let of_name = |name: &&str| forms.iter().find(|form| form.workload == *name);
        names.iter().filter_map(of_name).collect::<Vec<_>>()
    };
    match (find(MEASURING).as_slice(), find(WATCHED).as_slice()) {
        ([form], _) | ([], [form, ..]) => Ok(form),
        ([first, second, ..], _) => Err(Failure::new(format_args!(
            "--as-program prints what one program prints: `{specification}` has {} and {}",
            first.program, second.program
        ))
        .help("leave one of them out")),
        ([], []) => {
            let known: Vec<&str> =
                MEASURING.iter().chain(WATCHED).map(|form| form.workload).collect();
            Err(Failure::new(format_args!(
                "--as-program: no program is known whose lines `{specification}` could print"
            ))
            .help(format_args!("workloads of the library that have one: {}", known.join(", "))))
        }
    }
}

impl Form {
    /// The lines of a run.
    pub(crate) fn lines(&self, workload: &Workload, outcome: &Outcome) -> Result<String, Failure> {
        (self.lines)(&Run { workload, outcome }).map_err(|why| {
            Failure::new(format_args!(
                "{}: nothing to print as {}: {why}",
                outcome.label, self.program
            ))
        })
    }
}

/// A finished run of a workload.
struct Run<'a> {
    workload: &'a Workload,
    outcome: &'a Outcome,
}

/// When a task left a mark.
#[derive(Clone, Copy)]
struct Mark {
    time_ns: u64,
    task: TaskId,
}

impl Run<'_> {
    /// The marks with a text, in the order of time.
    fn marks(&self, text: &str) -> Vec<Mark> {
        self.marks_where(|label| label == text)
    }

    fn marks_where(&self, is_meant: impl Fn(&str) -> bool) -> Vec<Mark> {
        let trace = &self.outcome.trace;
        let meant: Vec<bool> = trace.labels().iter().map(|label| is_meant(label)).collect();
        let mark = |event: fairground_trace::Event| match event.kind {
            EventKind::Mark { task, label, .. } if meant[label.0 as usize] => {
                Some(Mark { time_ns: event.time_ns, task })
            }
            _ => None,
        };
        trace.events().filter_map(mark).collect()
    }

    /// When the run began, ns.
    fn start_ns(&self) -> u64 {
        self.outcome.analysis.start_ns
    }

    fn length_ns(&self) -> u64 {
        self.outcome.analysis.end_ns - self.start_ns()
    }

    /// The name of a task.
    fn name(&self, task: TaskId) -> &str {
        self.outcome.trace.tasks().get(task.index()).map_or("", |info| &info.comm)
    }

    /// The groups of the workload whose names begin so.
    fn specs(&self, start: &str) -> impl Iterator<Item = &TaskSpec> {
        self.workload.tasks.iter().filter(move |task| task.name.starts_with(start))
    }
}

/// The first operation of a program, loops included, for which `find` has a value.
fn find_op<T: Copy>(program: &[Op], find: &impl Fn(&Op) -> Option<T>) -> Option<T> {
    program.iter().find_map(|op| match op {
        Op::Loop(_, body) => find(op).or_else(|| find_op(body, find)),
        _ => find(op),
    })
}

/// Where no round of a program has ended.
const NO_ROUND: &str = "no round ended within the run; a longer --duration has some";
