//! `reproduce`: a published experiment, published beside measured.

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;

use fairground_analysis::Options;
use fairground_analysis::metric::{self, Unit, Value};
use fairground_analysis::ring::{RING_PROGRAM, RingReport};
use fairground_analysis::slice_report::{SLICE_PROGRAM, SliceReports, UserTime};
use fairground_machine::{Path, TraceOptions};
use fairground_report::{Cell, Column, Document, Table};

use super::run::duration_ns;
use crate::args::{Cli, EngineArg, MachineArgs, NullLoadsArg, ReproduceArgs, TimersArg};
use crate::experiment::{Experiment, Figures, Run, UserTimeEntry, top};
use crate::failure::{Failure, did_you_mean};
use crate::input::{
    Scheduler, at_settings, find_workload, machine_config, one_variant, topology_value,
};
use crate::outcome::Outcome;
use crate::present;
use crate::progress::Progress;
use crate::simulate::Plan;

// `BUILT_IN`: name and text of each experiment that comes with fairground.
include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

pub(super) fn reproduce(cli: &Cli, args: &ReproduceArgs) -> Result<ExitCode, Failure> {
    let Some(name) = &args.experiment else {
        return list(cli);
    };
    let experiment = find(name)?;
    let runs = experiment.runs()?;
    let mut figures: BTreeMap<String, Figures> =
        experiment.given.iter().map(|g| (g.name.clone(), Figures::from(g))).collect();
    let mut reports = Vec::new();
    let mut made = Document::default();
    let mut code = 0;
    for run in &runs {
        let outcome = run_one(cli, run, args.engine, &mut made)?;
        let user_time = match run.user_time {
            UserTimeEntry::Exact => UserTime::Exact,
            UserTimeEntry::Ticks => UserTime::Ticks { tick_ns: 1_000_000_000 / u64::from(run.hz) },
        };
        let slices = SliceReports::of(&outcome.trace, user_time);
        figures.insert(run.name.clone(), figures_of(&outcome, &slices));
        if !experiment.counts_prints() {
            present::printed_notes(&mut made, &outcome);
        }
        if run.reports {
            reports.extend(present::reports_table(&run.name, &slices));
        }
        code = code.max(outcome.exit_code());
    }
    let (mut document, holds) = present::experiment_document(&experiment, &figures);
    let claims =
        document.tables.iter().position(|t| t.id == "claims").unwrap_or(document.tables.len());
    document.tables.splice(claims..claims, reports);
    document.sections.extend(made.sections);
    document.notes.extend(made.notes);
    present::print(&document, cli.format)?;
    Ok(ExitCode::from(if code > 0 { code } else { u8::from(!holds) }))
}

fn run_one(
    cli: &Cli,
    run: &Run,
    engine: EngineArg,
    made: &mut Document,
) -> Result<Outcome, Failure> {
    let at_run = |e: Failure| Failure::new(format_args!("run `{}`: {e}", run.name));
    let workload = find_workload(&run.workload).map_err(at_run)?;
    let scheduler = Scheduler::load(&run.sched, engine).map_err(at_run)?;
    let machine_args = MachineArgs {
        cpus: run.cpus,
        topology: None,
        hz: Some(run.hz),
        timers: run.timers,
        seed: run.seed,
        check: false,
        idle_bound: None,
        costs: run.costs.clone(),
        cost: run.cost.clone(),
        duration: run.duration.clone(),
    };
    let mut machine = machine_config(
        &machine_args,
        NullLoadsArg::Error,
        TraceOptions { callbacks: false, ticks: true },
    )
    .map_err(at_run)?;
    if let Some(topology) = &run.topology {
        machine.topology = topology_value("topology", topology).map_err(at_run)?;
    }
    let mut settings = one_variant(&run.set).map_err(at_run)?.settings;
    settings.extend(at_settings(&run.at).map_err(at_run)?);
    let duration_ns = duration_ns(run.duration.as_deref(), workload.duration_ns).map_err(at_run)?;
    if made.sections.is_empty() {
        present::describe_machine(made, &machine, duration_ns);
    }
    let plan = Plan {
        label: run.name.clone(),
        scheduler: &scheduler,
        settings,
        workload: &workload,
        machine,
        duration_ns,
        options: Options::simulated(),
        rename: |name| name,
    };
    let progress = Progress::new(cli.quiet, plan.steps());
    let outcome = plan.run(&progress)?;
    let section = format!("run {}", outcome.label);
    present::describe_run(made, &outcome);
    made.set(&section, "workload", Cell::text(&run.workload));
    made.set(&section, "hz", Cell::count(run.hz.into()));
    if run.timers == TimersArg::Jiffies {
        made.set(&section, "timers", Cell::text("jiffies"));
    }
    made.set(&section, "costs", Cell::text(&run.costs));
    Ok(outcome)
}

