//! Samples whose fields stand at fixed places: almost all that perf writes. The crate that parses records looks at every bit of the
//! format for every sample; here that is done once.

use linux_perf_event_reader::{RecordParseInfo, SampleFormat};

use super::super::binary::Endian;

/// Where the fields of a sample stand (`perf_event_output` of the kernel), bytes from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    endian: Endian,
    tid: Option<usize>,
    time: usize,
    cpu: usize,
    /// The length of the call chain, or of the event's own bytes.
    rest: usize,
    has_chain: bool,
}

/// A sample of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample<'a> {
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    pub(super) tid: Option<i32>,
    /// The event's own bytes.
    pub(super) raw: &'a [u8],
}

impl Layout {
    /// `None` when the samples hold something of variable length before the event's bytes, or not what is needed.
    pub(super) fn new(info: &RecordParseInfo, endian: Endian) -> Option<Self> {
        const IN_ORDER: [SampleFormat; 9] = [
            SampleFormat::IDENTIFIER,
            SampleFormat::IP,
            SampleFormat::TID,
            SampleFormat::TIME,
            SampleFormat::ADDR,
            SampleFormat::ID,
            SampleFormat::STREAM_ID,
            SampleFormat::CPU,
            SampleFormat::PERIOD,
        ];
        let format = info.sample_format;
        if format.contains(SampleFormat::READ) || !format.contains(SampleFormat::RAW) {
            return None;
        }
        // Each takes eight bytes.
        let place = |wanted: SampleFormat| {
            let before = IN_ORDER.iter().take_while(|field| **field != wanted);
            format.contains(wanted).then(|| 8 * before.filter(|f| format.contains(**f)).count())
        };
        Some(Self {
            endian,
            // The process stands before the thread.
            tid: place(SampleFormat::TID).map(|at| at + 4),
            time: place(SampleFormat::TIME)?,
            cpu: place(SampleFormat::CPU)?,
            rest: 8 * IN_ORDER.iter().filter(|field| format.contains(**field)).count(),
            has_chain: format.contains(SampleFormat::CALLCHAIN),
        })
    }

    /// Takes a sample apart; `None` when it is cut off.
    pub(super) fn parse<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        let mut at = self.rest;
        if self.has_chain {
            let callers = usize::try_from(self.endian.u64(body, at)?).ok()?;
            at = at.checked_add(callers.checked_mul(8)?)?.checked_add(8)?;
        }
        let size = self.endian.u32(body, at)? as usize;
        Some(Sample {
            time_ns: self.endian.u64(body, self.time)?,
            cpu: self.endian.u32(body, self.cpu)?,
            tid: match self.tid {
                Some(at) => Some(self.endian.u32(body, at)? as i32),
                None => None,
            },
            raw: body.get(at + 4..(at + 4).checked_add(size)?)?,
        })
    }
}
