//! Creates tasks: the runner forks the initial ones, tasks fork others during the run.
//!
//! No task outlives the runner. The kernel kills the runner's children when it dies (`PR_SET_PDEATHSIG`). A child of
//! a task gets a signal when its parent dies, and ends unless its new parent is the runner, which adopts orphans.

use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

use fairground_workload::{Duration, Op, SchedPolicy};

use nix::errno::Errno;
use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::sys::mman::MapFlags;
use nix::sys::resource::UsageWho;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::Pid;

use super::clock::sleep_until;
use super::error::TaskError;
use super::futex;
use super::plan::CpuSet;
use super::shared::{ABSENT, FailedOperation, LIVING, SLOTS_MAX, map};
use super::shared_state::SharedState;
use super::task::{Level, Task, on_signal};
use super::text::Line;
use super::usage::{figures, own_usage};

/// The runner's process.
static RUNNER: AtomicI32 = AtomicI32::new(0);

/// Number of unreaped children after which a task reaps those that have ended.
const CHILDREN_UNREAPED_MAX: u32 = 128;
/// Time limit from the fork of a task until it is ready, ns.
const READY_LIMIT_NS: u64 = 10_000_000_000;
/// Duration of the computation and of the sleep with which a task warms up, ns.
const REHEARSAL_NS: u64 = 1_000;

/// The timer slack of a normal task, ns. A runner that a real-time task started has a slack of 0, which children
/// inherit although they do not inherit the class (`copy_process`, `sched_fork`).
const TIMER_SLACK_NS: libc::c_ulong = 50_000;

/// Prepares this process to fork tasks: it adopts orphans, and its children inherit the signal handlers.
pub(super) fn prepare_runner() {
    // SAFETY: the handlers are async-signal-safe; all calls touch only the process's own state.
    unsafe {
        RUNNER.store(libc::getpid(), SeqCst);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        for (signal, handler) in [
            (Signal::SIGUSR1, on_signal as extern "C" fn(libc::c_int)),
            (Signal::SIGUSR2, on_orphaned),
        ] {
            // Interrupted system calls return EINTR, which their callers handle.
            let handler = SigHandler::Handler(handler);
            let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
            sigaction(signal, &action).expect("both signals can be handled");
        }
    }
}

/// A child ends at once. What is left of it is freed by RCU, so that its thread wakes up; without a cause it does not.
pub(super) fn end_a_child() {
    // SAFETY: the runner has one thread; the child only exits.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::_exit(0);
        }
        if pid > 0 {
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
}

/// Moves this process to the first CPU, on which tasks also start in simulation. Does not change the affinity.
pub(super) fn go_to_first_cpu() {
    go_to_cpu(0);
}

/// Moves this process to the `nth` of the CPUs on which it may run, modulo their number. Does not change the
/// affinity. The CPU on which a task sleeps before the start thus depends only on its number.
fn go_to_cpu(nth: u32) {
    let this = Pid::from_raw(0);
    // Fails on a machine with more CPUs than the set has. Then the process does not move.
    let Ok(own) = sched_getaffinity(this) else { return };
    let is_own = |cpu: &u32| own.is_set(*cpu as usize) == Ok(true);
    let mut cpus = (0..nix::sched::CpuSet::count() as u32).filter(is_own);
    let count = cpus.clone().count().max(1);
    if cpus.nth(nth as usize % count).is_some_and(|cpu| CpuSet::new(&[(cpu, cpu)]).apply()) {
        // The process had these CPUs before.
        let _ = sched_setaffinity(this, &own);
    }
}

/// Handles the death of the parent: ends the task unless the runner has adopted it.
extern "C" fn on_orphaned(_: libc::c_int) {
    // SAFETY: both calls are allowed in a signal handler.
    unsafe {
        if libc::getppid() != RUNNER.load(SeqCst) {
            libc::_exit(0);
        }
    }
}

/// Sets the calling task's nice value.
pub(super) fn set_nice(nice: i8) -> bool {
    // SAFETY: touches no memory.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice.into()) == 0 }
}

impl SharedState {
    /// Takes the next free slot for a task of a group.
    fn slot(&self, group: u32, parent: Option<u32>) -> Option<u32> {
        let next = |slots: u32| ((slots as usize) < SLOTS_MAX).then_some(slots + 1);
        let index = self.head[0].slots.fetch_update(SeqCst, SeqCst, next).ok()?;
        let (slot, members) = (&self.slots[index as usize], &self.groups[group as usize]);
        slot.group.store(group, SeqCst);
        slot.nth.store(members.born.fetch_add(1, SeqCst), SeqCst);
        slot.parent.store(parent.map_or(0, |parent| parent + 1), SeqCst);
        members.end.fetch_max(index + 1, SeqCst);
        Some(index)
    }

