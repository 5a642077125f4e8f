//! Executes the operations of a program: computations and system calls.

use std::fmt;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use fairground_workload::{BUSY_LOOK_NS, Op, Role, SchedPolicy, TimerId};
use nix::errno::Errno;

use super::clock::{now_ns, sleep_for, sleep_until};
use super::cpu_list::Ranges;
use super::plan::CpuSet;
use super::shared::{ENDED, FailedOperation, LIVING, MARKS_MAX};
use super::spin::touch;
use super::task::{Level, Task};
use super::text::Line;

/// Operations after which a task ends the slice of its virtual CPU ([`crate::guest::slices`]): about 100 µs of kernel
/// work.
const OPERATIONS_IN_SLICE: u32 = 4;

impl Task<'_> {
    /// Ends the slice of the virtual CPU after a few operations, if slices are short.
    fn end_slice(&self) {
        let done = self.operations_in_slice.get() + 1;
        self.operations_in_slice.set(done % OPERATIONS_IN_SLICE);
        if done == OPERATIONS_IN_SLICE && self.shared.speed.short_slices {
            std::hint::spin_loop();
        }
    }

    /// Executes one operation.
    pub(super) fn execute(&self, op: &Op, level: Level) {
        self.end_slice();
        match op {
            Op::Run(length) => self.shared.speed.compute(self.draw(*length, level)),
            Op::RunForever => self.shared.speed.compute_forever(),
            Op::Touch(bytes) => touch(self.memory, *bytes),
            // `Plan::new` rejects workloads with `io`.
            Op::Sleep(length) | Op::Io(length) => self.sleep(self.draw(*length, level)),
            Op::Busy(length) => self.busy(self.draw(*length, level)),
            Op::TimerWait(timer, period_ns) => self.timer_wait(*timer, *period_ns),
            Op::TimerStart(timer) => {
                // No effect if the timer has started.
                let expiry = self.last_expiry(*timer);
                let _ = expiry.compare_exchange(0, now_ns(), SeqCst, SeqCst);
            }
            Op::PipeWrite(pipe, bytes) => self.pipe_write(*pipe, *bytes),
            Op::PipeRead(pipe, bytes) => self.pipe_read(*pipe, *bytes),
            Op::Send(queue) => self.shared.queues[*queue].send(),
            Op::Receive(queue, count) => {
                for _ in 0..*count {
                    self.shared.queues[*queue].receive();
                }
            }
            Op::Lock(lock) | Op::WriteLock(lock) => self.lock(*lock),
            Op::ReadLock(lock) => self.read_lock(*lock),
            Op::Unlock(lock) => self.unlock(*lock),
            Op::ConditionWait(condition, lock) => {
                let waits = self.shared.conditions[*condition].begin();
                self.unlock(*lock);
                waits.end();
                self.lock(*lock);
            }
            Op::Notify(condition) => self.shared.conditions[*condition].notify(1),
            Op::NotifyAll(condition) => self.shared.conditions[*condition].notify(u32::MAX),
            Op::Barrier(barrier) => self.shared.barriers[*barrier].meet(),
            Op::Signal(role) => self.signal(*role),
            Op::Fork(group) => self.fork(*group as u32),
            Op::WaitChildren => self.wait_children(),
            Op::Yield => {
                // SAFETY: touches no memory.
                unsafe { libc::sched_yield() };
            }
            Op::SetNice(nice) => self.set_nice(*nice),
            Op::SetPolicy(policy) => self.change_policy(*policy),
            Op::SetSlice(slice_ns) => self.set_slice(*slice_ns),
            Op::SetAffinity(cpus) => self.set_affinity(&cpus.0),
            Op::SetCgroup(cgroup) => self.enter_cgroup(*cgroup),
            Op::SetCgroupWeight(cgroup, weight) => self.set_weight(*cgroup, *weight),
            Op::Mark(label) => self.mark(label),
            Op::Exit => self.end(),
            // Handled by `Task::steps`.
            Op::Loop(..) => {}
        }
    }

    /// Sleeps. A signal of the workload ends the sleep, with or without a handler.
    fn sleep(&self, length_ns: u64) {
        let before = self.signals.load(SeqCst);
        sleep_for(length_ns, || self.signals.load(SeqCst) == before);
    }

    /// Computes until a wall time has passed.
    fn busy(&self, length_ns: u64) {
        let until_ns = now_ns().saturating_add(length_ns);
        while now_ns() < until_ns {
            self.shared.speed.compute(BUSY_LOOK_NS);
        }
    }

    /// The last expiry of a timer, ns of the monotonic clock; 0 before it starts.
    fn last_expiry(&self, timer: TimerId) -> &AtomicU64 {
        match self.shared.plan.timers[timer].shared {
            true => &self.shared.timers[timer],
            false => &self.shared.registers[self.shared.plan.labels.len() + timer],
        }
    }

    fn timer_wait(&self, timer: TimerId, period_ns: u64) {
        let (last, now_ns) = (self.last_expiry(timer), now_ns());
        let next = |last_ns: u64| match last_ns {
            0 => now_ns.saturating_add(period_ns),
            last_ns => last_ns.saturating_add(period_ns),
        };
        // Atomic, because several tasks may wait for the same timer.
        let forget_ns = if self.shared.plan.timers[timer].relative { now_ns } else { 0 };
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
                    self.shared.pipes[pipe].1.as_raw_fd(),
                    self.memory.cast(),
                    left.min(chunk) as usize,
                )
            };
            match u64::try_from(written) {
                Ok(written) => left -= written,
                Err(_) if Errno::last_raw() == libc::EINTR => {}
                Err(_) => return self.record_failure(FailedOperation::Pipe),
            }
        }
    }

    fn pipe_read(&self, pipe: usize, bytes: u64) {
        let wanted = bytes.min(self.group.memory_bytes) as usize;
        // Terminates: each further iteration is due to a signal.
        loop {
            // SAFETY: the task's memory has room for so many bytes.
            let read = unsafe {
                libc::read(self.shared.pipes[pipe].0.as_raw_fd(), self.memory.cast(), wanted)
            };
            if read >= 0 {
                return;
            }
            if Errno::last_raw() != libc::EINTR {
                return self.record_failure(FailedOperation::Pipe);
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
                    .find(|index| self.shared.slots[*index as usize].nth.load(SeqCst) == nth);
                if let Some(index) = found {
                    self.kill(index);
                }
            }
            Role::All(group) => self.members(group).for_each(|index| self.kill(index)),
        }
    }

    /// The slots of a group's living tasks, in order. Stores the start of the range that contains living tasks.
    fn members(&self, group: usize) -> impl Iterator<Item = u32> {
        let (shared, state) = (self.shared, &self.shared.groups[group]);
        let (mut first, end) = (state.first.load(SeqCst), state.end.load(SeqCst));
        let of_group =
            move |index: &u32| shared.slots[*index as usize].group.load(SeqCst) as usize == group;
        while first < end
            && (!of_group(&first) || shared.slots[first as usize].state.load(SeqCst) == ENDED)
        {
            first += 1;
        }
        state.first.fetch_max(first.min(end), SeqCst);
        (first..end)
            .filter(of_group)
            .filter(move |index| shared.slots[*index as usize].state.load(SeqCst) == LIVING)
    }

    fn kill(&self, index: u32) {
        let slot = &self.shared.slots[index as usize];
        let tid = slot.tid.load(SeqCst);
        if tid != 0 && slot.state.load(SeqCst) == LIVING {
            // SAFETY: touches no memory.
            unsafe { libc::kill(tid as libc::pid_t, libc::SIGUSR1) };
        }
    }

    pub(super) fn set_nice(&self, nice: i8) {
        if !super::fork::set_nice(nice) {
            return self.record_failure(FailedOperation::Nice);
        }
        self.nice.set(nice);
        if self.policy.get().priority().is_some() {
            // It counts when the task leaves the class.
            return;
        }
        let pid = self.slot.tid.load(SeqCst);
        self.write_marker(format_args!("fairground:nice pid={pid} nice={nice}"));
    }

    /// Sets the scheduling policy, and writes the change to the recording.
    fn change_policy(&self, policy: SchedPolicy) {
        if !self.set_policy(policy) {
            return;
        }
        let pid = self.slot.tid.load(SeqCst);
        match policy.priority() {
            Some(priority) => {
                let prio = 99 - priority;
                self.write_marker(format_args!("fairground:prio pid={pid} prio={prio}"));
            }
            None => {
                let nice = self.nice.get();
                self.write_marker(format_args!("fairground:nice pid={pid} nice={nice}"));
            }
        }
    }

    /// Sets the scheduling policy; false: the kernel refused it.
    pub(super) fn set_policy(&self, policy: SchedPolicy) -> bool {
        let number = match policy {
            SchedPolicy::Other => libc::SCHED_OTHER,
            SchedPolicy::Fifo(_) => libc::SCHED_FIFO,
            SchedPolicy::Rr(_) => libc::SCHED_RR,
        };
        let is_set = crate::run::set_policy(number, policy.priority().unwrap_or(0).into());
        if is_set {
            self.policy.set(policy);
        } else {
            self.record_failure(FailedOperation::Policy);
        }
        is_set
    }

    /// Sets the slice length, in the field `sched_runtime`; keeps the policy and the nice value. Without effect on a
    /// real-time task.
    fn set_slice(&self, slice_ns: u64) {
        if self.policy.get().priority().is_some() {
            return;
        }
        let mut attributes = SchedAttributes {
            size: size_of::<SchedAttributes>() as u32,
            nice: i32::from(self.nice.get()),
            runtime_ns: slice_ns,
            ..SchedAttributes::default()
        };
        let address = &raw mut attributes;
        // SAFETY: the kernel reads as much as `size` says.
        if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, address, 0) } != 0 {
            return self.record_failure(FailedOperation::Slice);
        }
        // A kernel before 6.12 accepts and ignores the field.
        // SAFETY: the kernel writes at most `size` bytes.
        let status = unsafe {
            libc::syscall(libc::SYS_sched_getattr, 0, address, size_of::<SchedAttributes>(), 0)
        };
        if status != 0 || (slice_ns != 0 && attributes.runtime_ns == 0) {
            return self.record_failure(FailedOperation::Slice);
        }
        let pid = self.slot.tid.load(SeqCst);
        self.write_marker(format_args!("fairground:slice pid={pid} slice_ns={slice_ns}"));
    }

    fn set_affinity(&self, cpus: &[(u32, u32)]) {
        if !CpuSet::new(cpus).apply() {
            return self.record_failure(FailedOperation::Affinity);
        }
        let (pid, cpus) = (self.slot.tid.load(SeqCst), Ranges(cpus));
        self.write_marker(format_args!("fairground:affinity pid={pid} cpus={cpus}"));
    }

    pub(super) fn enter_cgroup(&self, cgroup: usize) {
        if !self.shared.cgroups.as_ref().is_some_and(|cgroups| cgroups.enter(cgroup)) {
            self.record_failure(FailedOperation::Cgroup);
        }
    }

    fn set_weight(&self, cgroup: usize, weight: u32) {
        let Some(all) = self.shared.cgroups.as_ref().filter(|all| all.set_weight(cgroup, weight))
        else {
            return self.record_failure(FailedOperation::CgroupWeight);
        };
        let path = all.path(cgroup);
        self.write_marker(format_args!("fairground:cgroup_weight weight={weight} path={path}"));
    }

    fn mark(&self, text: &str) {
        let labels = &self.shared.plan.labels;
        let Some(label) = labels.iter().position(|label| label == text) else { return };
        let value = self.shared.registers[label].fetch_add(1, SeqCst);
        let tid = self.slot.tid.load(SeqCst);
        if self.shared.marker.is_some() {
            return self.write_marker(format_args!("C|{tid}|{text}|{value}"));
        }
        let index = self.shared.head[0].marks.fetch_add(1, SeqCst) as usize;
        if index < MARKS_MAX {
            let mark = &self.shared.marks[index];
            mark.value.store(value, SeqCst);
            mark.tid.store(tid, SeqCst);
            mark.label.store(label as u32, SeqCst);
            mark.time_ns.store(now_ns(), SeqCst);
        }
    }

    /// Writes a line to the recording, if there is one.
    pub(super) fn write_marker(&self, line: fmt::Arguments<'_>) {
        let Some(marker) = &self.shared.marker else { return };
        let line = Line::of(line);
        let bytes = line.bytes();
        // SAFETY: the kernel reads so many bytes of the line.
        let written =
            unsafe { libc::write(marker.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        if written < 0 {
            self.record_failure(FailedOperation::Marker);
        }
    }
}

/// A task's policy and its parameters (`sched_getattr`); `None` if there is no such task.
pub(crate) fn scheduling_of(tid: u32) -> Option<SchedAttributes> {
    let mut attributes = SchedAttributes::default();
    let (address, size) = (&raw mut attributes, size_of::<SchedAttributes>());
    // SAFETY: the kernel writes at most `size` bytes.
    let status = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, address, size, 0) };
    (status == 0).then_some(attributes)
}

/// `struct sched_attr` of `include/uapi/linux/sched/types.h`, first version.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct SchedAttributes {
    size: u32,
    pub(crate) policy: u32,
    flags: u64,
    pub(crate) nice: i32,
    pub(crate) priority: u32,
    pub(crate) runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}
