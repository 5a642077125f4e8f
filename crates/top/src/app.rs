//! The state of the view that keys change: speed, display, prompts.

mod column;
pub(crate) mod keys;

pub use column::Column;

use std::time::Duration;

use crate::pace::Speed;
use crate::source::{About, Problem, Source, Tunable, View};

/// Simulated time between two reads of the clock, ns.
const CHUNK_NS: u64 = 1_000_000;

/// The panel over the tasks, or beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing.
    Tasks,
    /// The keys.
    Help,
    /// The prompt for a time.
    Jump(String),
    /// The list of tunables, with a selection.
    Tunables(usize),
    /// The prompt for the value of one.
    Edit(usize, String),
}

/// The state of a view.
#[derive(Debug)]
pub struct App {
    pub(crate) about: About,
    pub(crate) view: View,
    pub(crate) tunables: Vec<Tunable>,
    pub(crate) mode: Mode,
    pub(crate) is_paused: bool,
    pub(crate) speed: Speed,
    /// The target of a jump, ns.
    pub(crate) goal_ns: Option<u64>,
    /// Whether it continues there.
    pub(crate) goes_on: bool,
    pub(crate) column: Column,
    pub(crate) is_reversed: bool,
    /// Number of tasks above the first visible one.
    pub(crate) scrolled: usize,
    pub(crate) shows_events: bool,
    /// A message, until the next key.
    pub(crate) message: Option<String>,
    /// It was paused at the end of the workload's duration, and continues beyond it.
    was_held: bool,
    /// The source's time when it was last read, ns.
    looked_ns: u64,
    has_left: bool,
}

impl App {
    /// A view of a source, running at the speed of wall time.
    pub fn new(source: &dyn Source) -> App {
        App {
            about: source.about(),
            view: source.view(),
            tunables: source.tunables(),
            mode: Mode::Tasks,
            is_paused: false,
            speed: Speed::default(),
            goal_ns: None,
            goes_on: false,
            column: Column::Share,
            is_reversed: false,
            scrolled: 0,
            shows_events: false,
            message: None,
            was_held: false,
            looked_ns: source.now_ns(),
            has_left: false,
        }
    }

    /// The same, paused at once.
    #[must_use]
    pub fn paused(mut self) -> App {
        self.is_paused = true;
        self
    }

    /// The same at another speed.
    #[must_use]
    pub fn at_speed(mut self, speed: Speed) -> App {
        self.speed = speed;
        self
    }

    /// Whether the user has quit.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Quits.
    pub fn leave(&mut self) {
        self.has_left = true;
    }

    /// Advances the source by the wall time since the last call, as long as `has_time` returns true, and reads its
    /// view.
    ///
    /// # Errors
    /// The source cannot continue.
    pub fn pass(
        &mut self,
        source: &mut dyn Source,
        elapsed: Duration,
        mut has_time: impl FnMut() -> bool,
    ) -> Result<(), Problem> {
        if self.about.is_real {
            return self.pass_real(source);
        }
        let Some(target_ns) = self.target_ns(source.now_ns(), elapsed) else { return Ok(()) };
        while source.now_ns() < target_ns && has_time() {
            let before_ns = source.now_ns();
            source.advance(target_ns.min(before_ns.saturating_add(CHUNK_NS)))?;
            if source.now_ns() == before_ns {
                break;
            }
        }
        self.look(source);
        self.hold(source.now_ns());
        Ok(())
    }

    /// A recording arrives in parts: between them there is nothing new.
    fn pass_real(&mut self, source: &mut dyn Source) -> Result<(), Problem> {
        source.advance(u64::MAX)?;
        // Only the picture is paused: the machine continues.
        if !self.is_paused && source.now_ns() != self.looked_ns {
            self.look(source);
        }
        Ok(())
    }

    /// The time to advance to; `None`: none.
    fn target_ns(&self, now_ns: u64, elapsed: Duration) -> Option<u64> {
        if self.view.ended.is_some() {
            return None;
        }
        let paced_ns = now_ns.saturating_add(self.speed.simulated_ns(elapsed));
        let target_ns = match self.goal_ns {
            Some(goal_ns) => goal_ns,
            None if self.is_paused => return None,
            None => paced_ns,
        };
        let held = self.about.length_ns.filter(|_| !self.was_held && self.goal_ns.is_none());
        Some(target_ns.min(held.unwrap_or(u64::MAX)))
    }

    /// Pauses at the time of a jump, or at the end of the workload's duration.
    fn hold(&mut self, now_ns: u64) {
        if self.goal_ns.is_some_and(|goal_ns| now_ns >= goal_ns || self.view.ended.is_some()) {
            self.goal_ns = None;
            self.is_paused = !std::mem::take(&mut self.goes_on);
            // It follows a run that has continued beyond the end already.
            self.was_held |= !self.is_paused && self.is_over(now_ns);
        }
        if self.is_over(now_ns) && !self.was_held {
            self.was_held = true;
            self.is_paused = true;
            self.message = Some("the workload's length is over; space goes on".to_owned());
        }
        if self.view.ended.is_some() {
            self.is_paused = true;
        }
    }

    /// Whether a run at this time is at the end of the workload's duration.
    fn is_over(&self, now_ns: u64) -> bool {
        self.about.length_ns.is_some_and(|length_ns| now_ns >= length_ns)
    }

    /// Another run is shown now: it pauses at its end, unless it is beyond it already.
    fn begun_again(&mut self, source: &dyn Source) {
        self.was_held = self.is_over(source.now_ns());
    }

    pub(crate) fn look(&mut self, source: &dyn Source) {
        self.view = source.view();
        self.looked_ns = source.now_ns();
        if matches!(self.mode, Mode::Tunables(_) | Mode::Edit(..)) {
            self.tunables = source.tunables();
        }
    }

    /// The tasks that are shown, in order: those that have not exited.
    pub(crate) fn order(&self) -> Vec<usize> {
        let view = &self.view;
        let exists = |task: &usize| view.doing[*task] != fairground_analysis::TaskActivity::Absent;
        let mut order: Vec<usize> = (0..view.doing.len()).filter(exists).collect();
        order.sort_by(|a, b| self.column.compare(view, *a, *b));
        if self.is_reversed {
            order.reverse();
        }
        order
    }
}
