//! The events at which programs that are no callbacks of the scheduler (tracing programs) are called.

use super::{Event, Way};
use crate::interface::Feature;

/// Something that a program can be attached to, by the name in the program's section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) feature: Feature,
    pub(crate) kind: TargetKind,
    /// The event at which the program is called; `None`: none is, because it never happens in a workload or is absent.
    pub(crate) event: Option<Event>,
}

/// How a target is named in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    /// A tracepoint with the arguments that the kernel passes: `tp_btf/NAME`, `raw_tp/NAME`.
    Tracepoint,
    /// A tracepoint by its record: `tracepoint/CATEGORY/NAME`.
    Record,
    /// A function of the kernel: `fentry/NAME`, `fexit/NAME`.
    Function,
}

const fn at(kind: TargetKind, name: &'static str, event: Event) -> Target {
    Target { feature: Feature::new(name), kind, event: Some(event) }
}

const fn tracepoint(name: &'static str, event: Event) -> Target {
    at(TargetKind::Tracepoint, name, event)
}

const fn function(name: &'static str, event: Event) -> Target {
    at(TargetKind::Function, name, event)
}

/// One that is known and at which nothing is called.
const fn never(kind: TargetKind, name: &'static str, why: &'static str) -> Target {
    Target { feature: Feature::new(name).but(why), kind, event: None }
}

const fn absent(kind: TargetKind, name: &'static str, why: &'static str) -> Target {
    Target { feature: Feature::new(name).absent(why), kind, event: None }
}

impl Target {
    const fn since(self, major: u8, minor: u8) -> Target {
        Target { feature: self.feature.since(major, minor), ..self }
    }

    const fn but(self, how: &'static str) -> Target {
        Target { feature: self.feature.but(how), ..self }
    }
}

use TargetKind::{Function, Record, Tracepoint};

/// Futexes.
const MADE_UP: &str = "addresses stand for the objects of the workload; other arguments are 0";
/// Where the first tasks come from.
const NO_PARENT: &str = "not for tasks that the workload begins with";
/// Events that do not happen.
const NO_CALL: &str = "never called: no task calls it";
const NO_EXEC: &str = "never called: no task executes another program";
const NO_RENAME: &str = "never called: tasks have their names from the beginning";
const NO_TREE: &str = "never called: all cgroups exist from the beginning to the end";
/// Events that the machine does not have.
const NO_IRQ: &str = "the handlers of interrupts are no events";
const NO_IDLE_STATES: &str = "CPUs have no idle states";
const NO_PRESSURE: &str = "never called: every CPU runs at full speed";
const NO_MOVES: &str = "tasks move within the kernel's work, where no program is called";
const NO_TICK: &str = "the tick is no function here";

/// Every target, as tables of the kernel list them: tracepoints of the scheduler, of tasks and cgroups, of interrupts
/// and power; system calls; functions.
pub(crate) const TARGETS: &[Target] = &[
    tracepoint("sched_switch", Event::SchedSwitch)
        .but("`preempt` is false: tasks are preempted on their way to user mode"),
    tracepoint("sched_waking", Event::SchedWaking),
    tracepoint("sched_wakeup", Event::SchedWakeup).but("on the CPU that wakes the task"),
    tracepoint("sched_wakeup_new", Event::SchedWakeupNew),
    tracepoint("sched_process_fork", Event::ProcessFork).but(NO_PARENT),
    tracepoint("sched_process_exit", Event::ProcessExit),
    tracepoint("sched_process_free", Event::ProcessFree)
        .but("when the scheduler has left the task"),
    never(Tracepoint, "sched_process_exec", NO_EXEC),
    absent(Tracepoint, "sched_migrate_task", NO_MOVES),
    tracepoint("task_newtask", Event::NewTask).but("`clone_flags` is 0"),
    never(Tracepoint, "task_rename", NO_RENAME),
    tracepoint("cgroup_attach_task", Event::CgroupAttachTask),
    never(Tracepoint, "cgroup_mkdir", NO_TREE),
    never(Tracepoint, "cgroup_rmdir", NO_TREE),
    absent(Tracepoint, "irq_handler_entry", NO_IRQ),
    absent(Tracepoint, "irq_handler_exit", NO_IRQ),
    absent(Tracepoint, "softirq_entry", NO_IRQ),
    absent(Tracepoint, "softirq_exit", NO_IRQ),
    absent(Tracepoint, "cpu_idle", NO_IDLE_STATES),
    never(Tracepoint, "cpu_frequency", NO_PRESSURE),
    never(Tracepoint, "hw_pressure_update", NO_PRESSURE),
    at(Record, "syscalls/sys_enter_futex", Event::SysEnterFutex).but(MADE_UP),
    at(Record, "syscalls/sys_exit_futex", Event::SysExitFutex),
    never(Record, "syscalls/sys_enter_futex_wait", NO_CALL),
    never(Record, "syscalls/sys_exit_futex_wait", NO_CALL),
    never(Record, "syscalls/sys_enter_futex_waitv", NO_CALL),
    never(Record, "syscalls/sys_exit_futex_waitv", NO_CALL),
    never(Record, "syscalls/sys_enter_futex_wake", NO_CALL),
    never(Record, "syscalls/sys_exit_futex_wake", NO_CALL),
    never(Record, "syscalls/sys_enter_execve", NO_EXEC),
    never(Record, "syscalls/sys_enter_execveat", NO_EXEC),
    function("futex_wait", Event::FutexWait).but(MADE_UP),
    function("__futex_wait", Event::FutexWait).but(MADE_UP),
    function("futex_wake", Event::FutexWake).but(MADE_UP),
    function("futex_lock_pi", Event::FutexLockPi).but(MADE_UP),
    function("futex_unlock_pi", Event::FutexUnlockPi).but(MADE_UP),
    never(Function, "futex_wait_multiple", NO_CALL),
    never(Function, "futex_wait_requeue_pi", NO_CALL),
    never(Function, "futex_wake_op", NO_CALL),
    function("bpf_scx_reg", Event::Register).but("without arguments"),
    function("bpf_scx_reg_cid", Event::Register).since(7, 2).but("without arguments"),
    absent(Function, "scx_tick", NO_TICK),
];

/// The target of a program, by what its section says.
pub(crate) fn target(way: Way, name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.kind == way.kind() && target.feature.name == name)
}

/// The targets of a kind.
pub(crate) fn features(kind: TargetKind) -> Vec<Feature> {
    TARGETS.iter().filter(|target| target.kind == kind).map(|target| target.feature).collect()
}
