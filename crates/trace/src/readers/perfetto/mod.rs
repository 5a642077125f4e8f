//! Perfetto's traces: the kernel's events in them (`FtraceEventBundle`), as Android, systing and `traced` record them,
//! and as [`crate::write_perfetto`] writes them. Field numbers are those of the public `perfetto_trace.proto`.
//!
//! The file is read packet by packet. Tracks, counters and every other kind of packet are skipped: tasks, their states
//! and wake-ups follow from the kernel's events alone.

mod bundle;
mod event;
mod packets;
mod wire;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;

use self::bundle::{Bundle, CLOCK_UNKNOWN, CompactTask, Item};
use self::event::{Context, in_interrupt};
use self::packets::{Next, Packets};
use self::wire::{Broken, Fields, Record, WireValue};
use super::binary::TextBytes;
use super::collect::Collector;
use super::error::{Machines, ReadError};
use super::expand::{Expands, Expansion};
use super::interner::{IdentityId, Interner};
use super::line::CPUS_MAX;
use super::no_machine;
use super::state_bits::StateBits;
use super::stated::{Stated, Tasks};
use crate::{EventKind, Trace};

/// Fields of `TracePacket`.
mod packet {
    pub(super) const FTRACE_EVENTS: u32 = 1;
    pub(super) const PROCESS_TREE: u32 = 2;
    pub(super) const SEQUENCE_ID: u32 = 10;
    pub(super) const INTERNED_DATA: u32 = 12;
    pub(super) const FTRACE_STATS: u32 = 34;
    pub(super) const PREVIOUS_PACKET_DROPPED: u32 = 42;
    pub(super) const SYSTEM_INFO: u32 = 45;
    pub(super) const COMPRESSED_PACKETS: u32 = 50;
    pub(super) const CPU_INFO: u32 = 67;
    pub(super) const MACHINE_ID: u32 = 98;
    pub(super) const ZSTD_COMPRESSED_PACKETS: u32 = 133;
}

/// The first byte of a file: the key of `Trace.packet`.
const FIRST_BYTE: u8 = 10;

/// Bytes of the beginning by which [`is_perfetto`] tells a trace from a text that begins with an empty line.
pub(super) const START_BYTES: usize = 64;

/// Whether a file begins like a trace of Perfetto: with a packet, and not with text behind a line feed.
pub(super) fn is_perfetto(start: &[u8]) -> bool {
    let is_text = |byte: &u8| *byte >= b' ' || b"\t\n\r\x1b".contains(byte);
    start.first() == Some(&FIRST_BYTE)
        && start.iter().take(START_BYTES).any(|byte| !is_text(byte))
        && start.get(1..).is_some_and(|rest| {
            // The size, then the key of the first field of the packet.
            let size_bytes = rest.iter().take_while(|byte| **byte >= 0x80).count() + 1;
            rest.get(size_bytes).is_none_or(|key| matches!(key & 7, 0 | 1 | 2 | 5))
        })
}

/// Other machines that a message names.
const MACHINES_MAX: usize = 64;

/// Reads a trace, or what it has of one machine.
pub(super) fn read(
    name: &str,
    input: impl BufRead,
    machine: Option<&str>,
    expansion: &Expansion,
) -> Result<Trace, ReadError> {
    let mut reader = Reader::new(expansion.clone());
    // No machine has a number that cannot be read.
    reader.machine = machine.map(|machine| machine.parse().unwrap_or(u64::MAX));
    reader.packets(input, Depth::File);
    if let Some(why) = reader.refused {
        return Err(ReadError::Damaged {
            name: name.to_owned(),
            format: "a trace of Perfetto",
            why: why.to_owned(),
            remedy: "record with a clock of time: leave `preserve_ftrace_buffer` out of the configuration",
        });
    }
    if reader.expands {
        return Err(Expands::refuse(name));
    }
    if let Some(machine) = machine.filter(|_| reader.sequences.is_empty()) {
        return Err(no_machine(name, machine, reader.machines()));
    }
    reader.losses();
    if machine.is_none() && !reader.others.is_empty() {
        let (read, all) = (reader.machine.unwrap_or(0), reader.machines().text());
        reader.collector.first_of_all(|| {
            format!(
                "the trace has events of several machines, {all}: only those of machine {read} are \
                 read (--machine NUMBER reads another)"
            )
        });
    }
    let Reader { mut collector, context, .. } = reader;
    // Tasks that no event of a switch named are called as in the process tree.
    collector.names = context.names;
    collector.finish(name)
}

