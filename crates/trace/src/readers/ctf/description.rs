//! The description of a CTF trace, in either version of the format.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::binary::{Endian, Why};
use super::types::Type;
use super::{json, tsdl};

/// Types within types.
pub(super) const DEPTH_MAX: u32 = 32;

/// A stream: how its packets and events begin.
#[derive(Debug, Default)]
pub(super) struct StreamClass {
    pub(super) packet_context: Option<Rc<Type>>,
    pub(super) event_header: Option<Rc<Type>>,
    pub(super) event_context: Option<Rc<Type>>,
}

/// A kind of event.
#[derive(Debug, Default)]
pub(super) struct EventClass {
    pub(super) name: String,
    pub(super) context: Option<Rc<Type>>,
    pub(super) fields: Option<Rc<Type>>,
}

/// The whole description.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) endian: Endian,
    pub(super) packet_header: Option<Rc<Type>>,
    pub(super) streams: HashMap<i64, StreamClass>,
    /// By stream and number.
    pub(super) events: HashMap<(i64, i64), EventClass>,
    /// Facts about the machine, such as `kernel_release`.
    pub(super) env: HashMap<String, String>,
    /// Ticks of the clock a second.
    pub(super) frequency: u64,
}

impl Metadata {
    /// A description that says nothing yet. A clock counts nanoseconds where nothing else is said.
    pub(super) fn new(endian: Endian) -> Self {
        Self {
            endian,
            packet_header: None,
            streams: HashMap::new(),
            events: HashMap::new(),
            env: HashMap::new(),
            frequency: 1_000_000_000,
        }
    }

    /// Parses the bytes of a file `metadata`, of either version.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Why> {
        let text = text(bytes)?;
        if json::is_json(bytes) { json::parse(&text) } else { tsdl::parse(&text) }
    }

    /// Whether the trace is of a kernel: it says so, or has its switches.
    pub(super) fn is_of_kernel(&self) -> bool {
        let is_switch = |class: &EventClass| {
            // perf's conversion keeps the subsystem.
            matches!(class.name.as_str(), "sched_switch" | "sched:sched_switch")
        };
        self.env.get("domain").is_some_and(|domain| domain == "kernel")
            || self.events.values().any(is_switch)
    }
}

/// A field's name without the underscore that CTF puts before it.
pub(super) fn plain(name: &str) -> String {
    name.strip_prefix('_').unwrap_or(name).to_owned()
}

/// The text of a description, out of its packets if it is divided into such.
fn text(bytes: &[u8]) -> Result<String, Why> {
    const PACKET_MAGIC: [u8; 4] = [0x57, 0x1d, 0xd1, 0x75];
    /// Magic(4) UUID(16) checksum(4) bits of content(4) bits of the packet(4) and five bytes more.
    const HEAD_BYTES: usize = 37;
    let mut reversed = PACKET_MAGIC;
    reversed.reverse();
    let is_big = bytes.starts_with(&reversed);
    if !is_big && !bytes.starts_with(&PACKET_MAGIC) {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    let (mut text, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let number = |at: usize| {
            let bytes: [u8; 4] = *rest.get(at..)?.first_chunk()?;
            let number = if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
            Some(number as usize / 8)
        };
        let at = bytes.len() - rest.len();
        let sizes = number(24).zip(number(28)).filter(|(_, packet)| *packet >= HEAD_BYTES);
        let (content, packet) =
            sizes.ok_or_else(|| format!("byte {at} of its metadata: a packet that is damaged"))?;
        let content = rest.get(HEAD_BYTES..content.min(rest.len()));
        text.extend(content.ok_or_else(|| format!("byte {at} of its metadata: no content"))?);
        rest = rest.get(packet..).unwrap_or_default();
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}
