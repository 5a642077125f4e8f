//! `reproduce`: a published experiment, published beside measured.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use fairground_analysis::Analysis;
use fairground_analysis::contention::{self, Contention};
use fairground_analysis::metric::{self, MetricValue, Unit};
use fairground_analysis::playback::{PLAYBACK_PROGRAM, Playback};
use fairground_analysis::ring::{RING_PROGRAM, RingReport};
use fairground_analysis::slice_report::{SLICE_PROGRAM, SliceReports, UserTime};
use fairground_machine::Path;
use fairground_realkernel::files::read_text;
use fairground_report::{Cell, Column, Document, Table, TimeUnit};
use fairground_session::{Failure, Outcome, did_you_mean};

use super::experiment_runs;
use super::experiment_runs::{Extent, plural};
use crate::args::{Cli, ReproduceArgs};
use crate::experiment::{Experiment, Figures, Run, UserTimeEntry, top_of};
use crate::interrupt;
use crate::pictures;
use crate::present::{self, Selection};

// `BUILT_IN`: name and text of each experiment that comes with fairground.
include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

pub(super) fn reproduce(cli: &Cli, args: &ReproduceArgs) -> Result<ExitCode, Failure> {
    let Some(name) = &args.experiment else {
        return list(cli);
    };
    let experiment = find(name)?;
    pictures::prepare(&args.page)?;
    let (runs, left_out) = wanted(&experiment, &args.on)?;
    let mut figures: BTreeMap<String, Figures> =
        experiment.given.iter().map(|g| (g.name.clone(), Figures::from(g))).collect();
    let mut tables = Vec::new();
    let mut made = Document::default();
    let mut code = 0;
    let shows_prints = !experiment.counts_prints();
    let finished = experiment_runs::run_all(
        cli.quiet,
        &experiment.name,
        &runs,
        args.engine,
        |run, outcome| Finished::of(run, outcome, shows_prints),
    );
    let is_interrupted = interrupt::is_asked();
    let mut unmade = Unmade::left_out(&left_out);
    for (run, finished) in runs.iter().zip(finished) {
        match finished {
            Ok(finished) => {
                figures.insert(run.name.clone(), finished.figures);
                tables.extend(finished.tables);
                code = code.max(finished.code);
                merge(&mut made, finished.made);
            }
            Err(failure) if run.is_simulated() && !is_interrupted => return Err(failure),
            // A machine without virtual machines still gets what it can measure; the rest is not measured, and says
            // why.
            Err(failure) => unmade.add(&run.name, &failure),
        }
    }
    for run in &runs {
        let base = run.against.as_ref().and_then(|name| figures.get(name)).cloned();
        if let (Some(base), Some(own)) = (base, figures.get_mut(&run.name)) {
            own.compare(&base);
        }
    }
    made.notes.extend(unmade.notes());
    made.notes.extend(is_interrupted.then(|| {
        "partial: it was interrupted: claims are judged by the runs that there are".to_owned()
    }));
    let (mut document, holds) =
        present::experiment_document(&experiment, &figures, &|run| unmade.has(run));
    document.tables.extend(tables);
    made.verdicts.into_iter().for_each(|verdict| document.add_verdict(verdict));
    // The experiment's file describes its runs.
    let mut sections = made.sections;
    let of_runs = sections.iter_mut().filter(|section| section.name.starts_with("run "));
    of_runs.flat_map(|section| &mut section.entries).for_each(|entry| entry.is_usual = true);
    document.sections.extend(sections);
    document.specs.extend(made.specs);
    document.notes.extend(made.notes);
    if is_interrupted {
        document.title += " (partial)";
        code = interrupt::EXIT_CODE;
    }
    let drawn = pictures::write_experiment(&args.page, &document, &experiment, &figures);
    present::print_drawn(&document, cli, drawn)?;
    Ok(ExitCode::from(if code > 0 { code } else { u8::from(!holds) }))
}

/// The runs of an experiment that are made, and those that are left out.
fn wanted(experiment: &Experiment, on: &[String]) -> Result<(Vec<Run>, Vec<Run>), Failure> {
    let runs = experiment.runs()?;
    let targets: BTreeSet<String> = runs.iter().map(Run::on).collect();
    if let Some(target) = on.iter().find(|target| !targets.contains(*target)) {
        let targets = targets.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Failure::new(format_args!("{}: no run is on `{target}`", experiment.name))
            .help(format_args!("its runs are on {targets}")));
    }
    let is_wanted = |run: &Run| on.is_empty() || on.contains(&run.on());
    Ok(runs.into_iter().partition(is_wanted))
}

