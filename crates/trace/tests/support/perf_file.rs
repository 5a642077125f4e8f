//! A writer of small `perf.data` files, for what no kernel would write on demand.

use super::Dat;

/// Sample formats (`PERF_SAMPLE_…`).
pub(crate) const TID: u64 = 1 << 1;
pub(crate) const TIME: u64 = 1 << 2;
pub(crate) const READ: u64 = 1 << 4;
pub(crate) const CALLCHAIN: u64 = 1 << 5;
pub(crate) const CPU: u64 = 1 << 7;
pub(crate) const RAW: u64 = 1 << 10;

/// Records (`PERF_RECORD_…`).
const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const FINISHED_ROUND: u32 = 68;
/// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: a filter of the recorder's dropped them.
pub(crate) const DROPPED: u16 = 1 << 15;

const HEAD_BYTES: u64 = 104;
const ATTRIBUTE_BYTES: u64 = 64;
/// `PERF_FORMAT_…`.
const ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const TRACING_DATA: u8 = 1 << 1;

/// A file in the making.
#[derive(Debug, Default)]
pub(crate) struct PerfFile {
    pub(crate) dat: Dat,
    /// Beside those of every file.
    pub(crate) format: u64,
    /// Counts are those of a group.
    pub(crate) group: bool,
    pub(crate) records: Vec<u8>,
    /// The flags of the next records (`PERF_RECORD_MISC_…`).
    pub(crate) misc: u16,
    /// The kernel's descriptions are a record, as of simpleperf.
    pub(crate) is_of_simpleperf: bool,
}

type Prev<'a> = (u32, &'a [u8; 4], u64);

impl PerfFile {
    fn record(&mut self, kind: u32, body: Vec<u8>) {
        self.record_with(kind, self.misc, body);
    }

    fn record_with(&mut self, kind: u32, misc: u16, mut body: Vec<u8>) {
        body.resize(body.len().next_multiple_of(8), 0);
        self.records.extend(kind.to_le_bytes());
        self.records.extend(misc.to_le_bytes());
        self.records.extend((8 + body.len() as u16).to_le_bytes());
        self.records.extend(body);
    }

    /// Task, time and CPU, as they stand in a sample and behind every other record.
    fn id(time_ns: u64, cpu: u32, pid: u32) -> Vec<u8> {
        [pid.to_le_bytes(), pid.to_le_bytes()]
            .concat()
            .into_iter()
            .chain(time_ns.to_le_bytes())
            .chain(u64::from(cpu).to_le_bytes())
            .collect()
    }

    pub(crate) fn switch(&mut self, time_ns: u64, cpu: u32, prev: Prev<'_>, next: (u32, &[u8; 4])) {
        let mut body = Self::id(time_ns, cpu, prev.0);
        if self.format & READ != 0 {
            // A group of two counts with their numbers, or a count.
            let group = [2_u64, 77, 1, 78, 2];
            let words = if self.group { &group[..] } else { &[77] };
            words.iter().for_each(|word| body.extend(word.to_le_bytes()));
        }
        if self.format & CALLCHAIN != 0 {
            [2_u64, 0xffff, 0xfffe].iter().for_each(|word| body.extend(word.to_le_bytes()));
        }
        let raw = &self.dat.switch(0, prev, next)[4..];
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
        self.record(SAMPLE, body);
    }

    pub(crate) fn lost(&mut self, time_ns: u64, cpu: u32, count: u64) {
        let mut body = [1_u64.to_le_bytes(), count.to_le_bytes()].concat();
        body.extend(Self::id(time_ns, cpu, 0));
        self.record(LOST, body);
    }

    /// What one event lost on a CPU in all, as the recorder writes it when it ends.
    pub(crate) fn lost_in_all(&mut self, cpu: u32, count: u64, misc: u16) {
        let mut body = count.to_le_bytes().to_vec();
        body.extend(Self::id(0, cpu, 0));
        self.record_with(LOST_SAMPLES, misc, body);
    }

    pub(crate) fn round(&mut self) {
        self.record(FINISHED_ROUND, Vec::new());
    }

