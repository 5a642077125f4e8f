//! CFS with vruntime after its description: a list of tasks, the smallest vruntime by search, wide numbers.

use super::naive::{virtual_ns, weight_of};

/// The differences between the two releases of the model.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub latency_ns: i128,
    pub min_granularity_ns: i128,
    pub wakeup_granularity_ns: i128,
    pub fair_sleepers: bool,
    pub start_debit: bool,
    pub wakeup_preemption: bool,
    pub gentle: bool,
    /// A wake-up while the current task is to be preempted already requests nothing.
    pub first_stays: bool,
    /// 6.1: buddies, the tick's check of the leftmost, min_vruntime at dequeue, granularity by the wakee, never placed
    /// left of itself. Otherwise 2.6.24.
    pub modern: bool,
}

impl Rules {
    pub fn of(set: &str) -> Rules {
        let modern = set == "6.1";
        let (latency, granularity, wakeup) = if modern {
            (6_000_000, 750_000, 1_000_000)
        } else {
            (20_000_000, 4_000_000, 10_000_000)
        };
        Rules {
            latency_ns: latency,
            min_granularity_ns: granularity,
            wakeup_granularity_ns: wakeup,
            fair_sleepers: true,
            start_debit: true,
            wakeup_preemption: true,
            gentle: modern,
            first_stays: true,
            modern,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Entity {
    pub queued: bool,
    pub nice: i8,
    pub v: i128,
    pub is_new: bool,
}

#[derive(Clone, Debug)]
pub struct Naive {
    pub rules: Rules,
    pub tasks: Vec<Entity>,
    pub current: Option<usize>,
    pub min_v: i128,
    pub next: Option<usize>,
    pub last: Option<usize>,
    pub skip: Option<usize>,
    now_ns: i128,
    charged_ns: i128,
    /// The current task's own time when it was picked.
    picked_ns: i128,
    /// The current task is to be preempted, and no task has been picked yet.
    must_go: bool,
    ran_ns: i128,
}

impl Naive {
    pub fn new(rules: Rules) -> Naive {
        Naive {
            rules,
            tasks: Vec::new(),
            current: None,
            min_v: -(1 << 20),
            next: None,
            last: None,
            skip: None,
            now_ns: 0,
            charged_ns: 0,
            picked_ns: 0,
            must_go: false,
            ran_ns: 0,
        }
    }

    pub fn add(&mut self, nice: i8) -> usize {
        self.tasks.push(Entity { queued: false, nice, v: 0, is_new: true });
        self.tasks.len() - 1
    }

    pub fn pass(&mut self, ns: u64) {
        self.now_ns += i128::from(ns);
    }

    fn w(&self, task: usize) -> i128 {
        weight_of(self.tasks[task].nice)
    }

    fn queued(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.tasks.len()).filter(|task| self.tasks[*task].queued)
    }

    pub fn waiting(&self) -> impl Iterator<Item = usize> + '_ {
        self.queued().filter(|task| Some(*task) != self.current)
    }

    fn nr(&self) -> i128 {
        self.queued().count() as i128
    }

    fn load(&self) -> i128 {
        self.queued().map(|task| self.w(task)).sum()
    }

    fn leftmost(&self) -> Option<i128> {
        self.waiting().map(|task| self.tasks[task].v).min()
    }

    fn advance_min(&mut self) {
        let current = self.current.map(|task| self.tasks[task].v);
        if let Some(v) = current.into_iter().chain(self.leftmost()).min() {
            self.min_v = self.min_v.max(v);
        }
    }

    pub fn update(&mut self) {
        let delta_ns = self.now_ns - self.charged_ns;
        self.charged_ns = self.now_ns;
        if let Some(task) = self.current {
            self.tasks[task].v += virtual_ns(delta_ns, self.tasks[task].nice);
            self.ran_ns += delta_ns;
            self.advance_min();
        }
    }

    fn nr_latency(&self) -> i128 {
        (self.rules.latency_ns + self.rules.min_granularity_ns - 1) / self.rules.min_granularity_ns
    }

    fn period(&self, nr: i128) -> i128 {
        if nr <= self.nr_latency() {
            self.rules.latency_ns
        } else if self.rules.modern {
            self.rules.min_granularity_ns * nr
        } else {
            self.rules.latency_ns * nr / self.nr_latency()
        }
    }

    /// For a task that is counted.
    fn slice(&self, task: usize) -> i128 {
        let slice = self.period(self.nr()) * self.w(task) / self.load();
        if self.rules.modern { slice.max(self.rules.min_granularity_ns) } else { slice }
    }

    /// The credit of a sleeper.
    fn credit(&self) -> i128 {
        match (self.rules.fair_sleepers, self.rules.gentle) {
            (false, _) => 0,
            (true, false) => self.rules.latency_ns,
            (true, true) => self.rules.latency_ns / 2,
        }
    }

    fn gran(&self, curr: usize, wakee: usize) -> i128 {
        let by = if self.rules.modern { wakee } else { curr };
        virtual_ns(self.rules.wakeup_granularity_ns, self.tasks[by].nice)
    }

    /// A task wakes up or is new. True: the current task shall be preempted.
    pub fn join(&mut self, task: usize) -> bool {
        self.update();
        self.tasks[task].queued = true;
        let new = self.tasks[task].is_new;
        let mut v = self.min_v;
        let mut first = false;
        if new {
            if self.rules.start_debit {
                v += virtual_ns(self.slice(task), self.tasks[task].nice);
            }
            if let Some(parent) = self.current {
                if self.rules.modern {
                    v = v.max(self.tasks[parent].v);
                } else if self.tasks[parent].v < v {
                    std::mem::swap(&mut v, &mut self.tasks[parent].v);
                    first = true;
                }
            }
        } else {
            v = self.tasks[task].v.max(v - self.credit());
        }
        self.tasks[task].v = v;
        self.tasks[task].is_new = false;
        let Some(curr) = self.current else { return false };
        let preempts = first || (new && !self.rules.modern) || self.preempts(curr, task);
        self.must_go |= preempts;
        preempts
    }

    /// Whether a waking task preempts the current one, for the first time.
    fn preempts(&mut self, curr: usize, task: usize) -> bool {
        let v = self.tasks[task].v;
        if self.must_go && self.rules.first_stays {
            return false;
        }
        if !self.rules.wakeup_preemption || self.tasks[curr].v - v <= self.gran(curr, task) {
            return false;
        }
        if self.rules.modern {
            if self.nr() >= self.nr_latency() {
                self.last = Some(curr);
            }
            self.next = Some(task);
        }
        true
    }

    fn forget(&mut self, task: usize) {
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            if *buddy == Some(task) {
                *buddy = None;
            }
        }
    }

