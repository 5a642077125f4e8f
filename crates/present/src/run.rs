//! Sections and notes that say how a result was made.

use fairground_analysis::{Analysis, Irregularities};
use fairground_machine::{MachineConfig, SleepTimers};
use fairground_report::{Cell, Document};
use fairground_session::{HZ_DEFAULT, INSTRUCTION_NS_DEFAULT, Outcome, TargetReport, Variables};

use super::kernel::describe_kernel;
use super::verdict::add_verdict;

/// Lines that a scheduler printed, of which the first ones are shown.
const PRINTED_LINES_SHOWN: usize = 20;

/// The machine: CPUs, clock, seed, costs.
pub fn describe_machine(document: &mut Document, config: &MachineConfig, duration_ns: u64) {
    document.set("machine", "fairground", Cell::text(env!("CARGO_PKG_VERSION")));
    document.set("machine", "topology", Cell::text(config.topology.to_string()));
    set(document, "machine", "hz", Cell::count(config.hz.into()), config.hz == HZ_DEFAULT);
    let timers = match config.timers {
        SleepTimers::Hrtimer => "hrtimer",
        SleepTimers::Jiffies => "jiffies",
    };
    let is_usual = config.timers == SleepTimers::Hrtimer;
    set(document, "machine", "timers", Cell::text(timers), is_usual);
    if config.lead_in_ns > 0 {
        document.set("machine", "lead_in", Cell::duration_ns(config.lead_in_ns));
    }
    document.set("machine", "seed", Cell::count(config.seed));
    document.set("machine", "simulated time", Cell::duration_ns(duration_ns));
    document.set("costs", "preset", Cell::text(config.cost.preset_name()));
    if let Some(ns) = config.cost.instruction_ns() {
        set(
            document,
            "costs",
            "instruction_ns",
            Cell::quantity(ns as f64, 0, "ns"),
            ns == INSTRUCTION_NS_DEFAULT,
        );
    }
    let changed: Vec<_> = config.cost.changes().map(|(name, _)| name).collect();
    for parameter in config.cost.parameters() {
        // If calls have no cost of their own, the line is omitted.
        if parameter.name.starts_with("call") && parameter.value == 0 {
            continue;
        }
        let is_usual = !changed.contains(&parameter.name);
        let value = Cell::quantity(parameter.value as f64, 0, parameter.unit);
        set(document, "costs", parameter.name, value, is_usual);
    }
}

/// A recording: how much there is of it.
pub fn describe_recording(document: &mut Document, analysis: &Analysis, events: u64, cpus: u32) {
    document.set("recording", "events", Cell::count(events));
    document.set("recording", "tasks", Cell::count(analysis.tasks.len() as u64));
    document.set("recording", "cpus", Cell::count(cpus.into()));
    document.set("recording", "window", Cell::duration_ns(analysis.window_ns()));
}

/// Notes a value, which may be what it usually is.
fn set(document: &mut Document, section: &str, name: &str, value: Cell, is_usual: bool) {
    match is_usual {
        true => document.set_usual(section, name, value),
        false => document.set(section, name, value),
    }
}

/// One run: the scheduler, its settings, how it ended.
pub fn describe_run(document: &mut Document, outcome: &Outcome) {
    let section = format!("run {}", outcome.label);
    let is_usual = outcome.scheduler == outcome.label;
    set(document, &section, "scheduler", Cell::text(&outcome.scheduler), is_usual);
    if let Some(reached_ns) = outcome.partial_ns {
        document.set(&section, "partial", Cell::duration_ns(reached_ns));
    }
    if let TargetReport::Simulated { exit, .. } = &outcome.report {
        document.set_usual(&section, "exit", Cell::text(exit.kind.constant()));
        document.set_usual(&section, "exit_code", Cell::text(format!("{:#x}", exit.code)));
        if !exit.message.is_empty() {
            document.set_usual(&section, "exit_message", Cell::text(&exit.message));
        }
    }
    let Variables { met, unmet, .. } = &outcome.variables;
    if *met > 0 || !unmet.is_empty() {
        let held = format!("{met} of {}", met + unmet.len());
        set(document, &section, "as_expected", Cell::text(held), unmet.is_empty());
    }
    for verdict in outcome.verdicts() {
        add_verdict(document, &outcome.label, verdict);
    }
    // The values of a parameter set are listed once, for all runs that use it.
    let parameters = format!("set {}", outcome.scheduler);
    let listed = document.sections.iter().any(|section| section.name == parameters);
    for (index, setting) in outcome.settings.iter().enumerate() {
        let of_set = index < outcome.settings_of_set;
        let value = match setting.at_ns {
            None => setting.value.clone(),
            Some(at_ns) => format!("{} at {} ms", setting.value, at_ns / 1_000_000),
        };
        if !(of_set && listed) {
            let section = if of_set { &parameters } else { &section };
            set(document, section, &setting.name, Cell::text(value), of_set);
        }
    }
    if let TargetReport::Real { target, job, .. } = &outcome.report {
        describe_kernel(document, target, &job.kernel);
        if let Some(loader) = &job.loader {
            let attached = loader.scheduler.as_deref().unwrap_or("unknown");
            document.set(&section, "attached", Cell::text(attached));
            document.set(&section, "loader_end", Cell::text(&loader.end));
        }
        let of_run = job.notes.iter().map(|note| format!("{}: {note}", outcome.label));
        document.notes.extend(of_run);
        if let Some(why) = &job.not_recorded {
            document.notes.push(format!(
                "{}: there is no recording ({why}): what the events tell is not measured",
                outcome.label
            ));
        }
    }
}

/// The first lines that the scheduler printed.
pub fn printed_notes(document: &mut Document, outcome: &Outcome) {
    let printed = outcome.analysis.machine.prints;
    for line in outcome.log().iter().take(PRINTED_LINES_SHOWN) {
        document.notes.push(format!("{}: it printed: {line}", outcome.label));
    }
    if printed > PRINTED_LINES_SHOWN as u64 {
        document.notes.push(format!(
            "{}: it printed {printed} lines in all; `run --trace FILE` writes them with the other events",
            outcome.label
        ));
    }
}

/// The last lines that the scheduler's own loader printed.
pub fn loader_notes(document: &mut Document, outcome: &Outcome) {
    let Some(loader) = outcome.loader() else { return };
    let label = &outcome.label;
    let first = loader.output.len().saturating_sub(PRINTED_LINES_SHOWN);
    for line in &loader.output[first..] {
        document.notes.push(format!("{label}: its loader printed: {line}"));
    }
    if first > 0 {
        let all = loader.output_bytes;
        document
            .notes
            .push(format!("{label}: its loader printed {all} bytes; the last lines are shown"));
    }
}

/// Losses of a trace, in words; nothing when nothing is.
pub fn loss_notes(label: &str, irregularities: &Irregularities) -> Vec<String> {
    irregularities.notes().into_iter().map(|note| format!("{label}: {note}")).collect()
}