/// Every figure of a run by its key (docs/experiments.md).
fn figures_of(outcome: &Outcome, slices: &SliceReports) -> Figures {
    let mut figures = Figures::default();
    for metric in SLICE_PROGRAM {
        let settled = slices.reports.iter().filter(|r| !r.start_up);
        let values: Vec<f64> = settled
            .filter_map(|r| (metric.read)(r))
            .map(|v| in_ms(v.as_f64(), metric.unit))
            .collect();
        figures.insert(&format!("report.{}", metric.key()), &values);
    }
    if let Some(ring) = RingReport::of(&outcome.trace) {
        for metric in RING_PROGRAM {
            let value = (metric.read)(&ring).map(Value::as_f64);
            figures.insert(&format!("report.{}", metric.key()), value.as_slice());
        }
    }
    top::of_run(&mut figures, &outcome.trace, &outcome.analysis);
    top::printed(&mut figures, &outcome.trace);
    for path in Path::ALL {
        let Some(cost) = outcome.path_cost(path) else { continue };
        let mean = |sum: u64| (cost.times > 0).then(|| sum as f64 / cost.times as f64);
        let name = format!("{path:?}").to_lowercase();
        figures.insert(&format!("path.{name}.instructions"), mean(cost.insns).as_slice());
        figures.insert(&format!("path.{name}.divisions"), mean(cost.divisions).as_slice());
    }
    if let Some(sizes) = outcome.sizes {
        figures.insert("object.code", &[sizes.code_bytes as f64]);
        figures.insert("object.data", &[sizes.data_bytes as f64]);
    }
    for metric in metric::MACHINE {
        if let Some(value) = (metric.read)(&outcome.analysis) {
            figures.insert(&format!("run.{}", metric.key()), &[in_ms(value.as_f64(), metric.unit)]);
        }
    }
    for (index, group) in outcome.analysis.groups.iter().enumerate() {
        let tasks = outcome.analysis.tasks.iter().filter(|task| task.group == index);
        let mut shares: Vec<f64> = tasks.filter_map(|t| t.figures.cpu_share_percent()).collect();
        shares.sort_by(f64::total_cmp);
        for (rank, share) in shares.iter().enumerate() {
            figures.insert(&format!("{}.share_{}", group.name, rank + 1), &[*share]);
        }
        for metric in metric::GROUP {
            if let Some(value) = (metric.read)(&group.figures) {
                figures.insert(
                    &format!("{}.{}", group.name, metric.key()),
                    &[in_ms(value.as_f64(), metric.unit)],
                );
            }
        }
    }
    figures
}

/// Durations are in ms in experiment files.
fn in_ms(value: f64, unit: Unit) -> f64 {
    if unit == Unit::Ns { value / 1e6 } else { value }
}

fn find(name: &str) -> Result<Experiment, Failure> {
    if let Some((file, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Experiment::parse(&format!("{file}.toml"), text);
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        let near = did_you_mean(name, BUILT_IN.iter().map(|(n, _)| *n)).unwrap_or("slice-2009");
        return Err(Failure::new(format_args!("there is no experiment `{name}`"))
            .help(format_args!("did you mean `{near}`? `fairground reproduce` lists them; a file is given by its path")));
    }
    let text = fs::read_to_string(name).map_err(|e| Failure::io(name, &e))?;
    Experiment::parse(name, &text)
}

fn list(cli: &Cli) -> Result<ExitCode, Failure> {
    let columns = [Column::text("experiment"), Column::text("title"), Column::text("published")];
    let mut table = Table::new("experiments", "Experiments", columns);
    for (name, text) in BUILT_IN {
        let experiment = Experiment::parse(name, text)?;
        table.push([
            Cell::text(*name),
            Cell::text(&experiment.title),
            Cell::text(&experiment.source),
        ]);
    }
    let mut document = Document::default();
    document.tables.push(table);
    present::print(&document, cli.format)?;
    Ok(ExitCode::SUCCESS)
}
