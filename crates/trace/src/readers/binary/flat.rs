//! Events of the scheduler taken apart the short way: where the kernel's description says that each field stands at a fixed place in a
//! form that all kernels of 64 bits use, there is nothing left to understand for each event.

use super::Endian;
use super::decode::{Decoder, Shape, Who as Described, state_of};
use super::faces::{COMM_BYTES, RawFace, RawFaces};
use super::formats::Field;
use crate::TaskState;
use crate::readers::line::CPUS_MAX;
use crate::readers::names::Who as Face;
use crate::readers::records::What;

/// Where a task's fields stand.
#[derive(Clone, Copy, Debug)]
struct Who {
    comm: Comm,
    pid: usize,
    prio: Option<usize>,
}

/// Where a name stands.
#[derive(Clone, Copy, Debug)]
enum Comm {
    /// At a fixed place, in [`COMM_BYTES`].
    At(usize),
    /// Where the two numbers at this place say: its offset and its bytes.
    Elsewhere(usize),
}

/// Where the fields of an event stand.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Switch { prev: Who, next: Who, state: usize, is_long: bool },
    Waking { task: Who, cpu: usize },
    Wakeup { task: Who, cpu: usize, success: Option<usize> },
    WakeupNew { task: Who, cpu: usize },
    Migrate { task: Who, from: usize, to: usize },
    Fork { parent: Who, child: Who },
    Exit { task: Who },
    Timer { function: usize },
    Other,
}

/// The plans of one recording.
#[derive(Debug)]
pub(in super::super) struct Flat {
    common_type: usize,
    common_pid: usize,
    /// By the number of the type; `None` for what needs [`Decoder::decode`].
    plans: Vec<Option<Plan>>,
    states: Vec<(u64, TaskState)>,
    ticks: Vec<u64>,
}

impl Flat {
    /// Takes the kernel's descriptions; `None` when none can be read the short way.
    pub(in super::super) fn new(decoder: &Decoder<'_>) -> Option<Self> {
        if decoder.endian != Endian::Little {
            return None;
        }
        let mut states: Option<&Vec<(u64, TaskState)>> = None;
        let plans: Vec<Option<Plan>> = decoder
            .shapes
            .iter()
            .map(|described| {
                let (_, shape) = described.as_ref()?;
                // A second kind of switch with other states is left to the decoder.
                if let Shape::Switch { states: said, .. } = shape
                    && states.get_or_insert(said) != &said
                {
                    return None;
                }
                plan(shape)
            })
            .collect();
        Some(Self {
            common_type: decoder.common_type?.number_at(2)?,
            common_pid: decoder.common_pid?.number_at(4)?,
            plans,
            states: states.cloned().unwrap_or_default(),
            ticks: decoder.ticks.clone(),
        })
    }

    /// Takes an event apart: the record that it makes, if it makes one. `tid` is the task that the CPU was running, where that is known.
    /// `None` for an event of another kind, and for one with anything odd: [`Decoder::decode`] says what it is.
    #[inline]
    pub(in super::super) fn record(
        &self,
        event: &[u8],
        tid: Option<u32>,
        faces: &mut RawFaces<'_>,
    ) -> Option<Option<What>> {
        let id = u16::from_le_bytes(chunk(event, self.common_type)?);
        let plan = self.plans.get(usize::from(id))?.as_ref()?;
        pid(event, self.common_pid)?;
        Some(Some(match plan {
            Plan::Other => return Some(None),
            Plan::Switch { prev, next, state, is_long } => {
                let bits = match is_long {
                    true => u64::from_le_bytes(chunk(event, *state)?),
                    false => i64::from(int(event, *state)?) as u64,
                };
                let prev_state = state_of(bits, &self.states);
                What::Switch {
                    prev: prev.face(event, faces)?,
                    prev_state,
                    next: next.face(event, faces)?,
                }
            }
            Plan::Waking { task, cpu: at } => {
                let (task, target_cpu) = (task.face(event, faces)?, cpu(event, *at)?);
                What::Waking { task, waker: tid.map(|pid| faces.bare(pid)), target_cpu }
            }
            Plan::Wakeup { success: Some(at), .. } if int(event, *at)? == 0 => return Some(None),
            Plan::Wakeup { task, cpu: at, .. } => {
                What::Wakeup { task: task.face(event, faces)?, target_cpu: cpu(event, *at)? }
            }
            Plan::WakeupNew { task, cpu: at } => {
                What::WakeupNew { task: task.face(event, faces)?, target_cpu: cpu(event, *at)? }
            }
            Plan::Migrate { task, from, to } => What::Migrate {
                task: task.face(event, faces)?,
                from_cpu: cpu(event, *from)?,
                to_cpu: cpu(event, *to)?,
            },
            Plan::Fork { parent, child } => {
                What::Fork { parent: parent.face(event, faces)?, child: child.face(event, faces)? }
            }
            Plan::Exit { task } => What::Exit { task: task.face(event, faces)? },
            Plan::Timer { function } => {
                if !self.ticks.contains(&u64::from_le_bytes(chunk(event, *function)?)) {
                    return Some(None);
                }
                What::Tick { running: tid.map(|pid| faces.bare(pid)) }
            }
        }))
    }
}

