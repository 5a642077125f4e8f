//! CTF traces (versions 1.8 and 2) of LTTng's kernel tracer, and of perf (`perf data convert --to-ctf`): a folder, or a
//! tar archive of it. Events are decoded by the description that the trace holds. Of several traces one is read
//! ([`choice`]).
//!
//! Packets are read one at a time. A CPU may have several streams (channels): their events are merged by time.

mod choice;
mod description;
mod json;
mod packets;
mod source;
mod tokens;
mod tsdl;
mod types;

use std::collections::BTreeMap;
use std::path::Path;

use self::choice::{Choice, Refusal};
use self::description::{EventClass, Metadata};
use self::packets::{Packet, StreamFile};
use self::source::Place;
use self::types::{Bits, Values};
use super::binary::Why;
use super::collect::Collector;
use super::error::ReadError;
use super::interner::{Interner, Named, UNNAMED};
use super::line::CPUS_MAX;
use super::lttng::{self, Interrupts};
use super::no_machine;
use super::state_bits::StateBits;
use super::stated::{Stated, Tasks};
use crate::Trace;

const NS_PER_S: u128 = 1_000_000_000;

const REMEDY: &str = "print it with `babeltrace2 TRACE`, and give that text";

/// Reads the trace in a folder, or the one of a name among several; `None` where the folder holds none.
pub(super) fn read_folder(
    name: &str,
    folder: &Path,
    machine: Option<&str>,
) -> Option<Result<Trace, ReadError>> {
    read(name, &Place::Folder(folder), machine)
}

/// Reads the trace in an archive, or the one of a name among several; `None` where the archive holds none.
pub(super) fn read_tar(
    name: &str,
    bytes: &[u8],
    machine: Option<&str>,
) -> Option<Result<Trace, ReadError>> {
    read(name, &Place::of_tar(bytes), machine)
}

fn damaged(name: &str, why: Why) -> ReadError {
    ReadError::Damaged { name: name.to_owned(), format: "a CTF trace", why, remedy: REMEDY }
}

fn read(name: &str, place: &Place<'_>, machine: Option<&str>) -> Option<Result<Trace, ReadError>> {
    let choice = match choice::choose(place.traces(), machine)? {
        Ok(choice) => choice,
        Err(Refusal::NoMachine { machine, known }) => {
            return Some(Err(no_machine(name, &machine, known)));
        }
        Err(Refusal::Damaged(why)) => return Some(Err(damaged(name, why))),
    };
    let files = place.streams(&choice.name).map_err(|why| damaged(name, why));
    Some(files.and_then(|files| read_trace(name, &choice, &files)))
}

/// Reads the trace that was chosen.
fn read_trace(name: &str, choice: &Choice, files: &[StreamFile]) -> Result<Trace, ReadError> {
    let metadata = &choice.metadata;
    let mut collector = Collector::new(None);
    collector.position = ("event", 0);
    if let Some(note) = &choice.note {
        collector.first_of_all(|| note.clone());
    }
    let mut found = Vec::new();
    for file in 0..files.len() {
        if let Some(why) = packets::find(metadata, files, file, &mut found) {
            collector.truncated(|| why);
        }
    }
    let release = metadata.env.get("kernel_release");
    release.into_iter().for_each(|release| collector.origin("kernel", release));
    let reader = Reader {
        metadata,
        files,
        // perf's conversion does not name the kernel.
        states: release.map_or(StateBits::Since4_14, |release| StateBits::of_release(release)),
    };
    let mut cpus: BTreeMap<u32, BTreeMap<(i64, i64), Vec<Packet>>> = BTreeMap::new();
    for packet in found {
        let key = (packet.stream, packet.instance);
        cpus.entry(packet.cpu).or_default().entry(key).or_default().push(packet);
    }
    for (cpu, streams) in cpus {
        reader.cpu(cpu, streams.into_values(), &mut collector);
    }
    collector.finish(name)
}

struct Reader<'m> {
    metadata: &'m Metadata,
    files: &'m [StreamFile],
    states: StateBits,
}

/// The next step in a stream.
enum Item {
    Event(Stated),
    Lost(u64),
    Bad(String),
}

/// A stream of a CPU while it is read.
struct DataStream {
    packets: std::vec::IntoIter<Packet>,
    packet: Option<Packet>,
    bytes: Vec<u8>,
    /// The next bit of the packet.
    at: u64,
    clock: u64,
    /// Of the packet before.
    discarded: Option<u64>,
    number: Option<i64>,
    interrupts: Interrupts,
    /// With its time, ticks of the clock.
    next: Option<(u64, Item)>,
}

