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

/// The bytes from the begin of a record on: those of its fields, and whatever stands behind it. There are always so many, so that no place
/// has to be looked at for whether it is there.
pub(in super::super) type Window = [u8; WINDOW_BYTES];
/// A record's event begins before the first part ends, and its fields before the next one does.
pub(in super::super) const WINDOW_BYTES: usize = 2 * PLACES + COMM_BYTES;
const PLACES: usize = 1 << u8::BITS;

/// Where a field stands in a record, or in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct At(u8);

/// An event in a record, all of which is there.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct RawEvent<'r> {
    pub(in super::super) record: &'r Window,
    /// Where it begins.
    pub(in super::super) at: At,
    pub(in super::super) bytes: u32,
}

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
#[repr(u8)]
enum Plan {
    Switch {
        prev: Who,
        next: Who,
        state: At,
        is_long: bool,
    },
    Waking {
        task: Who,
        cpu: At,
    },
    Wakeup {
        task: Who,
        cpu: At,
        success: Option<At>,
    },
    WakeupNew {
        task: Who,
        cpu: At,
    },
    Migrate {
        task: Who,
        from: At,
        to: At,
    },
    Fork {
        parent: Who,
        child: Who,
    },
    Exit {
        task: Who,
    },
    Timer {
        function: At,
    },
    /// Nobody uses it.
    Other,
    /// It needs [`Decoder::decode`].
    Unplanned,
}

/// How an event is to be taken apart, by the number of its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Planned(u16);

impl Planned {
    /// From the bytes of its type.
    #[inline(always)]
    pub(in super::super) fn of(common_type: [u8; 2]) -> Self {
        Self(u16::from_le_bytes(common_type))
    }
}

