//! What the cells at drawn points come to: by comparison and number of CPUs, by metric, and those that are outside.

use std::collections::BTreeMap;

use fairground_report::{Cell, Column, Document, Section, Table};
use fairground_session::{Agreement, Decision};
use serde_json::Value;

use super::agreement::cells_table;
use super::decisions::Decisions;
use crate::args::{Cli, Format};
use crate::experiment::{AgreementCell, CellVerdict, Draw, Experiment, Tally};

/// Distinct notes of the runs that are shown.
const NOTES_SHOWN: usize = 10;

/// The cells of an experiment at drawn points.
pub(crate) struct DrawnResult<'e> {
    experiment: &'e Experiment,
    pub(crate) draw: Draw,
    /// The CPUs of each point.
    cpus: BTreeMap<String, u32>,
    /// The cells of each comparison.
    comparisons: Vec<(String, Vec<AgreementCell>)>,
    /// What is known of the kernels.
    kernels: Vec<Section>,
    /// What the runs say, and how many of them.
    notes: BTreeMap<String, usize>,
    verdicts: Vec<fairground_report::Verdict>,
    decisions: Decisions,
}

/// The decisions of a recording at a point.
pub(crate) struct FollowedPoint {
    pub(crate) comparison: String,
    pub(crate) point: String,
    pub(crate) decisions: Vec<(Decision, Agreement)>,
}

/// The cells of a comparison on machines of one size, or of all sizes.
pub(crate) struct DrawnRow<'r> {
    pub(crate) comparison: &'r str,
    /// `None`: all.
    pub(crate) cpus: Option<u32>,
    pub(crate) tally: Tally,
}

/// Whether the result has a table of every cell: for programs, and where all is asked for.
pub(crate) fn shows_every_cell(cli: &Cli) -> bool {
    cli.verbose || !matches!(cli.format, Format::Table | Format::Markdown)
}

impl<'e> DrawnResult<'e> {
    /// Without any cells so far.
    pub(crate) fn new(experiment: &'e Experiment, draw: Draw) -> Self {
        DrawnResult {
            experiment,
            draw,
            cpus: draw.cpus(),
            comparisons: Vec::new(),
            kernels: Vec::new(),
            notes: BTreeMap::new(),
            verdicts: Vec::new(),
            decisions: Decisions::default(),
        }
    }

    /// The experiment's name.
    pub(crate) fn experiment_name(&self) -> &str {
        &self.experiment.name
    }

    /// Adds what a run says of itself.
    pub(crate) fn add_run(&mut self, run: Document) {
        for mut section in run.sections {
            let is_kernel = section.name.starts_with("kernel ");
            // The machines differ in them.
            section.entries.retain(|entry| entry.name != "cpus");
            if is_kernel && self.kernels.iter().all(|known| known.name != section.name) {
                self.kernels.push(section);
            }
        }
        for note in run.notes {
            // Without the name of the run.
            let text = note.split_once(": ").map_or(note.as_str(), |(_, text)| text);
            *self.notes.entry(text.to_owned()).or_default() += 1;
        }
        self.verdicts.extend(run.verdicts);
    }

    /// Adds the cells of a comparison.
    pub(crate) fn add_cells(&mut self, comparison: &str, cells: Vec<AgreementCell>) {
        self.comparisons.push((comparison.to_owned(), cells));
    }

    /// Adds the decisions of a recording that was followed.
    pub(crate) fn add_followed(&mut self, followed: FollowedPoint) {
        let cpus = self.cpus.get(&followed.point).copied().unwrap_or(1);
        self.decisions.add(&followed.comparison, cpus, &followed.decisions);
    }

    /// The decisions of all recordings that were followed; `None` without any.
    pub(crate) fn decisions(&self) -> Option<Table> {
        (!self.decisions.is_empty()).then(|| self.decisions.table())
    }

    /// Every cell of every comparison.
    pub(crate) fn all_cells(&self) -> Vec<AgreementCell> {
        self.comparisons.iter().flat_map(|(_, cells)| cells.iter().cloned()).collect()
    }

    fn cpus_of(&self, cell: &AgreementCell) -> u32 {
        self.cpus.get(&cell.point).copied().unwrap_or(1)
    }

