//! Presents what a real kernel reports in addition to the events.

use fairground_realkernel::job::KernelInfo;
use fairground_report::{Cell, Document, Table, TimeUnit};
use fairground_session::{Outcome, TargetReport};

/// The kernel of a run: version, CPUs, clock, switches.
pub(crate) fn describe_kernel(document: &mut Document, target: &str, kernel: &KernelInfo) {
    let section = format!("kernel {target}");
    document.set(&section, "release", Cell::text(&kernel.release));
    document.set_usual(&section, "version", Cell::text(&kernel.version));
    document.set(&section, "cpus", Cell::count(kernel.cpus.into()));
    document.set_usual(&section, "hz", Cell::known(kernel.hz, |hz| Cell::count(hz.into())));
    document.set_usual(
        &section,
        "sched_ext",
        Cell::text(if kernel.sched_ext { "yes" } else { "no" }),
    );
    if kernel.preempt_rt {
        document.set(&section, "preemption", Cell::text("PREEMPT_RT"));
    }
    if !kernel.features.is_empty() {
        document.set_usual(&section, "features", Cell::text(kernel.features.join(" ")));
    }
    for (name, value) in &kernel.tunables {
        document.set_usual(&section, name.as_str(), Cell::text(value));
    }
}

/// The kernel's own accounting of each task; `None` for a simulated run.
pub fn accounting_table(outcome: &Outcome) -> Option<Table> {
    let TargetReport::Real { job, .. } = &outcome.report else { return None };
    let title = "What the kernel says of each task";
    let mut table = Table::of("accounting", title, job.tasks.iter().take(TASKS_SHOWN))
        .text("task", |task| task.name.as_str())
        .count("tid", |task| task.tid.into())
        .duration("user", TimeUnit::Ms, |task| Some(task.utime_us.saturating_mul(1_000)))
        .duration("system", TimeUnit::Ms, |task| Some(task.stime_us.saturating_mul(1_000)))
        .duration("run", TimeUnit::Ms, |task| task.run_ns)
        .duration("wait", TimeUnit::Ms, |task| task.wait_ns)
        .count("voluntary", |task| task.nvcsw)
        .count("involuntary", |task| task.nivcsw)
        .count("operations", |task| task.ops)
        .table();
    table.note(
        "user and system from getrusage; run and wait from /proc/PID/schedstat; operations: those \
         of its program that it finished.",
    );
    if job.tasks.len() > TASKS_SHOWN {
        table.note(format!("The first {TASKS_SHOWN} of {} tasks.", job.tasks.len()));
    }
    Some(table)
}

/// Limit of rows; the table of groups counts all tasks.
const TASKS_SHOWN: usize = 40;
