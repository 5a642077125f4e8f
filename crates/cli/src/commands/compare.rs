//! `compare`: one workload under several schedulers and settings.

use std::process::ExitCode;

use fairground_analysis::Analysis;
use fairground_machine::{MachineConfig, TraceOptions};
use fairground_report::{Cell, Document};
use fairground_workload::Workload;

use super::run::{duration_ns, simulated_options};
use crate::args::{Cli, CompareArgs, MachineArgs, SchedArgs, ShowArgs};
use crate::failure::Failure;
use crate::input::{Scheduler, Variant, at_settings, find_workload, machine_config, variants};
use crate::present;
use crate::progress::Progress;
use crate::simulate::{Outcome, Plan};

/// Everything that the columns have in common.
#[derive(Debug)]
pub(super) struct Common<'a> {
    pub(super) title: String,
    pub(super) workload: &'a Workload,
    pub(super) sched: &'a SchedArgs,
    pub(super) machine: &'a MachineArgs,
    pub(super) show: &'a ShowArgs,
    /// A recording to stand in the first column.
    pub(super) recorded: Option<&'a Analysis>,
    /// What a task is called in the result, from its name in the workload.
    pub(super) rename: fn(&str) -> &str,
}

pub(super) fn compare(cli: &Cli, args: &CompareArgs) -> Result<ExitCode, Failure> {
    let workload = find_workload(&args.workload)?;
    let common = Common {
        title: args.workload.clone(),
        workload: &workload,
        sched: &args.sched,
        machine: &args.machine,
        show: &args.show,
        recorded: None,
        rename: |name| name,
    };
    let (document, code) = compare_all(cli, &common)?;
    present::print(&document, cli.format)?;
    Ok(code)
}

/// Runs every scheduler with every combination of settings and makes the document.
pub(super) fn compare_all(cli: &Cli, common: &Common<'_>) -> Result<(Document, ExitCode), Failure> {
    let config = machine_config(
        common.machine,
        common.sched.null_loads,
        TraceOptions { callbacks: false, ticks: true },
    )?;
    let duration_ns = duration_ns(common.machine.duration.as_deref(), common.workload.duration_ns)?;
    let outcomes = run_all(cli, common, &config, duration_ns)?;
    let mut document = Document::new(common.title.clone());
    present::describe_machine(&mut document, &config, duration_ns);
    document.set("machine", "workload", Cell::text(&common.title));
    let mut code = 0;
    for outcome in &outcomes {
        present::describe_run(&mut document, outcome);
        present::printed_notes(&mut document, outcome);
        document
            .notes
            .extend(present::loss_notes(&outcome.label, &outcome.analysis.irregularities));
        code = code.max(outcome.exit_code());
    }
    let simulated = outcomes.iter().map(|o| (o.label.as_str(), &o.analysis));
    let columns: Vec<_> =
        common.recorded.map(|a| ("recorded", a)).into_iter().chain(simulated).collect();
    document.tables.push(present::comparison_table(&columns, common.show.all));
    document.tables.push(present::policy_table(&outcomes));
    for outcome in outcomes.iter().filter(|o| o.analysis.series.is_some()) {
        let mut table = present::intervals_table(&outcome.analysis);
        if let Some(table) = &mut table {
            table.title = format!("Over time: {}", outcome.label);
        }
        document.tables.extend(table);
    }
    Ok((document, ExitCode::from(code)))
}

fn run_all(
    cli: &Cli,
    common: &Common<'_>,
    config: &MachineConfig,
    duration_ns: u64,
) -> Result<Vec<Outcome>, Failure> {
    let sched = common.sched;
    let schedulers: Vec<_> = sched
        .sched
        .iter()
        .map(|spec| Scheduler::load(spec, sched.engine))
        .collect::<Result<_, _>>()?;
    let variants = variants(&sched.set)?;
    let later = at_settings(&sched.at)?;
    let mut plans = Vec::new();
    for scheduler in &schedulers {
        for variant in &variants {
            let mut settings = variant.settings.clone();
            settings.extend(later.iter().cloned());
            plans.push(Plan {
                label: label(scheduler, variant),
                scheduler,
                settings,
                workload: common.workload,
                machine: config.clone(),
                duration_ns,
                options: simulated_options(common.show)?,
                rename: common.rename,
            });
        }
    }
    let progress = Progress::new(cli.quiet, plans.iter().map(Plan::steps).sum());
    plans.into_iter().map(|plan| plan.run(&progress)).collect()
}

fn label(scheduler: &Scheduler, variant: &Variant) -> String {
    if variant.label.is_empty() {
        scheduler.label.clone()
    } else {
        format!("{} {}", scheduler.label, variant.label)
    }
}