    /// A row for each comparison and number of CPUs, then one for the comparison.
    pub(crate) fn rows(&self) -> Vec<DrawnRow<'_>> {
        let mut sizes: Vec<u32> = self.cpus.values().copied().collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut rows = Vec::new();
        for (comparison, cells) in &self.comparisons {
            for cpus in sizes.iter().copied().map(Some).chain([None]) {
                let has =
                    |cell: &&AgreementCell| cpus.is_none_or(|cpus| self.cpus_of(cell) == cpus);
                let cells: Vec<AgreementCell> = cells.iter().filter(has).cloned().collect();
                rows.push(DrawnRow { comparison, cpus, tally: Tally::of(&cells) });
            }
        }
        rows
    }

    /// The result; with `every_cell` the cells that are within their tolerances, too.
    pub(crate) fn document(&self, every_cell: bool) -> Document {
        let Experiment { name, title, .. } = self.experiment;
        let Draw { seed, points } = self.draw;
        let mut document =
            Document::new(format!("{name}: {title}: {points} points drawn from seed {seed}"));
        self.verdicts.iter().cloned().for_each(|verdict| document.add_verdict(verdict));
        document.set("drawn", "seed", Cell::count(seed));
        document.set("drawn", "points", Cell::count(points.into()));
        document.set("drawn", "fairground", Cell::text(env!("CARGO_PKG_VERSION")));
        document.sections.extend(self.kernels.iter().cloned());
        document.tables.extend([self.summary(), self.by_metric()]);
        document.tables.extend(self.decisions());
        document.tables.push(self.outside());
        if every_cell {
            let tables = self.comparisons.iter().map(|(title, cells)| cells_table(title, cells));
            document.tables.extend(tables);
        }
        let mut notes: Vec<(&String, &usize)> = self.notes.iter().collect();
        notes.sort_by_key(|(_, runs)| std::cmp::Reverse(**runs));
        let shown = notes.iter().take(NOTES_SHOWN);
        document.notes.extend(shown.map(|(note, runs)| format!("{runs} runs: {note}")));
        let further = notes.len().saturating_sub(NOTES_SHOWN);
        if further > 0 {
            document.notes.push(format!("{further} other notes of runs are not shown"));
        }
        document
    }

    /// How many cells of each comparison agree, by the number of CPUs.
    pub(crate) fn summary(&self) -> Table {
        let rows = Table::of("drawn", "Cells by comparison and number of CPUs", self.rows())
            .text("comparison", |row| row.comparison)
            .text("CPUs", |row| row.cpus.map_or("all".to_owned(), |cpus| cpus.to_string()));
        tallied(rows, |row| row.tally)
    }

    /// The same by metric.
    pub(crate) fn by_metric(&self) -> Table {
        let mut labels: Vec<String> = Vec::new();
        let cells = self.all_cells();
        for cell in &cells {
            if !labels.contains(&cell.label) {
                labels.push(cell.label.clone());
            }
        }
        let tally = |label: String| {
            let has = |cell: &&AgreementCell| cell.label == label;
            let cells: Vec<AgreementCell> = cells.iter().filter(has).cloned().collect();
            (label, Tally::of(&cells))
        };
        let rows = labels.into_iter().map(tally);
        let rows = Table::of("drawn_metrics", "Cells by metric", rows)
            .text("metric", |(label, _)| label.clone());
        tallied(rows, |(_, tally)| *tally)
    }

    /// The cells that are outside, and how one of their workloads is run alone.
    fn outside(&self) -> Table {
        let outside: Vec<(&str, &AgreementCell)> = self
            .comparisons
            .iter()
            .flat_map(|(title, cells)| cells.iter().map(move |cell| (title.as_str(), cell)))
            .filter(|(_, cell)| cell.verdict == CellVerdict::Disagree)
            .collect();
        let number = |value: Option<f64>| Cell::known(value, |value| Cell::float(value, 3));
        let mut table = Table::of("outside", "Cells that are outside", outside)
            .text("workload", |(_, cell)| cell.point.as_str())
            .column(Column::number("CPUs"), |(_, cell)| Cell::count(self.cpus_of(cell).into()))
            .text("comparison", |(title, _)| *title)
            .text("group", |(_, cell)| cell.group.as_str())
            .text("metric", |(_, cell)| cell.label.as_str())
            .column(Column::number("real"), |(_, cell)| number(cell.real))
            .text("its starts", |(_, cell)| {
                cell.real_range.map_or(String::new(), |(low, high)| format!("{low:.3}..{high:.3}"))
            })
            .column(Column::number("simulated"), |(_, cell)| number(cell.simulated))
            .column(Column::number("ratio"), |(_, cell)| {
                let ratio = cell.simulated.zip(cell.real.filter(|real| *real != 0.0));
                Cell::known(ratio, |(simulated, real)| Cell::float(simulated / real, 2))
            })
            .table();
        for command in self.commands() {
            table.note(format!("One alone, on as many CPUs as it is drawn for: `{command}`"));
        }
        table
    }

    /// Points with cells outside, and how many of those that were measured.
    pub(crate) fn points_outside(&self) -> Table {
        let mut rows = Vec::new();
        for (title, cells) in &self.comparisons {
            for point in self.experiment.points.iter() {
                let has = |cell: &&AgreementCell| cell.point == point.name;
                let cells: Vec<AgreementCell> = cells.iter().filter(has).cloned().collect();
                let tally = Tally::of(&cells);
                if tally.disagree > 0 {
                    rows.push((title, point, tally));
                }
            }
        }
        Table::of("points_outside", "Workloads with cells outside", rows)
            .text("workload", |(_, point, _)| point.name.as_str())
            .text("CPUs", |(_, point, _)| {
                self.cpus.get(&point.name).map_or(String::new(), u32::to_string)
            })
            .text("comparison", |(title, _, _)| title.as_str())
            .count("outside", |(_, _, tally)| tally.disagree as u64)
            .count("measured", |(_, _, tally)| tally.measured() as u64)
            .table()
    }

    /// The command line of the first run of each sweep.
    fn commands(&self) -> Vec<String> {
        let runs = self.experiment.runs().unwrap_or_default();
        let mut commands: Vec<(Vec<String>, String)> = Vec::new();
        for run in runs {
            let sched = (run.spec.target.on.clone(), run.spec.scheduler.sched.clone());
            let sweep = [sched.0, sched.1].concat();
            if commands.iter().all(|(known, _)| *known != sweep) {
                let is_simulated = run.is_simulated();
                let spec = if is_simulated { run.spec } else { run.spec.for_real_kernel() };
                commands.push((sweep, command_line(&spec.workload, &spec.stated())));
            }
        }
        commands.into_iter().map(|(_, command)| command).collect()
    }
}