    pub(crate) fn comm(&mut self, time_ns: u64, pid: u32, name: &str) {
        let mut body = [pid.to_le_bytes(), pid.to_le_bytes()].concat();
        body.extend(name.as_bytes());
        body.resize((body.len() + 1).next_multiple_of(8), 0);
        body.extend(Self::id(time_ns, 0, pid));
        self.record(COMM, body);
    }

    /// A sample of an event that is no tracepoint, among such that are.
    pub(crate) fn cycles(&mut self, time_ns: u64, cpu: u32, pid: u32) {
        let mut body = Self::id(time_ns, cpu, pid);
        // The kernel writes four bytes in place of a tracepoint's.
        body.extend([4_u32, 0].map(u32::to_le_bytes).concat());
        self.record(SAMPLE, body);
    }

    /// A record of simpleperf's own, which may be longer than others.
    pub(crate) fn own_of_simpleperf(&mut self, number: u32, body: &[u8]) {
        let size = 8 + body.len() as u32;
        self.records.extend((32768 + number).to_le_bytes());
        self.records.extend([(size >> 16) as u16, size as u16].map(u16::to_le_bytes).concat());
        self.records.extend(body);
    }

    /// The kernel's descriptions, as simpleperf writes them.
    pub(crate) fn described_in_record(&mut self) {
        let described = self.dat.tracing_data("0.5");
        let size = described.len() as u32;
        let mut body = [&size.to_le_bytes()[..], &described].concat();
        body.resize(4 + described.len().next_multiple_of(64), 0);
        self.own_of_simpleperf(9, &body);
        self.is_of_simpleperf = true;
    }

    /// The same as perf writes it into a pipe.
    pub(crate) fn pipe(&self) -> Vec<u8> {
        let file = self.bytes();
        let mut out = b"PERFILE2".to_vec();
        out.extend(16_u64.to_le_bytes());
        let mut record = |kind: u32, body: &[u8]| {
            out.extend(kind.to_le_bytes());
            out.extend([0; 2]);
            out.extend((8 + body.len() as u16).to_le_bytes());
            out.extend(body);
        };
        // An attribute, with the number of one event.
        let attribute = &file[HEAD_BYTES as usize..(HEAD_BYTES + ATTRIBUTE_BYTES) as usize];
        record(64, &[attribute, &5_u64.to_le_bytes()].concat());
        // A feature: the kernel's release.
        record(
            80,
            &[&4_u64.to_le_bytes()[..], &8_u32.to_le_bytes(), b"6.1.0\0\0\0", &[0; 4]].concat(),
        );
        let mut described = self.dat.tracing_data("0.6");
        record(66, &(described.len() as u64).to_le_bytes());
        described.resize(described.len().next_multiple_of(8), 0);
        out.extend(described);
        out.extend(&self.records);
        out
    }

    /// The whole file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let data_at = HEAD_BYTES + ATTRIBUTE_BYTES + 16;
        let mut out = b"PERFILE2".to_vec();
        let size = self.records.len() as u64;
        let head = [
            HEAD_BYTES,
            ATTRIBUTE_BYTES + 16,
            HEAD_BYTES,
            ATTRIBUTE_BYTES + 16,
            data_at,
            size,
            0,
            0,
        ];
        head.iter().for_each(|word| out.extend(word.to_le_bytes()));
        out.push(if self.is_of_simpleperf { 0 } else { TRACING_DATA });
        out.resize(HEAD_BYTES as usize, 0);
        // A tracepoint.
        out.extend([2_u32.to_le_bytes(), (ATTRIBUTE_BYTES as u32).to_le_bytes()].concat());
        let format = self.format | TID | TIME | CPU | RAW;
        let read_format = if self.group { GROUP | ID } else { 0 };
        let attribute = [7, 1, format, read_format, SAMPLE_ID_ALL, 0, 0];
        attribute.iter().for_each(|word: &u64| out.extend(word.to_le_bytes()));
        out.extend([0; 16]);
        assert_eq!(out.len() as u64, data_at);
        out.extend(&self.records);
        if self.is_of_simpleperf {
            return out;
        }
        let described = self.dat.tracing_data("0.6");
        let at = out.len() as u64 + 16;
        out.extend([at.to_le_bytes(), (described.len() as u64).to_le_bytes()].concat());
        out.extend(described);
        out
    }
}
