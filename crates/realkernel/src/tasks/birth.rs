//! How a task comes into being: from the runner before the start, from another task during the run.
//!
//! No task outlives the runner. Those that the runner forked are killed by the kernel when it dies
//! (`PR_SET_PDEATHSIG`). One that a task forked gets a signal of its own when its parent dies, and looks who its
//! parent is now: the runner, which adopts orphans, or a stranger, and then it ends.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

use fairground_workload::Duration;

use super::clock::sleep_until;
use super::error::TaskError;
use super::futex;
use super::plan::Step;
use super::shared::{ABSENT, LIVING, SLOTS_MAX, Trouble};
use super::task::{Level, Task, on_signal};
use super::usage::{errno, figures, own_usage};
use super::world::World;

/// The runner's process.
static RUNNER: AtomicI32 = AtomicI32::new(0);

/// Children that a task may leave unwaited for before it waits for those that have ended by itself.
const CHILDREN_UNREAPED_MAX: u32 = 128;
/// How long a task may take from its birth until it is ready, ns.
const READY_LIMIT_NS: u64 = 10_000_000_000;
/// How long a task computes, and how long it sleeps, before it is ready, ns: long enough to be done at all.
const REHEARSAL_NS: u64 = 1_000;

/// The timer slack of a normal task, ns. A runner that was started by a real-time task is of that class, where the
/// slack is 0, and that is inherited though the class is not (`copy_process`, `sched_fork`).
const TIMER_SLACK_NS: libc::c_ulong = 50_000;

/// Makes this process one that tasks can be forked from: it adopts orphans, and its children inherit the handlers.
pub(super) fn prepare_runner() {
    // SAFETY: the handlers are functions of the right type; both calls touch only the process's own state.
    unsafe {
        RUNNER.store(libc::getpid(), SeqCst);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        handle(libc::SIGUSR1, on_signal);
        handle(libc::SIGUSR2, on_orphaned);
    }
}

/// Goes to the first CPU, from where the simulated machine starts its tasks too; from there it may go where it could
/// before.
pub(super) fn go_to_first_cpu() {
    go_to_cpu(0);
}

/// Goes to one of the CPUs on which it may run, the first again behind the last; from there it may go where it could
/// before. So where each task sleeps before the start hangs on its number alone, and not on what the kernel did with
/// the processes before it.
fn go_to_cpu(nth: u32) {
    // SAFETY: the kernel fills the set, and reads it and another one; all is about this process alone.
    unsafe {
        let mut own = std::mem::zeroed::<libc::cpu_set_t>();
        let bytes = size_of_val(&own);
        // Fails on a machine with more CPUs than such a set has: the process stays where it is then.
        if libc::sched_getaffinity(0, bytes, &raw mut own) != 0 {
            return;
        }
        let mut left = nth as usize % libc::CPU_COUNT(&own).max(1) as usize;
        for cpu in 0..8 * bytes {
            if !libc::CPU_ISSET(cpu, &own) {
                continue;
            }
            if left == 0 {
                let mut one = std::mem::zeroed::<libc::cpu_set_t>();
                libc::CPU_SET(cpu, &mut one);
                if libc::sched_setaffinity(0, bytes, &raw const one) == 0 {
                    libc::sched_setaffinity(0, bytes, &raw const own);
                }
                return;
            }
            left -= 1;
        }
    }
}

/// # Safety
/// The handler does only what a signal handler may.
unsafe fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: zeroes are an action with an empty mask; the kernel copies it. System calls are not restarted: each
    // looks itself what to do.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        action.sa_sigaction = handler as usize;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// The parent has died: if the runner has, so does this task.
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

impl World {
    /// Takes the next slot for the next task of a group.
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

