//! Attributes: what was recorded, and where the fields of samples and of other records are (`perf_event_attr` and
//! `perf_event_output` of the kernel).

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

/// The attributes of a file.
#[derive(Debug)]
pub(super) struct Attributes {
    endian: Endian,
    /// Never empty.
    all: Vec<Attribute>,
    /// Event numbers in order, each with the index of its attribute.
    numbers: Vec<(u64, usize)>,
    /// All records have the same form.
    is_uniform: bool,
}

impl Attributes {
    /// There must be at least one attribute. `numbers` are event numbers, each with the index of its attribute.
    pub(super) fn new(endian: Endian, all: Vec<Attribute>, mut numbers: Vec<(u64, usize)>) -> Self {
        numbers.sort_unstable();
        let is_uniform = all.iter().all(|attribute| attribute.layout == all[0].layout);
        Self { endian, all, numbers, is_uniform }
    }

    /// The types of the tracepoints that were recorded.
    pub(super) fn tracepoints(&self) -> impl Iterator<Item = u64> {
        self.all.iter().filter_map(|attribute| attribute.tracepoint)
    }

    /// The layout of the records of an event number. Where events have different forms, their numbers are the first
    /// word of a sample and the last one of other records (`PERF_SAMPLE_IDENTIFIER`).
    #[inline]
    fn layout(&self, number: impl FnOnce() -> Option<u64>) -> &Layout {
        let find = |number: u64| {
            // Most files have consecutive numbers.
            let guess = usize::try_from(number.wrapping_sub(self.numbers.first()?.0)).ok()?;
            if let Some((_, index)) = self.numbers.get(guess).filter(|(at, _)| *at == number) {
                return Some(*index);
            }
            let found = self.numbers.binary_search_by_key(&number, |(at, _)| *at).ok()?;
            Some(self.numbers[found].1)
        };
        let found = if self.is_uniform { None } else { number().and_then(find) };
        &self.all[found.unwrap_or(0)].layout
    }

    /// Takes a sample apart. `None` for one that is of no tracepoint, or was recorded without the CPU; the error says
    /// what a sample lacks.
    #[inline]
    pub(super) fn sample<'r>(&self, body: &'r [u8]) -> Result<Option<Sample<'r>>, &'static str> {
        let layout = self.layout(|| self.endian.u64(body, 0));
        let Some(cpu) = layout.cpu.filter(|_| layout.has_raw) else { return Ok(None) };
        let time = layout.time.ok_or("a sample without its time")?;
        let sample = layout.sample(self.endian, body, cpu, time);
        sample.map(Some).ok_or("a sample that is cut off")
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

/// The parts of `perf_event_attr` that are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute {
    /// The type of a tracepoint.
    tracepoint: Option<u64>,
    layout: Layout,
}

impl Attribute {
    /// `None` for less than the first version of the structure.
    pub(super) fn parse(endian: Endian, bytes: &[u8]) -> Option<Self> {
        const BYTES_MIN: usize = 64;
        bytes.get(..BYTES_MIN)?;
        let word = |at| endian.u64(bytes, at);
        let config = word(8)?;
        let tracepoint = (endian.u32(bytes, 0)? == TYPE_TRACEPOINT).then_some(config);
        let layout = Layout::new(word(24)?, word(32)?, word(40)? & SAMPLE_ID_ALL != 0);
        Some(Self { tracepoint, layout })
    }
}

/// Where the fields of records are, bytes from the beginning of a sample or from the end of another record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    tid: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
    /// The fields behind them: counts, the call chain, the event.
    rest: usize,
    /// Words of the counts, and for each member of a group.
    counts: Option<(usize, Option<usize>)>,
    has_chain: bool,
    has_raw: bool,
    time_from_end: Option<usize>,
    cpu_from_end: Option<usize>,
}

impl Layout {
    /// From `sample_type` and `read_format`; `are_fields_behind` says whether other records have fields at their end.
    fn new(sample_type: u64, read_format: u64, are_fields_behind: bool) -> Self {
        let has = |field: u64| sample_type & field != 0;
        let offset = |wanted: u64| {
            let before = IN_ORDER.iter().take_while(|field| **field != wanted);
            has(wanted).then(|| 8 * before.filter(|field| has(**field)).count())
        };
        let from_end = |wanted: u64| {
            let from = BEHIND.iter().skip_while(|field| **field != wanted);
            let is_there = are_fields_behind && has(wanted);
            is_there.then(|| 8 * from.filter(|field| has(**field)).count())
        };
        Self {
            // The process precedes the thread.
            tid: offset(TID).map(|at| at + 4),
            time: offset(TIME),
            cpu: offset(CPU),
            rest: 8 * IN_ORDER.iter().filter(|field| has(**field)).count(),
            counts: has(READ).then(|| counts(read_format)),
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
        let number = |at| usize::try_from(endian.u64(body, at)?).ok();
        if let Some((words, each)) = self.counts {
            let members = each.map_or(Some(0), |each| number(at)?.checked_mul(each))?;
            at = at.checked_add(members.checked_add(words)?.checked_mul(8)?)?;
        }
        if self.has_chain {
            at = at.checked_add(number(at)?.checked_mul(8)?)?.checked_add(8)?;
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

/// The counts of a sample (`PERF_SAMPLE_READ`) in words of eight bytes, from `read_format` (`PERF_FORMAT_…`): how many,
/// and if they are of a group, how many follow for each of its members.
fn counts(format: u64) -> (usize, Option<usize>) {
    const TIMES: u64 = 1 | 1 << 1;
    const ID: u64 = 1 << 2;
    const GROUP: u64 = 1 << 3;
    const LOST: u64 = 1 << 4;
    let words = |flags: u64| (format & flags).count_ones() as usize;
    let each = 1 + words(ID | LOST);
    match format & GROUP != 0 {
        // The number of members comes first.
        true => (1 + words(TIMES), Some(each)),
        false => (words(TIMES) + each, None),
    }
}
