//! Why a scheduler stopped being in charge.

use std::fmt;

use fairground_bpf::TrapPlace;
use fairground_trace::TaskId;

/// Kinds of exits with the kernel's numbers (`enum scx_exit_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum ExitKind {
    /// The run ended and the scheduler was taken out in an orderly way.
    Unregistered = 64,
    /// The scheduler asked to be taken out (`scx_bpf_exit()`).
    UnregisteredByBpf = 65,
    /// The kernel took it out (CPU hotplug).
    UnregisteredByKernel = 66,
    /// The scheduler did something that the interface forbids.
    Error = 1024,
    /// The scheduler reported an error of its own (`scx_bpf_error()`).
    ErrorBpf = 1025,
    /// A runnable task did not run for too long.
    ErrorStall = 1026,
}

impl ExitKind {
    /// The kernel's number.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Whether the scheduler was ejected for a fault.
    pub fn is_error(self) -> bool {
        self >= ExitKind::Error
    }

    /// The kernel's words for it (`scx_exit_reason()`).
    pub fn reason(self) -> &'static str {
        match self {
            ExitKind::Unregistered => "unregistered from user space",
            ExitKind::UnregisteredByBpf => "unregistered from BPF",
            ExitKind::UnregisteredByKernel => "unregistered from the main kernel",
            ExitKind::Error => "runtime error",
            ExitKind::ErrorBpf => "scx_bpf_error",
            ExitKind::ErrorStall => "runnable task stall",
        }
    }

    /// The constant's name in the kernel.
    pub fn constant(self) -> &'static str {
        match self {
            ExitKind::Unregistered => "SCX_EXIT_UNREG",
            ExitKind::UnregisteredByBpf => "SCX_EXIT_UNREG_BPF",
            ExitKind::UnregisteredByKernel => "SCX_EXIT_UNREG_KERN",
            ExitKind::Error => "SCX_EXIT_ERROR",
            ExitKind::ErrorBpf => "SCX_EXIT_ERROR_BPF",
            ExitKind::ErrorStall => "SCX_EXIT_ERROR_STALL",
        }
    }
}

/// How the scheduler's time in charge ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The kind.
    pub kind: ExitKind,
    /// The exit code of an orderly exit: user code in bits 0–31, the system's reason in 32–47, its action in
    /// 48–63.
    pub code: i64,
    /// The kernel's words for the kind.
    pub reason: String,
    /// Details; may be empty.
    pub message: String,
    /// When, ns of simulated time.
    pub time_ns: u64,
    /// The callback that led to it, if any.
    pub origin: Option<Box<Origin>>,
    /// The dump of the state, after an error.
    pub dump: Dump,
}

/// The dump of the state at an error: the CPUs that are not idle, the tasks that are runnable there, and what the
/// scheduler says about itself and each of them (`ops.dump()`, `ops.dump_cpu()`, `ops.dump_task()`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// All of it, as `ops.exit()` gets it; empty after an orderly exit.
    pub text: String,
    /// The scheduler's own lines, those about a CPU or a task below a line that names it.
    pub own: Vec<String>,
}

/// The callback that ended the scheduler's time in charge, or, for a stall, the last one about the waiting task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The callback: `ops.enqueue()`.
    pub callback: String,
    /// The task that it was about, as `name[pid]`.
    pub task: Option<String>,
    /// The CPU on which it ran.
    pub cpu: u32,
    /// The place in the program: the trapped instruction, or the call that was refused. Several: one of these calls.
    pub places: Vec<TrapPlace>,
    /// The last callbacks on that CPU and about that task, the oldest first.
    pub calls: Vec<PastCall>,
}

/// A callback that came before the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCall {
    /// When, ns of simulated time.
    pub time_ns: u64,
    /// The CPU on which it ran.
    pub cpu: u32,
    /// The callback: `ops.enqueue()`.
    pub callback: String,
    /// The task that it was about, as `name[pid]`.
    pub task: Option<String>,
}

/// A task that was runnable and ran on no CPU when the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The task.
    pub task: TaskId,
    /// How long it had been waiting, ns.
    pub waited_ns: u64,
    /// Where it was.
    pub place: WaitingPlace,
    /// Its position in that queue, from 1 on, and the number of tasks there; `None`: it was in none.
    pub position: Option<(u32, u32)>,
    /// The CPUs that were online and on which it may run, as ranges; `None`: on every one.
    pub allowed: Option<Vec<(u32, u32)>>,
    /// Those of them that were idle.
    pub idle: Vec<(u32, u32)>,
    /// CPU time that its weight gave it while it waited, beside the tasks that were runnable at the end on the same
    /// CPUs, ns. Weights of control groups do not count.
    pub due_ns: u64,
}

/// Where a runnable task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingPlace {
    /// Owned by the scheduler: `ops.enqueue()` put it into no dispatch queue.
    Scheduler,
    /// In the local queue of a CPU.
    Local(u32),
    /// In a global queue.
    Global,
    /// In the queue of a number, which the scheduler created.
    Queue(u64),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.kind.constant())?;
        if self.code != 0 {
            write!(f, ", code {:#x}", self.code)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}
