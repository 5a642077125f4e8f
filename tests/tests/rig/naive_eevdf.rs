//! EEVDF after its description, and nothing else: a list of tasks, sums over the whole list in 128-bit numbers, no
//! trees, no moving reference. The decisions of `eevdf` are compared with it.

use super::callbacks::HZ;
use super::naive::{clamp, floor_div, virtual_ns, weight_of};

/// The differences between releases, and the feature switches.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub base_slice_ns: i128,
    pub place_lag: bool,
    pub place_deadline_initial: bool,
    pub place_rel_deadline: bool,
    pub run_to_parity: bool,
    pub preempt_short: bool,
    pub next_buddy: bool,
    pub pick_buddy: bool,
    pub delay_dequeue: bool,
    pub delay_zero: bool,
    pub wakeup_preemption: bool,
    /// 6.6 has none.
    pub custom_slices: bool,
    /// 6.18: vprot, picks at PREEMPT_SHORT, no preemption by forks, lag limited by the queue's slices, yield that
    /// forfeits.
    pub since_618: bool,
    /// 7.2: a delayed task that wakes up sees the current task's time charged.
    pub delay_settles: bool,
    /// 7.2: the lag of a delayed task does not become worse.
    pub delay_keeps: bool,
    /// The check at a wake-up dequeues delayed entities.
    pub wakeup_dequeues: bool,
    /// A preemption that was asked for does not end the checks.
    pub lazy: bool,
}

impl Rules {
    pub fn of(set: &str) -> Rules {
        let (since_612, since_618) = (set != "6.6", matches!(set, "6.18" | "7.2"));
        Rules {
            base_slice_ns: if since_618 { 700_000 } else { 750_000 },
            place_lag: true,
            place_deadline_initial: true,
            place_rel_deadline: since_612,
            run_to_parity: true,
            preempt_short: since_612,
            next_buddy: false,
            pick_buddy: since_618,
            delay_dequeue: since_612,
            delay_zero: since_612,
            wakeup_preemption: true,
            custom_slices: since_612,
            since_618,
            delay_settles: set == "7.2",
            delay_keeps: set == "7.2",
            wakeup_dequeues: set == "7.2",
            lazy: set == "7.2",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Out,
    Queued,
    /// Asleep, and still queued.
    Delayed,
}

#[derive(Clone, Debug)]
pub struct Entity {
    pub state: State,
    pub nice: i8,
    pub v: i128,
    /// The deadline; with `relative` its distance to `v`.
    pub d: i128,
    pub relative: bool,
    pub vlag: i128,
    pub slice_ns: i128,
    pub custom_ns: i128,
    pub is_new: bool,
    pub policy: u32,
}

/// `SCHED_NORMAL`, and `SCHED_IDLE`, whose tasks run when no other is runnable.
const NORMAL: u32 = 0;
const IDLE: u32 = 5;

/// One CPU.
#[derive(Clone, Debug)]
pub struct Naive {
    pub rules: Rules,
    pub tasks: Vec<Entity>,
    pub current: Option<usize>,
    /// The current task's protection: up to here since 6.18; before, while it equals the deadline.
    pub vprot: i128,
    pub resched: bool,
    pub buddy: Option<usize>,
    now_ns: i128,
    charged_ns: i128,
    empty_v: i128,
}

impl Naive {
    pub fn new(rules: Rules) -> Naive {
        Naive {
            rules,
            tasks: Vec::new(),
            current: None,
            vprot: 0,
            resched: false,
            buddy: None,
            now_ns: 0,
            charged_ns: 0,
            empty_v: -(1 << 20),
        }
    }

    pub fn add(&mut self, nice: i8) -> usize {
        self.tasks.push(Entity {
            state: State::Out,
            nice,
            v: 0,
            d: 0,
            relative: false,
            vlag: 0,
            slice_ns: 0,
            custom_ns: 0,
            is_new: true,
            policy: NORMAL,
        });
        self.tasks.len() - 1
    }

    fn competing(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.tasks.len()).filter(|task| self.tasks[*task].state != State::Out)
    }

    /// The entities in the tree: all but the current one.
    fn others(&self) -> impl Iterator<Item = usize> + '_ {
        self.competing().filter(|task| Some(*task) != self.current)
    }

