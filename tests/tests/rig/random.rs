//! Random workloads on random machines from one seed: a phase of chaos, then a quiet one in which every task must
//! exit.
//!
//! A case is a list of parts (hogs, sleepers, pipes …), so that a failing one shrinks to something readable: fewer
//! parts, fewer tasks, fewer iterations, fewer CPUs.

use std::fmt;

use fairground_workload::{
    Carrier, CpuList, Duration, Lock, LockKind, Op, Pipe, Program, Queue, SchedPolicy, TaskSpec,
    Timer, Workload,
};

use super::{MS, US};

/// SplitMix64 (Steele, Lea, Flood 2014): the generator of the cases.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `low..=high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    pub fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.within(0, list.len() as u64 - 1) as usize].clone()
    }
}

/// The kind of the tasks of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Hog,
    Sleeper,
    Periodic,
    Pipe,
    Queue,
    Fork,
    Yielder,
    Nice,
    Affinity,
    Mutex,
    Spin,
    RtMutex,
}

/// Every kind.
pub const KINDS: [Kind; 12] = [
    Kind::Hog,
    Kind::Sleeper,
    Kind::Periodic,
    Kind::Pipe,
    Kind::Queue,
    Kind::Fork,
    Kind::Yielder,
    Kind::Nice,
    Kind::Affinity,
    Kind::Mutex,
    Kind::Spin,
    Kind::RtMutex,
];

/// Equal tasks, or equal pairs of tasks.
#[derive(Clone, Debug)]
pub struct Part {
    pub kind: Kind,
    pub count: u32,
    pub iterations: u64,
    pub run_ns: u64,
    pub sleep_ns: u64,
    pub start_ns: u64,
    pub policy: SchedPolicy,
    pub nice: i8,
    /// The CPUs that its tasks may run on: first and last, as fractions of the machine in 1/256.
    pub cpus: Option<(u32, u32)>,
}

impl Part {
    /// CPU time that one of its tasks needs, roughly, ns.
    fn work_ns(&self) -> u64 {
        let per_iteration = if self.kind == Kind::Hog { 0 } else { self.run_ns + 20 * US };
        let once = if self.kind == Kind::Hog { self.run_ns } else { 0 };
        2 * (once + self.iterations * per_iteration)
    }
}

/// Suffix of the name of a group whose tasks are forked.
const CHILD: &str = "-child";

/// A workload on a machine.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub topology: String,
    pub cpus: u32,
    pub hz: u32,
    pub parts: Vec<Part>,
}

/// Machines by their number of CPUs.
const TOPOLOGIES: [(u32, &[&str]); 5] = [
    (1, &["1"]),
    (2, &["2", "1x1x2", "2x1x1"]),
    (8, &["8", "2x2x2", "1x4x2", "8x1x1,nodes=1", "4x2x1,nodes=2"]),
    (64, &["64", "2x16x2", "8x8x1,nodes=2"]),
    (256, &["256", "4x32x2", "16x16x1,nodes=4"]),
];

impl Case {
    /// The case of a seed. Each has only some of the kinds ("swarm testing": a kind that is always present hides
    /// others).
    pub fn new(seed: u64, cpu_counts: &[u32], kinds: &[Kind]) -> Case {
        let mut random = Random(seed);
        let cpus = random.pick(cpu_counts);
        let known = TOPOLOGIES.iter().find(|(n, _)| *n == cpus).expect("a size of the list");
        let topology = random.pick(known.1).to_owned();
        let hz = random.pick(&[100, 250, 1000]);
        let mut chosen: Vec<Kind> = kinds.iter().copied().filter(|_| random.one_in(2)).collect();
        if chosen.is_empty() {
            chosen.push(Kind::Hog);
        }
        let count = random.within(1, 7);
        let parts = (0..count).map(|_| part(&mut random, &chosen, cpus)).collect();
        Case { seed, topology, cpus, hz, parts }
    }

    /// The same with some of the parts in the real-time class.
    pub fn with_real_time(mut self) -> Case {
        let mut random = Random(!self.seed);
        for part in &mut self.parts {
            let priority = random.within(1, 3) as u8;
            part.policy = match random.within(0, 5) {
                0 => SchedPolicy::Fifo(priority),
                1 => SchedPolicy::Rr(priority),
                _ => SchedPolicy::Other,
            };
        }
        self
    }

