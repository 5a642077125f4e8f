//! How a result was made, as JSON: what a table alone does not say.

use fairground_machine::{MachineConfig, SleepTimers};
use fairground_session::{Outcome, Recording, RunSpec, TargetReport};
use serde_json::{Map, Value, json};

/// The version of fairground.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Of a run.
pub(crate) fn of_run(spec: &RunSpec, outcome: &Outcome) -> String {
    let setting = |(index, setting): (usize, &fairground_machine::Setting)| {
        json!({
            "name": setting.name,
            "value": setting.value,
            "at_ns": setting.at_ns,
            "of_set": index < outcome.settings_of_set,
        })
    };
    let settings: Vec<Value> = outcome.settings.iter().enumerate().map(setting).collect();
    let mut made = json!({
        "fairground": VERSION,
        "workload": spec.workload,
        "spec": spec.stated(),
        "scheduler": outcome.scheduler,
        "settings": settings,
    });
    match &outcome.report {
        TargetReport::Simulated { machine, duration_ns, .. } => {
            made["duration_ns"] = json!(duration_ns);
            made["machine"] = of_machine(machine);
        }
        TargetReport::Real { target, instruction_ns, job } => {
            made["target"] = json!(target);
            made["kernel"] = json!(job.kernel.release);
            made["instruction_ns"] = json!(instruction_ns);
        }
    }
    made.to_string()
}

fn of_machine(machine: &MachineConfig) -> Value {
    let mut costs = Map::new();
    costs.insert("preset".to_owned(), json!(machine.cost.preset_name()));
    if let Some(ns) = machine.cost.instruction_ns() {
        costs.insert("instruction_ns".to_owned(), json!(ns));
    }
    for parameter in machine.cost.parameters() {
        costs.insert(parameter.name.to_owned(), json!(parameter.value));
    }
    json!({
        "cpus": machine.cpus(),
        "topology": machine.topology.to_string(),
        "hz": machine.hz,
        "timers": timers(machine.timers),
        "lead_in_ns": machine.lead_in_ns,
        "seed": machine.seed,
        "costs": costs,
    })
}

/// What ends a sleep, in the word for it.
fn timers(timers: SleepTimers) -> &'static str {
    match timers {
        SleepTimers::Hrtimer => "hrtimer",
        SleepTimers::Jiffies => "jiffies",
    }
}

/// Of a recording.
pub(crate) fn of_recording(recording: &Recording) -> String {
    let trace = &recording.trace;
    json!({
        "fairground": VERSION,
        "recording": recording.name,
        "cpus": trace.cpus,
        "start_ns": trace.start_ns,
        "end_ns": trace.end_ns,
        "events": trace.len(),
    })
    .to_string()
}
