//! Fork and exit.

use fairground_trace::{EventKind, Policy as TracedPolicy, RtPrio, TaskId, TaskInfo, TaskState};
use fairground_workload::SchedPolicy;

use super::{Machine, Step};
use crate::Path;
use crate::abi::{enq, wake};
use crate::actors::ActorId;
use crate::cgroup::CgroupRef;
use crate::cpuset::CpuMask;
use crate::kernel::{Again, OpsState, ScxState, Slot, Stage, Task};
use crate::layout::offsets::{init_task_args, task as field};
use crate::op::Op;
use crate::real_time::RtEntity;
use crate::tracing::Event;

/// Initial state of a new task.
#[derive(Debug)]
pub(crate) struct Birth<'a> {
    /// Its number in the trace.
    pub(crate) id: TaskId,
    /// Its program in user space.
    pub(crate) actor: ActorId,
    pub(crate) pid: u32,
    pub(crate) comm: &'a str,
    pub(crate) policy: SchedPolicy,
    pub(crate) nice: i8,
    pub(crate) cgroup: CgroupRef,
    /// The CPUs on which it may run.
    pub(crate) allowed: CpuMask,
}

impl Machine {
    /// `copy_process` and `wake_up_new_task` on the executing CPU. Callbacks: `init_task`, `enable`, `set_weight`; then
    /// `select_cpu` (with `SCX_WAKE_FORK`), `runnable`, `enqueue`. For a real-time task `init_task` alone.
    pub(crate) fn fork(&mut self, parent: Option<Slot>, actor: ActorId) -> Step {
        let this = self.kernel.this_cpu;
        let meter = self.meter();
        let slot = self.new_task(parent, actor)?;
        if !self.init_task(slot)? {
            return Ok(());
        }
        if !self.kernel.task(slot).rt.is_rt() {
            self.enable_task(slot)?;
        }
        let child = self.kernel.task(slot).id;
        let addr = self.kernel.task(slot).addr;
        self.raise(Event::NewTask, &[addr, 0])?;
        if let Some(parent) = parent {
            let (parent, parent_addr) =
                (self.kernel.task(parent).id, self.kernel.task(parent).addr);
            self.kernel.emit(this, 0, EventKind::Fork { parent, child });
            self.raise(Event::ProcessFork, &[parent_addr, addr])?;
        }
        let (cpu, _) = self.select_task_rq(slot, this, wake::FORK)?;
        self.activate_new(slot, cpu)?;
        self.raise_task(Event::SchedWakeupNew, slot)?;
        let insns = self.book(Path::Wakeup, meter);
        self.kernel.counters.wakeups += 1;
        self.kernel.emit(this, insns, EventKind::WakeupNew { task: child, target_cpu: cpu });
        self.kernel.run_deferred(self.program.memory(), cpu)?;
        if parent.is_some() {
            let ns =
                self.kernel.divide_wakeup_ns(slot, self.kernel.this_cpu) + self.policy_ns(insns);
            self.kernel.charge(this, ns);
        }
        Ok(())
    }

    /// The second half of `wake_up_new_task`: a new task is queued for a CPU. Callbacks: `runnable`, `enqueue`.
    pub(crate) fn activate_new(&mut self, slot: Slot, cpu: u32) -> Step {
        // `__set_task_cpu`: a new task's first place is no migration.
        let mem = self.program.memory();
        self.kernel.task_mut(slot).cpu = cpu;
        let addr = self.kernel.task(slot).addr;
        for at in [field::THREAD_INFO_CPU, field::WAKE_CPU, field::RECENT_USED_CPU] {
            mem.store_u32(addr + at, cpu)?;
        }
        self.kernel.mark_runnable(mem, slot)?;
        self.activate_woken(slot, enq::INITIAL | enq::NOCLOCK)
    }

