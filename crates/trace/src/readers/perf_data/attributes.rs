//! Attributes: what was recorded, and where the fields of samples and of other records are (`perf_event_attr` and
//! `perf_event_output` of the kernel).

use std::collections::HashMap;

use super::super::binary::Endian;

/// Fields of samples (`PERF_SAMPLE_…`).
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;
/// The fields before those of variable size, in their order, of eight bytes each.
const IN_ORDER: [u64; 9] = [IDENTIFIER, 1, TID, TIME, 1 << 3, ID, STREAM_ID, CPU, 1 << 8];
/// The fields behind records that are no samples, in their order, of eight bytes each.
const BEHIND: [u64; 6] = [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];
/// `sample_id_all` among the flags.
const SAMPLE_ID_ALL: u64 = 1 << 18;
/// `PERF_TYPE_TRACEPOINT`.
const TYPE_TRACEPOINT: u32 = 2;

/// The parts of `perf_event_attr` that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attribute {
    kind: u32,
    config: u64,
    form: Form,
}

/// What the form of records depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    sample_type: u64,
    read_format: u64,
    flags: u64,
}

impl Attribute {
    /// `None` for less than the first version of the structure.
    pub(super) fn parse(endian: Endian, bytes: &[u8]) -> Option<Self> {
        const BYTES_MIN: usize = 64;
        bytes.get(..BYTES_MIN)?;
        let form = Form {
            sample_type: endian.u64(bytes, 24)?,
            read_format: endian.u64(bytes, 32)?,
            flags: endian.u64(bytes, 40)? & SAMPLE_ID_ALL,
        };
        Some(Self { kind: endian.u32(bytes, 0)?, config: endian.u64(bytes, 8)?, form })
    }
}

/// A sample of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample<'r> {
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    /// −1 is a task that had just been reaped.
    pub(super) tid: Option<i32>,
    /// The event, as the kernel describes it.
    pub(super) event: &'r [u8],
}

/// Why a record of kind sample gives none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSample {
    /// It is of no tracepoint, or was recorded without the CPU.
    Other,
    WithoutTime,
    CutOff,
}

/// The attributes of a file.
#[derive(Debug)]
pub(super) struct Attributes {
    endian: Endian,
    /// Never empty.
    all: Vec<Attribute>,
    layouts: Vec<Layout>,
    /// The attribute of an event number.
    by_number: HashMap<u64, usize>,
    /// All records have the same form.
    is_uniform: bool,
}

impl Attributes {
    /// There must be at least one.
    pub(super) fn new(endian: Endian, all: Vec<Attribute>, by_number: HashMap<u64, usize>) -> Self {
        let layouts = all.iter().map(|attribute| Layout::new(attribute.form)).collect();
        let is_uniform = all.iter().all(|attribute| attribute.form == all[0].form);
        Self { endian, all, layouts, by_number, is_uniform }
    }

    /// The types of the tracepoints that were recorded.
    pub(super) fn tracepoints(&self) -> impl Iterator<Item = u64> {
        let tracepoints = self.all.iter().filter(|attribute| attribute.kind == TYPE_TRACEPOINT);
        tracepoints.map(|attribute| attribute.config)
    }

    /// The layout of the records of an event number. Where events have different forms, their numbers are the first
    /// word of a sample and the last one of other records (`PERF_SAMPLE_IDENTIFIER`).
    #[inline]
    fn layout(&self, number: impl FnOnce() -> Option<u64>) -> &Layout {
        let index = match self.is_uniform {
            true => None,
            false => number().and_then(|number| self.by_number.get(&number)),
        };
        &self.layouts[index.copied().unwrap_or(0)]
    }

    /// Takes a sample apart.
    #[inline]
    pub(super) fn sample<'r>(&self, body: &'r [u8]) -> Result<Sample<'r>, NoSample> {
        let layout = self.layout(|| self.endian.u64(body, 0));
        let Some(cpu) = layout.cpu.filter(|_| layout.has_raw) else { return Err(NoSample::Other) };
        let time = layout.time.ok_or(NoSample::WithoutTime)?;
        layout.sample(self.endian, body, cpu, time).ok_or(NoSample::CutOff)
    }

    /// The time, 0 if it has none, and the CPU of a record that is no sample.
    pub(super) fn time_and_cpu(&self, body: &[u8]) -> (u64, Option<u32>) {
        let at = |from_end: usize| body.len().checked_sub(from_end);
        let layout = self.layout(|| self.endian.u64(body, at(8)?));
        let time_ns = layout.time_from_end.and_then(at).and_then(|at| self.endian.u64(body, at));
        let cpu = layout.cpu_from_end.and_then(at).and_then(|at| self.endian.u32(body, at));
        (time_ns.unwrap_or(0), cpu)
    }
}