/// `None` where a field has another form.
fn plan(shape: &Shape) -> Option<Plan> {
    let number = |field: &Field| field.number_at(4);
    Some(match shape {
        Shape::Switch { prev, next, state, .. } => {
            let long = state.number_at(8);
            Plan::Switch {
                prev: who(prev)?,
                next: who(next)?,
                state: long.or_else(|| state.signed_number_at(4))?,
                is_long: long.is_some(),
            }
        }
        Shape::Waking { task, cpu } => Plan::Waking { task: who(task)?, cpu: number(cpu)? },
        Shape::Wakeup { task, cpu, success } => {
            let success = match success {
                Some(success) => Some(number(success)?),
                None => None,
            };
            Plan::Wakeup { task: who(task)?, cpu: number(cpu)?, success }
        }
        Shape::WakeupNew { task, cpu } => Plan::WakeupNew { task: who(task)?, cpu: number(cpu)? },
        Shape::Migrate { task, from, to } => {
            Plan::Migrate { task: who(task)?, from: number(from)?, to: number(to)? }
        }
        Shape::Fork { parent, child } => Plan::Fork { parent: who(parent)?, child: who(child)? },
        Shape::Exit { task } => Plan::Exit { task: who(task)? },
        Shape::Timer { function } => Plan::Timer { function: function.number_at(8)? },
        Shape::Other => Plan::Other,
        Shape::CgroupMove { .. }
        | Shape::Mark { .. }
        | Shape::Print { .. }
        | Shape::ContentionBegin { .. }
        | Shape::ContentionEnd { .. }
        | Shape::Stack { .. } => return None,
    })
}

fn who(described: &Described) -> Option<Who> {
    let prio = match &described.prio {
        Some(prio) => Some(prio.signed_number_at(4)?),
        None => None,
    };
    let comm = &described.comm;
    let at = comm.text_at(COMM_BYTES).map(Comm::At);
    let comm = at.or_else(|| comm.elsewhere_at().map(Comm::Elsewhere))?;
    Some(Who { comm, pid: described.pid.number_at(4)?, prio })
}

#[inline]
fn chunk<const BYTES: usize>(event: &[u8], at: usize) -> Option<[u8; BYTES]> {
    event.get(at..)?.first_chunk().copied()
}

#[inline]
fn int(event: &[u8], at: usize) -> Option<i32> {
    chunk(event, at).map(i32::from_le_bytes)
}

/// A number that is not negative.
#[inline]
fn pid(event: &[u8], at: usize) -> Option<u32> {
    u32::try_from(int(event, at)?).ok()
}

#[inline]
fn cpu(event: &[u8], at: usize) -> Option<u32> {
    pid(event, at).filter(|cpu| *cpu < CPUS_MAX)
}

impl Who {
    #[inline]
    fn face(&self, event: &[u8], faces: &mut RawFaces<'_>) -> Option<Face> {
        let prio = match self.prio {
            Some(at) => Some(int(event, at)?),
            None => None,
        };
        let pid = pid(event, self.pid)?;
        let comm = match self.comm {
            Comm::At(at) => chunk(event, at)?,
            Comm::Elsewhere(at) => elsewhere(event, at)?,
        };
        Some(faces.who(&RawFace { pid, comm, prio }))
    }
}

/// A name up to its zero byte; `None` for one that is longer than names of tasks are.
fn elsewhere(event: &[u8], at: usize) -> Option<[u8; COMM_BYTES]> {
    let [start, bytes] = [at, at + 2].map(|at| chunk(event, at).map(u16::from_le_bytes));
    let text = event.get(usize::from(start?)..)?.get(..usize::from(bytes?))?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let mut comm = [0; COMM_BYTES];
    comm.get_mut(..end)?.copy_from_slice(&text[..end]);
    Some(comm)
}
