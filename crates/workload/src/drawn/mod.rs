//! Workloads drawn at random over the whole model, so that no scheduler and no simulation can be tuned to them.
//!
//! A workload is a number of *parts*: tasks that belong together, such as the two ends of a pipe or the holders of a
//! lock. Each part gets a share of the load, which is drawn first, from an almost idle machine to four times what it
//! can do. Then its groups get nice values, affinities, cgroups and starting times ([`placement`]), and some change
//! these during the run ([`changes`]).
//!
//! Only what a real kernel's tasks can execute is drawn: no `io` (a device with a service time), and no spin locks,
//! which are the kernel's own. `slice` has no effect on a kernel before 6.12, and no effect on a scheduler that does
//! not know it.

mod changes;
mod computing;
mod draft;
mod families;
mod locks;
mod messages;
mod placement;

use crate::check::check;
use crate::model::Workload;
use crate::prng::Prng;
use draft::Draft;

/// Most tasks of a drawn workload that live at the same time.
pub const DRAWN_TASKS_MAX: u32 = 24;
/// The length of a run of a drawn workload, ns.
pub const DRAWN_DURATION_NS: u64 = 2_000_000_000;
/// The numbers of CPUs for which workloads are drawn, in turn by index.
pub const DRAWN_CPUS: [u32; 3] = [1, 2, 4];

/// Most tasks of one part.
const PART_TASKS_MAX: u32 = 9;
/// Draws for one index.
const DRAWS_MAX: u64 = 8;
/// Parts of a workload.
const PARTS_MAX: u64 = 6;
/// Ranges of the load, percent of what the CPUs can do: idle, partly used, full, overloaded.
const LOADS: [(u64, u64); 4] = [(5, 40), (40, 90), (90, 130), (130, 400)];

/// Adds the tasks of a part, which should need so much CPU time together, in thousandths of a CPU.
type Part = fn(&mut Draft, u64);

/// The kinds of parts, and how often each is drawn relative to the others.
const PARTS: &[(u64, Part)] = &[
    (4, computing::hogs),
    (4, computing::sleepers),
    (2, computing::spurts),
    (3, computing::periodic),
    (2, computing::mixture),
    (1, computing::jobs),
    (2, messages::ping_pong),
    (2, messages::stream),
    (1, messages::chain),
    (2, messages::server),
    (2, messages::producers),
    (1, messages::semaphore),
    (3, locks::shared),
    (2, locks::readers),
    (2, locks::condition),
    (2, locks::barrier),
    (2, families::forks),
    (1, families::signals),
];

/// The number of CPUs for which the workload of an index is drawn where none is named.
pub fn drawn_cpus(index: u32) -> u32 {
    DRAWN_CPUS[index as usize % DRAWN_CPUS.len()]
}

/// Draws a workload for a machine of `cpus` CPUs (at least 1). Equal arguments give equal workloads; each passes
/// [`crate::check()`] and has 1 to [`DRAWN_TASKS_MAX`] tasks at a time. One that the check refuses is drawn again, at
/// most `DRAWS_MAX` times in all.
pub fn draw(seed: u64, index: u32, cpus: u32) -> Workload {
    let cpus = cpus.max(1);
    let prng = Prng::new(seed).fork(u64::from(index)).fork(u64::from(cpus));
    let name = format!("drawn:{seed}.{index},cpus={cpus}");
    let mut workload = once(prng.clone(), cpus, name.clone());
    for again in 1..DRAWS_MAX {
        if check(&workload).is_ok() {
            break;
        }
        workload = once(prng.fork(again), cpus, name.clone());
    }
    workload
}

/// Draws a workload that is not checked yet.
fn once(prng: Prng, cpus: u32, name: String) -> Workload {
    let mut draft = Draft::new(prng, cpus);
    let (low, high) = LOADS[draft.prng.below(LOADS.len() as u64) as usize];
    let load_percent = draft.prng.between(low, high);
    draft.load_percent = load_percent;

    let count = draft.prng.between(1, PARTS_MAX);
    let weights: Vec<u64> = (0..count).map(|_| draft.prng.between(1, 4)).collect();
    let total_permille = 10 * load_percent * u64::from(cpus);
    for weight in &weights {
        let permille = total_permille * weight / weights.iter().sum::<u64>();
        if draft.has_room() {
            part_of(&mut draft)(&mut draft, permille.max(1));
        }
    }
    placement::place(&mut draft);
    changes::change(&mut draft);
    let plural = if cpus == 1 { "" } else { "s" };
    Workload {
        name,
        description: format!("drawn for {cpus} CPU{plural}, load about {load_percent} %"),
        duration_ns: DRAWN_DURATION_NS,
        ..draft.finish()
    }
}

/// A kind of part, drawn by how often each is.
fn part_of(draft: &mut Draft) -> Part {
    let mut ticket = draft.prng.below(PARTS.iter().map(|(often, _)| often).sum());
    for (often, part) in PARTS {
        match ticket.checked_sub(*often) {
            Some(left) => ticket = left,
            None => return *part,
        }
    }
    computing::hogs
}
