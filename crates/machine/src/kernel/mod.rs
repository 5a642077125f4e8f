//! The simulated kernel's state, and those of its steps that call no callback: what kfuncs reach.
//!
//! Steps that do call callbacks are methods of [`crate::Machine`], in `flow/`.

mod account;
mod caches;
mod checks;
mod cids;
mod clock;
mod cpu_time;
mod dispatch;
mod fixtures;
mod history;
mod hrtimers;
mod idle;
mod immediate;
mod kick;
mod late;
mod log;
mod online;
mod origin;
mod permission;
mod queues;
pub(crate) mod residents;
mod rq;
mod sleep;
mod slot;
mod spinners;
mod task;
mod tasks;
mod timers;
mod waiting;

use std::collections::{BTreeMap, VecDeque};

use fairground_bpf::{FuncRef, Host, Memory, Trap};
use fairground_trace::{EventKind, TaskId, Trace};

use crate::cgroup::Cgroups;
use crate::check::{Checker, Violation};
use crate::cpuset::CpuMask;
use crate::dsq::DispatchQueues;
use crate::dump::DumpText;
use crate::events::EventQueue;
use crate::idle_cpus::IdleCpus;
use crate::interface::KernelAbi;
use crate::layout::offsets;
use crate::prng::Prng;
use crate::real_time::RtQueues;
use crate::{CostModel, Counters, Dump, Exit, ExitKind, SleepTimers, Topology, TraceOptions, abi};

pub(crate) use caches::Caches;
pub(crate) use cids::Cids;
pub(crate) use clock::Clock;
pub(crate) use cpu_time::CpuTime;
pub(crate) use dispatch::DispatchBuffer;
pub(crate) use history::{CallHistory, Called};
pub(crate) use hrtimers::{Armed, Due, Hrtimers};
pub(crate) use idle::write_mask;
pub(crate) use immediate::{Again, Reenqueue};
pub(crate) use kick::Kicks;
pub(crate) use late::Late;
pub(crate) use log::Log;
pub use log::PrintedLine;
pub(crate) use online::{Hotplug, Online};
pub(crate) use permission::Permission;
pub(crate) use rq::Rq;
pub(crate) use slot::Slot;
pub(crate) use spinners::Spinners;
pub(crate) use task::{OpsState, Phase, ScxState, Stage, StateFlags, Task, state_flags};
pub(crate) use tasks::Tasks;
pub(crate) use timers::{Timer, Timers};

/// Places in the event queue that belong to the whole machine.
pub(crate) mod agenda {
    /// The timer tick, on all busy CPUs at once.
    pub(crate) const TICK: u32 = 0;
    /// The watchdog checks the waiting tasks.
    pub(crate) const WATCHDOG: u32 = 1;
    /// The next setting takes effect.
    pub(crate) const SETTING: u32 = 2;
    /// The next group of the workload starts.
    pub(crate) const START: u32 = 3;
    /// The loader runs programs of the object: at each full second.
    pub(crate) const PROGRAMS: u32 = 4;
    /// The lead-in begins: the tasks of the workload are made.
    pub(crate) const LEAD_IN: u32 = 5;
}

/// The task that a direct dispatch may name (`direct_dispatch_task`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectDispatch {
    /// No enqueue is under way: a dispatch goes to the buffer.
    Closed,
    /// This task.
    Open(Slot),
    /// It was dispatched already.
    Done,
}

