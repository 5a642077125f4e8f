//! A bundle (`FtraceEventBundle`): a stretch of events of one CPU, plain or in columns (`CompactSched`).

use super::event::KernelEvent;
use super::wire::{Broken, Fields, Record, WireValue, numbers};

/// The clock of ftrace that Perfetto does not know (`FTRACE_CLOCK_UNKNOWN`).
pub(super) const CLOCK_UNKNOWN: u64 = 1;

/// An event of a bundle.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'a> {
    Event(KernelEvent<'a>),
    /// A switch that does not name the task that ran before.
    Switch {
        prev_state: u64,
        next: CompactTask<'a>,
    },
    /// A wake-up that does not name the waking task.
    Waking {
        task: CompactTask<'a>,
        target_cpu: u64,
        common_flags: u64,
    },
}

/// A task in the columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompactTask<'a> {
    pub(super) pid: u64,
    pub(super) prio: u64,
    pub(super) comm: &'a [u8],
}

/// The content of a bundle.
#[derive(Debug, Default)]
pub(super) struct Bundle<'a> {
    pub(super) cpu: Option<u64>,
    /// Events were lost before the first one.
    pub(super) lost: bool,
    /// Where ftrace's clock is not that of the trace: the clock's number, and a moment in both, ns.
    pub(super) clock: Option<u64>,
    pub(super) clock_ns: [Option<u64>; 2],
    /// The time of the CPU's last event in the bundle before, ns.
    pub(super) previous_end_ns: Option<u64>,
    /// By time, ns.
    pub(super) items: Vec<(u64, Item<'a>)>,
    /// Events that cannot be read.
    pub(super) broken: u64,
}

impl<'a> Bundle<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut bundle = Self::default();
        let (mut compact, mut has_plain) = (None, false);
        for field in Fields(bytes) {
            let (number, value) = field?;
            match number {
                1 => bundle.cpu = value.number(),
                2 => match value.bytes().and_then(KernelEvent::parse) {
                    Some(event) => {
                        has_plain = true;
                        bundle.items.push((event.time_ns, Item::Event(event)));
                    }
                    None => bundle.broken += 1,
                },
                3 => bundle.lost = value.number() == Some(1),
                4 => compact = value.bytes(),
                5 => bundle.clock = value.number(),
                6 => bundle.clock_ns[0] = value.number(),
                7 => bundle.clock_ns[1] = value.number(),
                // Perfetto v44 to v46 have the first of them, later ones the second.
                9 | 10 => bundle.previous_end_ns = value.number().filter(|end_ns| *end_ns > 0),
                _ => {}
            }
        }
        if let Some(compact) = compact {
            let columns = Columns::parse(compact)?;
            let (wakings, switches) = (columns.wakings(), columns.switches());
            let missing = columns.longest() - wakings.len() - switches.len();
            bundle.broken += missing as u64;
            let is_mixed = [has_plain, !wakings.is_empty(), !switches.is_empty()];
            let is_mixed = is_mixed.into_iter().filter(|filled| *filled).count() > 1;
            // Of equal times a wake-up comes first: the task that leaves the CPU may have caused it.
            bundle.items.splice(0..0, wakings);
            bundle.items.extend(switches);
            if is_mixed {
                bundle.items.sort_by_key(|(time_ns, _)| *time_ns);
            }
        }
        Ok(bundle)
    }
}

/// `CompactSched`: a repeated field for each field of an event. Times are differences to the one before.
#[derive(Debug, Default)]
struct Columns<'a> {
    names: Vec<&'a [u8]>,
    /// By the number of the field.
    columns: [Vec<u64>; 13],
}

const SWITCH: [usize; 5] = [1, 2, 3, 4, 6];
const WAKING: [usize; 5] = [7, 8, 9, 10, 11];
const WAKING_FLAGS: usize = 12;
const INTERN_TABLE: u32 = 5;

impl<'a> Columns<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut found = Self::default();
        for field in Fields(bytes) {
            let (number, value) = field?;
            match (number, value) {
                (INTERN_TABLE, WireValue::Bytes(name)) => found.names.push(name),
                (INTERN_TABLE, _) => {}
                _ => {
                    let Some(column) = found.columns.get_mut(number as usize) else { continue };
                    for entry in numbers(value) {
                        column.push(entry?);
                    }
                }
            }
        }
        Ok(found)
    }

    /// The rows of some columns, as far as all of them reach; the first one as sums.
    fn rows(&self, columns: [usize; 5]) -> impl Iterator<Item = [u64; 5]> {
        let len = columns.map(|column| self.columns[column].len()).into_iter().min().unwrap_or(0);
        let mut time_ns: u64 = 0;
        (0..len).map(move |row| {
            let mut entries = columns.map(|column| self.columns[column][row]);
            time_ns = time_ns.wrapping_add(entries[0]);
            entries[0] = time_ns;
            entries
        })
    }

    fn switches(&self) -> Vec<(u64, Item<'a>)> {
        let item = |[time_ns, prev_state, pid, prio, comm]: [u64; 5]| {
            let next = CompactTask { pid, prio, comm: self.name(comm)? };
            Some((time_ns, Item::Switch { prev_state, next }))
        };
        self.rows(SWITCH).map_while(item).collect()
    }

    fn wakings(&self) -> Vec<(u64, Item<'a>)> {
        let item = |(row, [time_ns, pid, target_cpu, prio, comm]): (usize, [u64; 5])| {
            let task = CompactTask { pid, prio, comm: self.name(comm)? };
            let common_flags = self.columns[WAKING_FLAGS].get(row).copied().unwrap_or(0);
            Some((time_ns, Item::Waking { task, target_cpu, common_flags }))
        };
        self.rows(WAKING).enumerate().map_while(item).collect()
    }

    fn name(&self, index: u64) -> Option<&'a [u8]> {
        self.names.get(usize::try_from(index).ok()?).copied()
    }

    /// The number of events by the longest columns: more than there are rows with all fields and a name.
    fn longest(&self) -> usize {
        let longest = |columns: [usize; 5]| columns.map(|column| self.columns[column].len());
        [SWITCH, WAKING].map(|columns| longest(columns).into_iter().max().unwrap_or(0)).iter().sum()
    }
}

/// `FtraceStats`: whether it was taken at the end, and of each CPU the events that were lost until then.
pub(super) fn stats(bytes: &[u8]) -> Result<(bool, Vec<(u64, u64)>), Broken> {
    const END_OF_TRACE: u64 = 2;
    let (mut is_end, mut lost) = (false, Vec::new());
    for field in Fields(bytes) {
        match field? {
            (1, phase) => is_end = phase.number() == Some(END_OF_TRACE),
            (2, WireValue::Bytes(cpu)) => {
                let cpu = Record::parse(cpu)?;
                // `overrun`, `commit_overrun`, `dropped_events`.
                let counts = [3, 4, 8].map(|field| cpu.number(field).unwrap_or(0));
                let sum = counts.into_iter().fold(0, u64::saturating_add);
                lost.push((cpu.number(1).unwrap_or(0), sum));
            }
            _ => {}
        }
    }
    Ok((is_end, lost))
}
