//! The deadline server of the scheduler's class: a CPU that real-time tasks keep busy runs 50 ms of each second for it
//! (`rq->ext_server`, `dl_server_*` in `kernel/sched/deadline.c` of 7.2).
//!
//! It is deferred: as long as the class, or the idle task, gets these 50 ms anyway, the server does nothing but begin
//! its period anew. Only at the last moment at which they still fit in, `deadline - runtime`, it runs, above the
//! real-time class, and from then on at the beginning of each period.

/// `dl_runtime`, ns.
const RUNTIME_NS: i64 = 50_000_000;
/// `dl_period`, ns.
const PERIOD_NS: i64 = 1_000_000_000;
/// A timer that comes earlier than the last moment by less than this is not put off (`dl_server_min_res`), ns.
const RESOLUTION_NS: i64 = 1_000_000;

/// The states of `dl_server && dl_defer`, by the comment before `dl_server_start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A: the class has no task here.
    Stopped,
    /// B, C: it waits for the last moment. `idle`: the idle task has used up the runtime of this period.
    Deferred { idle: bool },
    /// D: the class runs above the real-time class.
    Running,
    /// E: the runtime is used up, until the next period.
    Spent,
}

/// Demand of a step of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Its timer is to expire at that time, ns, and no earlier.
    pub(crate) timer_ns: Option<u64>,
    /// The CPU is to schedule.
    pub(crate) resched: bool,
}

/// The server of a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    state: State,
    runtime_ns: i64,
    deadline_ns: i64,
    /// `dl_defer_running`: it has run, and the class has not got its time without it since.
    is_needed: bool,
}

impl Server {
    /// A server that is stopped.
    pub(crate) fn new() -> Server {
        Server { state: State::Stopped, runtime_ns: 0, deadline_ns: -1, is_needed: false }
    }

    /// Whether the class runs above the real-time class.
    pub(crate) fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// `dl_server_start`: the class has a task on the CPU.
    pub(crate) fn start(&mut self, now_ns: u64) -> Demand {
        match &mut self.state {
            State::Deferred { idle } => *idle = false,
            State::Stopped => return self.begin(now_ns as i64),
            State::Running | State::Spent => {}
        }
        Demand::default()
    }

    /// `update_dl_entity`.
    fn begin(&mut self, now_ns: i64) -> Demand {
        let is_past = self.deadline_ns < now_ns;
        if is_past || self.overflows(now_ns) {
            if self.is_needed && !is_past {
                // `update_dl_revised_wakeup`.
                self.runtime_ns = (self.deadline_ns - now_ns) * RUNTIME_NS / PERIOD_NS;
                return self.run();
            }
            return self.defer(now_ns, false);
        }
        if self.is_needed {
            return self.run();
        }
        self.state = State::Deferred { idle: false };
        self.last_moment()
    }

    /// `dl_entity_overflow`: the runtime is more than its share of what is left of the period.
    fn overflows(&self, now_ns: i64) -> bool {
        let left_ns = i128::from(self.deadline_ns - now_ns);
        i128::from(PERIOD_NS) * i128::from(self.runtime_ns) > left_ns * i128::from(RUNTIME_NS)
    }

    /// `replenish_dl_new_period` of a server that waits.
    fn defer(&mut self, now_ns: i64, idle: bool) -> Demand {
        self.is_needed = false;
        (self.deadline_ns, self.runtime_ns) = (now_ns + PERIOD_NS, RUNTIME_NS);
        self.state = State::Deferred { idle };
        self.last_moment()
    }

    fn last_moment(&self) -> Demand {
        let at_ns = (self.deadline_ns - self.runtime_ns).max(0) as u64;
        Demand { timer_ns: Some(at_ns), resched: false }
    }

    fn run(&mut self) -> Demand {
        self.state = State::Running;
        Demand { timer_ns: None, resched: true }
    }