/// The runs on real kernels that were not possible here, by the reason.
#[derive(Default)]
struct Unmade {
    failed: Vec<(String, Vec<String>)>,
    /// Runs that were not wanted, and where they would have been.
    left_out: Vec<String>,
    targets: BTreeSet<String>,
}

impl Unmade {
    fn left_out(runs: &[Run]) -> Unmade {
        let left_out = runs.iter().map(|run| run.name.clone()).collect();
        Unmade { left_out, targets: runs.iter().map(Run::on).collect(), ..Unmade::default() }
    }

    fn add(&mut self, run: &str, failure: &Failure) {
        let reason = failure.to_string();
        match self.failed.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, runs)) => runs.push(run.to_owned()),
            None => self.failed.push((reason, vec![run.to_owned()])),
        }
    }

    fn has(&self, run: &str) -> bool {
        let mut failed = self.failed.iter().flat_map(|(_, runs)| runs);
        self.left_out.iter().any(|known| known == run) || failed.any(|known| known == run)
    }

    /// One for each reason.
    fn notes(&self) -> impl Iterator<Item = String> {
        let targets: Vec<&str> = self.targets.iter().map(String::as_str).collect();
        let left_out = (!self.left_out.is_empty()).then(|| {
            let count = plural(self.left_out.len() as u64);
            format!("left out by --on, and not measured: {count} on {}", targets.join(", "))
        });
        let failed = self.failed.iter();
        let failed = failed.map(|(why, runs)| format!("{}: not measured: {why}", runs.join(", ")));
        left_out.into_iter().chain(failed)
    }
}

/// Figures and tables of a run, without its events.
struct Finished {
    figures: Figures,
    /// Tables of its own: what its tasks report, its scheduler's variables.
    tables: Vec<Table>,
    made: Document,
    code: u8,
}

impl Finished {
    fn of(run: &Run, outcome: &Outcome, shows_prints: bool) -> Finished {
        let user_time = match run.user_time {
            UserTimeEntry::Exact => UserTime::Exact,
            UserTimeEntry::Ticks => UserTime::Ticks { tick_ns: run.spec.tick_ns() },
        };
        let slices = SliceReports::of(&outcome.trace, user_time);
        let mut made = Document::default();
        experiment_runs::describe(&mut made, run, outcome);
        if shows_prints {
            present::printed_notes(&mut made, outcome);
        }
        let reports = run.reports.then(|| {
            let every = Selection::default();
            present::reports_table(&run.name, &slices, &every).map(Table::as_detail)
        });
        let variables = present::variables_table(outcome, Some(&run.name));
        let tables = reports.flatten().into_iter().chain(variables).collect();
        let mut figures = figures_of(outcome, &slices);
        if run.spec.locks.locks.is_some() && outcome.is_recorded() {
            lock_figures(&mut figures, outcome);
        }
        Finished { figures, tables, made, code: outcome.exit_code() }
    }
}

/// Adds how a run was made; sections that an earlier run has are not repeated.
fn merge(made: &mut Document, of_run: Document) {
    for section in of_run.sections {
        if made.sections.iter().all(|known| known.name != section.name) {
            made.sections.push(section);
        }
    }
    made.specs.extend(of_run.specs);
    made.verdicts.extend(of_run.verdicts);
    made.notes.extend(of_run.notes);
}

/// Every figure of a run by its key (docs/reference/experiments.md).
fn figures_of(outcome: &Outcome, slices: &SliceReports) -> Figures {
    let mut figures = Figures::default();
    ring_figures(&mut figures, outcome);
    let playback = Playback::of(&outcome.trace);
    for metric in PLAYBACK_PROGRAM {
        let value = in_ms((metric.read)(&playback), metric.unit);
        figures.insert(&format!("report.{}", metric.key()), value.as_slice());
    }
    figures.time_marks(&outcome.trace, outcome.analysis.start_ns);
    if let Some(sizes) = outcome.sizes {
        figures.insert("object.code", &[sizes.code_bytes as f64]);
        figures.insert("object.data", &[sizes.data_bytes as f64]);
    }
    if !outcome.is_recorded() {
        analysed(&mut figures, outcome, |name| name == "marks");
        return figures;
    }
    for metric in SLICE_PROGRAM {
        let steady = slices.reports.iter().filter(|r| !r.start_up);
        let values = steady.filter_map(|r| in_ms((metric.read)(r), metric.unit));
        figures.insert(&format!("report.{}", metric.key()), &Vec::from_iter(values));
    }
    figures.top = top_of(&outcome.trace, &outcome.analysis);
    figures.count_prints(&outcome.trace);
    for path in Path::ALL {
        let Some(cost) = outcome.path_cost(path) else { continue };
        let mean = |sum: u64| (cost.times > 0).then(|| sum as f64 / cost.times as f64);
        let name = format!("{path:?}").to_lowercase();
        figures.insert(&format!("path.{name}.instructions"), mean(cost.insns).as_slice());
        figures.insert(&format!("path.{name}.divisions"), mean(cost.divisions).as_slice());
    }
    analysed(&mut figures, outcome, |_| true);
    for (index, group) in outcome.analysis.groups.iter().enumerate() {
        let tasks = outcome.analysis.tasks.iter().filter(|task| task.group == index);
        let mut shares: Vec<f64> = tasks.filter_map(|t| t.figures.cpu_share_percent()).collect();
        shares.sort_by(f64::total_cmp);
        for (rank, share) in shares.iter().enumerate() {
            figures.insert(&format!("{}.share_{}", group.name, rank + 1), &[*share]);
        }
    }
    figures
}

