//! Events of the scheduler taken apart the short way: where the kernel's description says that each field stands at a fixed place in a
//! form that all kernels of 64 bits use, there is nothing left to understand for each event.

use super::Endian;
use super::decode::{Decoder, Shape, Who as Described, state_of};
use super::faces::{COMM_BYTES, RawFace, RawFaces};
use super::formats::Field;
use crate::TaskState;
use crate::readers::line::CPUS_MAX;
use crate::readers::names::Who as Face;
use crate::readers::records::{Sink, What};

/// The bytes from an event's begin on that are looked at: at most so many of them are the event's, and there are always so many.
pub(in super::super) type Window = [u8; WINDOW_BYTES];
pub(in super::super) const WINDOW_BYTES: usize = PLACES + COMM_BYTES;
/// Fields that are read the short way begin before this byte of the event.
const PLACES: usize = 128;

/// Where a field stands in an event.
#[derive(Clone, Copy, Debug)]
struct At(u8);

/// Where a task's fields stand.
#[derive(Clone, Copy, Debug)]
struct Who {
    comm: Comm,
    pid: At,
    prio: Option<At>,
}

/// Where a name stands.
#[derive(Clone, Copy, Debug)]
enum Comm {
    /// At a fixed place, in [`COMM_BYTES`].
    At(At),
    /// Where the two numbers at this place say: its offset and its bytes.
    Elsewhere(At),
}

/// Where the fields of an event stand.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Switch { prev: Who, next: Who, state: At, is_long: bool },
    Waking { task: Who, cpu: At },
    Wakeup { task: Who, cpu: At, success: Option<At> },
    WakeupNew { task: Who, cpu: At },
    Migrate { task: Who, from: At, to: At },
    Fork { parent: Who, child: Who },
    Exit { task: Who },
    Timer { function: At },
    Other,
}

/// The plans of one recording.
#[derive(Debug)]
pub(in super::super) struct Flat {
    common_type: At,
    common_pid: At,
    /// Every event has at least so many bytes.
    common_bytes: usize,
    /// By the number of the type, with the bytes that such an event has at least; `None` for what needs [`Decoder::decode`].
    plans: Vec<Option<(usize, Plan)>>,
    states: Vec<(u64, TaskState)>,
    ticks: Vec<u64>,
}

impl Flat {
    /// Takes the kernel's descriptions; `None` when none can be read the short way.
    pub(in super::super) fn new(decoder: &Decoder<'_>) -> Option<Self> {
        if decoder.endian != Endian::Little {
            return None;
        }
        let mut common = Places::default();
        let common_type = common.number(decoder.common_type?.number_at(2), 2)?;
        let common_pid = common.number(decoder.common_pid?.number_at(4), 4)?;
        let mut states: Option<&Vec<(u64, TaskState)>> = None;
        let plans = decoder
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
                let mut places = Places::default();
                let plan = places.plan(shape)?;
                Some((places.end, plan))
            })
            .collect();
        Some(Self {
            common_type,
            common_pid,
            common_bytes: common.end,
            plans,
            states: states.cloned().unwrap_or_default(),
            ticks: decoder.ticks.clone(),
        })
    }

    /// Takes an event apart into the record that it makes, if it makes one; says whether it does. `window` are the bytes from the event's
    /// begin on, whatever stands behind it; `tid` is the task that the CPU was running, where that is known. `None` for an event of another
    /// kind, and for one with anything odd: [`Decoder::decode`] says what it is.
    #[inline(always)]
    pub(in super::super) fn record(
        &self,
        event: &[u8],
        window: &Window,
        tid: Option<u32>,
        faces: &mut RawFaces<'_>,
        mut to: Sink<'_>,
    ) -> Option<bool> {
        if event.len() < self.common_bytes {
            return None;
        }
        let id = u16::from_le_bytes(self.common_type.bytes(window));
        let (bytes, plan) = self.plans.get(usize::from(id))?.as_ref()?;
        if event.len() < *bytes || self.common_pid.int(window) < 0 {
            return None;
        }
        match plan {
            Plan::Other => return Some(false),
            Plan::Switch { prev, next, state, is_long } => {
                let bits = match is_long {
                    true => u64::from_le_bytes(state.bytes(window)),
                    false => i64::from(state.int(window)) as u64,
                };
                let prev_state = state_of(bits, &self.states);
                let prev = prev.face(event, window, faces)?;
                let next = next.face(event, window, faces)?;
                to.take(What::Switch { prev, prev_state, next });
            }
            Plan::Waking { task, cpu } => {
                let (task, target_cpu) = (task.face(event, window, faces)?, cpu.cpu(window)?);
                to.take(What::Waking { task, waker: tid.map(|pid| faces.bare(pid)), target_cpu });
            }
            Plan::Wakeup { success: Some(at), .. } if at.int(window) == 0 => return Some(false),
            Plan::Wakeup { task, cpu, .. } => {
                let (task, target_cpu) = (task.face(event, window, faces)?, cpu.cpu(window)?);
                to.take(What::Wakeup { task, target_cpu });
            }
            rare => match self.rare(rare, event, window, tid, faces)? {
                Some(what) => to.take(what),
                None => return Some(false),
            },
        }
        Some(true)
    }

    /// What does not happen all the time.
    #[inline(never)]
    fn rare(
        &self,
        plan: &Plan,
        event: &[u8],
        window: &Window,
        tid: Option<u32>,
        faces: &mut RawFaces<'_>,
    ) -> Option<Option<What>> {
        let mut face = |who: &Who| who.face(event, window, faces);
        Some(Some(match plan {
            Plan::WakeupNew { task, cpu } => {
                What::WakeupNew { task: face(task)?, target_cpu: cpu.cpu(window)? }
            }
            Plan::Migrate { task, from, to } => What::Migrate {
                task: face(task)?,
                from_cpu: from.cpu(window)?,
                to_cpu: to.cpu(window)?,
            },
            Plan::Fork { parent, child } => {
                What::Fork { parent: face(parent)?, child: face(child)? }
            }
            Plan::Exit { task } => What::Exit { task: face(task)? },
            Plan::Timer { function } => {
                if !self.ticks.contains(&u64::from_le_bytes(function.bytes(window))) {
                    return Some(None);
                }
                What::Tick { running: tid.map(|pid| faces.bare(pid)) }
            }
            _ => return None,
        }))
    }
}