/// Whether packets stand in the file itself, or in a packet of it, where no further ones may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    File,
    Compressed,
}

/// The state of a CPU between its bundles.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// The task that runs, unless events were lost since the last switch.
    running: Option<IdentityId>,
    /// The time of its last event, as the bundles have it, ns.
    end_ns: Option<u64>,
    /// Bundles before which events were lost.
    gaps: u64,
}

struct Reader {
    collector: Collector<'static>,
    interner: Interner,
    context: Context,
    states: StateBits,
    cpus: BTreeMap<u32, Cpu>,
    /// The offset that is added to the times of ftrace, ns; known from the first bundle with another clock.
    clock_offset_ns: Option<u64>,
    /// Sequences of packets that had bundles.
    sequences: HashSet<u64>,
    /// The machine whose events are read: that of the first bundle, unless one was chosen.
    machine: Option<u64>,
    /// Other machines that have events, [`MACHINES_MAX`] at most.
    others: BTreeSet<u64>,
    /// Lost events of each CPU as the statistics have them, at the start and at the end.
    stats: BTreeMap<u32, [u64; 2]>,
    refused: Option<&'static str>,
    expansion: Expansion,
    /// The input becomes too long when it is decompressed.
    expands: bool,
}

impl Reader {
    fn new(expansion: Expansion) -> Self {
        let mut collector = Collector::new(None);
        collector.position = ("byte", 0);
        Self {
            interner: collector.interner.clone(),
            collector,
            context: Context::default(),
            states: StateBits::default(),
            cpus: BTreeMap::new(),
            clock_offset_ns: None,
            sequences: HashSet::new(),
            machine: None,
            others: BTreeSet::new(),
            stats: BTreeMap::new(),
            refused: None,
            expansion,
            expands: false,
        }
    }

    fn packets(&mut self, input: impl BufRead, depth: Depth) {
        let mut packets = Packets::new(input);
        while self.refused.is_none() && !self.expands {
            let next = packets.next();
            if depth == Depth::File {
                self.collector.position.1 = packets.at;
            }
            match next {
                Next::Packet => {
                    if self.packet(&packets.packet, depth).is_err() {
                        self.collector.unreadable("a packet that is damaged");
                    }
                }
                Next::TooLong(size) => {
                    self.collector.unreadable(&format!("a packet of {size} bytes"));
                }
                Next::End => return,
                Next::Cut(why) => {
                    self.expands |= packets.expands;
                    return match depth {
                        Depth::File => self.collector.truncated(|| why),
                        Depth::Compressed => self.damaged(&why),
                    };
                }
            }
        }
    }

    fn packet(&mut self, bytes: &[u8], depth: Depth) -> Result<(), Broken> {
        let (mut machine, mut sequence, mut dropped) = (0, 0, false);
        for field in Fields(bytes) {
            match field? {
                (packet::MACHINE_ID, id) => machine = id.number().unwrap_or(0),
                (packet::SEQUENCE_ID, id) => sequence = id.number().unwrap_or(0),
                (packet::PREVIOUS_PACKET_DROPPED, flags) => dropped = flags.number() != Some(0),
                _ => {}
            }
        }
        if self.machine.is_some_and(|read| read != machine) {
            return self.other_machine(machine, bytes);
        }
        if dropped && self.sequences.contains(&sequence) {
            // The packets may have been of any CPU.
            let cpus: Vec<u32> = self.cpus.keys().copied().collect();
            cpus.into_iter().for_each(|cpu| self.gap(cpu));
        }
        let names = self.names(bytes);
        for field in Fields(bytes) {
            let (number, WireValue::Bytes(data)) = field? else { continue };
            match number {
                packet::FTRACE_EVENTS => {
                    self.sequences.insert(sequence);
                    self.machine.get_or_insert(machine);
                    self.bundle(data)?;
                }
                packet::PROCESS_TREE => self.context.process_tree(data).ok_or(Broken)?,
                packet::FTRACE_STATS => self.statistics(data)?,
                packet::SYSTEM_INFO => self.system(data)?,
                packet::CPU_INFO => {
                    let cpus = Fields(data).filter(|field| matches!(field, Ok((1, _)))).count();
                    self.cpu_count(cpus as u64);
                }
                packet::COMPRESSED_PACKETS | packet::ZSTD_COMPRESSED_PACKETS
                    if depth == Depth::File =>
                {
                    self.compressed(number, data);
                }
                _ => {}
            }
        }
        names
    }

