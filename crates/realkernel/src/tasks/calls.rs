//! What the operations of a program are for a real task: computations and system calls.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use fairground_workload::{BUSY_LOOK_NS, Role};

use super::clock::{now_ns, sleep_for, sleep_until};
use super::plan::{Step, TimerPlace};
use super::shared::{ENDED, LIVING, MARKS_MAX, Trouble};
use super::spin::touch;
use super::task::{Level, Task};
use super::text::Line;
use super::usage::errno;

/// Operations after which a task gives its virtual CPU's turn away, where it does: some 100 µs of a kernel's work.
const OPERATIONS_IN_TURN: u32 = 4;

impl Task<'_> {
    /// Where virtual CPUs run in turns, a turn ends after a few operations.
    fn give_way(&self) {
        let done = self.operations_in_turn.get() + 1;
        self.operations_in_turn.set(done % OPERATIONS_IN_TURN);
        if done == OPERATIONS_IN_TURN && self.world.speed.gives_way {
            std::hint::spin_loop();
        }
    }

    /// Executes one operation to its end.
    pub(super) fn execute(&self, step: &Step, level: Level) {
        self.give_way();
        match step {
            Step::Run(length) => self.world.speed.compute(self.draw(*length, level)),
            Step::RunForever => self.world.speed.compute_for_ever(),
            Step::Touch(bytes) => touch(self.memory, *bytes),
            Step::Sleep(length) => self.sleep(self.draw(*length, level)),
            Step::Busy(length) => self.busy(self.draw(*length, level)),
            Step::TimerWait { timer, period_ns, relative } => {
                self.timer_wait(*timer, *period_ns, *relative);
            }
            Step::TimerStart(timer) => {
                // Without effect when it has begun.
                let expiry = self.last_expiry(*timer);
                let _ = expiry.compare_exchange(0, now_ns(), SeqCst, SeqCst);
            }
            Step::PipeWrite { pipe, bytes } => self.pipe_write(*pipe, *bytes),
            Step::PipeRead { pipe, bytes } => self.pipe_read(*pipe, *bytes),
            Step::Send(queue) => self.world.queues[*queue].send(),
            Step::Receive(queue, count) => {
                for _ in 0..*count {
                    self.world.queues[*queue].receive();
                }
            }
            Step::Lock(lock) => self.lock(*lock),
            Step::ReadLock(lock) => self.read_lock(*lock),
            Step::Unlock(lock) => self.unlock(*lock),
            Step::ConditionWait(condition, lock) => {
                let waits = self.world.conditions[*condition].begin();
                self.unlock(*lock);
                waits.end();
                self.lock(*lock);
            }
            Step::Notify(condition, count) => self.world.conditions[*condition].notify(*count),
            Step::Barrier(barrier) => self.world.barriers[*barrier].meet(),
            Step::Signal(role) => self.signal(*role),
            Step::Fork(group) => self.fork(*group as u32),
            Step::WaitChildren => self.wait_children(),
            Step::Yield => {
                // SAFETY: touches no memory.
                unsafe { libc::sched_yield() };
            }
            Step::SetNice(nice) => self.set_nice(*nice),
            Step::SetSlice(slice_ns) => self.set_slice(*slice_ns),
            Step::SetAffinity(cpus) => {
                if !cpus.apply() {
                    self.trouble(Trouble::Affinity);
                }
            }
            Step::SetCgroup(cgroup) => self.enter_cgroup(*cgroup),
            Step::SetCgroupWeight(cgroup, weight) => self.set_weight(*cgroup, *weight),
            Step::Mark(label) => self.mark(*label),
            Step::Exit => self.end(),
            // The interpreter's own.
            Step::Loop(..) => {}
        }
    }

    /// A signal of the workload ends the sleep, with or without a handler.
    fn sleep(&self, length_ns: u64) {
        let before = self.signals.load(SeqCst);
        sleep_for(length_ns, || self.signals.load(SeqCst) == before);
    }

    /// Computes until a length of time has passed.
    fn busy(&self, length_ns: u64) {
        let until_ns = now_ns().saturating_add(length_ns);
        while now_ns() < until_ns {
            self.world.speed.compute(BUSY_LOOK_NS);
        }
    }

    /// The last expiry of a timer, ns of the monotonic clock; 0 before it begins.
    fn last_expiry(&self, timer: TimerPlace) -> &AtomicU64 {
        match timer {
            TimerPlace::Own(register) => &self.world.registers[register],
            TimerPlace::Shared(timer) => &self.world.timers[timer].last_ns,
        }
    }

    fn timer_wait(&self, timer: TimerPlace, period_ns: u64, relative: bool) {
        let (last, now_ns) = (self.last_expiry(timer), now_ns());
        let next = |last_ns: u64| match last_ns {
            0 => now_ns.saturating_add(period_ns),
            last_ns => last_ns.saturating_add(period_ns),
        };
        // In one step: others may wait for the same timer at the same time.
        let forget_ns = if relative { now_ns } else { 0 };
        let update = |last_ns| Some(next(last_ns).max(forget_ns));
        let (Ok(before_ns) | Err(before_ns)) = last.fetch_update(SeqCst, SeqCst, update);
        let expiry_ns = next(before_ns);
        if expiry_ns > now_ns {
            sleep_until(expiry_ns);
        }
    }

    fn pipe_write(&self, pipe: usize, bytes: u64) {
        let (mut left, chunk) = (bytes, self.group.memory_bytes);
        while left > 0 {
            // SAFETY: the task's memory holds `chunk` bytes.
            let written = unsafe {
                libc::write(
                    self.world.pipes[pipe].1.as_raw_fd(),
                    self.memory.cast(),
                    left.min(chunk) as usize,
                )
            };
            match u64::try_from(written) {
                Ok(written) => left -= written,
                Err(_) if errno() == libc::EINTR => {}
                Err(_) => return self.trouble(Trouble::Pipe),
            }
        }
    }

    fn pipe_read(&self, pipe: usize, bytes: u64) {
        let wanted = bytes.min(self.group.memory_bytes) as usize;
        // Ends: each further turn is a signal.
        loop {
            // SAFETY: the task's memory has room for so many bytes.
            let read = unsafe {
                libc::read(self.world.pipes[pipe].0.as_raw_fd(), self.memory.cast(), wanted)
            };
            if read >= 0 {
                return;
            }
            if errno() != libc::EINTR {
                return self.trouble(Trouble::Pipe);
            }
        }
    }

    fn signal(&self, role: Role) {
        match role {
            Role::Parent => {
                let parent = self.slot.parent.load(SeqCst);
                if parent > 0 {
                    self.kill(parent - 1);
                }
            }
            Role::One(group, nth) => {
                let found = self
                    .members(group)
                    .find(|index| self.world.slots[*index as usize].nth.load(SeqCst) == nth);
                if let Some(index) = found {
                    self.kill(index);
                }
            }
            Role::All(group) => self.members(group).for_each(|index| self.kill(index)),
        }
    }

    /// The slots of a group's living tasks, in order. Remembers which slots at its beginning belong to the dead.
    fn members(&self, group: usize) -> impl Iterator<Item = u32> {
        let (world, state) = (self.world, &self.world.groups[group]);
        let (mut first, end) = (state.first.load(SeqCst), state.end.load(SeqCst));
        let of_group =
            move |index: &u32| world.slots[*index as usize].group.load(SeqCst) as usize == group;
        while first < end
            && (!of_group(&first) || world.slots[first as usize].state.load(SeqCst) == ENDED)
        {
            first += 1;
        }
        state.first.fetch_max(first.min(end), SeqCst);
        (first..end)
            .filter(of_group)
            .filter(move |index| world.slots[*index as usize].state.load(SeqCst) == LIVING)
    }

    fn kill(&self, index: u32) {
        let slot = &self.world.slots[index as usize];
        let tid = slot.tid.load(SeqCst);
        if tid != 0 && slot.state.load(SeqCst) == LIVING {
            // SAFETY: touches no memory.
            unsafe { libc::kill(tid as libc::pid_t, libc::SIGUSR1) };
        }
    }

    fn set_nice(&self, nice: i8) {
        if !super::birth::set_nice(nice) {
            return self.trouble(Trouble::Nice);
        }
        self.nice.set(nice);
        let mut line = Line::new();
        line.text("fairground:nice pid=").number(self.slot.tid.load(SeqCst).into());
        line.text(" nice=").signed(nice.into());
        self.say(&line);
    }

    /// Keeps the task's policy and nice value; the slice stands in the field that deadline tasks keep their runtime in.
    fn set_slice(&self, slice_ns: u64) {
        let mut attributes = SchedAttributes {
            size: size_of::<SchedAttributes>() as u32,
            nice: i32::from(self.nice.get()),
            runtime_ns: slice_ns,
            ..SchedAttributes::default()
        };
        let address = &raw mut attributes;
        // SAFETY: the kernel reads as much as `size` says.
        if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, address, 0) } != 0 {
            return self.trouble(Trouble::Slice);
        }
        // A kernel before 6.12 takes the field and forgets it.
        // SAFETY: the kernel writes at most `size` bytes.
        let told = unsafe {
            libc::syscall(libc::SYS_sched_getattr, 0, address, size_of::<SchedAttributes>(), 0)
        };
        if told != 0 || (slice_ns != 0 && attributes.runtime_ns == 0) {
            self.trouble(Trouble::Slice);
        }
    }

    pub(super) fn enter_cgroup(&self, cgroup: usize) {
        if !self.world.cgroups.as_ref().is_some_and(|cgroups| cgroups.enter(cgroup)) {
            self.trouble(Trouble::Cgroup);
        }
    }

    fn set_weight(&self, cgroup: usize, weight: u32) {
        if !self.world.cgroups.as_ref().is_some_and(|all| all.set_weight(cgroup, weight)) {
            return self.trouble(Trouble::CgroupWeight);
        }
        let mut line = Line::new();
        line.text("fairground:cgroup_weight cgroup=").number(cgroup as u64);
        line.text(" weight=").number(weight.into());
        self.say(&line);
    }

    fn mark(&self, label: usize) {
        let value = self.world.registers[label].fetch_add(1, SeqCst);
        let tid = self.slot.tid.load(SeqCst);
        if self.world.marker.is_some() {
            let mut line = Line::new();
            line.text("C|").number(tid.into()).text("|");
            line.text(&self.world.plan.labels[label]).text("|").number(value);
            return self.say(&line);
        }
        let index = self.world.head[0].marks.fetch_add(1, SeqCst) as usize;
        if index < MARKS_MAX {
            let mark = &self.world.marks[index];
            mark.value.store(value, SeqCst);
            mark.tid.store(tid, SeqCst);
            mark.label.store(label as u32, SeqCst);
            mark.time_ns.store(now_ns(), SeqCst);
        }
    }

    /// Writes a line into the recording, if there is one.
    pub(super) fn say(&self, line: &Line) {
        let Some(marker) = &self.world.marker else { return };
        let bytes = line.bytes();
        // SAFETY: the kernel reads so many bytes of the line.
        let written =
            unsafe { libc::write(marker.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        if written < 0 {
            self.trouble(Trouble::Marker);
        }
    }
}

/// `struct sched_attr` of `include/uapi/linux/sched/types.h`, first version.
#[derive(Debug, Default)]
#[repr(C)]
struct SchedAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}
