//! A task: a process that executes its group's program. From its birth on it allocates nothing, takes no lock and
//! prints nothing, so that it may be forked anywhere and its signal handler may do whatever its program does.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

use fairground_workload::Duration;
use fairground_workload::prng::Prng;

use super::plan::{GroupPlan, Step};
use super::shared::{ENDED, Slot, Trouble};
use super::usage::errno;
use super::world::World;

/// Where a program is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// In the task's own program.
    Program,
    /// In the handler of a signal.
    Handler,
}

/// The process's own task; null in the runner.
static SELF: AtomicPtr<Task<'static>> = AtomicPtr::new(std::ptr::null_mut());

/// The state of a task's process.
#[derive(Debug)]
pub(super) struct Task<'w> {
    pub(super) world: &'w World,
    pub(super) group: &'w GroupPlan,
    pub(super) slot: &'w Slot,
    pub(super) index: u32,
    /// Its own memory, [`GroupPlan::memory_bytes`] long.
    pub(super) memory: *mut u8,
    /// Signals that it has handled.
    pub(super) signals: AtomicU32,
    pub(super) nice: Cell<i8>,
    /// Children that nobody has waited for yet.
    pub(super) children: Cell<u32>,
    /// Operations since it gave way.
    pub(super) operations_in_turn: Cell<u32>,
    /// One generator for each level: a handler may interrupt a draw.
    prngs: [RefCell<Prng>; 2],
}

impl<'w> Task<'w> {
    /// The task of a slot, in its new process.
    pub(super) fn new(world: &'w World, index: u32) -> Self {
        let slot = &world.slots[index as usize];
        let (group, nth) = (slot.group.load(SeqCst), slot.nth.load(SeqCst));
        // The program draws what the simulated task draws; the handler, from a generator of its own.
        let prng = world.prng.fork((u64::from(group)) << 40 ^ u64::from(nth));
        let handler_prng = prng.fork(1);
        Self {
            world,
            group: &world.plan.groups[group as usize],
            slot,
            index,
            memory: std::ptr::null_mut(),
            signals: AtomicU32::new(0),
            nice: Cell::new(0),
            children: Cell::new(0),
            operations_in_turn: Cell::new(0),
            prngs: [prng, handler_prng].map(RefCell::new),
        }
    }

    /// Makes it the task that signals of this process are for, and executes its program to the end.
    pub(super) fn live(&self) -> ! {
        self.adopt();
        self.steps(&self.group.program, Level::Program);
        self.end()
    }

    /// Makes it the task that signals of this process are for.
    pub(super) fn adopt(&self) {
        SELF.store(std::ptr::from_ref(self).cast::<Task<'static>>().cast_mut(), SeqCst);
    }

    fn steps(&self, steps: &[Step], level: Level) {
        for step in steps {
            match step {
                Step::Loop(None, body) => loop {
                    self.steps(body, level);
                },
                Step::Loop(Some(times), body) => {
                    for _ in 0..*times {
                        self.steps(body, level);
                    }
                }
                step => {
                    self.execute(step, level);
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

    pub(super) fn trouble(&self, kind: Trouble) {
        let (times, last) = &self.world.head[0].troubles[kind as usize];
        last.store(errno(), SeqCst);
        times.fetch_add(1, SeqCst);
    }

    /// Ends the process. What it used, whoever waits for it is told.
    pub(super) fn end(&self) -> ! {
        self.slot.state.store(ENDED, SeqCst);
        // SAFETY: ends the process at once, running nothing of it.
        unsafe { libc::_exit(0) }
    }
}

/// The workload's signal: executes the handler's program, on top of whatever the task is doing.
pub(super) extern "C" fn on_signal(_: libc::c_int) {
    let task = SELF.load(SeqCst);
    if task.is_null() {
        return;
    }
    let kept = errno();
    // SAFETY: set by `adopt` to a task that lives until its process ends, and used through shared references only.
    let task = unsafe { &*task };
    task.signals.fetch_add(1, SeqCst);
    task.steps(&task.group.handler, Level::Handler);
    // SAFETY: the address of the thread's own error number.
    unsafe { *libc::__errno_location() = kept };
}