    /// Forks a task that exists from the beginning, and waits until it is ready to start.
    pub(super) fn fork_first(&self, group: u32) -> Result<(), TaskError> {
        let name = &self.plan.groups[group as usize].name;
        let index = self.slot(group, None).ok_or_else(|| TaskError::last("find a slot", None))?;
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
            // SAFETY: asks whether the child is still there.
            let gone = unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) } != 0;
            if gone || now_ns > deadline_ns {
                return Err(self.stillborn(name));
            }
            // Short, for a child that dies wakes nobody.
            futex::wait(ready, index, Some(100_000_000));
        }
        Ok(())
    }

    /// Why a task was not ready.
    fn stillborn(&self, name: &str) -> TaskError {
        let failed = |kind: Trouble| {
            let (times, error) = &self.head[0].troubles[kind as usize];
            (times.load(SeqCst) > 0).then(|| io::Error::from_raw_os_error(error.load(SeqCst)))
        };
        match failed(Trouble::Memory) {
            Some(error) => TaskError::System {
                what: format!("get the memory that a task of `{name}` reads"),
                error,
                help: Some("let it touch less, or use fewer tasks".to_owned()),
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
        task.settle(i8::MAX);
        go_to_cpu(index);
        task.rehearse();
        // The wait for the start is a switch that is not the workload's.
        let [user, system, voluntary, involuntary] = own_usage(libc::RUSAGE_SELF);
        for (kept, now) in task.slot.usage.iter().zip([user, system, voluntary + 1, involuntary]) {
            kept.store(now, SeqCst);
        }
        task.adopt();
        let delay_ns = task.group.start_ns.unwrap_or(0);
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
        task.live()
    }
}

impl Task<'_> {
    /// Gives a new process its name, memory, nice value, affinity and cgroup. `nice`: what it has by inheritance.
    fn settle(&mut self, nice: i8) {
        // SAFETY: touches no memory.
        self.slot.tid.store(unsafe { libc::getpid() } as u32, SeqCst);
        let nth = self.slot.nth.load(SeqCst);
        let mut comm = super::text::Line::new();
        comm.text(&self.group.name);
        if self.group.count > 1 {
            comm.text("/").number(nth.into());
        }
        comm.text("\0");
        // SAFETY: the name ends with a zero byte; the kernel takes 15 bytes of it.
        unsafe { libc::prctl(libc::PR_SET_NAME, comm.bytes().as_ptr(), 0, 0, 0) };
        self.memory = std::ptr::null_mut();
        if self.group.memory_bytes > 0 {
            self.get_memory();
        }
        if nice != self.group.nice && !set_nice(self.group.nice) {
            self.trouble(Trouble::Nice);
        }
        self.nice.set(self.group.nice);
        if let Some(cpus) = &self.group.cpus
            && !cpus.apply()
        {
            self.trouble(Trouble::Affinity);
        }
        if let Some(cgroup) = self.group.cgroup {
            self.enter_cgroup(cgroup);
        }
    }

    fn get_memory(&mut self) {
        // SAFETY: a new anonymous mapping touches no memory that is in use.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                self.group.memory_bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            self.trouble(Trouble::Memory);
            self.end();
        }
        self.memory = memory.cast();
    }

    /// Computes and sleeps for a moment, so that the page faults of that lie before the start and not in the first
    /// turn.
    fn rehearse(&self) {
        let moment = Duration::Fixed(REHEARSAL_NS);
        self.execute(&Step::Run(moment), Level::Program);
        self.execute(&Step::Sleep(moment), Level::Program);
        self.operations_in_turn.set(0);
    }

    /// Starts all tasks of a group.
    pub(super) fn fork(&self, group: u32) {
        for _ in 0..self.world.plan.groups[group as usize].count {
            if self.children.get() >= CHILDREN_UNREAPED_MAX {
                self.reap_ended();
            }
            let Some(index) = self.world.slot(group, Some(self.index)) else {
                return self.trouble(Trouble::Slots);
            };
            self.fork_one(index);
        }
    }

    /// Signals wait meanwhile: the child must not take one for its parent.
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
                self.next_life(index, parent, &masked);
            }
            if pid > 0 {
                let slot = &self.world.slots[index as usize];
                slot.tid.store(pid as u32, SeqCst);
                // The child may have ended already.
                let _ = slot.state.compare_exchange(ABSENT, LIVING, SeqCst, SeqCst);
                self.children.set(self.children.get() + 1);
            } else {
                self.trouble(Trouble::Fork);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
    }

    fn next_life(&self, index: u32, parent: libc::pid_t, masked: &libc::sigset_t) -> ! {
        // SAFETY: touches only the process's own state.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGUSR2, 0, 0, 0);
            let now = libc::getppid();
            if now != parent && now != RUNNER.load(SeqCst) {
                libc::_exit(0);
            }
        }
        for register in &self.world.registers {
            register.store(0, SeqCst);
        }
        let mut task = Task::new(self.world, index);
        task.settle(self.nice.get());
        // A child's usage begins with its fork.
        task.adopt();
        // The parent may not have come to it yet.
        let _ = task.slot.state.compare_exchange(ABSENT, LIVING, SeqCst, SeqCst);
        // SAFETY: the set outlives the call.
        unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, masked, std::ptr::null_mut()) };
        task.live()
    }

    fn reap_ended(&self) {
        while self.children.get() > 0 && self.reap(libc::WNOHANG) > 0 {}
    }

    /// Waits until all children have ended.
    pub(super) fn wait_children(&self) {
        // Ends: each turn is a child less, or a signal.
        while self.children.get() > 0 {
            if self.reap(0) <= 0 && errno() != libc::EINTR {
                self.children.set(0);
            }
        }
    }

    /// Waits for one child and notes what it used. The child itself does not ask: that question ends the turn of a
    /// task whose slice is over under EEVDF (`update_curr`), and no program of a workload asks it.
    fn reap(&self, options: libc::c_int) -> libc::pid_t {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel fills in what it is given, and zeroes are a usage.
        let (pid, usage) = unsafe {
            let pid = libc::wait4(-1, std::ptr::null_mut(), options, usage.as_mut_ptr());
            (pid, usage.assume_init())
        };
        if pid > 0 {
            self.children.set(self.children.get() - 1);
            // A number may have been another's before; the last one has it now.
            let mut slots = self.world.used_slots().iter().rev();
            if let Some(slot) = slots.find(|slot| slot.tid.load(SeqCst) == pid as u32) {
                for (kept, used) in slot.usage.iter().zip(figures(&usage)) {
                    kept.store(used, SeqCst);
                }
                slot.told.store(1, SeqCst);
            }
        }
        pid
    }
}
