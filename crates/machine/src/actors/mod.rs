//! What the tasks of a workload do in user space.
//!
//! The machine runs tasks; an [`Actors`] says what each of them wants. The agreement:
//!
//! * [`Actors::spawn`] makes an actor that has not run yet.
//! * When an actor is on a CPU and has nothing left to compute, the machine calls [`Actors::advance`]. The actor
//!   executes operations until it needs CPU time or has to wait, and says which: the [`Need`]. What it did to others on
//!   the way stands in the list of [`Effect`]s, in order.
//! * [`Need::Cpu`]: the machine lets it compute for so long, in as many pieces as scheduling makes of it, then advances
//!   it.
//! * [`Need::Touch`]: the same as [`Need::Cpu`], for as long as the caches make it.
//! * [`Need::Block`], [`Need::SleepUntil`]: the task leaves the CPU until [`Effect::Wake`] or the time; the machine
//!   wakes it, and advances it when it runs again. Whichever comes first counts; a later one finds the task awake and
//!   is ignored.
//! * [`Effect::Signal`]: a signal reached an actor that is computing in user mode. The machine takes it out of its
//!   computation ([`Actors::interrupt`], with what is left of it) and advances it the next time that it runs. The
//!   handler runs, then the rest of the computation. A sleeping or waiting actor is woken by [`Effect::Wake`] instead.
//!
//! A system call costs [`crate::CostModel::syscall_ns`] of CPU time first and has its effect at the end of that time.

mod actor;
mod calls;
mod charge;
mod check;
mod compile;
mod engine;
mod locks;
mod meeting;
mod members;
mod pipe;
mod stream;
mod sync;
#[cfg(test)]
mod tests;
mod timers;

use crate::cpuset::CpuMask;

pub use engine::Actors;

impl Actors {
    /// Asks for the cache lines of the actor that a task most often has: tasks and actors are numbered alike until some
    /// end.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        if let Some(actor) = self.actors.get(number as usize) {
            fairground_bpf::prefetch_start(actor, actor::Actor::HOT_BYTES);
        }
    }
}

/// An actor, for as long as it lives and until [`Actors::release`]; then the number may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId(pub u32);

/// What an actor needs before it can go on.
///
/// A whole word says which: behind a single byte the fields would have no common place, and each move of such a value
/// would read across what was just written in pieces, for which a processor waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Need {
    /// Compute.
    Cpu {
        /// For so long, ns of CPU time; not 0.
        ns: u64,
    },
    /// Read so much of its own memory, once through; the machine knows how long that takes.
    Touch {
        /// Bytes, not 0.
        bytes: u64,
    },
    /// Compute until a signal comes.
    CpuForever,
    /// Wait for [`Effect::Wake`].
    Block,
    /// The same, in a sleep that no signal ends (state `D`).
    BlockHard,
    /// Spin until [`Effect::SpinOver`].
    Spin,
    /// Spin until [`Effect::SpinOver`] while the task of this actor is running; when it is not, or another task is to
    /// run here, [`Actors::stop_spinning`].
    SpinOn {
        /// The owner of the lock.
        owner: ActorId,
    },
    /// Sleep.
    SleepUntil {
        /// Until this time, ns; the machine adds its timer slack. May have passed already.
        at_ns: u64,
        /// The time is that of a timer which expires again and again, not the end of a length that begins now.
        absolute: bool,
    },
    /// Wait for the device, in a sleep that no signal ends (state `D`).
    Io {
        /// Until this time, ns.
        at_ns: u64,
    },
    /// Give the CPU away once, staying runnable.
    Yield,
    /// It has ended. The machine calls [`Actors::release`] when it has forgotten the actor.
    Exit,
}

