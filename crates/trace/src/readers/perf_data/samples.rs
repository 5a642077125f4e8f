//! Samples whose fields stand at fixed places: almost all that perf writes. The crate that parses records looks at every bit of the
//! format for every sample, and takes a group of counts for a single one and the other way round (0.10.2).

use linux_perf_event_reader::{RecordParseInfo, SampleFormat};

use super::super::binary::Endian;

/// Where the fields of a sample stand (`perf_event_output` of the kernel), bytes from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    tid: Option<usize>,
    time: usize,
    cpu: usize,
    /// What stands behind them: counts, the call chain, the event's own bytes.
    rest: usize,
    counts: Option<Counts>,
    has_chain: bool,
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

/// A sample of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    pub(super) tid: Option<i32>,
    /// The event's own bytes: where they begin in the sample, and how many there are. All of them are there.
    pub(super) raw_at: usize,
    pub(super) raw_bytes: u32,
}

impl Layout {
    /// `None` when the samples do not hold what is needed.
    pub(super) fn new(info: &RecordParseInfo, read_format: u64) -> Option<Self> {
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
        if !format.contains(SampleFormat::RAW) {
            return None;
        }
        // Each takes eight bytes.
        let place = |wanted: SampleFormat| {
            let before = IN_ORDER.iter().take_while(|field| **field != wanted);
            format.contains(wanted).then(|| 8 * before.filter(|f| format.contains(**f)).count())
        };
        Some(Self {
            // The process stands before the thread.
            tid: place(SampleFormat::TID).map(|at| at + 4),
            time: place(SampleFormat::TIME)?,
            cpu: place(SampleFormat::CPU)?,
            rest: 8 * IN_ORDER.iter().filter(|field| format.contains(**field)).count(),
            counts: format.contains(SampleFormat::READ).then(|| Counts::new(read_format)),
            has_chain: format.contains(SampleFormat::CALLCHAIN),
        })
    }

    /// Where task, time, CPU, the number of the event's bytes, and these stand, if nothing stands between them that has another size each
    /// time.
    pub(super) fn fixed(&self) -> Option<[usize; 5]> {
        let is_fixed = self.counts.is_none() && !self.has_chain;
        let tid = self.tid.filter(|_| is_fixed)?;
        Some([tid, self.time, self.cpu, self.rest, self.rest + 4])
    }

    /// Takes a sample apart; `None` when it is cut off.
    pub(super) fn parse(&self, endian: Endian, body: &[u8]) -> Option<Sample> {
        let mut at = self.rest;
        if let Some(counts) = self.counts {
            at = at.checked_add(counts.bytes(endian, body, at)?)?;
        }
        if self.has_chain {
            let callers = usize::try_from(endian.u64(body, at)?).ok()?;
            at = at.checked_add(callers.checked_mul(8)?)?.checked_add(8)?;
        }
        let raw_bytes = endian.u32(body, at)?;
        let raw_at = at + 4;
        body.get(raw_at..)?.get(..raw_bytes as usize)?;
        Some(Sample {
            time_ns: endian.u64(body, self.time)?,
            cpu: endian.u32(body, self.cpu)?,
            tid: match self.tid {
                Some(at) => Some(endian.u32(body, at)? as i32),
                None => None,
            },
            raw_at,
            raw_bytes,
        })
    }
}