/// Where the fields of records are, bytes from the beginning of a sample or from the end of another record.
#[derive(Clone, Copy, Debug)]
struct Layout {
    tid: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
    /// What follows them: counts, the call chain, the event.
    rest: usize,
    counts: Option<Counts>,
    has_chain: bool,
    has_raw: bool,
    time_from_end: Option<usize>,
    cpu_from_end: Option<usize>,
}

impl Layout {
    fn new(form: Form) -> Self {
        let has = |field: u64| form.sample_type & field != 0;
        let offset = |wanted: u64| {
            let before = IN_ORDER.iter().take_while(|field| **field != wanted);
            has(wanted).then(|| 8 * before.filter(|field| has(**field)).count())
        };
        let from_end = |wanted: u64| {
            let from = BEHIND.iter().skip_while(|field| **field != wanted);
            let is_there = form.flags != 0 && has(wanted);
            is_there.then(|| 8 * from.filter(|field| has(**field)).count())
        };
        Self {
            // The process precedes the thread.
            tid: offset(TID).map(|at| at + 4),
            time: offset(TIME),
            cpu: offset(CPU),
            rest: 8 * IN_ORDER.iter().filter(|field| has(**field)).count(),
            counts: has(READ).then(|| Counts::new(form.read_format)),
            has_chain: has(CALLCHAIN),
            has_raw: has(RAW),
            time_from_end: from_end(TIME),
            cpu_from_end: from_end(CPU),
        }
    }

    /// Takes a sample apart; `None` when it is cut off.
    #[inline]
    fn sample<'r>(
        &self,
        endian: Endian,
        body: &'r [u8],
        cpu: usize,
        time: usize,
    ) -> Option<Sample<'r>> {
        let mut at = self.rest;
        if let Some(counts) = self.counts {
            at = at.checked_add(counts.bytes(endian, body, at)?)?;
        }
        if self.has_chain {
            let callers = usize::try_from(endian.u64(body, at)?).ok()?;
            at = at.checked_add(callers.checked_mul(8)?)?.checked_add(8)?;
        }
        let event_bytes = endian.u32(body, at)? as usize;
        Some(Sample {
            time_ns: endian.u64(body, time)?,
            cpu: endian.u32(body, cpu)?,
            tid: match self.tid {
                Some(at) => Some(endian.u32(body, at)? as i32),
                None => None,
            },
            event: body.get(at + 4..)?.get(..event_bytes)?,
        })
    }
}

/// The counts of a sample (`PERF_SAMPLE_READ`), words of eight bytes.
#[derive(Clone, Copy, Debug)]
struct Counts {
    /// Without a group: all. With one: the times behind the number of members.
    words: usize,
    /// Words for each member of a group.
    each: Option<usize>,
}

impl Counts {
    /// From `read_format` (`PERF_FORMAT_…`).
    fn new(format: u64) -> Self {
        const TOTAL_TIME_ENABLED: u64 = 1;
        const TOTAL_TIME_RUNNING: u64 = 1 << 1;
        const ID: u64 = 1 << 2;
        const GROUP: u64 = 1 << 3;
        const LOST: u64 = 1 << 4;
        let word = |flag: u64| usize::from(format & flag != 0);
        let times = word(TOTAL_TIME_ENABLED) + word(TOTAL_TIME_RUNNING);
        let each = 1 + word(ID) + word(LOST);
        match format & GROUP != 0 {
            true => Self { words: times, each: Some(each) },
            false => Self { words: times + each, each: None },
        }
    }

    /// Bytes that they take from `at` on.
    fn bytes(self, endian: Endian, body: &[u8], at: usize) -> Option<usize> {
        let members = match self.each {
            None => 0,
            Some(each) => {
                let count = usize::try_from(endian.u64(body, at)?).ok()?;
                count.checked_mul(each)?.checked_add(1)?
            }
        };
        members.checked_add(self.words)?.checked_mul(8)
    }
}
