//! Tasks come and go.

use fairground_trace::{EventKind, TaskInfo, TaskState};

use super::{Machine, Step};
use crate::Path;
use crate::abi::{self, enq, wake};
use crate::actors::ActorId;
use crate::cpuset::CpuMask;
use crate::kernel::{CgroupRef, Op, OpsState, ScxState, Slot, Stage, Task, Tasks};
use crate::layout::offsets::{init_task_args, task as field};

/// `PF_EXITING` in `p->flags`.
const PF_EXITING: u32 = 4;

impl Machine {
    /// `copy_process` and `wake_up_new_task` on the executing CPU. Callbacks: `init_task`, `enable`, `set_weight`; then
    /// `select_cpu` (with `SCX_WAKE_FORK`), `runnable`, `enqueue`.
    pub(crate) fn fork(&mut self, parent: Option<Slot>, actor: ActorId) -> Step {
        let this = self.kernel.this_cpu;
        let meter = self.meter();
        let slot = self.new_task(parent, actor)?;
        if !self.init_task(slot)? {
            return Ok(());
        }
        self.enable_task(slot)?;
        let child = self.kernel.task(slot).id;
        if let Some(parent) = parent {
            let parent = self.kernel.task(parent).id;
            self.kernel.emit(this, 0, EventKind::Fork { parent, child });
        }
        let (cpu, _) = self.select_task_rq(slot, this, wake::FORK)?;
        // `__set_task_cpu`: a new task's first place is no migration.
        let mem = self.program.memory();
        self.kernel.task_mut(slot).cpu = cpu;
        let addr = self.kernel.task(slot).addr;
        for at in [field::THREAD_INFO_CPU, field::WAKE_CPU, field::RECENT_USED_CPU] {
            mem.store_u32(addr + at, cpu)?;
        }
        self.mark_runnable(slot)?;
        self.activate_woken(slot, enq::INITIAL | enq::NOCLOCK)?;
        let insns = self.book(Path::Wakeup, meter);
        self.kernel.counters.wakeups += 1;
        self.kernel.emit(this, insns, EventKind::WakeupNew { task: child, target_cpu: cpu });
        self.kernel.run_deferred(self.program.memory(), cpu)?;
        if parent.is_some() {
            let ns = self.kernel.cost.wakeup_ns + self.policy_ns(insns);
            self.kernel.charge(this, ns);
        }
        Ok(())
    }

    /// Takes a place in the slab and fills in what a new `task_struct` holds (`__sched_fork`, `init_scx_entity`).
    fn new_task(&mut self, parent: Option<Slot>, actor: ActorId) -> Step<Slot> {
        let (slot, pid) = self.kernel.tasks.take_place();
        let addr = self.kernel.tasks.addr(slot);
        let nice = self.nices[self.actors.spec(actor)];
        let cgroup = self.first_cgroup(parent, actor);
        let allowed = self.affinity_of(actor);
        let mut info = TaskInfo::new(pid, &self.actors.task_name(actor));
        info.nice = Some(nice);
        info.cgroup = self.kernel.cgroups.in_trace.then(|| cgroup.id());
        info.allowed_cpus = (allowed != self.kernel.all_cpus).then(|| ranges(&allowed));
        let comm = info.comm.clone();
        let id = self.kernel.trace.add_task(info);
        let task = Task {
            addr,
            id,
            actor,
            pid,
            cpu: self.kernel.this_cpu,
            state: TaskState::Runnable,
            stage: Stage::Advance,
            begins: false,
            queued: false,
            waiting: false,
            runnable_at_ns: self.kernel.clock.now_ns(),
            reset_runnable_at: false,
            deqd_for_sleep: false,
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
            spun_on: 0,
            woken: false,
            phase: crate::kernel::Phase::Off,
            last_call: None,
        };
        self.kernel.tasks.put(slot, task);
        self.bind_actor(actor, slot);
        self.write_new_task(slot, parent, &comm)?;
        self.publish_affinity(slot, &allowed)?;
        self.publish_nice(slot)?;
        Ok(slot)
    }

    /// Where a new task begins: where its group of the workload does (`CLONE_INTO_CGROUP`), or where its parent is.
    fn first_cgroup(&self, parent: Option<Slot>, actor: ActorId) -> CgroupRef {
        let inherited = parent.map_or(CgroupRef::ROOT, |slot| self.kernel.task(slot).cgroup);
        self.first_cgroups[self.actors.spec(actor)].unwrap_or(inherited)
    }