    pub fn w(&self, task: usize) -> i128 {
        weight_of(self.tasks[task].nice)
    }

    pub fn total_weight(&self) -> i128 {
        self.competing().map(|task| self.w(task)).sum()
    }

    fn weighted(&self) -> i128 {
        self.competing().map(|task| self.w(task) * self.tasks[task].v).sum()
    }

    /// V, rounded down.
    pub fn average(&self) -> i128 {
        let weight = self.total_weight();
        if weight == 0 { self.empty_v } else { floor_div(self.weighted(), weight) }
    }

    pub fn is_eligible(&self, task: usize) -> bool {
        self.tasks[task].v * self.total_weight() <= self.weighted()
    }

    fn vslice(&self, task: usize, ns: i128) -> i128 {
        virtual_ns(ns, self.tasks[task].nice)
    }

    fn request_ns(&self, task: usize) -> i128 {
        let own = if self.rules.custom_slices { self.tasks[task].custom_ns } else { 0 };
        if own == 0 { self.rules.base_slice_ns } else { own }
    }

    fn slices(&self) -> impl Iterator<Item = i128> + '_ {
        self.competing().map(|task| self.tasks[task].slice_ns)
    }

    pub fn pass(&mut self, ns: u64) {
        self.now_ns += i128::from(ns);
    }

    pub fn is_protected(&self) -> bool {
        let Some(curr) = self.current.map(|curr| &self.tasks[curr]) else { return false };
        if self.rules.since_618 {
            return self.vprot > curr.v;
        }
        self.rules.run_to_parity && self.vprot == curr.d
    }

    /// Charges the current task up to now. True: it shall be preempted.
    pub fn update(&mut self) -> bool {
        let delta_ns = self.now_ns - self.charged_ns;
        self.charged_ns = self.now_ns;
        let Some(curr) = self.current.filter(|_| delta_ns > 0) else { return false };
        self.tasks[curr].v += self.vslice(curr, delta_ns);
        let mut resched = self.renew(curr);
        if self.others().next().is_none() {
            return false;
        }
        if self.rules.since_618 {
            resched |= !self.is_protected();
        } else if self.rules.preempt_short {
            resched |= self.vprot != self.tasks[curr].d && !self.is_eligible(curr);
        }
        if resched && self.buddy == Some(curr) {
            self.buddy = None;
        }
        resched
    }

    fn renew(&mut self, task: usize) -> bool {
        if self.tasks[task].v < self.tasks[task].d {
            return false;
        }
        self.tasks[task].slice_ns = self.request_ns(task);
        self.tasks[task].d = self.tasks[task].v + self.vslice(task, self.tasks[task].slice_ns);
        true
    }

    fn limit(&self, task: usize) -> i128 {
        let tick_ns = 1_000_000_000 / i128::from(HZ);
        let own = self.tasks[task].slice_ns;
        let ns = if self.rules.since_618 {
            self.slices().max().map_or(own, |longest| longest.max(own)) + tick_ns
        } else {
            (2 * own).max(tick_ns)
        };
        self.vslice(task, ns)
    }

    fn lag(&self, task: usize) -> i128 {
        let lag = clamp(self.average() - self.tasks[task].v, self.limit(task));
        let t = &self.tasks[task];
        match t.state {
            State::Delayed if self.rules.delay_keeps => {
                let kept = lag.max(t.vlag);
                if self.rules.delay_zero { kept.min(0) } else { kept }
            }
            _ => lag,
        }
    }

    /// Dequeues a task. `sleeps`: otherwise it is moved or changed, and keeps the distance of its deadline.
    fn leave(&mut self, task: usize, sleeps: bool) {
        self.tasks[task].vlag = self.lag(task);
        self.empty_v = self.average();
        let t = &mut self.tasks[task];
        t.state = State::Out;
        if !sleeps {
            t.d -= t.v;
            t.relative = true;
        }
    }

    fn place(&mut self, task: usize, reweighted: bool) {
        let (w, others) = (self.w(task), self.total_weight());
        let v = self.average();
        self.tasks[task].slice_ns = self.request_ns(task);
        let vslice = self.vslice(task, self.tasks[task].slice_ns);
        let rules = self.rules;
        let t = &mut self.tasks[task];
        let lag = if rules.place_lag && others > 0 { t.vlag * (others + w) / others } else { 0 };
        t.v = v - lag;
        if t.relative && (rules.place_rel_deadline || reweighted) {
            t.d += t.v;
        } else {
            let half = t.is_new && rules.place_deadline_initial;
            t.d = t.v + if half { vslice / 2 } else { vslice };
        }
        t.relative = false;
        t.state = State::Queued;
    }

    fn ask_to_resched(&mut self) -> bool {
        self.current.is_some() && !std::mem::replace(&mut self.resched, true)
    }

    /// A task wakes up or is new. True: the current task is to be preempted, for the first time.
    pub fn join(&mut self, task: usize) -> bool {
        let mut asked = false;
        if self.tasks[task].state == State::Delayed {
            if self.rules.delay_settles && self.update() {
                asked |= self.ask_to_resched();
            }
            let lag = self.lag(task);
            let moves = match self.rules.delay_keeps {
                true => self.average() - lag != self.tasks[task].v,
                false => self.rules.delay_zero && lag > 0,
            };
            self.tasks[task].state = State::Queued;
            if moves {
                self.tasks[task].state = State::Out;
                self.tasks[task].vlag = if self.rules.delay_keeps { lag } else { 0 };
                self.place(task, false);
            }
        } else {
            if self.update() {
                asked |= self.ask_to_resched();
            }
            self.place(task, false);
        }
        if self.current.is_some() && self.preempts(task, &mut asked) {
            asked |= self.ask_to_resched();
        }
        self.tasks[task].is_new = false;
        asked
    }

    fn preempts(&mut self, task: usize, asked: &mut bool) -> bool {
        let Some(curr) = self.current else { return false };
        let (rules, new) = (self.rules, self.tasks[task].is_new);
        if rules.next_buddy && !new {
            self.buddy = Some(task);
        }
        if (self.resched && !rules.lazy) || !rules.wakeup_preemption {
            return false;
        }
        let (ours, theirs) = (self.tasks[curr].policy, self.tasks[task].policy);
        if ours == IDLE && theirs != IDLE {
            if rules.since_618 {
                self.cancel();
            }
            return true;
        }
        if theirs != NORMAL {
            return false;
        }
        if self.update() {
            *asked |= self.ask_to_resched();
        }
        let shorter = rules.preempt_short && self.tasks[task].slice_ns < self.tasks[curr].slice_ns;
        if rules.since_618 {
            if new && !shorter {
                return false;
            }
            let mut best = self.best(!shorter, rules.pick_buddy);
            while let Some(delayed) = best
                .filter(|best| rules.wakeup_dequeues && self.tasks[*best].state == State::Delayed)
            {
                self.finish_delayed(delayed);
                best = self.best(!shorter, rules.pick_buddy);
            }
            let picked = best.is_some_and(|best| self.is_it(best, task));
            if picked && shorter {
                self.cancel();
            }
            if !picked && rules.run_to_parity {
                let shortest = self.slices().min().unwrap_or_default();
                self.vprot = self.vprot.min(self.tasks[curr].v + self.vslice(curr, shortest));
            }
            return picked;
        }
        let earlier = self.tasks[task].d < self.tasks[curr].d || !self.is_eligible(curr);
        if shorter && self.is_eligible(task) && earlier {
            self.cancel();
        }
        self.best(true, rules.pick_buddy).is_some_and(|best| self.is_it(best, task))
    }

    /// A woken task is the pick only if no other in the tree has the same deadline: it came last.
    fn is_it(&self, best: usize, task: usize) -> bool {
        let rival = |other: &usize| {
            *other != task && self.is_eligible(*other) && self.tasks[*other].d == self.tasks[task].d
        };
        let by_buddy =
            self.rules.pick_buddy && self.buddy.is_some_and(|buddy| self.is_eligible(buddy));
        let waits = |other: &usize| self.tasks[*other].state == State::Queued;
        best == task && (by_buddy || !self.others().filter(waits).any(|other| rival(&other)))
    }

    fn cancel(&mut self) {
        if self.is_protected()
            && let Some(curr) = self.current
        {
            let curr = &self.tasks[curr];
            self.vprot = if self.rules.since_618 { curr.v } else { curr.d + 1 };
        }
    }

    /// The pick; none only if none is queued. Among equals in the tree waiting tasks come before delayed ones.
    fn best(&self, heed_protection: bool, heed_buddy: bool) -> Option<usize> {
        if self.others().next().is_none() {
            return self.current;
        }
        if heed_buddy && let Some(buddy) = self.buddy.filter(|buddy| self.is_eligible(*buddy)) {
            return Some(buddy);
        }
        let curr = self.current.filter(|curr| self.is_eligible(*curr));
        if heed_protection && curr.is_some() && self.is_protected() {
            return curr;
        }
        let key = |task: &usize| (self.tasks[*task].d, self.tasks[*task].state == State::Delayed);
        let first = self.others().filter(|task| self.is_eligible(*task)).min_by_key(key);
        match (first, curr) {
            (Some(first), Some(curr)) if self.tasks[curr].d < self.tasks[first].d => Some(curr),
            (None, curr) => curr,
            (first, _) => first,
        }
    }

    /// The CPU picks; delayed entities that are picked are dequeued. [`Naive::run`] sets the running task.
    pub fn pick(&mut self) -> Option<usize> {
        self.update();
        self.resched = false;
        let heed_buddy = self.rules.pick_buddy || (self.rules.next_buddy && !self.rules.since_618);
        loop {
            let best = self.best(true, heed_buddy)?;
            if self.tasks[best].state != State::Delayed {
                return Some(best);
            }
            self.finish_delayed(best);
        }
    }

    /// A delayed entity was picked.
    fn finish_delayed(&mut self, task: usize) {
        self.leave(task, true);
        if self.rules.delay_zero {
            self.tasks[task].vlag = self.tasks[task].vlag.min(0);
        }
    }

    /// A task is switched in.
    pub fn run(&mut self, task: usize) {
        self.current = Some(task);
        self.charged_ns = self.now_ns;
        self.resched = false;
        let (t, rules) = (&self.tasks[task], self.rules);
        let (v, d, own) = (t.v, t.d, t.slice_ns);
        self.vprot = d;
        if rules.since_618 {
            let shortest =
                if rules.run_to_parity { self.slices().min() } else { Some(rules.base_slice_ns) };
            if let Some(shortest) = shortest.filter(|shortest| *shortest < own) {
                self.vprot = d.min(v + self.vslice(task, shortest));
            }
        }
        if self.buddy == Some(task) {
            self.buddy = None;
        }
    }

    /// The current task goes to sleep.
    pub fn sleep(&mut self) {
        let Some(task) = self.current else { return };
        self.update();
        self.current = None;
        if self.buddy == Some(task) {
            self.buddy = None;
        }
        if self.rules.delay_dequeue && !self.is_eligible(task) {
            self.tasks[task].vlag = self.lag(task);
            self.tasks[task].state = State::Delayed;
        } else {
            self.leave(task, true);
        }
    }

    /// A task that runs or waits gets another nice value or slice. True: the current one is to be preempted.
    pub fn change(&mut self, task: usize, nice: i8, custom_ns: i128) -> bool {
        let runs = self.current == Some(task);
        let mut asked = self.update() && !runs && self.ask_to_resched();
        if runs {
            self.current = None;
        }
        self.leave(task, false);
        if self.buddy == Some(task) {
            self.buddy = None;
        }
        let (old, new) = (self.w(task), weight_of(nice));
        let t = &mut self.tasks[task];
        (t.nice, t.custom_ns) = (nice, custom_ns);
        if old != new {
            t.vlag = t.vlag * old / new;
            t.d = t.d * old / new;
        }
        if self.update() {
            asked |= self.ask_to_resched();
        }
        self.place(task, old != new);
        if runs {
            self.run(task);
        }
        asked
    }

    pub fn yields(&mut self) {
        let Some(curr) = self.current.filter(|_| self.others().next().is_some()) else { return };
        if self.buddy == Some(curr) {
            self.buddy = None;
        }
        self.update();
        if !self.rules.since_618 {
            self.tasks[curr].d += self.vslice(curr, self.tasks[curr].slice_ns);
        } else if self.is_eligible(curr) {
            self.tasks[curr].v = self.tasks[curr].d;
            self.renew(curr);
        }
    }
}
