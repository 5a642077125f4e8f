//! The table of costs: name, meaning, unit, default and source of each, in one place.
//!
//! The fields of [`CostModel`](super::CostModel), the names that `--cost` takes, the lines of a result and the table of
//! `docs/reference/costs.md` follow from it.

/// Makes the fields of the cost model, and their descriptions, of one line for each cost. The unit is the last part of
/// its name.
macro_rules! cost_table {
    ($($(#[doc = $doc:literal])+ $name:ident = $default:literal, $source:literal;)+) => {
        /// The times of the simulated kernel's steps, on the CPU that does them unless a field states otherwise.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct CostModel {
            $($(#[doc = $doc])+ pub $name: u64,)+
            /// The preset that it started from.
            pub(super) preset: &'static PresetFile,
            /// Time of an instruction there, ns ([`CostModel::at_instruction_ns`]).
            pub(crate) instruction_ns: u64,
        }

        /// All costs, in the order in which they are printed.
        pub(super) const COSTS: &[Cost] = &[
            $(Cost {
                name: stringify!($name),
                about: concat!($($doc),+),
                default: $default,
                source: $source,
                field: |model| &mut model.$name,
            },)+
        ];

        impl CostModel {
            /// Every cost 0.
            pub(super) fn free(preset: &'static PresetFile) -> CostModel {
                CostModel { $($name: 0,)+ preset, instruction_ns: INSTRUCTION_NS }
            }
        }
    };
}

/// The description of a cost.
pub(super) struct Cost {
    pub(super) name: &'static str,
    /// Its meaning: the documentation of its field.
    pub(super) about: &'static str,
    /// Its value in `modern`.
    pub(super) default: u64,
    /// Where that value comes from.
    pub(super) source: &'static str,
    pub(super) field: fn(&mut CostModel) -> &mut u64,
}

impl Cost {
    /// Whether it is work of a processor, which takes longer on a slower one.
    pub(super) fn is_work(&self) -> bool {
        matches!(self.unit(), "ns" | "ps") && !NOT_WORK.contains(&self.name)
    }

    /// The unit of its values.
    pub(super) fn unit(&self) -> &'static str {
        match self.name.rsplit_once('_') {
            Some((_, "ps")) => "ps",
            Some((_, "bytes")) => "bytes",
            _ => "ns",
        }
    }
}

use super::presets::PresetFile;
use super::{INSTRUCTION_NS, NOT_WORK};

cost_table! {
    /// Switching from one task to another, or to the idle task, without the scheduler's own decision.
    context_switch_ns = 800, "assumed; rings of two processes took 620-720 ns per switch and \
                              wake-up in 2007 (lat_ctx, LKML)";
    /// By how much a switch from the idle task is cheaper than one between two tasks, and blocking where no other task
    /// is runnable than where one is.
    idle_saving_ns = 0, "not distinguished";
    /// Waking a task, on the CPU that wakes it, without the scheduler's own decision.
    wakeup_ns = 500, "assumed";
    /// Additional cost of waking a task, for each level of control groups that it is below the root.
    group_wakeup_ns = 0, "not modelled unless it is set";
    /// The part of `wakeup_ns` that another CPU pays where it is idle, in the interrupt that it gets: it activates the
    /// task itself (`ttwu_queue_wakelist`).
    wake_list_ns = 0, "not distinguished: all is paid by the CPU that wakes a task";
    /// Blocking: what a task does between the decision to sleep and the scheduling pass, with interrupts off. A task
    /// that ends pays it, too.
    block_ns = 0, "contained in wakeup_ns";
    /// Additional cost of blocking, for each level of control groups that the task is below the root.
    group_block_ns = 0, "not modelled unless it is set";
    /// What a task does that another one has woken on a CPU that is not idle, before it goes on.
    wait_ns = 0, "contained in wakeup_ns";
    /// From the sending of a reschedule interrupt until it arrives at the other CPU. A delay, not work.
    ipi_ns = 1_500, "assumed";
    /// The interrupt that a CPU sends itself to carry out kicks (`scx_bpf_kick_cpu`); the kicks of one operation share
    /// it.
    kick_ns = 0, "not modelled unless it is set";
    /// From an interrupt at an idle CPU until it can schedule: leaving the idle state. A delay, not work.
    idle_exit_ns = 2_000, "assumed: the shallowest idle state of x86";
    /// The periodic tick with its interrupt, without the scheduler's callback.
    tick_ns = 1_500, "assumed";
    /// The interrupt of a high-resolution timer, without the wake-ups that it causes.
    timer_irq_ns = 1_000, "assumed";
    /// The longest delay of the end of a normal task's sleep.
    timer_slack_ns = 50_000, "Linux: 50 us for tasks that are not real-time, since 2.6.28 (PR_SET_TIMERSLACK(2const))";
    /// A system call, without what it makes the scheduler do and without the bytes that it copies.
    syscall_ns = 200, "assumed";
    /// Yielding the CPU, instead of `syscall_ns`.
    yield_ns = 200, "as syscall_ns";
    /// A mark in the recording: of a program, or of the beginning and the end of a wait for a lock.
    mark_ns = 0, "not a part of what is measured";
    /// Putting a message into a queue or taking one out, where no task waits at the other end: that takes no system
    /// call.
    queue_ns = 20, "assumed: an atomic operation";
    /// The way out of a system call that wakes a task: before the CPU can go to that task. Interrupts to other CPUs do
    /// not wait for it.
    way_out_ns = 0, "contained in syscall_ns";
    /// Copying a byte into a pipe or socket, or out of it.
    copy_byte_ps = 100, "assumed: 10 GB/s";
    /// Allocating and freeing a page of a pipe, paid by its writer. A pipe keeps one page, so that the first one into
    /// an empty pipe costs nothing.
    pipe_page_ns = 0, "contained in copy_byte_ps";
    /// The part of `syscall_ns` for which a write into a pipe or a read from it has the pipe's mutex. The bytes and
    /// pages of a write are paid for with it, too. One that is preempted meanwhile keeps all others out.
    pipe_lock_ns = 0, "not modelled unless it is set";
    /// A message into a socket, beyond what a pipe takes: allocating its buffer. Its reader pays half as much for
    /// freeing it.
    socket_ns = 0, "not distinguished from a pipe";
    /// Creating a process (`fork`), beyond the system call: what its parent pays before the child may run.
    fork_ns = 0, "not modelled unless it is set";
    /// The exit of a process that another one has created, beyond the system call: what it pays before its parent is
    /// notified.
    exit_ns = 0, "not modelled unless it is set";
    /// Moving a task to another CPU's run queue: paid by the CPU that wakes it there or pulls it.
    migration_ns = 300, "assumed";
    /// The private cache of each CPU. With 0 every line that a task touches is a miss.
    cache_bytes = 1_048_576, "assumed: a second-level cache of 1 MiB";
    /// Reading a line of 64 bytes that the CPU's cache holds, and the work on it.
    line_hit_ps = 4_000, "assumed: 16 words added up, 4 in a nanosecond";
    /// Reading a line of 64 bytes that the CPU's cache does not hold, and the work on it.
    line_miss_ps = 20_000, "assumed: from the cache of the socket";
    /// An instruction of the scheduler's program.
    policy_insn_ps = 333, "assumed: one instruction per cycle at 3 GHz";
    /// How long a search for tasks on other CPUs, by a CPU that becomes idle, has taken at most. Not charged: the clock
    /// stands still in a callback, so a scheduler that goes by it has it from here (a variable with the tag
    /// `cost:newidle_max_ns`).
    newidle_max_ns = 0, "not known";
    /// A call between the kernel and the scheduler's program, beyond its instructions: of a callback, or of a kfunc
    /// that works on a dispatch queue, searches for a task or for idle CPUs, or kicks a CPU.
    call_ns = 0, "not distinguished: a call is charged as the one instruction that it is";
}