/// The state of the simulated kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) clock: Clock,
    pub(crate) cost: CostModel,
    /// Callbacks, and what kfuncs found to do, not charged yet, ns.
    pub(crate) calls_ns: u64,
    pub(crate) topology: Topology,
    pub(crate) caches: Caches,
    pub(crate) cpus: Vec<Rq>,
    pub(crate) tasks: Tasks,
    /// How the state of a task is written.
    pub(crate) states: StateFlags,
    pub(crate) idle: IdleCpus,
    /// All CPUs of the machine (`cpu_possible_mask`).
    pub(crate) all_cpus: CpuMask,
    pub(crate) online: Online,
    /// CPUs that run a task: those that tick.
    pub(crate) busy: CpuMask,
    pub(crate) queues: DispatchQueues,
    /// The run queues of the real-time class.
    pub(crate) rt: RtQueues,
    pub(crate) spinners: Spinners,
    /// Idle CPUs are tracked here, not by the scheduler.
    pub(crate) builtin_idle: bool,
    /// Those of each NUMA node apart (`SCX_OPS_BUILTIN_IDLE_PER_NODE`).
    pub(crate) idle_per_node: bool,
    /// The release whose interface the scheduler has found.
    pub(crate) abi: KernelAbi,
    /// The CPU that executes.
    pub(crate) this_cpu: u32,
    /// The executing CPU is in a hardware interrupt, or the machine is told something from outside.
    pub(crate) in_interrupt: bool,
    /// Permissions of the running callback.
    pub(crate) permission: Permission,
    pub(crate) direct: DirectDispatch,
    pub(crate) buffer: DispatchBuffer,
    pub(crate) kicks: Kicks,
    /// Switches on their way into the trace.
    pub(crate) late: Late,
    /// CPUs that a reschedule interrupt of the executing CPU is to reach.
    pub(crate) ipis: Vec<u32>,
    pub(crate) exit: Option<Exit>,
    /// The CPU that executed when the exit was claimed.
    pub(crate) exit_cpu: u32,
    /// The dump that is being written.
    pub(crate) dump: Option<DumpText>,
    pub(crate) events: EventQueue,
    pub(crate) timers: Timers,
    /// The timers of the sleeps of the workload's tasks.
    pub(crate) sleep_timers: SleepTimers,
    /// Sleeps' timers that were armed so far.
    pub(crate) armings: u64,
    pub(crate) qseq: u64,
    pub(crate) prng: Prng,
    pub(crate) trace: Trace,
    pub(crate) trace_options: TraceOptions,
    pub(crate) log: Log,
    pub(crate) counters: Counters,
    /// Run times of tasks are told ([`Kernel::book`]), not read from the clock.
    pub(crate) charges_are_told: bool,
    /// CPU time of tasks that are gone, ns.
    pub(crate) reaped_exec_ns: u64,
    pub(crate) check: bool,
    pub(crate) checker: Checker,
    /// The scheduler's promise to serve queues in order, if it is checked.
    pub(crate) picks_in_order: bool,
    /// The first rule that was seen to be broken.
    pub(crate) violation: Option<Violation>,
    /// Guest addresses of cpumasks that the kernel shows: possible CPUs, online ones, idle CPUs, idle cores, none.
    pub(crate) masks: GuestMasks,
    /// The running callback has asked for the idle masks.
    pub(crate) idle_shown: bool,
    /// Masks that the program owns (`bpf_cpumask_create`), with their references.
    pub(crate) owned_masks: BTreeMap<u64, u32>,
    pub(crate) cgroups: Cgroups,
    pub(crate) cids: Cids,
    /// Queues whose tasks go to the scheduler again (`scx_bpf_dsq_reenq`), each once.
    pub(crate) reenqueues: Vec<Reenqueue>,
    /// The scheduler has `ops.dequeue()`.
    pub(crate) tells_dequeue: bool,
    /// Tasks that the scheduler has dispatched to where they run, and the CPU that did it: `ops.dequeue()` is due.
    pub(crate) left_custody: VecDeque<(Slot, u32)>,
    /// Every insertion into a local queue is with `SCX_ENQ_IMMED` (`SCX_OPS_ALWAYS_ENQ_IMMED`).
    pub(crate) always_immed: bool,
    /// A task was to run at once so far: only then is any looked at.
    pub(crate) uses_immed: bool,
    /// The last callbacks, for the report of a failure.
    pub(crate) history: CallHistory,
    /// The scheduler's object reads `sched_info` of tasks.
    pub(crate) keeps_sched_info: bool,
    /// Guest address of a NULL pointer: what per-CPU variables hold that nothing sets.
    pub(crate) null_pointer: u64,
    /// Guest address of the CPUs' `__preempt_count`s, 4 bytes each.
    pub(crate) preempt_counts: u64,
}