    /// Takes over the names in a packet. Its bundle, which refers to them, may stand before them.
    fn names(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        for field in Fields(bytes) {
            if let (packet::INTERNED_DATA, WireValue::Bytes(data)) = field? {
                self.context.interned(data).ok_or(Broken)?;
            }
        }
        Ok(())
    }

    /// The numbers of all machines that have events.
    fn machines(&self) -> Machines {
        let read = self.machine.filter(|_| !self.sequences.is_empty());
        let all: BTreeSet<u64> = self.others.iter().copied().chain(read).collect();
        Machines(all.iter().map(u64::to_string).collect())
    }

    /// Another machine's packets are left out: its tasks and CPUs have numbers of their own.
    fn other_machine(&mut self, machine: u64, bytes: &[u8]) -> Result<(), Broken> {
        let is_bundle = |field| matches!(field, Ok((packet::FTRACE_EVENTS, _)));
        if Fields(bytes).any(is_bundle) {
            self.collector.trace().loss.skipped += 1;
            if self.others.len() < MACHINES_MAX {
                self.others.insert(machine);
            }
        }
        Ok(())
    }

    fn compressed(&mut self, number: u32, data: &[u8]) {
        let decoder: io::Result<Box<dyn Read + '_>> = match number {
            packet::COMPRESSED_PACKETS => Ok(Box::new(ZlibDecoder::new(data))),
            _ => StreamingDecoder::new(data)
                .map(|decoder| Box::new(decoder) as Box<dyn Read>)
                .map_err(io::Error::other),
        };
        match decoder {
            Ok(decoder) => {
                let decoder = BufReader::new(self.expansion.decoder(decoder));
                self.packets(decoder, Depth::Compressed);
            }
            Err(e) => self.damaged(&e.to_string()),
        }
    }

    fn damaged(&mut self, why: &str) {
        self.collector.unreadable(&format!("damaged compressed packets: {why}"));
    }

    /// `SystemInfo`: `utsname` (1) with `release` (3), and the number of CPUs (8).
    fn system(&mut self, data: &[u8]) -> Result<(), Broken> {
        let info = Record::parse(data)?;
        self.cpu_count(info.number(8).unwrap_or(0));
        let Some(names) = info.bytes(1) else { return Ok(()) };
        if let Some(release) = Record::parse(names)?.bytes(3) {
            let release = String::from_utf8_lossy(release);
            self.states = StateBits::of_release(&release);
            self.collector.origin("kernel", &release);
        }
        Ok(())
    }

    fn cpu_count(&mut self, cpus: u64) {
        if let Some(cpus) = u32::try_from(cpus).ok().filter(|cpus| (1..=CPUS_MAX).contains(cpus)) {
            self.collector.trace().cpus = cpus;
        }
    }

    fn statistics(&mut self, data: &[u8]) -> Result<(), Broken> {
        let (is_end, lost) = bundle::stats(data)?;
        for (cpu, lost) in lost {
            let Some(cpu) = u32::try_from(cpu).ok().filter(|cpu| *cpu < CPUS_MAX) else { continue };
            self.stats.entry(cpu).or_default()[usize::from(is_end)] = lost;
        }
        Ok(())
    }

    /// Events of a CPU are missing before its next one. Their number is not known here.
    fn gap(&mut self, cpu: u32) {
        let known = self.cpus.entry(cpu).or_default();
        known.running = None;
        known.gaps += 1;
        self.collector.lost(cpu, 1);
    }

    /// Adds the losses that the statistics count beyond the gaps. Losses that no later bundle tells of happened at the
    /// end.
    fn losses(&mut self) {
        for (cpu, [before, after]) in std::mem::take(&mut self.stats) {
            let gaps = self.cpus.get(&cpu).map_or(0, |cpu| cpu.gaps);
            match after.saturating_sub(before).saturating_sub(gaps) {
                0 => {}
                count if gaps > 0 => self.collector.lost_somewhere(count),
                count => self.collector.lost_at_the_end(cpu, count),
            }
        }
    }
}

