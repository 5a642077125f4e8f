//! Idle while waiting: CPUs that idle although a task that may run there waits in another CPU's queue.
//!
//! A task that waits on the idle CPU itself is being woken there and does not count. The cost per event is O(1) as
//! long as no task that waits is restricted to some CPUs, and O(idle CPUs × distinct restrictions) while one is.

/// The inclusive ranges of CPUs on which a task may run; empty means everywhere.
pub(crate) type Allowed = Vec<(u32, u32)>;

/// Counts CPU time that was idle while a task waited elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct IdleWaiting {
    now_ns: u64,
    idle: Vec<bool>,
    idle_count: u64,
    everywhere: Waiters,
    restricted: Vec<(Allowed, Waiters)>,
    restricted_waiting: u64,
    /// CPUs that idle while a task waits elsewhere; of the state before `stale`.
    wasted: u64,
    stale: bool,
    since_ns: Option<u64>,
    /// CPU time wasted in the window, ns.
    pub(crate) total_ns: u64,
    /// The longest time without a break in which at least one CPU was wasted, ns.
    pub(crate) longest_ns: u64,
}

/// A stretch of time in which a number of CPUs idled although a task waited elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wasted {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) cpus: u64,
}

/// The waiting tasks of one restriction, by the CPU in whose queue they are.
#[derive(Clone, Debug)]
struct Waiters {
    by_cpu: Vec<u64>,
    /// CPUs with such tasks, and the sum of their numbers: of one alone, its number.
    cpus: u64,
    cpus_sum: u64,
}

impl Waiters {
    fn new(cpus: usize) -> Self {
        Self { by_cpu: vec![0; cpus], cpus: 0, cpus_sum: 0 }
    }

    /// Whether it is the first one there.
    #[inline(always)]
    fn add(&mut self, cpu: u32) -> bool {
        let Some(count) = self.by_cpu.get_mut(cpu as usize) else { return false };
        *count += 1;
        let first = *count == 1;
        if first {
            self.cpus += 1;
            self.cpus_sum += u64::from(cpu);
        }
        first
    }

    /// Whether it was the last one there.
    #[inline(always)]
    fn remove(&mut self, cpu: u32) -> bool {
        let Some(count) = self.by_cpu.get_mut(cpu as usize).filter(|count| **count > 0) else {
            return false;
        };
        *count -= 1;
        let last = *count == 0;
        if last {
            self.cpus -= 1;
            self.cpus_sum -= u64::from(cpu);
        }
        last
    }

    /// Whether a task waits in the queue of another CPU than `cpu`.
    fn elsewhere(&self, cpu: u32) -> bool {
        match self.cpus {
            0 => false,
            1 => self.cpus_sum != u64::from(cpu),
            _ => true,
        }
    }
}

impl IdleWaiting {
    /// Nothing is counted before `start_ns`.
    pub(crate) fn new(cpus: u32, start_ns: u64) -> Self {
        Self {
            now_ns: start_ns,
            idle: vec![false; cpus as usize],
            idle_count: 0,
            everywhere: Waiters::new(cpus as usize),
            restricted: Vec::new(),
            restricted_waiting: 0,
            wasted: 0,
            stale: false,
            since_ns: None,
            total_ns: 0,
            longest_ns: 0,
        }
    }

    /// The number under which tasks with this restriction are to be entered. `None`: the task never counts, because
    /// it may run on one CPU only.
    pub(crate) fn restriction(&mut self, allowed: Option<&Allowed>) -> Option<usize> {
        let Some(allowed) = allowed else { return Some(0) };
        let last = self.idle.len().saturating_sub(1) as u32;
        let covers_all = allowed.iter().any(|(low, high)| *low == 0 && *high >= last);
        if covers_all {
            return Some(0);
        }
        match allowed.as_slice() {
            [] => return None,
            [(low, high)] if low == high => return None,
            _ => {}
        }
        if let Some(at) = self.restricted.iter().position(|(known, _)| known == allowed) {
            return Some(at + 1);
        }
        self.restricted.push((allowed.clone(), Waiters::new(self.idle.len())));
        Some(self.restricted.len())
    }

