//! A workload from a recording: what each task did, and which task woke which.
//!
//! The replay is closed: it keeps causes, not times. A task's program is its CPU bursts. Where it blocked and
//! another recorded task woke it, the two meet: it waits until the other has come to the point of its own burst at
//! which it woke it, and the other waits there when it comes first. So each waits for the other's progress and for
//! nothing else: of waits that did not block, a recording of wake-ups says nothing, and without the second half a
//! waker that is chosen more often than in the recording would run ahead of all that it feeds. Where a task was woken
//! by an interrupt, by the idle task or by something that the recording does not hold, it sleeps as long as it was
//! seen blocked, from the block to the wake-up; the time from the wake-up to the run is the scheduler's and is left
//! out.
//!
//! Every wake-up lies after the block that it ends, so the order of the recording is one in which all that meet find
//! each other, and each meeting place has one task on either side: no replay can lock up. [`ReplayBuilder::finish`]
//! checks that.
//!
//! A task that was there from the beginning of the recording to its end has not done all that it had to do: it starts
//! over when a replay gives it more time than it had.

mod meetings;
mod notes;
mod program;

use std::collections::BTreeMap;

use crate::cgroups::{self, Cgroup, path_problem};
use crate::diagnostic::{Diagnostic, WorkloadError};
use crate::limits::{CGROUP_WEIGHT_DEFAULT, CGROUP_WEIGHT_MAX};
use crate::model::Workload;
use crate::policy::SchedPolicy;
use crate::units::CpuList;
use meetings::{Message, Received};
pub use notes::ReplayNotes;
use program::{Item, Recorded, Start};

/// A wake-up of one task by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageId(usize);

/// Builds a workload from what tasks did, given for each task in the order of time.
///
/// Tasks are named by numbers of the caller's. One of which [`ReplayBuilder::task`] was not told gets its number as
/// its pid, an empty name and nice 0.
///
/// ```
/// use fairground_workload::ReplayBuilder;
///
/// let mut replay = ReplayBuilder::new("build");
/// replay.task(1, 100, "make", 0);
/// replay.task(2, 101, "cc", 0);
/// replay.run(1, 2_000);
/// let message = replay.send(1, 2);
/// replay.run(1, 1_000);
/// replay.receive(2, message);
/// replay.run(2, 6_000);
/// let (workload, notes) = replay.finish(9_000)?;
/// assert_eq!(notes.run_ns, 9_000);
/// assert_eq!(workload.tasks.len(), 2);
/// # Ok::<(), fairground_workload::WorkloadError>(())
/// ```
#[derive(Debug)]
pub struct ReplayBuilder {
    name: String,
    by_id: BTreeMap<u32, usize>,
    tasks: Vec<Recorded>,
    messages: Vec<Message>,
    begin_ns: u64,
    /// Weights of control groups, by path.
    cgroups: BTreeMap<String, u32>,
    /// Facts that the caller could not tell; [`ReplayBuilder::finish`] adds those of the workload.
    pub notes: ReplayNotes,
}

