//! The differences between two recordings, or between several before and several after a change: which tasks lost time,
//! and what took it.
//!
//! The tasks of all recordings are sorted into *roles*: tasks of one name, or of one place in the wake-up graph. The
//! life of a role's tasks is divided without remainder into running, waiting for a CPU (by the role that had it
//! meanwhile), sleeping (by the role that ended the sleep) and unknown. So the differences of the parts add up to
//! that of the whole.
//!
//! The bound of a role's work ([`Work`]) decides which time is a loss. The figures before are those for as much work
//! as the recordings after did: as many tasks, or as much time.
//!
//! Each loss is a part of one [`Cause`]: waiting is caused by the role that had the CPU, sleep by the role that ended
//! it, if that did not lose the time itself.

mod causes;
mod conditions;
mod ledger;
mod roles;
mod spread;

pub use causes::{Cause, CauseKind};
pub use conditions::Condition;
pub use roles::{OTHERS, ROLES_MAX};
pub use spread::Change;

use crate::Irregularities;
use fairground_trace::Trace;
use ledger::{Ledger, Sums};
use roles::Roles;

/// A recording, and which of its tasks are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The recording.
    pub trace: &'a Trace,
    /// By task: whether its losses count. `None`: those of all tasks.
    pub asked: Option<&'a [bool]>,
}

impl<'a> From<&'a Trace> for Recorded<'a> {
    fn from(trace: &'a Trace) -> Self {
        Self { trace, asked: None }
    }
}

impl Recorded<'_> {
    fn is_asked(&self, task: usize) -> bool {
        self.asked.is_none_or(|asked| asked.get(task) == Some(&true))
    }
}

/// How finely tasks are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Tasks whose names are alike up to a `/` are one role.
    Group,
    /// Tasks of one name are one role; where each recording has as many of them, each is one.
    Task,
}

/// The bound of a role's work, which decides which of its time is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Most of its tasks begin and end in the recording: their number is the work, and a longer life is lost.
    Tasks,
    /// Its tasks want a CPU most of the time (before, they ran for 80 % of the time in which they did not wait for
    /// one): the time is the work, and what they do not run is lost.
    CpuTime,
    /// It is woken from outside: its wake-ups are the work, and running or waiting for longer is lost.
    Pace,
}

impl Work {
    /// A word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Work::Tasks => "tasks",
            Work::CpuTime => "cpu-time",
            Work::Pace => "pace",
        }
    }
}

/// Tasks that run for so much of the time in which they do not wait want a CPU most of the time.
const WANTS_CPU: f64 = 0.8;

/// A role has grown if it takes at least this part more CPU time than before in the same time.
const GROWN_MIN: f64 = 0.05;

/// A part of a role's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeShare {
    /// On a CPU.
    Runs,
    /// Waiting while a role has the CPU.
    WaitsBehind(usize),
    /// Waiting while the CPU idles: a wake-up that is under way, or a group that is throttled.
    WaitsIdle,
    /// Waiting while it is not known what the CPU does.
    WaitsUnknown,
    /// Asleep until a role wakes it.
    SleepsFor(usize),
    /// Asleep until an interrupt, a timer, or something that is not recorded wakes it.
    Sleeps,
    /// Asleep when the recording ends.
    SleepsOn,
    /// Not known.
    Unknown,
}

impl TimeShare {
    /// Whether it is lost time of a role with that kind of work. What is not known is not called lost.
    fn is_loss(self, work: Work) -> bool {
        match self {
            TimeShare::Runs => work != Work::CpuTime,
            TimeShare::WaitsBehind(_) | TimeShare::WaitsIdle => true,
            TimeShare::SleepsFor(_) | TimeShare::Sleeps => work != Work::Pace,
            TimeShare::WaitsUnknown | TimeShare::SleepsOn | TimeShare::Unknown => false,
        }
    }

