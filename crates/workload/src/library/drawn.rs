//! Workloads drawn at random, by seed and index.

use super::parts::seconds;
use super::spec::{Call, Entry, parameter};
use crate::drawn::{DRAWN_DURATION_NS, draw, drawn_cpus};
use crate::limits::CPU_MAX;
use crate::model::Workload;

/// The default of `cpus`.
const IN_TURN: &str = "in-turn";
/// Limit of the index.
const INDEX_MAX: u32 = 999_999;

pub(super) const DRAWN: Entry = Entry {
    name: "drawn",
    arguments: "SEED.INDEX",
    summary: "a workload drawn at random: hogs, sleepers, timers, pipes, queues, locks, barriers, forks, cgroups and \
              changes in mid-run",
    source: "`fairground reproduce fidelity --seed SEED` compares the machine with real kernels on them",
    limits: "tasks and lengths of random sizes, without a program that they come from",
    parameters: &[parameter(
        "cpus",
        IN_TURN,
        "the number of CPUs that it is drawn for; in-turn: 1, 2 or 4 by INDEX",
    )],
    build: drawn,
};

fn drawn(call: &mut Call<'_, '_>) -> Workload {
    let nothing = || seconds(DRAWN_DURATION_NS / 1_000_000_000, "", Vec::new());
    let Some(words) = call.arguments.clone() else {
        let help = format!("write {}, as in `drawn:7.12`", call.usage());
        call.problem(call.name.span.clone(), "the seed and the index are missing".into(), help);
        return nothing();
    };
    let (seed, index) = words.split_once(|c| c == '.');
    let Some(index) = index else {
        let help = format!("write {}, as in `drawn:7.12`", call.usage());
        call.problem(words.span.clone(), "the index after the seed is missing".into(), help);
        return nothing();
    };
    let seed: u64 = call.number("the seed", &seed, 0..=u64::MAX);
    let index = call.number("the index", &index, 0..=INDEX_MAX);
    let cpus = match call.setting("cpus").text {
        IN_TURN => drawn_cpus(index),
        _ => call.integer("cpus", "the number of CPUs", 1..=CPU_MAX + 1),
    };
    draw(seed, index, cpus)
}