    /// The task of an actor, as its group of the workload begins.
    fn new_task(&mut self, parent: Option<Slot>, actor: ActorId) -> Step<Slot> {
        let (slot, pid) = self.kernel.tasks.take_place();
        let spec = self.actors.spec(actor);
        let (policy, nice) = (self.policies[spec], self.nices[spec]);
        // Where its group of the workload begins (`CLONE_INTO_CGROUP`), or where its parent is.
        let inherited = parent.map_or(CgroupRef::ROOT, |slot| self.kernel.task(slot).cgroup);
        let cgroup = self.first_cgroups[spec].unwrap_or(inherited);
        let all = self.kernel.all_cpus;
        let first = self.actors.start_affinity(spec);
        let allowed = first.map_or(all, |affinity| self.actors.affinity(affinity).and(&all));
        let mut info = TaskInfo::new(pid, &self.actors.task_name(actor));
        match policy.priority() {
            None => info.nice = Some(nice),
            Some(priority) => {
                info.rt_prio = RtPrio::new(99 - i32::from(priority));
                info.policy = TracedPolicy::of_name(policy.word());
            }
        }
        info.cgroup = self.kernel.cgroups.in_trace.then(|| cgroup.id());
        info.allowed_cpus = (allowed != all).then(|| ranges(&allowed));
        let comm = info.comm.clone();
        let id = self.kernel.trace.add_task(info);
        let birth = Birth { id, actor, pid, comm: &comm, policy, nice, cgroup, allowed };
        self.put_task(slot, parent, &birth)?;
        Ok(slot)
    }

    /// Fills in what a new `task_struct` holds (`__sched_fork`, `init_scx_entity`).
    pub(crate) fn put_task(&mut self, slot: Slot, parent: Option<Slot>, birth: &Birth<'_>) -> Step {
        let &Birth { id, actor, pid, comm, policy, nice, cgroup, allowed } = birth;
        let task = Task {
            addr: self.kernel.tasks.addr(slot),
            id,
            actor,
            pid,
            cpu: self.kernel.this_cpu,
            state: TaskState::Runnable,
            stage: Stage::Advance,
            begins: false,
            rt: RtEntity::new(policy, self.kernel.clock.period_ns()),
            queued: false,
            waiting: false,
            runnable_at_ns: self.kernel.clock.now_ns(),
            reset_runnable_at: false,
            deqd_for_sleep: false,
            in_custody: false,
            ops_state: OpsState::None,
            qseq: 0,
            ddsp: None,
            scx_state: ScxState::None,
            migrating: false,
            exiting: false,
            nice,
            cgroup,
            moving_from: None,
            allowed: None,
            allowed_count: 0,
            exec_start_ns: self.kernel.clock.now_ns(),
            sum_exec_ns: 0,
            nr_migrations: 0,
            nvcsw: 0,
            nivcsw: 0,
            left_at_ns: self.kernel.clock.now_ns(),
            ran_on: None,
            moved_to: None,
            blocks: false,
            timer: None,
            signalled: false,
            immed: false,
            again: Again::No,
            woken: false,
            phase: crate::kernel::Phase::Off,
            last_call: None,
        };
        self.kernel.tasks.put(slot, task);
        let mem = self.program.memory();
        self.kernel.write_new_task(mem, slot, parent, comm)?;
        self.kernel.set_allowed(mem, slot, &allowed)?;
        self.kernel.task(slot).publish_policy(mem)
    }

    /// `scx_fork`: the scheduler may refuse a task; the fork fails then, which no workload here can handle, so that the
    /// scheduler's time in charge ends. True: it accepted the task. Callback: `init_task`.
    pub(crate) fn init_task(&mut self, slot: Slot) -> Step<bool> {
        let addr = self.kernel.task(slot).addr;
        if self.has(Op::InitTask) {
            let mem = self.program.memory();
            let args = self.init_task_args;
            mem.store_u8(args + init_task_args::FORK, 1)?;
            let cgroup = self.kernel.cgroups.addr(self.kernel.task(slot).cgroup);
            mem.store_u64(args + init_task_args::CGROUP, cgroup)?;
            // Kfuncs accept it as a task from here on.
            self.kernel.task_mut(slot).scx_state = ScxState::Init;
            let result = self.call(Op::InitTask, Some(slot), &[addr, args]) as i32;
            if result != 0 || self.broken {
                let task = self.kernel.describe(slot);
                self.kernel.error(format!("ops.init_task() failed ({result}) for {task}"));
                return Ok(false);
            }
            if self.program.memory().load_u8(addr + field::SCX_DISALLOW)? != 0 {
                let task = self.kernel.describe(slot);
                self.kernel.error(format!(
                    "ops.init_task() set task->scx.disallow for {task} during fork"
                ));
            }
        }
        let task = self.kernel.task_mut(slot);
        task.scx_state = ScxState::Ready;
        task.reset_runnable_at = true;
        Ok(true)
    }