/// The places of an event's fields as they are looked up, and where the last of them ends.
#[derive(Debug, Default)]
struct Places {
    end: usize,
}

impl Places {
    /// `None` where a field has another form.
    fn plan(&mut self, shape: &Shape) -> Option<Plan> {
        let mut int = |field: &Field| self.number(field.number_at(4), 4);
        Some(match shape {
            Shape::Switch { prev, next, state, .. } => {
                let long = state.number_at(8);
                Plan::Switch {
                    prev: self.who(prev)?,
                    next: self.who(next)?,
                    state: match long {
                        Some(_) => self.number(long, 8)?,
                        None => self.number(state.signed_number_at(4), 4)?,
                    },
                    is_long: long.is_some(),
                }
            }
            Shape::Waking { task, cpu } => Plan::Waking { cpu: int(cpu)?, task: self.who(task)? },
            Shape::Wakeup { task, cpu, success } => {
                let success = match success {
                    Some(success) => Some(int(success)?),
                    None => None,
                };
                Plan::Wakeup { cpu: int(cpu)?, task: self.who(task)?, success }
            }
            Shape::WakeupNew { task, cpu } => {
                Plan::WakeupNew { cpu: int(cpu)?, task: self.who(task)? }
            }
            Shape::Migrate { task, from, to } => {
                Plan::Migrate { from: int(from)?, to: int(to)?, task: self.who(task)? }
            }
            Shape::Fork { parent, child } => {
                Plan::Fork { parent: self.who(parent)?, child: self.who(child)? }
            }
            Shape::Exit { task } => Plan::Exit { task: self.who(task)? },
            Shape::Timer { function } => {
                Plan::Timer { function: self.number(function.number_at(8), 8)? }
            }
            Shape::Other => Plan::Other,
            Shape::CgroupMove { .. }
            | Shape::Mark { .. }
            | Shape::Print { .. }
            | Shape::ContentionBegin { .. }
            | Shape::ContentionEnd { .. }
            | Shape::Stack { .. } => return None,
        })
    }

    fn who(&mut self, described: &Described) -> Option<Who> {
        let prio = match &described.prio {
            Some(prio) => Some(self.number(prio.signed_number_at(4), 4)?),
            None => None,
        };
        let comm = &described.comm;
        let comm = match comm.text_at(COMM_BYTES) {
            Some(at) => Comm::At(self.number(Some(at), COMM_BYTES)?),
            None => Comm::Elsewhere(self.number(comm.elsewhere_at(), 4)?),
        };
        Some(Who { comm, pid: self.number(described.pid.number_at(4), 4)?, prio })
    }

    /// A field of so many bytes.
    fn number(&mut self, at: Option<usize>, bytes: usize) -> Option<At> {
        let at = at.filter(|at| *at < PLACES)?;
        self.end = self.end.max(at + bytes);
        Some(At(at as u8))
    }
}

impl At {
    #[inline(always)]
    fn bytes<const BYTES: usize>(self, window: &Window) -> [u8; BYTES] {
        const { assert!(BYTES <= COMM_BYTES) };
        // Always so: the compiler needs to look at no bound then.
        let at = usize::from(self.0) % PLACES;
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&window[at..at + BYTES]);
        bytes
    }

    #[inline(always)]
    fn int(self, window: &Window) -> i32 {
        i32::from_le_bytes(self.bytes(window))
    }

    /// A number that is not negative.
    #[inline(always)]
    fn number(self, window: &Window) -> Option<u32> {
        u32::try_from(self.int(window)).ok()
    }

    #[inline(always)]
    fn cpu(self, window: &Window) -> Option<u32> {
        self.number(window).filter(|cpu| *cpu < CPUS_MAX)
    }
}

impl Who {
    #[inline(always)]
    fn face(&self, event: &[u8], window: &Window, faces: &mut RawFaces<'_>) -> Option<Face> {
        let comm = match self.comm {
            Comm::At(at) => at.bytes(window),
            Comm::Elsewhere(at) => elsewhere(event, at.bytes(window))?,
        };
        let prio = self.prio.map(|prio| prio.int(window));
        Some(faces.who(&RawFace::new(self.pid.number(window)?, comm, prio)?))
    }
}

/// A name up to its zero byte, of which the offset and the number of bytes are said; `None` for one that is longer than names of tasks are.
#[inline(never)]
fn elsewhere(event: &[u8], [a, b, c, d]: [u8; 4]) -> Option<[u8; COMM_BYTES]> {
    let [start, bytes] = [[a, b], [c, d]].map(|word| usize::from(u16::from_le_bytes(word)));
    let text = event.get(start..)?.get(..bytes)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let mut comm = [0; COMM_BYTES];
    comm.get_mut(..end)?.copy_from_slice(&text[..end]);
    Some(comm)
}