/// Where the kernel's own cpumasks lie in guest memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GuestMasks {
    pub(crate) possible: u64,
    pub(crate) online: u64,
    pub(crate) idle_cpu: u64,
    pub(crate) idle_smt: u64,
    pub(crate) none: u64,
    /// Idle CPUs and idle cores of each node, one mask behind the other; 0 if they are not kept by node.
    pub(crate) nodes: u64,
}

impl GuestMasks {
    /// The idle CPUs of a node, or those on idle cores.
    pub(crate) fn of_node(&self, node: u32, cores: bool) -> u64 {
        self.nodes + offsets::CPUMASK_SIZE * (2 * u64::from(node) + u64::from(cores))
    }
}

impl Kernel {
    #[inline]
    pub(crate) fn rq(&mut self, cpu: u32) -> &mut Rq {
        &mut self.cpus[cpu as usize]
    }

    #[inline]
    pub(crate) fn task(&self, slot: Slot) -> &Task {
        &self.tasks[slot]
    }

    #[inline(always)]
    pub(crate) fn task_mut(&mut self, slot: Slot) -> &mut Task {
        if self.check {
            self.checker.touch(slot.0);
        }
        &mut self.tasks[slot]
    }

    /// Whether a task runs.
    #[inline]
    pub(crate) fn runs(&self, slot: Slot) -> bool {
        self.cpus[self.task(slot).cpu as usize].curr() == Some(slot)
    }

    /// Prefetches a task.
    #[inline]
    pub(crate) fn prefetch(&self, slot: Slot) {
        if let Some(task) = self.tasks.get(slot) {
            fairground_bpf::prefetch_start(task, Task::HOT_BYTES);
        }
        self.queues.prefetch(slot.0);
    }

