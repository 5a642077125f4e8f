//! The packets of a stream's files: where they are, and what their heads say.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::super::binary::Why;
use super::super::lttng::LttngValue;
use super::description::Metadata;
use super::types::{Bits, Values};

/// Bytes of a packet by which its head is read.
const HEAD_BYTES: usize = 1 << 12;
/// The most bytes of a packet.
const PACKET_BYTES_MAX: u64 = 256 << 20;
/// Packets of a trace.
const PACKETS_MAX: usize = 1 << 22;
/// The first field of a packet's header.
const MAGIC: i64 = 0xc1fc_1fc1;

/// Where the bytes of a file are.
#[derive(Debug)]
pub(super) enum Source {
    File(File),
    /// Of an archive.
    Bytes(Vec<u8>),
}

impl Source {
    /// The bytes at an offset, as far as the file reaches.
    pub(super) fn read(&self, at: u64, count: usize) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => {
                let from = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let to = from.saturating_add(count).min(bytes.len());
                Ok(bytes[from..to].to_vec())
            }
            Self::File(file) => {
                let rest = file.metadata()?.len().saturating_sub(at);
                let mut bytes = vec![0; usize::try_from(rest).unwrap_or(count).min(count)];
                file.read_exact_at(&mut bytes, at)?;
                Ok(bytes)
            }
        }
    }
}

/// A file of a stream.
#[derive(Debug)]
pub(super) struct StreamFile {
    pub(super) name: String,
    pub(super) source: Source,
}

/// A packet of events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// The index of its file, and the byte where it begins there.
    pub(super) file: usize,
    pub(super) at: u64,
    pub(super) bytes: usize,
    /// Bits with content.
    pub(super) content: u64,
    /// Where its events begin, bits.
    pub(super) events_at: u64,
    pub(super) stream: i64,
    pub(super) cpu: u32,
    /// Of the streams with the same events, which one.
    pub(super) instance: i64,
    pub(super) begin: u64,
    /// Events lost since the stream began, until the packet ended; modulo 2^64.
    pub(super) discarded: Option<u64>,
    pub(super) number: Option<i64>,
}

/// Finds the packets of a file. What is behind damage is left out, with the reason.
pub(super) fn find(
    metadata: &Metadata,
    files: &[StreamFile],
    file: usize,
    found: &mut Vec<Packet>,
) -> Option<Why> {
    let mut at = 0;
    let name = &files[file].name;
    loop {
        let head = match files[file].source.read(at, HEAD_BYTES) {
            Ok(head) if head.is_empty() => return None,
            Ok(head) => head,
            Err(e) => return Some(format!("{name}, byte {at}: {e}")),
        };
        let Some(packet) = parse(metadata, &head, file, at) else {
            return Some(format!("{name}, byte {at}: a packet that is damaged or cut off"));
        };
        let packet = match packet.bytes {
            // The rest of the file.
            usize::MAX => match files[file].source.read(at, PACKET_BYTES_MAX as usize) {
                Ok(rest) => Packet { bytes: rest.len(), content: rest.len() as u64 * 8, ..packet },
                Err(e) => return Some(format!("{name}, byte {at}: {e}")),
            },
            _ => packet,
        };
        if found.len() >= PACKETS_MAX {
            return Some(format!("more than {PACKETS_MAX} packets"));
        }
        at += packet.bytes as u64;
        found.push(packet);
    }
}

fn parse(metadata: &Metadata, head: &[u8], file: usize, at: u64) -> Option<Packet> {
    let mut bits = Bits::new(head, 0, u64::MAX);
    let mut header = Values::new(0);
    if let Some(kind) = &metadata.packet_header {
        header.read(kind, "", &mut bits)?;
    }
    if header.number("magic").is_some_and(|magic| magic != MAGIC) {
        return None;
    }
    let stream = header.number("stream_id").unwrap_or(0);
    let class = metadata.streams.get(&stream)?;
    let mut context = Values::new(0);
    if let Some(kind) = &class.packet_context {
        context.read(kind, "", &mut bits)?;
    }
    let number = |name| context.number(name).map(|number| number as u64);
    let size = number("packet_size").filter(|size| *size > 0);
    let bytes = match size {
        Some(size) => Some(size / 8).filter(|bytes| (1..=PACKET_BYTES_MAX).contains(bytes))?,
        None => u64::MAX,
    };
    let events_at = bits.at;
    // A packet moves on at least by its head, unless it is the rest of the file.
    let is_rest = bytes == u64::MAX;
    (is_rest || bytes * 8 >= events_at && events_at > 0).then_some(())?;
    let content = number("content_size").or(size).unwrap_or(u64::MAX);
    let cpu = number("cpu_id").and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(0);
    let begin = context.found.iter().find_map(|(name, value)| match value {
        LttngValue::Number(number) if *name == "timestamp_begin" => Some(*number as u64),
        _ => None,
    });
    Some(Packet {
        file,
        at,
        bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        content: content.min(bytes.saturating_mul(8)),
        events_at,
        stream,
        cpu: (cpu < super::CPUS_MAX).then_some(cpu)?,
        instance: header.number("stream_instance_id").unwrap_or(0),
        begin: begin.unwrap_or(0),
        discarded: number("events_discarded"),
        number: context.number("packet_seq_num"),
    })
}