    /// Whether it is a wait for a CPU.
    pub fn is_wait(self) -> bool {
        matches!(self, TimeShare::WaitsBehind(_) | TimeShare::WaitsIdle | TimeShare::WaitsUnknown)
    }

    /// Whether it is sleep.
    pub fn is_sleep(self) -> bool {
        matches!(self, TimeShare::SleepsFor(_) | TimeShare::Sleeps | TimeShare::SleepsOn)
    }

    fn of_ledger(self, ledger: &Ledger, role: usize) -> u64 {
        let (waited, slept) = (&ledger.waited, &ledger.slept);
        match self {
            TimeShare::Runs => ledger.roles[role].run_ns,
            TimeShare::WaitsBehind(by) => waited.get(role, by),
            TimeShare::WaitsIdle => waited.get(role, waited.no_role()),
            TimeShare::WaitsUnknown => waited.get(role, waited.unseen()),
            TimeShare::SleepsFor(by) => slept.get(role, by),
            TimeShare::Sleeps => slept.get(role, slept.no_role()),
            TimeShare::SleepsOn => slept.get(role, slept.unseen()),
            TimeShare::Unknown => ledger.roles[role].unknown_ns,
        }
    }
}

/// The change of a role.
#[derive(Clone, Debug)]
pub struct RoleChange {
    /// Its number in [`Difference::names`].
    pub role: usize,
    /// Tasks in a recording, the mean.
    pub tasks: Change,
    /// Whether its losses count.
    pub asked: bool,
    /// The bound of its work; `None` of a role that only one side has.
    pub work: Option<Work>,
    /// The time that it lives, ns.
    pub life: Change,
    /// The parts of its life that are not 0 on both sides, ns.
    pub parts: Vec<(TimeShare, Change)>,
    /// On a CPU, ns.
    pub run: Change,
    /// Waiting for a CPU, ns.
    pub wait: Change,
    /// Asleep, ns.
    pub sleep: Change,
    /// The sum of the parts that are lost time by [`RoleChange::work`], ns; 0 of a role that only one side has.
    pub lost: Change,
    /// CPU time, whatever bounds its work, in the time of a recording after, ns.
    pub cpu_time: Change,
    /// Wake-ups a second.
    pub wakeups: Change,
    /// Moves to another CPU, a second.
    pub migrations: Change,
    /// Preemptions that it suffers, a second.
    pub preempted: Change,
}

impl RoleChange {
    /// Whether only one side has it.
    pub fn is_one_sided(&self) -> bool {
        self.work.is_none()
    }

    /// Whether only the recordings after have it.
    pub fn is_new(&self) -> bool {
        self.tasks.before == 0.0
    }

    /// Whether only the recordings before have it.
    pub fn is_gone(&self) -> bool {
        self.tasks.after == 0.0
    }

    /// Whether it takes more CPU time than before in the same time, by 5 % at least.
    pub fn has_grown(&self) -> bool {
        self.cpu_time.difference() > GROWN_MIN * self.cpu_time.before
    }

    /// A part of its life.
    pub fn part(&self, part: TimeShare) -> Change {
        let found = self.parts.iter().find(|(known, _)| *known == part);
        found.map_or(Change::default(), |(_, change)| *change)
    }
}

/// The machine on both sides.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineChange {
    /// Length of a recording, ns.
    pub window: Change,
    /// CPUs.
    pub cpus: Change,
    /// CPU time of all tasks, in % of all CPUs.
    pub busy: Change,
    /// Switches a second.
    pub switches: Change,
    /// Preemptions a second.
    pub preemptions: Change,
    /// Migrations a second.
    pub migrations: Change,
    /// Wake-ups a second.
    pub wakeups: Change,
}