    /// `scx_ops_enable_task`. Callbacks: `enable`, `set_weight`.
    pub(crate) fn enable_task(&mut self, slot: Slot) -> Step {
        self.call_task(Op::Enable, slot, None);
        self.kernel.task_mut(slot).scx_state = ScxState::Enabled;
        self.kernel.task(slot).publish_flags(self.program.memory(), &self.kernel.states)?;
        let weight = self.kernel.task(slot).weight();
        self.call_task(Op::SetWeight, slot, Some(weight.into()));
        Ok(())
    }

    /// `exit_signals` of the task that runs: from here on it is exiting. Before it notifies its parent, the event says so.
    pub(crate) fn begin_exit(&mut self, cpu: u32, slot: Slot) -> Step {
        let task = self.kernel.task_mut(slot);
        task.exiting = true;
        let (id, addr) = (task.id, task.addr);
        self.kernel.task(slot).publish_exiting(self.program.memory())?;
        self.kernel.emit(cpu, 0, EventKind::Exit { task: id });
        self.at_its_cost(cpu, |machine| machine.raise(Event::ProcessExit, &[addr, 1]))
    }

    /// The end of `do_exit` of the task that runs, and `sched_ext_free` once it has left the CPU. Callbacks: `stopping`,
    /// `quiescent`, those of the next task, then `disable`, `exit_task`.
    pub(crate) fn exit_current(&mut self, cpu: u32, slot: Slot) -> Step {
        if self.kernel.pays_way_off(slot) {
            return Ok(());
        }
        let task = self.kernel.task_mut(slot);
        task.stage = Stage::Advance;
        let actor = task.actor;
        self.schedule(Some(TaskState::Dead))?;
        self.at_its_cost(cpu, |machine| {
            machine.exit_task(slot);
            machine.raise_task(Event::ProcessFree, slot)
        })?;
        self.reap(slot);
        self.actors.release(actor);
        Ok(())
    }

    /// Frees the place of a task that is gone, and what is kept for it.
    pub(crate) fn reap(&mut self, slot: Slot) {
        let task = self.kernel.task_mut(slot);
        let (id, addr) = (task.id, task.addr);
        let ran = std::mem::take(&mut task.sum_exec_ns);
        self.program.task_storage_free(&mut self.kernel, addr);
        self.kernel.reaped_exec_ns += ran;
        self.kernel.caches.forget(id);
        self.kernel.tasks.free(slot);
    }

    /// `scx_ops_exit_task`: the task leaves the scheduler. Callbacks: `disable`, `exit_task`.
    pub(crate) fn exit_task(&mut self, slot: Slot) {
        self.disable_task(slot);
        if self.has(Op::ExitTask) {
            let addr = self.kernel.task(slot).addr;
            let args = self.exit_task_args;
            self.call(Op::ExitTask, Some(slot), &[addr, args]);
        }
        self.kernel.task_mut(slot).scx_state = ScxState::None;
    }
}

/// The CPUs of a mask as sorted ranges.
fn ranges(mask: &CpuMask) -> Vec<(u32, u32)> {
    let mut out: Vec<(u32, u32)> = Vec::new();
    for cpu in mask.iter() {
        match out.last_mut() {
            Some(last) if last.1 + 1 == cpu => last.1 = cpu,
            _ => out.push((cpu, cpu)),
        }
    }
    out
}