    /// `dl_server_update`, `dl_server_update_idle`: a task of the class, or the idle task, ran for so many ns up to
    /// now.
    pub(crate) fn consume(&mut self, now_ns: u64, ran_ns: u64, by_idle: bool) -> Demand {
        let now_ns = now_ns as i64;
        if self.state == State::Stopped || (by_idle && self.state == State::Running) {
            return Demand::default();
        }
        self.runtime_ns = self.runtime_ns.saturating_sub(ran_ns.min(i64::MAX as u64) as i64);
        if let State::Deferred { idle } = &mut self.state {
            *idle &= by_idle;
        }
        if self.runtime_ns > 0 {
            return Demand::default();
        }
        match self.state {
            State::Deferred { idle: true } => {
                self.runtime_ns = 0;
                Demand::default()
            }
            State::Deferred { idle: false } | State::Spent => self.defer(now_ns, by_idle),
            State::Running => {
                if self.deadline_ns < now_ns {
                    (self.deadline_ns, self.runtime_ns) = (now_ns + PERIOD_NS, RUNTIME_NS);
                }
                self.state = State::Spent;
                Demand { timer_ns: Some(self.deadline_ns as u64), resched: true }
            }
            State::Stopped => Demand::default(),
        }
    }

    /// `dl_server_timer`.
    pub(crate) fn expire(&mut self, now_ns: u64) -> Demand {
        let now_ns = now_ns as i64;
        match self.state {
            State::Deferred { idle: true } => {
                self.stop();
                Demand::default()
            }
            State::Deferred { idle: false } => {
                if now_ns < self.deadline_ns - self.runtime_ns - RESOLUTION_NS {
                    return self.last_moment();
                }
                self.is_needed = true;
                if self.overflows(now_ns) {
                    (self.deadline_ns, self.runtime_ns) = (now_ns + PERIOD_NS, RUNTIME_NS);
                }
                self.run()
            }
            State::Spent => {
                while self.runtime_ns <= 0 {
                    self.deadline_ns += PERIOD_NS;
                    self.runtime_ns += RUNTIME_NS;
                }
                self.run()
            }
            State::Stopped | State::Running => Demand::default(),
        }
    }

    /// `dl_server_stop`: it is to run, and the class has no task here.
    pub(crate) fn stop(&mut self) {
        self.state = State::Stopped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Demand {
        Demand { timer_ns: Some(ms * MS), resched: false }
    }

    #[test]
    fn a_starved_class_runs_at_the_last_moment_and_then_in_each_period() {
        let mut server = Server::new();
        assert_eq!(server.start(0), at(950));
        assert_eq!(server.expire(950 * MS), Demand { timer_ns: None, resched: true });
        for period in 0..3 {
            assert!(server.is_running());
            let spent_ms = 1_000 + 1_000 * period;
            let next_ms = 1_950 + 1_000 * period;
            let demand = server.consume(spent_ms * MS, 50 * MS, false);
            assert_eq!(demand, Demand { resched: true, ..at(next_ms) });
            assert!(!server.is_running());
            assert!(server.expire(next_ms * MS).resched);
        }
    }

    #[test]
    fn a_class_that_gets_its_time_puts_the_server_off() {
        let mut server = Server::new();
        server.start(0);
        assert_eq!(server.consume(30 * MS, 30 * MS, false), Demand::default());
        assert_eq!(server.consume(60 * MS, 30 * MS, false), at(60 + 950));
        // It got 20 ms: the last moment is so much later.
        server.consume(80 * MS, 20 * MS, false);
        assert_eq!(server.expire(1_010 * MS), at(1_030));
        assert!(server.expire(1_030 * MS).resched);
    }

    #[test]
    fn an_idle_cpu_stops_it() {
        let mut server = Server::new();
        server.start(0);
        assert_eq!(server.consume(60 * MS, 60 * MS, true), at(60 + 950));
        assert_eq!(server.consume(600 * MS, 540 * MS, true), Demand::default());
        assert_eq!(server.expire(1_010 * MS), Demand::default());
        assert_eq!(server.start(1_500 * MS), at(2_450));
    }

    #[test]
    fn a_class_that_gets_time_between_its_periods_is_deferred_again() {
        let mut server = Server::new();
        server.start(0);
        server.expire(950 * MS);
        server.consume(1_000 * MS, 50 * MS, false);
        assert_eq!(server.consume(1_200 * MS, MS, false), at(1_200 + 950));
    }
}
