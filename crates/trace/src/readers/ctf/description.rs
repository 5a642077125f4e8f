//! What the description of a CTF trace says, whichever version of the format it is written for.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::binary::Endian;
use super::types::Type;

/// Types within types.
pub(super) const DEPTH_MAX: u32 = 32;

/// A stream: how its packets and events begin.
#[derive(Debug, Default)]
pub(super) struct Stream {
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
    pub(super) streams: HashMap<i64, Stream>,
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
}

/// A field's name without the underscore that CTF puts before it.
pub(super) fn plain(name: &str) -> String {
    name.strip_prefix('_').unwrap_or(name).to_owned()
}
