//! What the pass keeps beside the tasks and the CPUs: the instant, the window, and where each change is entered.

use crate::Series;
use crate::counters::Tracks;
use crate::idle_waiting::IdleWaiting;
use crate::services::{Change, Services, What};

/// The instant of a pass, and the figures that its changes go to.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(super) window_ns: (u64, u64),
    pub(crate) now_ns: u64,
    /// The same, cut to the window.
    pub(super) at_ns: u64,
    /// When events were lost last, ns: what was known before may have changed unseen.
    pub(super) lost_ns: u64,
    /// Whether what happens now lies in the window.
    pub(super) counting: bool,
    pub(super) services: Services,
    /// Where somebody else keeps the services: the changes that wait for him.
    changes: Vec<Change>,
    keeps_services: bool,
    pub(super) waste: IdleWaiting,
    pub(super) series: Option<Box<Series>>,
    /// Numbers over time, where they are wanted.
    pub(crate) tracks: Option<Box<Tracks>>,
}

impl Ledger {
    pub(super) fn new(
        window_ns: (u64, u64),
        now_ns: u64,
        services: Services,
        waste: IdleWaiting,
        series: Option<Series>,
    ) -> Self {
        let mut ledger = Self {
            window_ns,
            now_ns,
            at_ns: 0,
            lost_ns: 0,
            counting: false,
            services,
            changes: Vec::new(),
            keeps_services: true,
            waste,
            series: series.map(Box::new),
            tracks: None,
        };
        ledger.set_window(window_ns);
        ledger
    }

    pub(super) fn set_window(&mut self, window_ns: (u64, u64)) {
        self.window_ns = window_ns;
        self.be_at(self.now_ns);
    }

    #[inline(always)]
    fn be_at(&mut self, time_ns: u64) {
        self.now_ns = time_ns;
        self.at_ns = self.window_time(time_ns);
        self.counting = time_ns >= self.window_ns.0;
    }

    #[inline(always)]
    pub(super) fn window_time(&self, time_ns: u64) -> u64 {
        time_ns.max(self.window_ns.0).min(self.window_ns.1)
    }

    /// Lets time pass until `time_ns`; nothing changes before it.
    #[inline(always)]
    pub(super) fn advance(&mut self, time_ns: u64) {
        if time_ns <= self.now_ns {
            return;
        }
        self.be_at(time_ns);
        let wasted = self.waste.advance(self.at_ns);
        if wasted.cpus > 0
            && let Some(series) = &mut self.series
        {
            series.spread(wasted.from_ns, wasted.to_ns, |interval, ns| {
                interval.idle_while_waiting_ns += ns.saturating_mul(wasted.cpus);
            });
        }
    }

    /// Lets somebody else keep the services, by the changes that this one gives ([`Ledger::take_changes`]).
    pub(crate) fn hand_over_services(&mut self) -> Services {
        self.keeps_services = false;
        std::mem::replace(&mut self.services, Services::none())
    }

    /// The changes since the last call. `empty` is room for the next ones.
    pub(crate) fn take_changes(&mut self, empty: Vec<Change>) -> Vec<Change> {
        std::mem::replace(&mut self.changes, empty)
    }

    /// Keeps the services again, to which all changes were applied.
    pub(crate) fn take_services_back(&mut self, services: Services) {
        self.services = services;
        self.keeps_services = true;
    }

    /// Something changes for the fluid schedules now.
    #[inline(always)]
    pub(crate) fn change(&mut self, what: What) {
        let change = Change { now_ns: self.at_ns, what };
        if self.keeps_services {
            self.services.apply(&[change]);
        } else {
            self.changes.push(change);
        }
    }

    /// So many more tasks wait for a CPU.
    #[inline(always)]
    pub(super) fn note_queue(&mut self, cpu: u32, more: i64) {
        if let Some(tracks) = &mut self.tracks {
            tracks.queue(self.at_ns, cpu, more);
        }
    }
}
