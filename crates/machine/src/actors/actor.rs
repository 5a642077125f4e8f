//! The user-space state of one task: its position in the program, and what it waits for.

use crate::prng::Prng;

/// The progress of the current operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not begun.
    Start,
    /// Not begun: the actor's charged kernel time comes first.
    Owing,
    /// The CPU time of its system call runs.
    Charging,
    /// As `Charging`, interrupted by [`Actors::interrupt`], with the time left.
    ChargeCut,
    /// Paid for; takes effect now.
    Ready,
    /// Paid for; takes effect when no signal is pending (an interrupted wait).
    Retry,
    /// Its CPU time runs.
    Computing,
    /// As `Computing`, interrupted, with the time left.
    ComputeCut,
    /// In a sleep, which a signal ends.
    Asleep,
    /// Waits for another actor, or for its timer; a signal interrupts and restarts the wait.
    Waiting,
    /// Spins for a lock.
    Spinning,
    /// The actor has ended.
    Ended,
}

/// The part of an operation that its system call carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPart {
    /// The operation itself, or the wait for it.
    Whole,
    /// The wake-up of others: what concerns the actor itself was done in user mode.
    Wake,
}

/// A position in a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) pc: u32,
    pub(super) phase: Phase,
    pub(super) part: CallPart,
    /// It has waited for another actor in this operation.
    pub(super) has_waited: bool,
    /// How much of the operation is done: bytes, messages, children, signals; the expiry of a timer.
    pub(super) progress: u64,
    /// CPU time left of a computation or a system call that was interrupted, ns.
    pub(super) left_ns: u64,
}

impl Frame {
    /// Before an operation.
    #[inline]
    pub(super) fn at(pc: u32) -> Frame {
        Frame {
            pc,
            phase: Phase::Start,
            part: CallPart::Whole,
            has_waited: false,
            progress: 0,
            left_ns: 0,
        }
    }

    /// Goes to the next operation.
    #[inline]
    pub(super) fn finish(&mut self) {
        *self = Frame::at(self.pc + 1);
    }
}

/// A list of waiting actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListId(pub(super) u32);

/// No list, or no neighbour in one.
pub(super) const NONE: u32 = u32::MAX;

/// An actor's links in a waiting list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitLink {
    pub(super) list: u32,
    pub(super) prev: u32,
    pub(super) next: u32,
}

impl WaitLink {
    /// In no list.
    pub(super) const FREE: WaitLink = WaitLink { list: NONE, prev: NONE, next: NONE };
}

/// The user-space state of a task, in whole cache lines. Fields that every operation uses come first; see
/// [`Actor::HOT_BYTES`].
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Actor {
    pub(super) frames: [Frame; 2],
    /// 0: in the program; 1: in the signal handler.
    pub(super) level: usize,
    /// CPU time that the kernel takes from it before its next operation, ns.
    pub(super) owed_ns: u64,
    pub(super) prng: Prng,
    /// The first of its registers.
    pub(super) regs: u32,
    pub(super) spec: u32,
    /// Spin locks, of either model, that it has or waits for, and requests to the device: it is inside the kernel,
    /// where no signal is handled.
    pub(super) in_kernel: u32,
    /// A signal is pending. One bit, as for a standard signal: a second one is lost.
    pub(super) pending: bool,
    pub(super) wait: WaitLink,
    pub(super) handler: u32,
    pub(super) nth: u64,
    /// Distinguishes this actor from earlier ones of its number.
    pub(super) birth: u64,
    pub(super) parent: Option<(u32, u64)>,
    /// Children that it has not waited for, and those of them that have ended.
    pub(super) children: u32,
    pub(super) ended: u32,
    /// Locks that it holds.
    pub(super) held: u32,
    /// Those of the spin locks that disable preemption: it spins for them.
    pub(super) unpreempted: u32,
}

/// Two cache lines.
const _: () = assert!(Actor::HOT_BYTES <= 2 * 64);

impl Actor {
    /// The fields that every operation uses are in this many bytes from its start.
    pub(super) const HOT_BYTES: usize = std::mem::offset_of!(Actor, nth);

    #[inline]
    pub(super) fn frame(&mut self) -> &mut Frame {
        &mut self.frames[self.level]
    }

    /// Whether a pending signal may interrupt what the actor does.
    #[inline]
    pub(super) fn takes_signal(&self) -> bool {
        self.pending && self.level == 0 && self.in_kernel == 0
    }
}