    /// True: the slice is over.
    pub fn tick(&mut self) -> bool {
        self.update();
        let Some(curr) = self.current.filter(|_| self.nr() > 1) else { return false };
        let ran_ns = self.ran_ns - self.picked_ns;
        // 6.5 also limits it to the latency.
        let ideal_ns = self.slice(curr);
        if ran_ns > ideal_ns {
            self.forget(curr);
            return true;
        }
        let left = self.leftmost().unwrap_or(self.tasks[curr].v);
        self.rules.modern
            && ran_ns >= self.rules.min_granularity_ns
            && self.tasks[curr].v - left > ideal_ns
    }

    fn is_near(&self, task: usize, left: usize) -> bool {
        let apart = self.tasks[task].v - self.tasks[left].v;
        apart <= 0 || apart <= virtual_ns(self.rules.wakeup_granularity_ns, self.tasks[left].nice)
    }

    /// The task to pick. At equal vruntimes the waiting ones come first, any of them: then there are several answers,
    /// because the limit for a buddy depends on the weight of the leftmost.
    pub fn picks(&mut self) -> Vec<usize> {
        self.update();
        let mut order: Vec<usize> = self.queued().collect();
        order.sort_by_key(|task| (self.tasks[*task].v, Some(*task) == self.current));
        let left_v = order.first().map(|left| self.tasks[*left].v);
        let leftmost = order.iter().take_while(|task| Some(self.tasks[**task].v) == left_v);
        let leftmost = leftmost.filter(|task| Some(**task) != self.current || order[0] == **task);
        leftmost.map(|left| self.pick_beside(*left, &order)).collect()
    }

    fn pick_beside(&self, left: usize, order: &[usize]) -> usize {
        let mut picked = left;
        let second = order.iter().find(|task| **task != left);
        if self.skip == Some(left)
            && let Some(second) = second.filter(|second| self.is_near(**second, left))
        {
            picked = *second;
        }
        let near = |buddy: &usize| self.is_near(*buddy, left);
        self.next.filter(near).or(self.last.filter(near)).unwrap_or(picked)
    }

    /// It was picked: `again` when it ran before.
    pub fn run(&mut self, task: usize) {
        if self.current != Some(task) {
            self.current = Some(task);
            self.charged_ns = self.now_ns;
            self.picked_ns = self.ran_ns;
        } else if !self.rules.modern {
            self.picked_ns = self.ran_ns;
        }
        self.must_go = false;
        self.forget(task);
    }

    pub fn sleep(&mut self) {
        self.update();
        let Some(task) = self.current.take() else { return };
        self.tasks[task].queued = false;
        self.forget(task);
        if self.rules.modern {
            self.advance_min();
        }
    }

    pub fn yields(&mut self) {
        self.update();
        if self.rules.modern && self.nr() > 1 {
            self.skip = self.current;
        }
    }
}