/// The plans of one recording.
#[derive(Debug)]
pub(in super::super) struct Flat {
    pub(in super::super) common_type: At,
    pub(in super::super) common_pid: At,
    /// By the number of the type, with the bytes that such an event has at least.
    plans: Vec<(u16, Plan)>,
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
                let mut places = Places { end: common.end };
                let plan = places.plan(shape)?;
                Some((places.end as u16, plan))
            })
            .map(|plan| plan.unwrap_or((0, Plan::Unplanned)))
            .collect();
        Some(Self {
            common_type,
            common_pid,
            plans,
            states: states.cloned().unwrap_or_default(),
            ticks: decoder.ticks.clone(),
        })
    }

    /// How an event is to be taken apart, and whether anybody uses it. `None` for one of another kind, and for one with anything odd:
    /// [`Decoder::decode`] says what it is.
    pub(in super::super) fn plan(&self, event: RawEvent<'_>) -> Option<(Planned, bool)> {
        let planned = Planned::of(self.common_type.bytes(event));
        let (bytes_min, plan) = self.plans.get(usize::from(planned.0))?;
        let is_sound = event.bytes >= u32::from(*bytes_min) && self.common_pid.int(event) >= 0;
        is_sound.then_some((planned, !matches!(plan, Plan::Other)))
    }

    /// Takes an event apart into the record that it makes, if it makes one; says whether it does. `tid` is the task that the CPU was running,
    /// where that is known. `None` as with [`Flat::plan`], which gave `planned`.
    #[inline(always)]
    pub(in super::super) fn record(
        &self,
        planned: Planned,
        event: RawEvent<'_>,
        tid: Option<u32>,
        faces: &mut RawFaces<'_>,
        mut to: Sink<'_>,
    ) -> Option<bool> {
        match &self.plans.get(usize::from(planned.0))?.1 {
            Plan::Switch { prev, next, state, is_long } => {
                let bits = match is_long {
                    true => u64::from_le_bytes(state.bytes(event)),
                    false => i64::from(state.int(event)) as u64,
                };
                let prev_state = state_of(bits, &self.states);
                let prev = prev.face(event, faces)?;
                let next = next.face(event, faces)?;
                to.take(What::Switch { prev, prev_state, next });
            }
            Plan::Waking { task, cpu } => {
                let (task, target_cpu) = (task.face(event, faces)?, cpu.cpu(event)?);
                to.take(What::Waking { task, waker: tid.map(|pid| faces.bare(pid)), target_cpu });
            }
            Plan::Wakeup { success: Some(at), .. } if at.int(event) == 0 => return Some(false),
            Plan::Wakeup { task, cpu, .. } => {
                let (task, target_cpu) = (task.face(event, faces)?, cpu.cpu(event)?);
                to.take(What::Wakeup { task, target_cpu });
            }
            rare => match self.rare(rare, event, tid, faces)? {
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
        event: RawEvent<'_>,
        tid: Option<u32>,
        faces: &mut RawFaces<'_>,
    ) -> Option<Option<What>> {
        let mut face = |who: &Who| who.face(event, faces);
        Some(Some(match plan {
            Plan::WakeupNew { task, cpu } => {
                What::WakeupNew { task: face(task)?, target_cpu: cpu.cpu(event)? }
            }
            Plan::Migrate { task, from, to } => What::Migrate {
                task: face(task)?,
                from_cpu: from.cpu(event)?,
                to_cpu: to.cpu(event)?,
            },
            Plan::Fork { parent, child } => {
                What::Fork { parent: face(parent)?, child: face(child)? }
            }
            Plan::Exit { task } => What::Exit { task: face(task)? },
            Plan::Timer { function } => {
                if !self.ticks.contains(&u64::from_le_bytes(function.bytes(event))) {
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
        let place = At::new(at?)?;
        self.end = self.end.max(place.place() + bytes);
        Some(place)
    }
}

impl At {
    pub(in super::super) const BEGIN: Self = Self(0);

    /// `None` for a field that begins behind what a window is sure to hold.
    pub(in super::super) const fn new(at: usize) -> Option<Self> {
        if at < PLACES { Some(Self(at as u8)) } else { None }
    }

    pub(in super::super) fn place(self) -> usize {
        self.0.into()
    }

    /// The bytes of a field of a record.
    #[inline(always)]
    pub(in super::super) fn in_record<const BYTES: usize>(self, record: &Window) -> [u8; BYTES] {
        self.bytes(RawEvent { record, at: Self::BEGIN, bytes: 0 })
    }

    #[inline(always)]
    fn bytes<const BYTES: usize>(self, event: RawEvent<'_>) -> [u8; BYTES] {
        const { assert!(BYTES <= COMM_BYTES) };
        let at = event.at.place() + self.place();
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&event.record[at..at + BYTES]);
        bytes
    }

    #[inline(always)]
    fn int(self, event: RawEvent<'_>) -> i32 {
        i32::from_le_bytes(self.bytes(event))
    }

    /// A number that is not negative.
    #[inline(always)]
    fn number(self, event: RawEvent<'_>) -> Option<u32> {
        u32::try_from(self.int(event)).ok()
    }

    #[inline(always)]
    fn cpu(self, event: RawEvent<'_>) -> Option<u32> {
        self.number(event).filter(|cpu| *cpu < CPUS_MAX)
    }
}

impl Who {
    #[inline(always)]
    fn face(&self, event: RawEvent<'_>, faces: &mut RawFaces<'_>) -> Option<Face> {
        let comm = match self.comm {
            Comm::At(at) => at.bytes(event),
            Comm::Elsewhere(at) => elsewhere(event, at.bytes(event))?,
        };
        let prio = self.prio.map(|prio| prio.int(event));
        Some(faces.who(&RawFace::new(self.pid.number(event)?, comm, prio)?))
    }
}

/// A name up to its zero byte, of which the offset and the number of bytes are said; `None` for one that is longer than names of tasks are,
/// or stands too far behind.
#[inline(never)]
fn elsewhere(event: RawEvent<'_>, [a, b, c, d]: [u8; 4]) -> Option<[u8; COMM_BYTES]> {
    let rest = &event.record[event.at.place()..];
    let event = &rest[..rest.len().min(event.bytes as usize)];
    let [start, bytes] = [[a, b], [c, d]].map(|word| usize::from(u16::from_le_bytes(word)));
    let text = event.get(start..)?.get(..bytes)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let mut comm = [0; COMM_BYTES];
    comm.get_mut(..end)?.copy_from_slice(&text[..end]);
    Some(comm)
}