    /// Counts the time until `now_ns`. Call before each change.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now_ns: u64) -> Wasted {
        if now_ns <= self.now_ns {
            return Wasted::default();
        }
        if self.stale {
            self.count_anew();
        }
        let wasted = Wasted { from_ns: self.now_ns, to_ns: now_ns, cpus: self.wasted };
        self.now_ns = now_ns;
        if wasted.cpus > 0 {
            let wasted_ns = wasted.cpus.saturating_mul(wasted.to_ns - wasted.from_ns);
            self.total_ns = self.total_ns.saturating_add(wasted_ns);
        }
        wasted
    }

    fn count_anew(&mut self) {
        self.stale = false;
        self.wasted = self.count_wasted();
        if self.wasted == 0 {
            self.end_episode();
        } else if self.since_ns.is_none() {
            self.since_ns = Some(self.now_ns);
        }
    }

    /// Begins anew at an instant up to which time was counted; the idle CPUs and the waiting tasks stay.
    pub(crate) fn begin_window(&mut self, start_ns: u64) {
        self.now_ns = start_ns;
        self.stale = true;
        self.since_ns = None;
        (self.total_ns, self.longest_ns) = (0, 0);
    }

    /// Ends the count.
    pub(crate) fn finish(&mut self) {
        self.end_episode();
    }

    fn end_episode(&mut self) {
        if let Some(since_ns) = self.since_ns.take() {
            self.longest_ns = self.longest_ns.max(self.now_ns.saturating_sub(since_ns));
        }
    }

    fn count_wasted(&self) -> u64 {
        if self.restricted_waiting == 0 {
            return match self.everywhere.cpus {
                0 => 0,
                1 => {
                    let idle = self.idle.get(self.everywhere.cpus_sum as usize);
                    self.idle_count - u64::from(idle == Some(&true))
                }
                _ => self.idle_count,
            };
        }
        let wasted = |cpu: u32| {
            self.everywhere.elsewhere(cpu)
                || self.restricted.iter().any(|(allowed, waiters)| {
                    waiters.cpus > 0
                        && allowed.iter().any(|(low, high)| (*low..=*high).contains(&cpu))
                        && waiters.elsewhere(cpu)
                })
        };
        let idle = self.idle.iter().enumerate().filter(|(_, idle)| **idle);
        idle.filter(|(cpu, _)| wasted(*cpu as u32)).count() as u64
    }

    #[inline(always)]
    pub(crate) fn set_idle(&mut self, cpu: u32, idle: bool) {
        let slot = &mut self.idle[cpu as usize];
        if *slot != idle {
            *slot = idle;
            self.idle_count = if idle { self.idle_count + 1 } else { self.idle_count - 1 };
            self.stale = true;
        }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, restriction: Option<usize>, cpu: u32) {
        let first = match restriction {
            Some(0) => self.everywhere.add(cpu),
            Some(at) => {
                self.restricted_waiting += 1;
                self.restricted[at - 1].1.add(cpu)
            }
            None => return,
        };
        if first {
            self.stale = true;
        }
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, restriction: Option<usize>, cpu: u32) {
        let last = match restriction {
            Some(0) => self.everywhere.remove(cpu),
            Some(at) => {
                self.restricted_waiting -= 1;
                self.restricted[at - 1].1.remove(cpu)
            }
            None => return,
        };
        if last {
            self.stale = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_in_the_queue_of_the_idle_cpu_itself_does_not_count() {
        let mut waste = IdleWaiting::new(2, 0);
        waste.set_idle(0, true);
        waste.add(Some(0), 0);
        assert_eq!(waste.advance(10).cpus, 0);
        waste.set_idle(1, true);
        assert_eq!(waste.advance(30), Wasted { from_ns: 10, to_ns: 30, cpus: 1 });
        waste.remove(Some(0), 0);
        waste.advance(100);
        waste.finish();
        assert_eq!((waste.total_ns, waste.longest_ns), (20, 20));
    }

    #[test]
    fn a_restricted_task_counts_only_where_it_may_run() {
        let mut waste = IdleWaiting::new(4, 0);
        let low_half = waste.restriction(Some(&vec![(0, 1)]));
        assert_eq!(waste.restriction(Some(&vec![(3, 3)])), None);
        assert_eq!(waste.restriction(Some(&vec![(0, 3)])), Some(0));
        for cpu in 1..4 {
            waste.set_idle(cpu, true);
        }
        waste.add(low_half, 0);
        assert_eq!(waste.advance(10).cpus, 1); // CPU 1, and neither 2 nor 3.
        waste.add(Some(0), 0);
        assert_eq!(waste.advance(20).cpus, 3);
    }

    #[test]
    fn an_episode_lasts_while_any_cpu_is_wasted() {
        let mut waste = IdleWaiting::new(3, 0);
        waste.add(Some(0), 2);
        waste.set_idle(0, true);
        waste.advance(10);
        waste.set_idle(0, false);
        waste.set_idle(1, true);
        waste.advance(25);
        waste.set_idle(1, false);
        waste.advance(100);
        waste.finish();
        assert_eq!((waste.total_ns, waste.longest_ns), (25, 25));
    }
}