impl ReplayBuilder {
    /// For a workload of this name.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            by_id: BTreeMap::new(),
            tasks: Vec::new(),
            messages: Vec::new(),
            begin_ns: 0,
            cgroups: BTreeMap::new(),
            notes: ReplayNotes::default(),
        }
    }

    /// The recording begins so many ns after the begin of the workload: before that nothing happens.
    pub fn begin_at(&mut self, ns: u64) {
        self.begin_ns = ns;
    }

    /// The known facts of a task.
    pub fn task(&mut self, id: u32, pid: u32, comm: &str, nice: i8) {
        let recorded = self.recorded(id);
        (recorded.pid, recorded.nice) = (pid, nice.clamp(-20, 19));
        comm.clone_into(&mut recorded.comm);
    }

    /// The task begins under a policy other than the normal one.
    pub fn begin_under(&mut self, id: u32, policy: SchedPolicy) {
        self.recorded(id).policy = policy;
    }

    /// The CPUs on which a task may run.
    pub fn allow(&mut self, id: u32, cpus: CpuList) {
        self.recorded(id).cpus = Some(cpus);
    }

    /// There is a control group of this path (`web/front`) and weight, 1…10,000; `None`: the usual one. False: a
    /// workload cannot have one of that path.
    pub fn cgroup(&mut self, path: &str, weight: Option<u32>) -> bool {
        let valid = path_problem(path).is_none();
        if valid {
            let weight = weight.unwrap_or(CGROUP_WEIGHT_DEFAULT).clamp(1, CGROUP_WEIGHT_MAX);
            self.cgroups.insert(path.to_owned(), weight);
        }
        valid
    }

    /// The task begins in a control group. One that is not known counts as the root.
    pub fn join(&mut self, id: u32, path: &str) {
        self.recorded(id).cgroup = Some(path.to_owned());
    }

    /// The task's nice value changes at this point of its program. A value outside of −20…19 is clamped.
    pub fn set_nice(&mut self, id: u32, nice: i8) {
        self.recorded(id).items.push(Item::SetNice(nice.clamp(-20, 19)));
    }

    /// The task's policy changes at this point of its program.
    pub fn set_policy(&mut self, id: u32, policy: SchedPolicy) {
        self.recorded(id).items.push(Item::SetPolicy(policy));
    }

    /// The task starts so many ns after the begin of the recording, and not with it.
    pub fn start_at(&mut self, id: u32, ns: u64) {
        self.recorded(id).start = Start::At(ns);
    }

    /// The task runs for so many ns.
    pub fn run(&mut self, id: u32, ns: u64) {
        self.recorded(id).run(ns);
    }

    /// The task sleeps for so many ns.
    pub fn sleep(&mut self, id: u32, ns: u64) {
        self.recorded(id).sleep(ns);
    }

    /// The task yields the CPU once.
    pub fn yield_cpu(&mut self, id: u32) {
        self.recorded(id).items.push(Item::Yield);
    }

    /// A task wakes another one at this point of its program.
    pub fn send(&mut self, from: u32, to: u32) -> MessageId {
        let ends = (self.index(from), self.index(to));
        let message = self.messages.len();
        self.messages.push(Message { ends, received: Received::No, sync: false });
        self.recorded(from).items.push(Item::Send(message));
        MessageId(message)
    }

    /// The task that sent this message blocked right after it.
    pub fn blocked_after(&mut self, message: MessageId) {
        self.messages[message.0].sync = true;
    }

    /// The task waits for a message, for which it was blocked. One that no task waits for is not sent.
    pub fn receive(&mut self, id: u32, message: MessageId) {
        self.take(id, message, Received::Blocked);
    }

    /// The task needs a message that came before it could block.
    pub fn receive_early(&mut self, id: u32, message: MessageId) {
        self.take(id, message, Received::Early);
    }

    fn take(&mut self, id: u32, message: MessageId, how: Received) {
        self.messages[message.0].received = how;
        self.notes.messages += 1;
        self.recorded(id).items.push(Item::Receive(message.0));
    }

    /// `parent` starts `child`.
    pub fn fork(&mut self, parent: u32, child: u32) {
        let target = self.index(child);
        self.tasks[target].start = Start::Forked;
        self.recorded(parent).items.push(Item::Fork(target));
    }

    /// The task has ended: it does not start over.
    pub fn exit(&mut self, id: u32) {
        self.recorded(id).ends = true;
    }

    /// The workload, of `duration_ns`, and what the recording could not tell.
    ///
    /// # Errors
    /// When no task was seen on a CPU, or when the workload passes a limit (groups, operations).
    pub fn finish(self, duration_ns: u64) -> Result<(Workload, ReplayNotes), WorkloadError> {
        let nothing_ran = !self.tasks.iter().any(|task| task.ran);
        if nothing_ran || !self.tasks.iter().any(Recorded::does_something) {
            return Err(WorkloadError::new(vec![Diagnostic::unplaced(
                &self.name,
                "the recording holds no task that ran".to_owned(),
                "record sched_switch and sched_waking events while the load runs".to_owned(),
            )]));
        }
        let times = (self.begin_ns, duration_ns);
        let of_weight = |(path, weight)| Cgroup::new(path, weight);
        let cgroups = cgroups::tree(self.cgroups.into_iter().map(of_weight));
        let of_all = (self.name.as_str(), cgroups);
        program::workload(of_all, times, self.tasks, &self.messages, self.notes)
    }

    fn index(&mut self, id: u32) -> usize {
        let tasks = &mut self.tasks;
        *self.by_id.entry(id).or_insert_with(|| {
            tasks.push(Recorded::new(id));
            tasks.len() - 1
        })
    }

    fn recorded(&mut self, id: u32) -> &mut Recorded {
        let index = self.index(id);
        &mut self.tasks[index]
    }
}