/// What an actor did to others or to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Wake the actor, if it is still asleep.
    Wake {
        /// The actor.
        actor: ActorId,
        /// The waker is about to wait itself, so the wake-up is a synchronous one (`WF_SYNC`): pipes and the end of a
        /// child, as in `fs/pipe.c` and `kernel/exit.c`; not messages and signals.
        sync: bool,
    },
    /// A new actor was made, as a child of the one that was advanced: make its task runnable.
    Fork {
        /// The new actor.
        child: ActorId,
    },
    /// A signal for an actor that is computing: call [`Actors::interrupt`], see the module's page.
    Signal {
        /// The actor.
        actor: ActorId,
    },
    /// The advanced actor set its own nice value.
    SetNice {
        /// −20…19.
        nice: i8,
    },
    /// The advanced actor asked for slices of its own length.
    SetSlice {
        /// ns; 0: the scheduler's.
        slice_ns: u64,
    },
    /// The advanced actor set its own affinity.
    SetAffinity {
        /// See [`Actors::affinity`].
        mask: AffinityId,
    },
    /// The advanced actor moves itself to a cgroup.
    SetCgroup {
        /// The workload's number of it.
        cgroup: u32,
    },
    /// The advanced actor sets a cgroup's weight.
    SetCgroupWeight {
        /// The workload's number of it.
        cgroup: u32,
        /// 1…10,000.
        weight: u32,
    },
    /// The advanced actor entered (`off`) or left the part of the kernel in which its CPU is its own: it has a spin
    /// lock, or spins for one.
    Preempt {
        /// Preemption is off from here on.
        off: bool,
    },
    /// The actor spins ([`Need::Spin`], [`Need::SpinOn`]) and shall stop: advance it.
    SpinOver {
        /// The actor.
        actor: ActorId,
    },
    /// The advanced actor begins to wait for a lock, or finds that another one has it now.
    ContentionBegin {
        /// The workload's number of it.
        lock: u32,
        /// Its owner; `None`: several readers have it.
        holder: Option<ActorId>,
        /// It wants to share it with other readers.
        shared: bool,
    },
    /// The advanced actor has the lock that it waited for.
    ContentionEnd {
        /// The workload's number of it.
        lock: u32,
    },
    /// The advanced actor left a mark.
    Mark {
        /// See [`Actors::labels`].
        label: u32,
        /// How often the actor has left this mark before.
        value: u64,
    },
}

/// An affinity that the workload names ([`Actors::affinity`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffinityId(pub(crate) u32);

/// Operations that one actor may execute without needing CPU time or having to wait.
pub const MAX_OPS_PER_ADVANCE: u32 = 1 << 20;
/// Operations that all actors together may execute without simulated time passing.
pub const MAX_OPS_PER_INSTANT: u64 = 1 << 26;
/// Loops within loops in one program.
pub const MAX_LOOP_DEPTH: usize = 64;

/// Why the workload cannot go on, or cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActorError {
    /// One task loops without computing or waiting.
    #[error(
        "task `{task}` executed {MAX_OPS_PER_ADVANCE} operations without computing or waiting: its \
         loop takes no time; put a `run` or a `sleep` into it"
    )]
    EndlessOps {
        /// The task's name.
        task: String,
    },
    /// Tasks keep each other busy without time passing.
    #[error(
        "the tasks executed {MAX_OPS_PER_INSTANT} operations at {time_ns} ns without time passing \
         (`{task}` was the last): let them compute, or choose a cost model in which system calls \
         take time"
    )]
    EndlessInstant {
        /// The task that was advanced last.
        task: String,
        /// When, ns.
        time_ns: u64,
    },
    /// Tasks wait for each other's locks in a circle.
    #[error("deadlock at {time_ns} ns: {chain}: let all tasks take these locks in the same order")]
    Deadlock {
        /// Which task waits for which lock, and which has it, round the circle.
        chain: String,
        /// When, ns.
        time_ns: u64,
    },
    /// A task gives back a lock that it has not got, takes one that it has, or ends with one.
    #[error("task `{task}` {problem} at {time_ns} ns")]
    LockMisuse {
        /// The task's name.
        task: String,
        /// What it does, with the lock's name.
        problem: String,
        /// When, ns.
        time_ns: u64,
    },
    /// The workload forks more tasks than the machine has room for.
    #[error(
        "task `{task}` forks, but {limit} tasks exist already: let children exit, or raise the machine's limit of tasks"
    )]
    TooManyTasks {
        /// The task that forks.
        task: String,
        /// Tasks that may exist at the same time.
        limit: u32,
    },
    /// The workload contradicts itself: it was built by hand and not checked.
    #[error("the workload `{workload}` is inconsistent: {problem}")]
    Inconsistent {
        /// The workload's name.
        workload: String,
        /// What is wrong.
        problem: String,
    },
}

/// The affinity of a list of CPUs.
fn mask_of(list: &fairground_workload::CpuList) -> CpuMask {
    CpuMask::from_list(list)
}