/// The result.
#[derive(Debug)]
pub struct Difference {
    /// Recordings before and after.
    pub recordings: (usize, usize),
    /// The names of the roles.
    pub names: Vec<String>,
    /// Names before and after of roles that were matched by their place in the wake-up graph.
    pub renamed: Vec<(String, String)>,
    /// Differences of the machines and schedulers that made the recordings.
    pub conditions: Vec<Condition>,
    /// The machine.
    pub machine: MachineChange,
    /// The roles, those that lost most first; then those whose losses do not count; those that only one side has last,
    /// by CPU time.
    pub roles: Vec<RoleChange>,
    /// Causes of the lost time, the costliest first.
    pub causes: Vec<Cause>,
    /// By role: its place in `roles`.
    places: Vec<Option<usize>>,
    ledgers: [Vec<Ledger>; 2],
}

/// The work of a role in each recording, and how much of it the figures are for.
struct Units {
    of: [Vec<f64>; 2],
    scale: f64,
}

impl Units {
    /// The figures are for the mean of the recordings after.
    fn new(ledgers: &[Vec<Ledger>; 2], of: impl Fn(&Ledger) -> u64) -> Self {
        let of =
            ledgers.each_ref().map(|side| side.iter().map(|ledger| of(ledger) as f64).collect());
        let [_, after]: &[Vec<f64>; 2] = &of;
        Self { scale: after.iter().sum::<f64>() / after.len() as f64, of }
    }
}