/// The figures of the machine and of its groups whose pages are asked for.
fn analysed(figures: &mut Figures, outcome: &Outcome, is_asked: impl Fn(&str) -> bool) {
    let Analysis { machine, groups, .. } = &outcome.analysis;
    for metric in metric::MACHINE.iter().filter(|metric| is_asked(metric.name)) {
        let value = in_ms((metric.read)(machine), metric.unit);
        figures.insert(&format!("run.{}", metric.key()), value.as_slice());
    }
    for group in groups {
        for metric in metric::GROUP.iter().filter(|metric| is_asked(metric.name)) {
            let value = in_ms((metric.read)(&group.figures), metric.unit);
            figures.insert(&format!("{}.{}", group.name, metric.key()), value.as_slice());
        }
    }
}

/// How often tasks waited for locks, and how many did so at a time, in the mean.
fn lock_figures(figures: &mut Figures, outcome: &Outcome) {
    let contention = Contention::of(&outcome.trace, contention::DEPTH);
    let window_ns = outcome.analysis.machine.window_ns.max(1) as f64;
    figures.insert("lock.waits", &[contention.lock_waits as f64]);
    figures.insert("lock.waiting", &[contention.lock_wait_ns() as f64 / window_ns]);
}

/// The figures of a ring of processes: marks tell them, recorded or not.
fn ring_figures(figures: &mut Figures, outcome: &Outcome) {
    let Some(ring) = RingReport::of(&outcome.trace) else { return };
    for metric in RING_PROGRAM {
        let value = (metric.read)(&ring).map(MetricValue::as_f64);
        figures.insert(&format!("report.{}", metric.key()), value.as_slice());
    }
    for (name, value) in present::ring_instructions(&ring, outcome.instruction_ns()) {
        figures.insert(&format!("report.{name}"), &[value]);
    }
}

/// Durations are in ms in experiment files.
fn in_ms(value: Option<MetricValue>, unit: Unit) -> Option<f64> {
    let value = value.map(MetricValue::as_f64);
    if unit == Unit::Ns { value.map(|ns| ns / 1e6) } else { value }
}

fn find(name: &str) -> Result<Experiment, Failure> {
    if let Some((file, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Experiment::parse(&format!("{file}.toml"), text);
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        let known = || BUILT_IN.iter().map(|(known, _)| *known);
        let begun = known().find(|known| known.starts_with(name));
        let near = begun.or_else(|| did_you_mean(name, known()));
        let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
        return Err(Failure::new(format_args!("there is no experiment `{name}`")).help(
            format_args!("{near}`fairground reproduce` lists them; a file is given by its path"),
        ));
    }
    let text = read_text(name).map_err(|e| Failure::io(name, &e))?;
    Experiment::parse(name, &text)
}

fn list(cli: &Cli) -> Result<ExitCode, Failure> {
    let mut experiments = Vec::new();
    for (name, text) in BUILT_IN {
        let experiment = Experiment::parse(name, text)?;
        let extent = Extent::of(&experiment.runs()?);
        experiments.push((*name, experiment, extent));
    }
    let table = Table::of("experiments", "Experiments", experiments)
        .text("experiment", |(name, ..)| *name)
        .text("title", |(_, experiment, _)| experiment.title.clone())
        .column(Column::text("published").as_detail(), |(_, experiment, _)| {
            Cell::text(&experiment.source)
        })
        .count("runs", |(.., extent)| extent.simulated + extent.real)
        .duration("simulated_time", TimeUnit::S, |(.., extent)| Some(extent.simulated_ns))
        .count("on_kernels", |(.., extent)| extent.real)
        .table();
    present::print_tables([table], cli)?;
    Ok(ExitCode::SUCCESS)
}