    /// The same without affinities: every task may run everywhere.
    pub fn unpinned(mut self) -> Case {
        for part in &mut self.parts {
            part.cpus = None;
            if part.kind == Kind::Affinity {
                part.kind = Kind::Sleeper;
            }
        }
        self
    }

    /// End of the chaos, when all tasks have started, ns.
    pub fn chaos_ns(&self) -> u64 {
        100 * MS
    }

    /// The time by which all tasks must have exited, ns: as if one CPU did all the work, each task one after the other
    /// slept all its sleep at a tick's resolution, and as much again for the kernel.
    pub fn end_ns(&self) -> u64 {
        let tick_ns = 1_000_000_000 / u64::from(self.hz);
        let per_part = |part: &Part| {
            let tasks = u64::from(part.count) * if part.kind == Kind::Fork { 3 } else { 2 };
            tasks * part.work_ns() + part.iterations * (part.sleep_ns + 2 * tick_ns)
        };
        self.chaos_ns() + 2 * self.parts.iter().map(per_part).sum::<u64>() + 100 * MS
    }

    /// The workload of the parts.
    pub fn workload(&self) -> Workload {
        let mut workload = Workload {
            name: format!("random-{}", self.seed),
            duration_ns: self.end_ns(),
            ..Workload::default()
        };
        for (number, part) in self.parts.iter().enumerate() {
            self.add(&mut workload, number, part);
        }
        workload
    }

    fn add(&self, workload: &mut Workload, number: usize, part: &Part) {
        let name = format!("{:?}-{number}", part.kind).to_lowercase();
        let first = workload.tasks.len();
        for (suffix, program) in self.programs(number, part, first) {
            // Each parent creates one child per iteration.
            let child = suffix == CHILD;
            let count = if child { 1 } else { part.count };
            let start_ns = (!child).then_some(part.start_ns);
            workload.tasks.push(TaskSpec {
                policy: part.policy,
                nice: part.nice,
                cpus: part.cpus.map(|(low, high)| self.range(low, high)),
                ..TaskSpec::new(format!("{name}{suffix}"), count, start_ns, program)
            });
        }
        // Each part has its own objects, used or not: the indexes are those of the parts.
        workload.pipes.push(Pipe {
            name: format!("pipe-{number}"),
            capacity: 4096,
            carrier: Carrier::Pipe,
        });
        let queue = Queue::unlimited(format!("queue-{number}"));
        workload.queues.push(Queue { capacity: Some(4), ..queue });
        let kind = match part.kind {
            Kind::Spin => LockKind::Spin,
            Kind::RtMutex if number.is_multiple_of(2) => LockKind::RtSpin,
            Kind::RtMutex => LockKind::RtMutex,
            _ => LockKind::Mutex,
        };
        let (name, adaptive) = (format!("lock-{number}"), kind.inherits());
        workload.locks.push(Lock { name, kind, adaptive, steal: adaptive });
        let period_ns = part.sleep_ns.max(100 * US);
        // Each of the four kinds of timers.
        let (relative, shared) = (number % 2 == 1, number % 4 > 1);
        workload.timers.push(Timer {
            name: format!("timer-{number}"),
            period_ns,
            relative,
            shared,
        });
    }

