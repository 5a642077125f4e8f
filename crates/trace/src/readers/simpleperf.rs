//! Text of simpleperf's `report_sample.py --show_tracing_data`: a sample is a line as perf's, without the event's
//! fields; they stand below it and its frames, a line each.
//!
//! ```text
//! app    7/7 [001] 1.500000: 1 sched:sched_switch:
//!     ffffffc010a5b0c4 __schedule ([kernel.kallsyms])
//!     tracing data:
//!         common_pid : 7
//!         prev_comm : app
//! ```

use super::line::Line;

/// The flags of `common_flags` that tell of an interrupt: `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`, `TRACE_FLAG_NMI`.
const IN_INTERRUPT: u64 = 0x08 | 0x10 | 0x40;
/// Bytes of an event's fields.
const FIELDS_BYTES_MAX: usize = 1 << 12;

/// A sample whose fields may follow.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// The number of its line.
    pub(super) at: u64,
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    pub(super) pid: Option<u32>,
    pub(super) comm: String,
    pub(super) event: String,
    pub(super) in_interrupt: bool,
    /// `key=value`, with blanks between them, as `trace-cmd report -R` prints them.
    pub(super) fields: String,
    /// Its fields have begun.
    has_data: bool,
}

/// The samples of a text, one after the other.
#[derive(Debug, Default)]
pub(super) struct SampleText {
    held: Option<Sample>,
}

impl SampleText {
    /// Holds a line of an event of the scheduler without fields; `false` for any other line.
    pub(super) fn hold(&mut self, at: u64, time_ns: u64, line: &Line<'_>) -> bool {
        if !line.fields.is_empty() || !line.event.starts_with("sched_") {
            return false;
        }
        self.held = Some(Sample {
            at,
            time_ns,
            cpu: line.cpu,
            pid: line.pid,
            comm: line.comm.to_owned(),
            event: line.event.to_owned(),
            in_interrupt: line.in_interrupt,
            ..Sample::default()
        });
        true
    }

    /// Takes a line below a sample, if it is of its fields.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let Some(below) = text.strip_prefix('\t') else { return false };
        if below == "tracing data:" {
            self.held.iter_mut().for_each(|sample| sample.has_data = true);
            return true;
        }
        let Some((key, value)) = below.strip_prefix('\t').and_then(|field| field.split_once(" : "))
        else {
            return false;
        };
        // Of events that are not used, too.
        let Some(sample) = self.held.as_mut().filter(|sample| sample.has_data) else { return true };
        if key == "common_flags" {
            let flags: u64 = value.parse().unwrap_or(0);
            sample.in_interrupt = flags & IN_INTERRUPT != 0;
        }
        let is_own = !key.starts_with("common_");
        if is_own && sample.fields.len() + key.len() + value.len() < FIELDS_BYTES_MAX {
            let blank = if sample.fields.is_empty() { "" } else { " " };
            sample.fields += &format!("{blank}{key}={value}");
        }
        true
    }

    /// Returns the sample, when no more fields can follow.
    pub(super) fn end(&mut self) -> Option<Sample> {
        self.held.take()
    }
}
