//! A task: a process that executes its group's program. After its fork it does not allocate, take locks of the C
//! library or print, so that it can be forked anywhere and its signal handler can execute any operation.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

use fairground_workload::prng::Prng;
use fairground_workload::{Duration, Op, Program, SchedPolicy};
use nix::errno::Errno;

use super::plan::GroupPlan;
use super::shared::{ENDED, FailedOperation, TaskSlot};
use super::shared_state::SharedState;

/// The context in which an operation is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// In the task's own program.
    Program,
    /// In the handler of a signal.
    Handler,
}

/// The task of this process; null in the runner.
static CURRENT: AtomicPtr<Task<'static>> = AtomicPtr::new(std::ptr::null_mut());

/// The state of a task's process.
#[derive(Debug)]
pub(super) struct Task<'w> {
    pub(super) shared: &'w SharedState,
    pub(super) group: &'w GroupPlan,
    pub(super) slot: &'w TaskSlot,
    pub(super) index: u32,
    /// Its own memory, [`GroupPlan::memory_bytes`] long.
    pub(super) memory: *mut u8,
    /// Signals that it has handled.
    pub(super) signals: AtomicU32,
    pub(super) policy: Cell<SchedPolicy>,
    pub(super) nice: Cell<i8>,
    /// Unreaped children.
    pub(super) children: Cell<u32>,
    /// Operations in the current slice of the virtual CPU.
    pub(super) operations_in_slice: Cell<u32>,
    /// One generator per level, because a handler may interrupt a draw.
    prngs: [RefCell<Prng>; 2],
}

impl<'w> Task<'w> {
    /// The task of a slot, in its new process.
    pub(super) fn new(shared: &'w SharedState, index: u32) -> Self {
        let slot = &shared.slots[index as usize];
        let (group, nth) = (slot.group.load(SeqCst), slot.nth.load(SeqCst));
        // The program draws the same numbers as the simulated task. The handler has a separate generator.
        let prng = shared.prng.fork((u64::from(group)) << 40 ^ u64::from(nth));
        let handler_prng = prng.fork(1);
        Self {
            shared,
            group: &shared.plan.groups[group as usize],
            slot,
            index,
            memory: std::ptr::null_mut(),
            signals: AtomicU32::new(0),
            policy: Cell::new(SchedPolicy::Other),
            nice: Cell::new(0),
            children: Cell::new(0),
            operations_in_slice: Cell::new(0),
            prngs: [prng, handler_prng].map(RefCell::new),
        }
    }

    /// Makes it the task of this process and executes its program to the end.
    pub(super) fn run(&self) -> ! {
        self.become_current();
        self.steps(&self.group.spec.program, Level::Program);
        self.end()
    }

    /// Makes it the task of this process, which handles the signals.
    pub(super) fn become_current(&self) {
        CURRENT.store(std::ptr::from_ref(self).cast::<Task<'static>>().cast_mut(), SeqCst);
    }

    fn steps(&self, program: &Program, level: Level) {
        for op in program {
            match op {
                Op::Loop(None, body) => loop {
                    self.steps(body, level);
                },
                Op::Loop(Some(times), body) => {
                    for _ in 0..*times {
                        self.steps(body, level);
                    }
                }
                op => {
                    self.execute(op, level);
                    self.slot.ops.fetch_add(1, Relaxed);
                }
            }
        }
    }

    pub(super) fn draw(&self, length: Duration, level: Level) -> u64 {
        match length {
            Duration::Fixed(ns) => ns,
            Duration::Uniform { low, high } => match self.prngs[level as usize].try_borrow_mut() {
                Ok(mut prng) => prng.between(low, high),
                Err(_) => low,
            },
        }
    }

    pub(super) fn record_failure(&self, kind: FailedOperation) {
        let (times, last) = &self.shared.head[0].failures[kind as usize];
        last.store(Errno::last_raw(), SeqCst);
        times.fetch_add(1, SeqCst);
    }

    /// Ends the process. The parent stores its usage when it reaps it.
    pub(super) fn end(&self) -> ! {
        self.slot.state.store(ENDED, SeqCst);
        // SAFETY: ends the process without running any of its code.
        unsafe { libc::_exit(0) }
    }
}

/// The handler of the workload's signal: executes the handler's program.
pub(super) extern "C" fn on_signal(_: libc::c_int) {
    let task = CURRENT.load(SeqCst);
    if task.is_null() {
        return;
    }
    let kept = Errno::last_raw();
    // SAFETY: set by `become_current` to a task that lives until its process ends, and used through shared references
    // only.
    let task = unsafe { &*task };
    task.signals.fetch_add(1, SeqCst);
    task.steps(&task.group.spec.on_signal, Level::Handler);
    Errno::set_raw(kept);
}