    /// The programs of the groups of a part, by the suffixes of their names. `first` is the index of the first group.
    fn programs(&self, number: usize, part: &Part, first: usize) -> Vec<(&'static str, Program)> {
        let run = Op::Run(Duration::Uniform { low: part.run_ns / 2 + 1, high: part.run_ns + 1 });
        let sleep = Op::Sleep(Duration::Uniform { low: part.sleep_ns / 2, high: part.sleep_ns });
        let iterations = |body| vec![Op::Loop(Some(part.iterations), body)];
        let half = |low, high| Op::SetAffinity(CpuList(vec![(low, high)]));
        let last = self.cpus - 1;
        match part.kind {
            Kind::Hog => vec![("", vec![run])],
            Kind::Sleeper => vec![("", iterations(vec![run, sleep]))],
            Kind::Yielder => vec![("", iterations(vec![run, Op::Yield]))],
            Kind::Periodic => {
                vec![(
                    "",
                    iterations(vec![run, Op::TimerWait(number, part.sleep_ns.max(100 * US))]),
                )]
            }
            Kind::Nice if part.policy.priority().is_some() => {
                let (leave, back) = (Op::SetPolicy(SchedPolicy::Other), Op::SetPolicy(part.policy));
                vec![("", iterations(vec![leave, run.clone(), back, run, sleep]))]
            }
            Kind::Nice => {
                let body = vec![Op::SetNice(10), run.clone(), Op::SetNice(-5), run, sleep];
                vec![("", iterations(body))]
            }
            Kind::Affinity => {
                let (there, back) = (half(last / 2, last), half(0, last / 2));
                vec![("", iterations(vec![there, run.clone(), sleep, back, run]))]
            }
            Kind::Fork => {
                let body = vec![Op::Fork(first), Op::WaitChildren, sleep];
                vec![(CHILD, vec![run]), ("", iterations(body))]
            }
            Kind::Mutex | Kind::Spin | Kind::RtMutex => {
                let section = [Op::Lock(number), run.clone(), Op::Unlock(number)];
                vec![("", iterations([vec![run], section.to_vec(), vec![sleep]].concat()))]
            }
            Kind::Pipe => vec![
                ("-writer", iterations(vec![run.clone(), Op::PipeWrite(number, 1)])),
                ("-reader", iterations(vec![Op::PipeRead(number, 1), run])),
            ],
            Kind::Queue => vec![
                ("-sender", iterations(vec![run.clone(), Op::Send(number)])),
                ("-receiver", iterations(vec![Op::Receive(number, 1), run])),
            ],
        }
    }

    fn range(&self, low: u32, high: u32) -> CpuList {
        CpuList(vec![(low * self.cpus / 256, high * self.cpus / 256)])
    }

    /// Smaller cases, the largest steps first.
    pub fn smaller(&self) -> Vec<Case> {
        let mut all = Vec::new();
        for number in 0..self.parts.len() {
            if self.parts.len() > 1 {
                let mut case = self.clone();
                case.parts.remove(number);
                all.push(case);
            }
        }
        let sizes = TOPOLOGIES.iter().rev().filter(|(cpus, _)| *cpus < self.cpus);
        all.extend(sizes.map(|(cpus, forms)| Case {
            cpus: *cpus,
            topology: forms[0].to_owned(),
            ..self.clone()
        }));
        if self.topology != self.cpus.to_string() {
            all.push(Case { topology: self.cpus.to_string(), ..self.clone() });
        }
        let changes: [fn(&mut Part); 7] = [
            |part| part.count = part.count.div_ceil(2),
            |part| part.iterations = part.iterations.div_ceil(2),
            |part| part.run_ns /= 2,
            |part| part.cpus = None,
            |part| part.policy = SchedPolicy::Other,
            |part| part.nice = 0,
            |part| part.start_ns = 0,
        ];
        for number in 0..self.parts.len() {
            for change in changes {
                let mut case = self.clone();
                change(&mut case.parts[number]);
                if format!("{:?}", case.parts[number]) != format!("{:?}", self.parts[number]) {
                    all.push(case);
                }
            }
        }
        all
    }

    /// Makes the case smaller for as long as it still fails, with at most `tries` runs.
    pub fn shrink(mut self, tries: usize, fails: impl Fn(&Case) -> bool) -> Case {
        let mut left = tries;
        'again: loop {
            for case in self.smaller() {
                if left == 0 {
                    return self;
                }
                left -= 1;
                if fails(&case) {
                    self = case;
                    continue 'again;
                }
            }
            return self;
        }
    }
}

fn part(random: &mut Random, kinds: &[Kind], cpus: u32) -> Part {
    let kind = random.pick(kinds);
    let most = u64::from(cpus.clamp(2, 48));
    let low = random.within(0, 255) as u32;
    let high = random.within(u64::from(low), 255) as u32;
    Part {
        kind,
        count: random.within(1, most) as u32,
        iterations: random.within(10, 400),
        run_ns: match kind {
            Kind::Hog => random.within(20 * MS, 300 * MS),
            _ => random.pick(&[10 * US, 100 * US, MS, 3 * MS]),
        },
        sleep_ns: random.pick(&[50 * US, 900 * US, 3 * MS, 10 * MS]),
        start_ns: random.within(0, 99) * MS,
        policy: SchedPolicy::Other,
        nice: if random.one_in(3) { random.within(0, 39) as i8 - 20 } else { 0 },
        cpus: random.one_in(4).then_some((low, high)),
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&fairground_workload::to_toml(&self.workload()))
    }
}