/// Bundles.
impl Reader {
    fn bundle(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let bundle = Bundle::parse(bytes)?;
        let cpu = bundle.cpu.and_then(|cpu| u32::try_from(cpu).ok()).filter(|cpu| *cpu < CPUS_MAX);
        let cpu = cpu.ok_or(Broken)?;
        if bundle.clock == Some(CLOCK_UNKNOWN) {
            self.refused = Some("ftrace had a clock that may not count nanoseconds");
            return Ok(());
        }
        if let (Some(_), [Some(ftrace_ns), Some(boot_ns)]) = (bundle.clock, bundle.clock_ns) {
            self.clock_offset_ns.get_or_insert(boot_ns.wrapping_sub(ftrace_ns));
        }
        let end_ns = self.cpus.get(&cpu).and_then(|cpu| cpu.end_ns);
        let is_missing = bundle.previous_end_ns.zip(end_ns).is_some_and(|(said, read)| said > read);
        if bundle.lost || is_missing {
            self.gap(cpu);
        }
        if bundle.broken > 0 {
            self.collector.unreadable("events without their fields in a bundle");
            self.collector.trace().loss.unreadable += bundle.broken - 1;
        }
        for (time_ns, item) in &bundle.items {
            self.item(cpu, *time_ns, item);
        }
        if let Some((time_ns, _)) = bundle.items.last() {
            self.cpus.entry(cpu).or_default().end_ns = Some(*time_ns);
        }
        Ok(())
    }

    fn item(&mut self, cpu: u32, time_ns: u64, item: &Item<'_>) {
        let Self { collector, context, states, cpus, interner, .. } = self;
        let running = &mut cpus.entry(cpu).or_default().running;
        collector.read += 1;
        let stated = match *item {
            Item::Event(event) => event.stated(context, *states, interner),
            Item::Switch { prev_state, next } => {
                // What ran before is what the CPU switched to last; at first, and behind a gap, it is not known.
                let prev = running.unwrap_or_else(|| interner.by_pid(0));
                let prev_state = states.state(prev_state);
                let next = compact_task(next, interner);
                next.map(|next| Stated::Event(EventKind::Switch { prev, prev_state, next }))
            }
            Item::Waking { task, target_cpu, common_flags } => {
                let task = compact_task(task, interner);
                let in_interrupt = in_interrupt(common_flags);
                let waker = Tasks { interner, running: None, in_interrupt }.waker();
                let target_cpu = u32::try_from(target_cpu).ok().filter(|cpu| *cpu < CPUS_MAX);
                task.zip(target_cpu).map(|(task, target_cpu)| {
                    Stated::Event(EventKind::Waking { task, waker, target_cpu })
                })
            }
        };
        let Some(stated) = stated else {
            return collector.unreadable("an event of the kernel without its fields");
        };
        if let Stated::Event(EventKind::Switch { next, .. }) = stated {
            *running = Some(next);
        }
        let offset_ns = self.clock_offset_ns.unwrap_or(0);
        collector.add(cpu, time_ns.wrapping_add(offset_ns), stated);
    }
}

fn compact_task(task: CompactTask<'_>, interner: &mut Interner) -> Option<IdentityId> {
    let pid = u32::try_from(task.pid).ok()?;
    // Numbers of 32 bits with a sign are written with 64.
    let prio = i32::try_from(task.prio as i64).ok()?;
    Some(interner.identity_of_bytes(pid, TextBytes(task.comm), Some(prio)))
}