    /// Forks an initial task, and waits until it is ready to start.
    pub(super) fn fork_first(&self, group: u32) -> Result<(), TaskError> {
        let name = &self.plan.groups[group as usize].spec.name;
        let index =
            self.slot(group, None).ok_or_else(|| TaskError::last("allocate a task slot", None))?;
        // SAFETY: the runner has one thread, and the child goes on with what a child may do after a fork.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            self.first_life(index);
        }
        if pid < 0 {
            let what = format!("start task number {index} of the workload, one of `{name}`");
            let help = "use fewer tasks, or raise the limits: ulimit -u, /proc/sys/kernel/pid_max";
            return Err(TaskError::last(what, Some(help)));
        }
        let ready = &self.head[0].ready;
        let deadline_ns = super::clock::now_ns() + READY_LIMIT_NS;
        while ready.load(SeqCst) <= index {
            let now_ns = super::clock::now_ns();
            // SAFETY: only checks whether the child exists.
            let gone = unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) } != 0;
            if gone || now_ns > deadline_ns {
                return Err(self.stillborn(name));
            }
            // Short, because a dying child does not wake the runner.
            futex::wait(ready, index, Some(100_000_000));
        }
        Ok(())
    }

    /// The error of a task that is not ready in time.
    fn stillborn(&self, name: &str) -> TaskError {
        match self.head[0].failure(FailedOperation::Memory) {
            Some((_, error)) => TaskError::System {
                what: format!("allocate the memory that a task of `{name}` reads"),
                error,
                help: Some("reduce the memory that it touches, or use fewer tasks".to_owned()),
            },
            None => TaskError::Unfit {
                problem: format!("a task of `{name}` was not ready within 10 s of its start"),
                help: "is the machine overloaded, or out of memory?".to_owned(),
            },
        }
    }

    fn first_life(&self, index: u32) -> ! {
        let mut task = Task::new(self, index);
        // SAFETY: the calls touch only the process's own state.
        unsafe {
            libc::setpgid(0, self.anchor);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
            if libc::getppid() != RUNNER.load(SeqCst) {
                libc::_exit(0);
            }
        }
        self.close_others();
        task.apply_attributes(i8::MAX, SchedPolicy::Other);
        go_to_cpu(index);
        task.rehearse();
        // The wait for the start is a context switch outside of the workload.
        let [user, system, voluntary, involuntary] = own_usage(UsageWho::RUSAGE_SELF);
        for (kept, now) in task.slot.usage.iter().zip([user, system, voluntary + 1, involuntary]) {
            kept.store(now, SeqCst);
        }
        task.become_current();
        let delay_ns = task.group.spec.start_ns.unwrap_or(0);
        if delay_ns == 0 {
            task.slot.state.store(LIVING, SeqCst);
        }
        let head = &self.head[0];
        head.ready.fetch_add(1, SeqCst);
        futex::wake(&head.ready, 1);
        while head.go.load(SeqCst) == 0 {
            futex::wait(&head.go, 0, None);
        }
        if delay_ns > 0 {
            sleep_until(head.start_ns.load(SeqCst) + delay_ns);
            task.slot.state.store(LIVING, SeqCst);
        }
        task.run()
    }
}

