//! Which of several CTF traces in one place is read: a session of LTTng has one of the kernel (`kernel`) beside those
//! of programs (`ust/uid/1000/64-bit`), and a folder of sessions has several of the kernel, which may be of several
//! machines.

use super::super::binary::Why;
use super::super::error::Machines;
use super::description::Metadata;
use super::source::Found;

/// The trace that is read.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) name: String,
    pub(super) metadata: Metadata,
    /// The traces that are left out.
    pub(super) note: Option<String>,
}

/// Why none is read.
#[derive(Debug)]
pub(super) enum Refusal {
    NoMachine { machine: String, known: Machines },
    Damaged(Why),
}

/// Chooses the trace of a name, or the first one of a kernel; where no trace is of a kernel, the first one. `None`
/// where there is no trace.
pub(super) fn choose(
    mut all: Vec<Found>,
    machine: Option<&str>,
) -> Option<Result<Choice, Refusal>> {
    // Those of a kernel first, otherwise by name.
    all.sort_by_key(|trace| !trace.is_of_kernel());
    let of_kernel = all.iter().take_while(|trace| trace.is_of_kernel()).count();
    let (candidates, others) = all.split_at(if of_kernel > 0 { of_kernel } else { all.len() });
    let first = candidates.first()?;
    let names =
        |traces: &[Found]| Machines(traces.iter().map(|trace| trace.name.clone()).collect()).text();
    let note = match (machine, candidates.len(), others.len()) {
        (Some(_), ..) | (None, 1, 0) => None,
        (None, 1, _) => Some(format!(
            "beside the trace of the kernel, {}, these were left out: {}",
            first.name,
            names(others)
        )),
        (None, ..) => Some(format!(
            "there are several traces, {}, which may be of several machines: only {} is read \
             (--machine NAME reads another)",
            names(candidates),
            first.name
        )),
    };
    let index = match machine {
        None => 0,
        Some(machine) => match candidates.iter().position(|trace| trace.name == machine) {
            Some(index) => index,
            None => {
                let known = Machines(candidates.iter().map(|trace| trace.name.clone()).collect());
                return Some(Err(Refusal::NoMachine { machine: machine.to_owned(), known }));
            }
        },
    };
    let Found { name, metadata } = all.swap_remove(index);
    let choice = metadata.map(|metadata| Choice { name, metadata, note });
    Some(choice.map_err(Refusal::Damaged))
}
