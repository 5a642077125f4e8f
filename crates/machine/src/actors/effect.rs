//! The requests of actors to the machine.

use fairground_trace::Call;
use fairground_workload::SchedPolicy;

/// Operation of a system call of a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FutexOp {
    /// `FUTEX_WAIT`.
    Wait,
    /// `FUTEX_WAKE`.
    Wake,
    /// `FUTEX_LOCK_PI`.
    LockPi,
    /// `FUTEX_UNLOCK_PI`.
    UnlockPi,
}

impl FutexOp {
    /// The kernel's number.
    pub(crate) fn number(self) -> u64 {
        match self {
            FutexOp::Wait => 0,
            FutexOp::Wake => 1,
            FutexOp::LockPi => 6,
            FutexOp::UnlockPi => 7,
        }
    }
}

/// The number of an actor; may be reused after [`super::Actors::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId(pub u32);

/// Need of an actor before it can go on.
///
/// One word says which, one more how much: so a value moves in two registers. A larger one goes through memory, where
/// loading it right after its parts were stored stalls the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Need {
    /// Compute.
    Cpu {
        /// CPU time, ns; not 0.
        ns: u64,
    },
    /// Read its own memory once; the machine determines how long that takes.
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
    /// run here, [`super::Actors::stop_spinning`].
    SpinOn {
        /// The number of the lock's owner, an [`ActorId`].
        owner: u64,
    },
    /// Sleep until a timer expires.
    SleepUntil {
        /// When it does, ns; the machine adds its timer slack. May have passed already.
        at_ns: u64,
    },
    /// Wait for the device, in a sleep that no signal ends (state `D`).
    Io {
        /// Until this time, ns.
        at_ns: u64,
    },
    /// Return to user mode from a call that has woken others, where one of them may take the CPU first. The machine
    /// advances the actor when the kernel's work is paid for.
    Return,
    /// Go on inside the call, in which it wakes others one after the other: the machine advances the actor when the
    /// kernel's work so far is paid for. No other task takes the CPU there.
    InCall,
    /// Yield the CPU once, staying runnable.
    Yield,
    /// It has ended. The machine calls [`super::Actors::release`] when it no longer uses the actor.
    Exit,
}

/// An effect of an actor on others or on itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Wake the actor, if it is still asleep.
    Wake {
        /// The actor.
        actor: ActorId,
        /// The waker is about to wait itself, so the wake-up is a synchronous one (`WF_SYNC`): pipes, queues that say
        /// so and the end of a child, as in `fs/pipe.c` and `kernel/exit.c`; not other messages, and not signals.
        sync: bool,
    },
    /// A new actor was made, as a child of the one that was advanced: make its task runnable.
    Fork {
        /// The new actor.
        child: ActorId,
    },
    /// The advanced actor begins to exit ([`Need::Exit`]); then it wakes its parent.
    BeginExit,
    /// A signal for an actor that is computing: call [`super::Actors::interrupt`], see the module's page.
    Signal {
        /// The actor.
        actor: ActorId,
    },
    /// The advanced actor set its own nice value.
    SetNice {
        /// −20…19.
        nice: i8,
    },
    /// The advanced actor set its own scheduling policy.
    SetPolicy {
        /// The policy.
        policy: SchedPolicy,
    },
    /// The advanced actor set its own slice length.
    SetSlice {
        /// ns; 0: the scheduler's.
        slice_ns: u64,
    },
    /// The advanced actor set its own affinity.
    SetAffinity {
        /// See [`super::Actors::affinity`].
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
    /// The advanced actor entered (`off`) or left a section without preemption: it holds a spin lock, or spins for one.
    Preempt {
        /// Preemption is off from here on.
        off: bool,
    },
    /// The actor spins ([`Need::Spin`], [`Need::SpinOn`]) and must stop: advance it.
    SpinOver {
        /// The actor.
        actor: ActorId,
    },
    /// The advanced actor begins to wait for a lock, or finds that it has a new owner.
    ContentionBegin {
        /// The workload's number of it.
        lock: u32,
        /// Its owner; `None`: several readers have it.
        holder: Option<ActorId>,
        /// It waits as a reader.
        shared: bool,
    },
    /// The advanced actor has the lock that it waited for.
    ContentionEnd {
        /// The workload's number of it.
        lock: u32,
    },
    /// The advanced actor entered a call in which it may wait, or may end a wait.
    CallEnter {
        /// Its kind.
        call: Call,
        /// The number of its object, with the kind of object in the upper half.
        object: u64,
    },
    /// The advanced actor left it.
    CallExit {
        /// Bytes, 0, or a negative error number.
        result: i64,
    },
    /// The advanced actor entered a system call of a futex.
    FutexEnter {
        /// Its operation.
        op: FutexOp,
        /// The number of its object, with the kind of object in the upper half.
        object: u64,
    },
    /// The advanced actor left it.
    FutexExit {
        /// Its operation.
        op: FutexOp,
        /// Its result: how many it woke, 0, or a negative error number.
        result: i32,
        /// The number of its object, with the kind of object in the upper half.
        object: u64,
    },
    /// The advanced actor left a mark.
    Mark {
        /// See [`super::Actors::labels`].
        label: u32,
        /// How often the actor has left this mark before.
        value: u64,
    },
}

/// An affinity that the workload names ([`super::Actors::affinity`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffinityId(pub(crate) u32);