    pub(crate) fn nr_cpus(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// A task that a program names: an error of the scheduler, and a trap, when there is none at that address.
    pub(crate) fn need_task(&mut self, addr: u64, kfunc: &str) -> Result<Slot, Trap> {
        self.tasks
            .at(addr)
            .ok_or_else(|| Trap::host(format!("{kfunc}(): no task lies at address {addr:#x}")))
    }

    /// `comm[pid]`, as the kernel's messages name a task.
    pub(crate) fn describe(&self, slot: Slot) -> String {
        let task = self.task(slot);
        format!("{}[{}]", self.trace.tasks()[task.id.index()].comm, task.pid)
    }

    /// The same of a task's number in the trace; nothing for the idle task.
    pub(crate) fn describe_id(&self, id: TaskId) -> Option<String> {
        let task = self.trace.tasks().get(id.index())?;
        (id != TaskId::IDLE).then(|| format!("{}[{}]", task.comm, task.pid))
    }

    /// Guest address of the `task_struct` of what a CPU runs.
    #[inline]
    pub(crate) fn curr_addr(&self, cpu: u32) -> u64 {
        let rq = &self.cpus[cpu as usize];
        rq.curr().map_or(rq.idle_addr, |slot| self.task(slot).addr)
    }

    /// The task that a CPU runs, for the trace.
    pub(crate) fn current(&self, cpu: u32) -> TaskId {
        self.cpus[cpu as usize].curr().map_or(TaskId::IDLE, |slot| self.task(slot).id)
    }

    /// Claims the exit (`scx_ops_exit_kind`): the first claim counts.
    #[cold]
    pub(crate) fn exit(&mut self, kind: ExitKind, code: i64, mut message: String) {
        if self.exit.is_some() {
            return;
        }
        if message.len() >= abi::EXIT_MSG_LEN {
            let mut end = abi::EXIT_MSG_LEN - 1;
            while !message.is_char_boundary(end) {
                end -= 1;
            }
            message.truncate(end);
        }
        self.exit_cpu = self.this_cpu;
        self.exit = Some(Exit {
            kind,
            code,
            reason: kind.reason().to_owned(),
            message,
            time_ns: self.clock.now_ns(),
            origin: None,
            dump: Dump::default(),
        });
    }

    /// `scx_ops_error`: the scheduler did what the interface forbids.
    #[cold]
    pub(crate) fn error(&mut self, message: impl Into<String>) {
        self.exit(ExitKind::Error, 0, message.into());
    }

    /// `ops_cpu_valid`.
    pub(crate) fn cpu_valid(&mut self, cpu: i64, place: &str) -> Option<u32> {
        if (0..i64::from(self.nr_cpus())).contains(&cpu) {
            return Some(cpu as u32);
        }
        let blank = if place.is_empty() { "" } else { " " };
        self.error(format!("invalid CPU {cpu}{blank}{place}"));
        None
    }

    /// `scx_kf_allowed`: whether the running callback may call a kfunc of these groups; if not, it is ejected.
    #[inline]
    pub(crate) fn kf_allowed(&mut self, mask: u32) -> bool {
        let allowed = self.permission.mask();
        if allowed & mask != 0 {
            return true;
        }
        self.error(format!(
            "kfunc with mask {mask:#x} called from an operation only allowing {allowed:#x}"
        ));
        false
    }

    /// `scx_kf_allowed_on_arg_tasks`: the same, and only for a task that the callback is about.
    #[inline]
    pub(crate) fn kf_allowed_on(&mut self, mask: u32, slot: Slot) -> bool {
        if !self.kf_allowed(mask) {
            return false;
        }
        if self.permission.is_about(slot) {
            return true;
        }
        self.error("called on a task not being operated on");
        false
    }

    /// The program printed a line: for the log and for the trace, each of which has its limit.
    pub(crate) fn print_line(&mut self, line: &str) {
        if let Some(label) = self.trace.intern_print(line) {
            self.emit(self.this_cpu, 0, EventKind::Print { label });
        }
        if !self.log.push(self.clock.now_ns(), self.this_cpu, line) {
            self.counters.log_lines_dropped += 1;
        }
    }
}

impl Host for Kernel {
    fn random_u32(&mut self) -> u32 {
        self.prng.next_u32()
    }

    fn print(&mut self, line: &str) {
        self.print_line(line);
    }

    fn timer_start(
        &mut self,
        timer: u64,
        callback: FuncRef,
        args: [u64; 5],
        time_ns: u64,
        flags: u64,
    ) -> i64 {
        self.start_timer(Timer { addr: timer, callback, args, cpu: self.this_cpu }, time_ns, flags)
    }

    fn timer_cancel(&mut self, timer: u64) -> i64 {
        i64::from(self.cancel_timer(timer))
    }

    fn release(&mut self, memory: &Memory, pointer: u64) {
        // Tasks and cgroups are not counted.
        self.put_mask(memory, pointer);
    }

    fn per_cpu_variable(&mut self, memory: &Memory, symbol: u64, cpu: u32) -> Option<u64> {
        match symbol {
            abi::PREEMPT_COUNT_SYMBOL => Some(self.preempt_counts + 4 * u64::from(cpu)),
            // No CPU has a driver for its frequency.
            abi::CPUFREQ_SYMBOL => Some(self.null_pointer),
            abi::RUNQUEUES_SYMBOL => {
                // A program that reads the clocks comes this way; time in interrupts is in them, as without
                // CONFIG_IRQ_TIME_ACCOUNTING.
                let addr = self.cpus.get(cpu as usize)?.addr;
                for clock in [offsets::rq::CLOCK, offsets::rq::CLOCK_TASK, offsets::rq::CLOCK_PELT]
                {
                    memory.store_u64(addr + clock, self.clock.now_ns()).ok()?;
                }
                Some(addr)
            }
            _ => None,
        }
    }
}
