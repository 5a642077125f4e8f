//! The columns of the table of tasks: their contents and order.

use std::cmp::Ordering;

use fairground_analysis::{Figures, TaskActivity};
use fairground_trace::TaskId;

use crate::draw::text;
use crate::source::View;

/// A column of the table of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Process number.
    Pid,
    /// Name.
    Task,
    /// Running, waiting, asleep.
    State,
    /// The CPU on which it runs or waits.
    Cpu,
    /// CPU time in % of one CPU, last interval.
    Share,
    /// Its share in the fluid schedule, last interval.
    Fair,
    /// CPU time in % of one CPU, since the beginning.
    WholeShare,
    /// Its share in the fluid schedule, since the beginning.
    WholeFair,
    /// Its lag behind the fluid schedule since the beginning.
    Lag,
    /// Mean slice, last interval.
    Slice,
    /// The longest wait, last interval.
    Wait,
    /// 99th percentile of its wake-up latency, last interval.
    Latency,
    /// Switches away, last interval.
    Switches,
    /// CPU time since the beginning.
    Time,
    /// One of the scheduler's own numbers.
    Own(usize),
}

/// The columns of every scheduler: heading, and width in characters.
const COMMON: [(Column, &str, u16); 14] = [
    (Column::Pid, "PID", 6),
    (Column::Task, "TASK", 16),
    (Column::State, "S", 1),
    (Column::Cpu, "CPU", 3),
    (Column::Share, "%CPU", 5),
    (Column::Fair, "FAIR", 5),
    (Column::WholeShare, "ALL%", 5),
    (Column::WholeFair, "FAIR", 5),
    (Column::Lag, "LAG", 8),
    (Column::Slice, "SLICE", 8),
    (Column::Wait, "WAIT", 8),
    (Column::Latency, "LAT99", 8),
    (Column::Switches, "SW", 6),
    (Column::Time, "TIME", 9),
];
/// The width of a scheduler's own number.
const OWN_WIDTH: u16 = 14;

impl Column {
    /// The columns of a view.
    pub fn all(view: &View) -> Vec<Column> {
        let own = (0..view.number_names.len()).map(Column::Own);
        COMMON.iter().map(|(column, ..)| *column).chain(own).collect()
    }

    fn common(self) -> Option<(&'static str, u16)> {
        COMMON
            .iter()
            .find(|(column, ..)| *column == self)
            .map(|(_, heading, width)| (*heading, *width))
    }

    /// Its heading.
    pub fn heading(self, view: &View) -> &str {
        match self {
            Column::Own(number) => view.number_names.get(number).map_or("", String::as_str),
            _ => self.common().map_or("", |(heading, _)| heading),
        }
    }

    /// Its width, characters.
    pub(crate) fn width(self) -> u16 {
        self.common().map_or(OWN_WIDTH, |(_, width)| width)
    }

    pub(crate) fn is_text(self) -> bool {
        matches!(self, Column::Task | Column::State)
    }

    /// The text of a cell.
    pub(crate) fn cell(self, view: &View, task: usize) -> String {
        let recent = recent(view, task);
        match self {
            Column::Task => view.tasks[task].1.clone(),
            Column::State => text::letter(view.doing[task]).to_owned(),
            Column::Share | Column::Fair | Column::WholeShare | Column::WholeFair => {
                text::percent(self.number(view, task))
            }
            Column::Lag => text::signed_time(view.whole[task].fairness_error_ns().saturating_neg()),
            Column::Slice | Column::Wait | Column::Latency | Column::Time => {
                self.number(view, task).map_or_else(text::unknown, |ns| text::time(ns as u64))
            }
            Column::Switches => {
                recent.map_or_else(text::unknown, |figures| figures.switches_away().to_string())
            }
            Column::Pid => view.tasks[task].0.to_string(),
            Column::Cpu => match view.doing[task] {
                TaskActivity::Running(cpu) | TaskActivity::Waiting(cpu) => cpu.to_string(),
                _ => text::unknown(),
            },
            Column::Own(number) => {
                own(view, task, number).map_or_else(text::unknown, |value| value.to_string())
            }
        }
    }

    /// The largest first; names and pids from the smallest. Unknown values are last.
    pub(crate) fn compare(self, view: &View, a: usize, b: usize) -> Ordering {
        let by_name = || view.tasks[a].1.cmp(&view.tasks[b].1).then(a.cmp(&b));
        match self {
            Column::Pid => view.tasks[a].0.cmp(&view.tasks[b].0).then(a.cmp(&b)),
            Column::Task => by_name(),
            Column::Own(number) => {
                own(view, b, number).cmp(&own(view, a, number)).then_with(by_name)
            }
            _ => {
                let value = |task| self.number(view, task).unwrap_or(f64::NEG_INFINITY);
                value(b).total_cmp(&value(a)).then_with(by_name)
            }
        }
    }

    fn number(self, view: &View, task: usize) -> Option<f64> {
        let (recent, whole) = (recent(view, task), &view.whole[task]);
        match self {
            Column::Share => recent?.cpu_share_percent(),
            Column::Fair => recent?.fluid_share_percent(),
            Column::WholeShare => whole.cpu_share_percent(),
            Column::WholeFair => whole.fluid_share_percent(),
            Column::Lag => Some(-(whole.fairness_error_ns() as f64)),
            Column::Slice => recent?.slices.mean_ns(),
            Column::Wait => recent?.waits.max_ns().map(|ns| ns as f64),
            Column::Latency => recent?.wakeup_latency.p99_ns().map(|ns| ns as f64),
            Column::Switches => Some(recent?.switches_away() as f64),
            Column::Time => Some(whole.run_ns as f64),
            Column::State => Some(match view.doing[task] {
                TaskActivity::Running(_) => 3.0,
                TaskActivity::Waiting(_) => 2.0,
                TaskActivity::Waking => 1.0,
                _ => 0.0,
            }),
            Column::Cpu => match view.doing[task] {
                TaskActivity::Running(cpu) | TaskActivity::Waiting(cpu) => Some(-f64::from(cpu)),
                _ => None,
            },
            Column::Pid | Column::Task | Column::Own(_) => None,
        }
    }
}

/// The figures of the last interval; a task that is newer has none.
fn recent(view: &View, task: usize) -> Option<&Figures> {
    view.recent.tasks.get(task).map(|task| &task.figures)
}

fn own(view: &View, task: usize, number: usize) -> Option<i64> {
    let values = view.numbers.get(&TaskId(task as u32 + 1))?;
    values.get(number).copied().flatten()
}
