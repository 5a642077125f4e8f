//! Where the instructions of a scheduler go: for each function and source line, how many it executes per context
//! switch. The start-up does not count.
//!
//!     cargo run --release -p fairground-benches --bin lines SCHEDULER[@SET] WORKLOAD [LINES]
//!
//! One CPU, 250 Hz, costs `modern`. The counts are the interpreter's, after dead code was removed: those of
//! `policy_instructions`, and of all other callbacks.

use std::collections::BTreeMap;

use fairground_machine::{CostModel, Machine, MachineConfig};
use fairground_session::{EngineChoice, Scheduler};
use fairground_workload::from_spec;

/// Simulated time before the measurement, and its length, ns.
const START_UP_NS: u64 = 20_000_000;
const LENGTH_NS: u64 = 40_000_000;
/// Lines that are printed unless a number is given.
const LINES: usize = 60;

/// Executions of each instruction, by function and slot.
type Counts = BTreeMap<(String, usize), u64>;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match &args[..] {
        [scheduler, workload] => Some((scheduler, workload, LINES)),
        [scheduler, workload, lines] => {
            lines.parse().ok().map(|lines| (scheduler, workload, lines))
        }
        _ => None,
    };
    let Some((scheduler, workload, lines)) = parsed else {
        eprintln!("usage: lines SCHEDULER[@SET] WORKLOAD [LINES], where LINES is a number");
        std::process::exit(2);
    };
    if let Err(problem) = measure(scheduler, workload, lines) {
        eprintln!("lines: {problem}");
        std::process::exit(1);
    }
}

fn measure(name: &str, workload: &str, lines: usize) -> Result<(), Box<dyn std::error::Error>> {
    let Scheduler { object, policy } =
        Scheduler::load(name, None, EngineChoice::Interpreter.into())
            .map_err(|failure| failure.to_string())?;
    let mut config = MachineConfig::new(1);
    config.hz = 250;
    config.cost = CostModel::preset("modern")?;
    let workload = from_spec(workload)?;
    let mut machine = Machine::new(&config, &policy, &object.settings, &workload)?;
    machine.run_until(START_UP_NS)?;
    let (before, switches) = (counts(&machine), machine.counters().switches);
    machine.run_until(START_UP_NS + LENGTH_NS)?;
    let switches = (machine.counters().switches - switches).max(1) as f64;

    let (mut functions, mut places) = (BTreeMap::new(), BTreeMap::new());
    for ((function, slot), count) in counts(&machine) {
        let key = (function, slot);
        let executed = (count - before.get(&key).unwrap_or(&0)) as f64 / switches;
        let line = object.object.source_line(&key.0, slot);
        let line = line.map_or(String::new(), |line| format!("{line:<34} {}", line.text));
        *functions.entry(key.0.clone()).or_insert(0.0) += executed;
        *places.entry(format!("{:<24} {line}", key.0)).or_insert(0.0) += executed;
    }
    println!("instructions per switch of {name}, {switches} switches");
    print(functions, usize::MAX);
    println!();
    print(places, lines);
    Ok(())
}

fn counts(machine: &Machine) -> Counts {
    machine.executed().map(|(function, slot, n)| ((function.to_owned(), slot), n)).collect()
}

/// The most frequent first.
fn print(executed: BTreeMap<String, f64>, most: usize) {
    let mut sorted: Vec<(String, f64)> = executed.into_iter().filter(|(_, n)| *n >= 0.05).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (what, number) in sorted.iter().take(most) {
        println!("{number:>8.1}  {what}");
    }
}
