//! The schedulers in the program, and whether they run here.

use fairground_bpf::Object;
use fairground_machine::{Engine, Machine, MachineConfig, Policy};
use fairground_workload::from_spec;

use super::super::{Check, Finding, World};

pub(in super::super) const SCHEDULERS: Check =
    Check { name: "schedulers", test: schedulers, boots: false };
pub(in super::super) const RUN: Check =
    Check { name: "a short simulation", test: run, boots: false };

/// The remedy for a program that does not do what its tests do.
const DAMAGED: &str =
    "install fairground again: the program is damaged, or this processor is not x86-64";
/// The run's workload, on this scheduler, for this long.
const WORKLOAD: &str = "hogs:2";
const SCHEDULER: &str = "fifo";
const DURATION_NS: u64 = 100_000_000;

fn schedulers(_: &World) -> Finding {
    let all = fairground_policies::all();
    let broken = all.iter().find_map(|p| Some((p.name, Object::parse(p.name, p.object).err()?)));
    match broken {
        _ if all.is_empty() => Finding::missing("none is in the program", DAMAGED),
        Some((name, error)) => Finding::missing(format!("{name}: {error}"), DAMAGED),
        None => {
            let names: Vec<&str> = all.iter().map(|policy| policy.name).collect();
            Finding::ready(format!("{} in the program: {}", all.len(), names.join(", ")))
        }
    }
}

fn run(_: &World) -> Finding {
    // A machine that forbids memory that is written and executed lets no scheduler be compiled.
    let remedy = "allow executable memory (SELinux: setsebool deny_execmem off), or use --engine interpreter";
    match simulate() {
        Ok(0) => Finding::missing("the run has no context switch", DAMAGED),
        Ok(switches) => {
            Finding::ready(format!("{WORKLOAD} under {SCHEDULER}: {switches} switches in 100 ms"))
        }
        Err(problem) => Finding::missing(problem, remedy),
    }
}

/// Switches of the run.
fn simulate() -> Result<usize, String> {
    let policy = fairground_policies::get(SCHEDULER).ok_or("there is no scheduler `fifo`")?;
    let object = Object::parse(policy.name, policy.object).map_err(|e| e.to_string())?;
    let policy = Policy::load(&object, Engine::Jit).map_err(|e| e.to_string())?;
    let workload = from_spec(WORKLOAD).map_err(|e| e.to_string())?;
    let config = MachineConfig::new(1);
    let mut machine = Machine::new(&config, &policy, &[], &workload).map_err(|e| e.to_string())?;
    machine.run_until(DURATION_NS).map_err(|e| e.to_string())?;
    let trace = machine.finish().map_err(|e| e.to_string())?.trace;
    let is_switch = |kind| matches!(kind, fairground_trace::EventKind::Switch { .. });
    Ok(trace.events().filter(|event| is_switch(event.kind)).count())
}
