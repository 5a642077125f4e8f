//! Figures by metric key: measured by a run, or published.

use std::collections::BTreeMap;

use fairground_trace::{EventKind, Label, TaskId, Trace};

use super::given::{Given, Range};
use super::top::TopLine;

/// The samples of one metric: one for each report or interval, or a single one for the whole run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) low: f64,
    /// Mean; for published ranges the middle, for several starts their median.
    pub(crate) mean: f64,
    pub(crate) high: f64,
    pub(crate) count: usize,
}

impl Sample {
    /// Of measured values; `None` when there are none: not measured.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let (first, rest) = values.split_first()?;
        let (mut low, mut high, mut sum) = (*first, *first, *first);
        for value in rest {
            low = low.min(*value);
            high = high.max(*value);
            sum += value;
        }
        Some(Self { low, high, mean: sum / values.len() as f64, count: values.len() })
    }

    /// Of one value for each start of a run: in the middle stands their median, for a start falls into one of several
    /// steady states, and the mean of two of them is a state that no run is in.
    fn of_starts(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let middle = |nth: usize| values.get(nth).copied();
        let half = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(middle(half.checked_sub(1)?)?, middle(half)?),
            _ => middle(half)?,
        };
        Some(Self { mean: median, ..Self::of(&values)? })
    }

    /// Whether a value lies between the smallest and the largest.
    pub(super) fn spans(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

impl From<Range> for Sample {
    fn from(range: Range) -> Self {
        Self { low: range.low, high: range.high, mean: (range.low + range.high) / 2.0, count: 1 }
    }
}

/// The figures of one column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    samples: BTreeMap<String, Sample>,
    /// The tasks as `top` shows them.
    pub(crate) top: Vec<TopLine>,
    /// Every printed line was counted: one without a count was printed zero times.
    counts_prints: bool,
}

/// The metric that every group of tasks has.
const GROUP_MARK: &str = ".cpu_share";

/// Nothing was printed with that text.
const NEVER: &Sample = &Sample { low: 0.0, mean: 0.0, high: 0.0, count: 1 };

impl Figures {
    /// Of several runs that differ in their start alone.
    pub(super) fn of_starts<'f>(runs: impl Iterator<Item = &'f Figures>) -> Figures {
        let mut starts: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (key, sample) in runs.flat_map(|figures| &figures.samples) {
            starts.entry(key).or_default().push(sample.mean);
        }
        let of_starts =
            |(key, values): (&str, Vec<f64>)| Some((key.to_owned(), Sample::of_starts(values)?));
        Figures {
            samples: starts.into_iter().filter_map(of_starts).collect(),
            ..Figures::default()
        }
    }

    pub(crate) fn insert(&mut self, metric: &str, values: &[f64]) {
        if let Some(sample) = Sample::of(values) {
            self.samples.insert(metric.to_owned(), sample);
        }
    }

    /// Counts how often the scheduler printed which line, by the text before its first colon: `printed.TEXT`; before
    /// and after the first change of a setting: `printed_before.TEXT`, `printed_after.TEXT`.
    pub(crate) fn count_prints(&mut self, trace: &Trace) {
        let mut when = "before";
        for event in trace.events() {
            let label = match event.kind {
                EventKind::Param { .. } if event.time_ns > trace.start_ns => {
                    when = "after";
                    continue;
                }
                EventKind::Print { label } => trace.label(label),
                _ => continue,
            };
            let text = label.split(':').next().unwrap_or(label);
            for metric in [format!("printed.{text}"), format!("printed_{when}.{text}")] {
                let before = self.samples.get(&metric).map_or(0.0, |sample| sample.mean);
                self.insert(&metric, &[before + 1.0]);
            }
        }
        // A text that never came was printed zero times; a trace that lost lines does not know.
        self.counts_prints = trace.loss.prints == 0;
    }

    /// Times what tasks mark: `mark_period.TEXT` has the time from one mark with a text to the next by the same task,
    /// ms, the first since the start of the run.
    pub(crate) fn time_marks(&mut self, trace: &Trace, start_ns: u64) {
        let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut last: BTreeMap<(TaskId, Label), u64> = BTreeMap::new();
        for event in trace.events() {
            let EventKind::Mark { task, label, .. } = event.kind else { continue };
            let before_ns = last.insert((task, label), event.time_ns).unwrap_or(start_ns);
            let ms = event.time_ns.saturating_sub(before_ns) as f64 / 1e6;
            times.entry(trace.label(label)).or_default().push(ms);
        }
        for (text, times) in times {
            self.insert(&format!("mark_period.{text}"), &times);
        }
    }

    /// The groups of tasks that have figures, by name.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().filter_map(|key| key.strip_suffix(GROUP_MARK))
    }

    /// Enters by how many % each figure that both have differs from another column's: `change.METRIC`; where that is 0
    /// there is no saying.
    pub(crate) fn compare(&mut self, base: &Figures) {
        let change = |(metric, sample): (&String, &Sample)| {
            let from = base.samples.get(metric).map(|s| s.mean).filter(|mean| *mean != 0.0)?;
            Some((format!("change.{metric}"), (sample.mean / from - 1.0) * 100.0))
        };
        let changes: Vec<_> = self.samples.iter().filter_map(change).collect();
        for (metric, percent) in changes {
            self.insert(&metric, &[percent]);
        }
    }

    /// A metric, or `None`: not measured.
    pub(crate) fn get(&self, metric: &str) -> Option<&Sample> {
        let never = self.counts_prints && metric.starts_with("printed");
        self.samples.get(metric).or(never.then_some(NEVER))
    }
}

impl From<&Given> for Figures {
    fn from(given: &Given) -> Self {
        let samples = given.values.iter().map(|(k, range)| (k.clone(), Sample::from(*range)));
        Self { samples: samples.collect(), top: given.top.clone(), counts_prints: false }
    }
}
