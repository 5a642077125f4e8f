//! What the keys changed: how fast it goes, what is shown, what is being typed.

mod column;
pub(crate) mod keys;

pub use column::Column;

use std::time::Duration;

use crate::pace::Speed;
use crate::source::{About, Problem, Source, Tunable, View};

/// Simulated time between two looks at the clock, ns.
const CHUNK_NS: u64 = 1_000_000;

/// What lies over the tasks, or beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing.
    Tasks,
    /// The keys.
    Help,
    /// A time is typed.
    Jump(String),
    /// The list of tunables; one is chosen.
    Tunables(usize),
    /// The value of one is typed.
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
    /// Where a jump goes.
    pub(crate) goal_ns: Option<u64>,
    /// It does not hold there.
    pub(crate) goes_on: bool,
    pub(crate) column: Column,
    pub(crate) is_reversed: bool,
    /// Tasks above the first one that is shown.
    pub(crate) scrolled: usize,
    pub(crate) shows_events: bool,
    /// What there is to say, until the next key.
    pub(crate) message: Option<String>,
    /// It was held at the end of the workload's length, and goes on behind it.
    was_held: bool,
    /// How far the source was when it was looked at.
    looked_ns: u64,
    has_left: bool,
}

impl App {
    /// A view of a source, running at the pace of the clock on the wall.
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

    /// The same, held at once.
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

    /// Whether somebody wants to leave.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Somebody wants to leave.
    pub fn leave(&mut self) {
        self.has_left = true;
    }

    /// Lets the source go on for what passed on the wall since the last call, as long as `has_time` says that there is time left to do so,
    /// and looks at it.
    ///
    /// # Errors
    /// It cannot go on.
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

    /// A recording comes in parts: there is nothing new to look at between them.
    fn pass_real(&mut self, source: &mut dyn Source) -> Result<(), Problem> {
        source.advance(u64::MAX)?;
        // What is held is the picture: the machine goes on.
        if !self.is_paused && source.now_ns() != self.looked_ns {
            self.look(source);
        }
        Ok(())
    }

    /// Where to go now; `None`: nowhere.
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

    /// Pauses where it was to be held.
    fn hold(&mut self, now_ns: u64) {
        if self.goal_ns.is_some_and(|goal_ns| now_ns >= goal_ns || self.view.ended.is_some()) {
            self.goal_ns = None;
            self.is_paused = !std::mem::take(&mut self.goes_on);
            // It follows a run that went on behind the end already.
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

    /// Whether a run that is so far is at the end of the workload's length.
    fn is_over(&self, now_ns: u64) -> bool {
        self.about.length_ns.is_some_and(|length_ns| now_ns >= length_ns)
    }

    /// The run that is looked at is another one now: it is to be held at its end, unless it was there already.
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

    /// The tasks that are shown, in order: those that exist.
    pub(crate) fn order(&self) -> Vec<usize> {
        let view = &self.view;
        let exists = |task: &usize| view.doing[*task] != fairground_analysis::Doing::Absent;
        let mut order: Vec<usize> = (0..view.doing.len()).filter(exists).collect();
        order.sort_by(|a, b| self.column.compare(view, *a, *b));
        if self.is_reversed {
            order.reverse();
        }
        order
    }
}