impl Difference {
    /// Compares recordings. The same recordings give the same result.
    ///
    /// # Panics
    /// When a side is empty.
    pub fn of(before: &[Recorded<'_>], after: &[Recorded<'_>], detail: Detail) -> Self {
        assert!(!before.is_empty() && !after.is_empty(), "each side has a recording");
        let sides = [(before, false), (after, true)];
        let sided = sides.iter().flat_map(|(side, after)| side.iter().map(|one| (*one, *after)));
        let all: Vec<(Recorded<'_>, bool)> = sided.collect();
        let Roles { names, of, asked, renamed } = Roles::of(&all, detail);
        let collected = all.iter().zip(&of);
        let collected = collected.map(|((one, _), of)| ledger::collect(one.trace, of, names.len()));
        let mut before_ledgers: Vec<Ledger> = collected.collect();
        let after_ledgers = before_ledgers.split_off(before.len());
        let mut difference = Self {
            recordings: (before.len(), after.len()),
            names,
            renamed,
            conditions: conditions::conditions(before, after),
            machine: MachineChange::default(),
            roles: Vec::new(),
            causes: Vec::new(),
            places: Vec::new(),
            ledgers: [before_ledgers, after_ledgers],
        };
        difference.machine = difference.machine_change();
        let roles = 0..difference.names.len();
        difference.roles =
            roles.filter_map(|role| difference.role_change(role, asked[role])).collect();
        difference.roles.sort_by(|a, b| {
            let by_loss = b.lost.difference().total_cmp(&a.lost.difference());
            let by_time = b.cpu_time.difference().abs().total_cmp(&a.cpu_time.difference().abs());
            let order = a.is_one_sided().cmp(&b.is_one_sided()).then(b.asked.cmp(&a.asked));
            order.then(by_loss).then(by_time)
        });
        difference.places = vec![None; difference.names.len()];
        for (place, change) in difference.roles.iter().enumerate() {
            difference.places[change.role] = Some(place);
        }
        difference.causes = causes::causes(&difference);
        difference
    }

    /// The role of that number; `None` where no recording has a task of it.
    pub fn role(&self, role: usize) -> Option<&RoleChange> {
        Some(&self.roles[(*self.places.get(role)?)?])
    }

    /// The role whose CPU time grew most.
    pub fn most_grown(&self) -> Option<&RoleChange> {
        let by_growth = |a: &&RoleChange, b: &&RoleChange| {
            a.cpu_time.difference().total_cmp(&b.cpu_time.difference())
        };
        self.roles.iter().filter(|role| role.has_grown()).max_by(by_growth)
    }

    /// Contradictions and losses in each recording, those before first.
    pub fn irregularities(&self) -> impl Iterator<Item = &Irregularities> {
        self.ledgers.iter().flatten().map(|ledger| &ledger.irregularities)
    }

    /// How often in a second of its life a task of a role had to leave a CPU to tasks of another one.
    pub fn preemptions(&self, victim: usize, by: usize) -> Change {
        self.per_life(victim, |ledger| ledger.preempted.get(victim, by))
    }

    /// How often of these because the other one was woken.
    pub fn wakeup_preemptions(&self, victim: usize, by: usize) -> Change {
        self.per_life(victim, |ledger| ledger.by_wakeup.get(victim, by))
    }

    fn per_life(&self, role: usize, count: impl Fn(&Ledger) -> u64) -> Change {
        let units =
            Units { scale: 1e9, ..Units::new(&self.ledgers, |ledger| ledger.life_ns(role)) };
        self.change(&units, |ledger| count(ledger) as f64)
    }

    /// A quantity that each recording has, by its units.
    fn change(&self, units: &Units, of: impl Fn(&Ledger) -> f64) -> Change {
        let [before, after] = [0, 1].map(|side| {
            let measured = self.ledgers[side].iter().zip(&units.of[side]);
            let measured = measured.filter(|(_, units)| **units > 0.0);
            measured.map(|(ledger, units)| of(ledger) / units).collect::<Vec<f64>>()
        });
        Change::of(&before, &after, units.scale)
    }

    /// A quantity of a recording as it is.
    fn plain(&self, of: impl Fn(&Ledger) -> f64) -> Change {
        self.change(&Units::new(&self.ledgers, |_| 1), of)
    }

    fn per_second(&self, count: impl Fn(&Ledger) -> u64) -> Change {
        let units = Units { scale: 1e9, ..self.windows() };
        self.change(&units, |ledger| count(ledger) as f64)
    }

    /// The time of a recording is the work.
    fn windows(&self) -> Units {
        Units::new(&self.ledgers, |ledger| ledger.window_ns)
    }

    fn units(&self, role: usize, work: Option<Work>) -> Units {
        match work {
            Some(Work::Tasks) => Units::new(&self.ledgers, |ledger| ledger.roles[role].tasks),
            Some(Work::Pace) if self.always_wakes(role) => {
                Units::new(&self.ledgers, |ledger| ledger.roles[role].wakeups)
            }
            _ => self.windows(),
        }
    }

    /// Whether every recording has wake-ups of a role.
    fn always_wakes(&self, role: usize) -> bool {
        self.ledgers.iter().flatten().all(|ledger| ledger.roles[role].wakeups > 0)
    }

    /// The sum of some parts of some roles, each by the work of its role.
    fn sum(&self, parts: &[(usize, TimeShare)]) -> Change {
        let mut totals = self.ledgers.each_ref().map(|side| vec![0.0; side.len()]);
        for (role, part) in parts {
            let units = self.units(*role, self.role(*role).and_then(|role| role.work));
            for (side, totals) in totals.iter_mut().enumerate() {
                for (nth, total) in totals.iter_mut().enumerate() {
                    let part = part.of_ledger(&self.ledgers[side][nth], *role) as f64;
                    let units_here = units.of[side][nth];
                    *total += if units_here > 0.0 { part / units_here * units.scale } else { 0.0 };
                }
            }
        }
        Change::of(&totals[0], &totals[1], 1.0)
    }

    fn role_sum(&self, side: usize, role: usize, of: impl Fn(&Sums) -> u64) -> u64 {
        self.ledgers[side].iter().map(|ledger| of(&ledger.roles[role])).sum()
    }

    /// The bound of the work of a role that both sides have.
    fn work(&self, role: usize) -> Work {
        let complete = |side| {
            let tasks = self.role_sum(side, role, |sums| sums.tasks);
            2 * self.role_sum(side, role, |sums| sums.complete) >= tasks
        };
        if complete(0) && complete(1) {
            return Work::Tasks;
        }
        let before = &self.ledgers[0];
        let sum = |of: &dyn Fn(&Ledger) -> u64| before.iter().map(of).sum::<u64>() as f64;
        let run = sum(&|ledger| ledger.roles[role].run_ns);
        let sleep = sum(&|ledger| ledger.slept_ns(role));
        match run >= WANTS_CPU * (run + sleep) {
            true => Work::CpuTime,
            false => Work::Pace,
        }
    }

    /// The parts of a role's life that any recording has.
    fn parts_of(&self, role: usize) -> Vec<TimeShare> {
        let roles = 0..self.names.len();
        let behind = roles.clone().map(TimeShare::WaitsBehind);
        let parts = [TimeShare::Runs].into_iter().chain(behind);
        let parts = parts.chain([TimeShare::WaitsIdle, TimeShare::WaitsUnknown]);
        let parts = parts.chain(roles.map(TimeShare::SleepsFor));
        let parts = parts.chain([TimeShare::Sleeps, TimeShare::SleepsOn, TimeShare::Unknown]);
        let exists = |part: &TimeShare| {
            self.ledgers.iter().flatten().any(|ledger| part.of_ledger(ledger, role) > 0)
        };
        parts.filter(exists).collect()
    }

    fn role_change(&self, role: usize, asked: bool) -> Option<RoleChange> {
        let tasks = [0, 1].map(|side| self.role_sum(side, role, |sums| sums.tasks));
        if tasks == [0, 0] {
            return None;
        }
        let work = (!tasks.contains(&0)).then(|| self.work(role));
        let units = self.units(role, work);
        let parts = self.parts_of(role);
        let total = |is: &dyn Fn(TimeShare) -> bool| {
            self.change(&units, |ledger| {
                let parts = parts.iter().filter(|part| is(**part));
                parts.map(|part| part.of_ledger(ledger, role)).sum::<u64>() as f64
            })
        };
        let one =
            |part: TimeShare| self.change(&units, |ledger| part.of_ledger(ledger, role) as f64);
        Some(RoleChange {
            role,
            asked,
            tasks: self.plain(|ledger| ledger.roles[role].tasks as f64),
            work,
            life: self.change(&units, |ledger| ledger.life_ns(role) as f64),
            run: total(&|part| part == TimeShare::Runs),
            wait: total(&TimeShare::is_wait),
            sleep: total(&TimeShare::is_sleep),
            lost: work.map_or(Change::default(), |work| total(&|part| part.is_loss(work))),
            cpu_time: self.change(&self.windows(), |ledger| ledger.roles[role].run_ns as f64),
            wakeups: self.per_second(|ledger| ledger.roles[role].wakeups),
            migrations: self.per_second(|ledger| ledger.roles[role].migrations),
            preempted: self.per_second(|ledger| ledger.preempted.row(role).iter().sum()),
            parts: parts.iter().map(|part| (*part, one(*part))).collect(),
        })
    }

    fn machine_change(&self) -> MachineChange {
        let sum = |of: fn(&Sums) -> u64| {
            self.per_second(|ledger| ledger.roles.iter().map(of).sum::<u64>())
        };
        let rows = 0..self.names.len();
        MachineChange {
            window: self.plain(|ledger| ledger.window_ns as f64),
            cpus: self.plain(|ledger| f64::from(ledger.cpus)),
            busy: self.plain(|ledger| {
                let run_ns: u64 = ledger.roles.iter().map(|sums| sums.run_ns).sum();
                let all_ns = ledger.window_ns as f64 * f64::from(ledger.cpus);
                if all_ns > 0.0 { 100.0 * run_ns as f64 / all_ns } else { 0.0 }
            }),
            switches: self.per_second(|ledger| ledger.switches),
            preemptions: self.per_second(|ledger| {
                rows.clone().flat_map(|role| ledger.preempted.row(role)).sum()
            }),
            migrations: sum(|sums| sums.migrations),
            wakeups: sum(|sums| sums.wakeups),
        }
    }
}