    fn write_new_task(&mut self, slot: Slot, parent: Option<Slot>, comm: &str) -> Step {
        let mem = self.program.memory();
        let task = self.kernel.task(slot);
        let addr = task.addr;
        let parent =
            parent.map_or(self.kernel.cpus[0].idle_addr(), |slot| self.kernel.task(slot).addr);
        mem.fill(addr, field::SIZE, 0)?;
        task.set_slice(mem, abi::SLICE_DFL_NS)?;
        for at in [field::PID, field::TGID] {
            mem.store_u32(addr + at, task.pid)?;
        }
        for at in [field::REAL_PARENT, field::PARENT] {
            mem.store_u64(addr + at, parent)?;
        }
        mem.store_u64(addr + field::GROUP_LEADER, addr)?;
        mem.store_u64(addr + field::START_TIME, self.kernel.clock.now_ns())?;
        mem.store_u64(addr + field::SCX_TID, Tasks::tid(task.pid))?;
        self.publish_cgroup(slot)?;
        mem.store_u32(addr + field::THREAD_INFO_CPU, task.cpu)?;
        write_comm(mem, addr, comm)
    }

    /// `scx_fork`: the scheduler may refuse a task; the fork fails then, which no workload here can handle, so that the
    /// scheduler's time in charge ends. True: it accepted the task. Callback: `init_task`.
    fn init_task(&mut self, slot: Slot) -> Step<bool> {
        let addr = self.kernel.task(slot).addr;
        if self.has(Op::InitTask) {
            let mem = self.program.memory();
            let args = self.init_task_args;
            mem.store_u8(args + init_task_args::FORK, 1)?;
            let cgroup = self.kernel.cgroups.addr(self.kernel.task(slot).cgroup);
            mem.store_u64(args + init_task_args::CGROUP, cgroup)?;
            // Kfuncs take it for a task from here on.
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
    fn enable_task(&mut self, slot: Slot) -> Step {
        self.call_task(Op::Enable, slot);
        self.kernel.task_mut(slot).scx_state = ScxState::Enabled;
        self.kernel.task(slot).publish_flags(self.program.memory())?;
        let weight = abi::cgroup_weight(abi::nice_weight(self.kernel.task(slot).nice));
        self.call_task_with(Op::SetWeight, slot, u64::from(weight));
        Ok(())
    }

    /// `exit_signals`: from here on the task is exiting; then it tells its parent.
    pub(crate) fn mark_exiting(&mut self, slot: Slot) -> Step {
        let task = self.kernel.task_mut(slot);
        task.exiting = true;
        let addr = task.addr;
        self.program.memory().store_u32(addr + field::FLAGS, PF_EXITING)
    }

    /// `do_exit` of the task that runs, and `sched_ext_free` once it has left the CPU. Callbacks: `stopping`,
    /// `quiescent`, those of the next task, then `disable`, `exit_task`.
    pub(crate) fn exit_current(&mut self, cpu: u32, slot: Slot) -> Step {
        if self.pays_way_off(slot) {
            return Ok(());
        }
        let task = self.kernel.task_mut(slot);
        task.stage = Stage::Advance;
        let (id, actor, addr) = (task.id, task.actor, task.addr);
        self.kernel.emit(cpu, 0, EventKind::Exit { task: id });
        self.schedule(Some(TaskState::Dead))?;
        let insns = self.counted(|machine| {
            machine.exit_task(slot);
            Ok(())
        })?;
        let ns = self.policy_ns(insns);
        self.kernel.charge(cpu, ns);
        self.program.task_storage_free(addr);
        let ran = std::mem::take(&mut self.kernel.task_mut(slot).sum_exec_ns);
        self.kernel.reaped_exec_ns += ran;
        self.kernel.caches.forget(id);
        self.kernel.tasks.free(slot);
        self.unbind_actor(actor);
        Ok(())
    }

    /// `scx_ops_exit_task`: the task leaves the scheduler's care. Callbacks: `disable`, `exit_task`.
    pub(crate) fn exit_task(&mut self, slot: Slot) {
        if self.kernel.task(slot).scx_state == ScxState::Enabled {
            self.call_task(Op::Disable, slot);
        }
        if self.has(Op::ExitTask) {
            let addr = self.kernel.task(slot).addr;
            let args = self.exit_task_args;
            self.call(Op::ExitTask, Some(slot), &[addr, args]);
        }
        self.kernel.task_mut(slot).scx_state = ScxState::None;
    }
}

/// Writes `p->comm`, cut to 15 bytes.
pub(crate) fn write_comm(mem: &fairground_bpf::Memory, addr: u64, comm: &str) -> Step {
    let bytes = comm.as_bytes();
    let mut text = [0; 16];
    let len = bytes.len().min(15);
    text[..len].copy_from_slice(&bytes[..len]);
    mem.write(addr + field::COMM, &text)
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
