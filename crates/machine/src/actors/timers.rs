//! Periodic timers, and computing by the clock.

use fairground_workload::{BUSY_LOOK_NS, Duration};

use super::actor::Phase;
use super::code::{Step, TimerPlace};
use super::effect::Need;
use super::state::{Actors, draw};

impl Actors {
    fn last_expiry(&mut self, id: u32, timer: TimerPlace) -> &mut u64 {
        match timer {
            TimerPlace::Own(reg) => &mut self.regs[(self.actors[id as usize].regs + reg) as usize],
            TimerPlace::Shared(timer) => &mut self.timers[timer as usize],
        }
    }

    /// Without effect on a timer that has begun.
    fn begin_timer(&mut self, id: u32, timer: TimerPlace, at_ns: u64) {
        let last = self.last_expiry(id, timer);
        if *last == 0 {
            *last = at_ns.saturating_add(1);
        }
    }

    pub(super) fn timer_start(&mut self, id: u32, timer: TimerPlace, now_ns: u64) -> Option<Need> {
        self.begin_timer(id, timer, now_ns);
        self.finish(id)
    }

    /// The first wait for a timer counts from when its task reads the clock: before it calls the kernel, and when it
    /// has paid for the calls before.
    #[inline]
    pub(super) fn timer_reference(&mut self, id: u32, step: Step) {
        let Step::TimerWait { timer, .. } = step else { return };
        let looks_ns = self.instant_ns.saturating_add(self.actors[id as usize].owed_ns);
        self.begin_timer(id, timer, looks_ns);
    }

    #[inline]
    pub(super) fn timer_wait(
        &mut self,
        id: u32,
        timer: TimerPlace,
        (period_ns, relative): (u64, bool),
        now_ns: u64,
    ) -> Option<Need> {
        // Not begun again after a signal: this is a new wait, and the next expiry counts from the last one.
        if self.actors[id as usize].frame().progress == 0 {
            let last = self.last_expiry(id, timer);
            // `timer_reference` has begun it.
            let expiry_ns = last.saturating_sub(1).saturating_add(period_ns);
            let next_base_ns = if relative { expiry_ns.max(now_ns) } else { expiry_ns };
            *last = next_base_ns.saturating_add(1);
            self.actors[id as usize].frame().progress = expiry_ns;
        }
        let actor = &mut self.actors[id as usize];
        let takes_signal = actor.takes_signal();
        let frame = actor.frame();
        if now_ns >= frame.progress {
            return self.finish(id);
        }
        if takes_signal {
            frame.phase = Phase::Retry;
            return None;
        }
        frame.phase = Phase::Waiting;
        Some(Need::SleepUntil { at_ns: frame.progress })
    }

    /// Reads the clock, and computes on until the time in the frame's progress.
    pub(super) fn busy(&mut self, id: u32, length: Duration, now_ns: u64) -> Option<Need> {
        let actor = &mut self.actors[id as usize];
        let frame = &mut actor.frames[actor.level];
        if frame.progress == 0 {
            frame.progress = now_ns.saturating_add(draw(&mut actor.prng, length));
        }
        if now_ns >= frame.progress {
            return self.finish(id);
        }
        frame.phase = Phase::Computing;
        Some(Need::Cpu { ns: BUSY_LOOK_NS })
    }
}