impl Task<'_> {
    /// Sets name, memory, nice value, affinity, cgroup and policy of a new process, which has inherited a nice value
    /// and a policy.
    fn apply_attributes(&mut self, nice: i8, policy: SchedPolicy) {
        // SAFETY: touches no memory.
        self.slot.tid.store(unsafe { libc::getpid() } as u32, SeqCst);
        let nth = self.slot.nth.load(SeqCst);
        let spec = &self.group.spec;
        let name = &spec.name;
        let comm = match spec.count {
            0 | 1 => Line::of(format_args!("{name}\0")),
            _ => Line::of(format_args!("{name}/{nth}\0")),
        };
        // SAFETY: the name ends with a zero byte; the kernel takes 15 bytes of it.
        unsafe { libc::prctl(libc::PR_SET_NAME, comm.bytes().as_ptr(), 0, 0, 0) };
        self.memory = std::ptr::null_mut();
        if self.group.memory_bytes > 0 {
            self.get_memory();
        }
        self.nice.set(spec.nice);
        if nice != spec.nice {
            self.set_nice(spec.nice);
        }
        if let Some(cpus) = &spec.cpus
            && !CpuSet::new(&cpus.0).apply()
        {
            self.record_failure(FailedOperation::Affinity);
        }
        if let Some(cgroup) = spec.cgroup {
            self.enter_cgroup(cgroup);
        }
        if policy != spec.policy {
            self.set_policy(spec.policy);
        }
    }

    fn get_memory(&mut self) {
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_POPULATE;
        match map(self.group.memory_bytes as usize, flags) {
            Ok(memory) => self.memory = memory.as_ptr(),
            Err(_) => {
                self.record_failure(FailedOperation::Memory);
                self.end();
            }
        }
    }

    /// Computes and sleeps briefly, so that the page faults of these operations occur before the start.
    fn rehearse(&self) {
        let moment = Duration::Fixed(REHEARSAL_NS);
        self.execute(&Op::Run(moment), Level::Program);
        self.execute(&Op::Sleep(moment), Level::Program);
        self.operations_in_slice.set(0);
    }

    /// Starts all tasks of a group.
    pub(super) fn fork(&self, group: u32) {
        for _ in 0..self.shared.plan.groups[group as usize].spec.count {
            if self.children.get() >= CHILDREN_UNREAPED_MAX {
                self.reap_ended();
            }
            let Some(index) = self.shared.slot(group, Some(self.index)) else {
                return self.record_failure(FailedOperation::Slots);
            };
            self.fork_one(index);
        }
    }

    /// Blocks signals meanwhile, so that the child does not handle a signal for its parent.
    fn fork_one(&self, index: u32) {
        // SAFETY: both sets live on this stack; parent and child each go on with their own copy of everything, and
        // the child only makes calls that are allowed after a fork.
        unsafe {
            let mut masked = std::mem::zeroed::<libc::sigset_t>();
            let mut before = std::mem::zeroed::<libc::sigset_t>();
            libc::sigaddset(&raw mut masked, libc::SIGUSR1);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const masked, &raw mut before);
            let parent = libc::getpid();
            let pid = libc::fork();
            if pid == 0 {
                self.run_child(index, parent, &masked);
            }
            if pid > 0 {
                let slot = &self.shared.slots[index as usize];
                slot.tid.store(pid as u32, SeqCst);
                // The child may have ended already.
                let _ = slot.state.compare_exchange(ABSENT, LIVING, SeqCst, SeqCst);
                self.children.set(self.children.get() + 1);
            } else {
                self.record_failure(FailedOperation::Fork);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
    }

    fn run_child(&self, index: u32, parent: libc::pid_t, masked: &libc::sigset_t) -> ! {
        // SAFETY: touches only the process's own state.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGUSR2, 0, 0, 0);
            let now = libc::getppid();
            if now != parent && now != RUNNER.load(SeqCst) {
                libc::_exit(0);
            }
        }
        for register in &self.shared.registers {
            register.store(0, SeqCst);
        }
        let mut task = Task::new(self.shared, index);
        task.apply_attributes(self.nice.get(), self.policy.get());
        // A child's usage begins with its fork.
        task.become_current();
        // The parent may not have written it yet.
        let _ = task.slot.state.compare_exchange(ABSENT, LIVING, SeqCst, SeqCst);
        // SAFETY: the set outlives the call.
        unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, masked, std::ptr::null_mut()) };
        task.run()
    }

    fn reap_ended(&self) {
        while self.children.get() > 0 && self.reap(libc::WNOHANG) > 0 {}
    }

    /// Waits until all children have ended.
    pub(super) fn wait_children(&self) {
        // Terminates: each iteration reaps a child or handles a signal.
        while self.children.get() > 0 {
            if self.reap(0) <= 0 && Errno::last_raw() != libc::EINTR {
                self.children.set(0);
            }
        }
    }

    /// Reaps one child and stores its usage. The child does not query it itself: under EEVDF, the query would preempt
    /// a task whose slice has expired (`update_curr`), which the programs of a workload do not do.
    fn reap(&self, options: libc::c_int) -> libc::pid_t {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel fills in what it is given, and zeroes are a usage.
        let (pid, usage) = unsafe {
            let pid = libc::wait4(-1, std::ptr::null_mut(), options, usage.as_mut_ptr());
            (pid, usage.assume_init())
        };
        if pid > 0 {
            self.children.set(self.children.get() - 1);
            // Process numbers are reused: the last slot with this number is the child's.
            let mut slots = self.shared.used_slots().iter().rev();
            if let Some(slot) = slots.find(|slot| slot.tid.load(SeqCst) == pid as u32) {
                for (kept, used) in slot.usage.iter().zip(figures(&usage)) {
                    kept.store(used, SeqCst);
                }
                slot.final_usage.store(1, SeqCst);
            }
        }
        pid
    }
}