/// `fairground run` with these words of a spec.
fn command_line(workload: &str, words: &serde_json::Map<String, Value>) -> String {
    let mut command = format!("fairground run {workload}");
    for (key, value) in words.iter().filter(|(key, _)| *key != "workload") {
        let option = key.replace('_', "-");
        match value {
            Value::Object(pairs) => pairs.iter().for_each(|(name, value)| {
                command += &format!(" --{option} {name}={}", plain(value));
            }),
            value => command += &format!(" --{option} {}", plain(value)),
        }
    }
    command
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
        value => value.to_string(),
    }
}

/// Adds the columns of a tally.
fn tallied<T>(rows: fairground_report::Rows<T>, tally: impl Fn(&T) -> Tally) -> Table {
    let percent = |part: usize, tally: Tally| {
        let measured = Some(tally.measured()).filter(|measured| *measured > 0);
        Cell::known(measured, |measured| Cell::percent(100.0 * part as f64 / measured as f64, 0))
    };
    rows.count("cells", |row| tally(row).measured() as u64)
        .count("within tolerance", |row| tally(row).agree as u64)
        .count("within spread", |row| tally(row).within_spread as u64)
        .count("outside", |row| tally(row).disagree as u64)
        .count("not measured", |row| tally(row).not_measured as u64)
        .column(Column::percent("share within tolerance"), |row| {
            percent(tally(row).agree, tally(row))
        })
        .column(Column::percent("share with spread"), |row| {
            percent(tally(row).agree + tally(row).within_spread, tally(row))
        })
        .table()
}