impl Reader<'_> {
    /// Reads the streams of a CPU.
    fn cpu(
        &self,
        cpu: u32,
        streams: impl Iterator<Item = Vec<Packet>>,
        collector: &mut Collector<'_>,
    ) {
        let mut interner = collector.interner.clone();
        let mut streams: Vec<DataStream> = streams.map(DataStream::new).collect();
        streams.iter_mut().for_each(|stream| self.advance(stream, &mut interner));
        loop {
            let heads = streams.iter_mut().filter(|stream| stream.next.is_some());
            let first = heads.min_by_key(|stream| stream.next.as_ref().map(|(time, _)| *time));
            let Some(stream) = first else { return };
            if let Some((time, item)) = stream.next.take() {
                match item {
                    Item::Event(stated) => {
                        collector.read += 1;
                        collector.add(cpu, self.ns(time), stated);
                    }
                    Item::Lost(count) => collector.lost(cpu, count),
                    Item::Bad(why) => {
                        collector.position.1 = collector.read;
                        collector.unreadable(&why);
                    }
                }
            }
            self.advance(stream, &mut interner);
        }
    }

    fn ns(&self, time: u64) -> u64 {
        if u128::from(self.metadata.frequency) == NS_PER_S {
            return time;
        }
        let ns = u128::from(time) * NS_PER_S / u128::from(self.metadata.frequency);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Reads up to the next item of a stream.
    fn advance(&self, stream: &mut DataStream, interner: &mut Interner) {
        stream.next = loop {
            let Some(packet) = stream.packet else {
                let Some(packet) = stream.packets.next() else { break None };
                if let Some(item) = self.begin(stream, packet) {
                    break Some((packet.begin, item));
                }
                continue;
            };
            if stream.at >= packet.content.min(stream.bytes.len() as u64 * 8) {
                stream.packet = None;
                continue;
            }
            break Some(match self.event(stream, &packet, interner) {
                Some(event) => event,
                None => {
                    stream.packet = None;
                    let name = &self.files[packet.file].name;
                    let at = packet.at + stream.at / 8;
                    (
                        stream.clock,
                        Item::Bad(format!("{name}, byte {at}: an event that is damaged")),
                    )
                }
            });
        };
    }

    /// Opens a packet. Returns what is to be said of it before its events.
    fn begin(&self, stream: &mut DataStream, packet: Packet) -> Option<Item> {
        let before = stream.number.replace(packet.number.unwrap_or(0));
        let missing = match (before, packet.number) {
            (Some(before), Some(number)) => number.saturating_sub(before).saturating_sub(1).max(0),
            _ => 0,
        };
        let known = std::mem::replace(&mut stream.discarded, packet.discarded);
        let discarded = packet.discarded.map_or(0, |now| now.wrapping_sub(known.unwrap_or(0)));
        // A packet of each that is missing had at least one event.
        let lost = discarded.saturating_add(missing as u64);
        (stream.packet, stream.at, stream.clock) = (Some(packet), packet.events_at, packet.begin);
        match self.files[packet.file].source.read(packet.at, packet.bytes) {
            Ok(bytes) => stream.bytes = bytes,
            Err(e) => {
                stream.packet = None;
                return Some(Item::Bad(format!("{}: {e}", self.files[packet.file].name)));
            }
        }
        (lost > 0).then_some(Item::Lost(lost))
    }

    /// Decodes an event; `None` when it is damaged.
    fn event(
        &self,
        stream: &mut DataStream,
        packet: &Packet,
        interner: &mut Interner,
    ) -> Option<(u64, Item)> {
        let DataStream { bytes, at, clock, interrupts, .. } = stream;
        let class = self.metadata.streams.get(&packet.stream)?;
        let mut bits = Bits::new(bytes, *at, packet.content);
        let mut values = Values::new(*clock);
        if let Some(kind) = &class.event_header {
            values.read(kind, "", &mut bits)?;
        }
        let id = values.number("id").unwrap_or(0);
        let EventClass { name, context, fields } =
            self.metadata.events.get(&(packet.stream, id))?;
        for kind in [&class.event_context, context].into_iter().flatten() {
            values.read(kind, "", &mut bits)?;
        }
        let contexts = values.found.len();
        if let Some(kind) = fields {
            values.read(kind, "", &mut bits)?;
        }
        // An event without a bit would never end.
        (bits.at > *at).then_some(())?;
        (*at, *clock) = (bits.at, values.clock);
        let (contexts, fields) = values.found.split_at(contexts);
        let (contexts, fields) = (lttng::Named(contexts), lttng::Named(fields));
        let tid = contexts.number("tid").and_then(|tid| u32::try_from(tid).ok());
        let procname = contexts.text("procname").map(|name| name.text());
        let comm = procname.as_deref().unwrap_or(UNNAMED);
        let running = tid.map(|pid| Named { pid, comm, prio: None });
        let in_interrupt = interrupts.note(packet.cpu, name);
        let mut tasks = Tasks { interner, running, in_interrupt };
        let stated = lttng::stated(name, fields, |bits| self.states.state(bits), &mut tasks);
        let item = match stated {
            Some(stated) => Item::Event(stated),
            None => Item::Bad(format!("{name} without its fields")),
        };
        Some((values.clock, item))
    }
}

impl DataStream {
    fn new(mut packets: Vec<Packet>) -> Self {
        packets.sort_by_key(|packet| packet.begin);
        Self {
            packets: packets.into_iter(),
            packet: None,
            bytes: Vec::new(),
            at: 0,
            clock: 0,
            discarded: None,
            number: None,
            interrupts: Interrupts::default(),
            next: None,
        }
    }
}
