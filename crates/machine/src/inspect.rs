//! Access to a machine's state between two steps: for tests, and for tools that draw a scheduler's own state.

use fairground_bpf::{Global, Memory};
use fairground_trace::TaskId;

use crate::Machine;
use crate::kernel::{ScxState, Slot, Task};
use crate::layout::offsets::task as field;

/// The `task_struct` fields of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// The CPU of its run queue (`task_cpu`).
    pub cpu: u32,
    /// `p->scx.dsq_vtime`: the key that the scheduler gave it.
    pub dsq_vtime: u64,
    /// `p->scx.slice`, ns.
    pub slice_ns: u64,
    /// `p->se.sum_exec_runtime`, ns: of a running task, as of the last booking (tick, switch).
    pub sum_exec_ns: u64,
    /// It runs or waits for a CPU.
    pub runnable: bool,
}

impl Machine {
    /// The bytes of a global variable of the scheduler, numbers little-endian; `None` if it has none of that name.
    pub fn variable(&self, name: &str) -> Option<Vec<u8>> {
        self.program.global(self.global(name)?).ok()
    }

    /// The bytes of a global variable by its index among those of the object, numbers little-endian; `None` if there
    /// are fewer, or it has no memory.
    pub fn content(&self, variable: usize) -> Option<Vec<u8>> {
        self.program.global(self.policy.globals.get(variable)?).ok()
    }

    /// A number within a global variable, `offset` bytes from its start, 1 to 8 bytes long; `None` if there is no such
    /// place.
    pub fn variable_field(&self, name: &str, offset: u64, bytes: u64) -> Option<u64> {
        let global = self.global(name)?;
        let end = offset.checked_add(bytes)?;
        if !(1..=8).contains(&bytes) || end > global.size {
            return None;
        }
        let addr = self.program.global_address(global).ok()? + offset;
        let field = self.program.memory().read_vec(addr, bytes as usize).ok()?;
        Some(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn global(&self, name: &str) -> Option<&Global> {
        self.policy.globals.iter().find(|global| global.name == name)
    }

    /// A 64-bit word of what the scheduler keeps for a task in a task-storage map, `word` words from its start; `None`
    /// if the task, the map or the place does not exist.
    pub fn task_storage(&self, map: &str, id: TaskId, word: usize) -> Option<u64> {
        let (_, task) = self.kernel.tasks.of_id(id)?;
        let at = self.program.task_storage(map, task.addr)?;
        self.program.memory().load_u64(at.checked_add(word as u64 * 8)?).ok()
    }

    /// Overwrites a part of what a task-storage map holds for a task, `offset` bytes from its start: to put a scheduler
    /// into a state that a workload does not reach. False: there is no such place.
    pub fn set_task_storage(&mut self, map: &str, id: TaskId, offset: u64, bytes: &[u8]) -> bool {
        let image = self.program.image();
        let Some(number) = image.map(map) else { return false };
        let Some((_, task)) = self.kernel.tasks.of_id(id) else { return false };
        let size = image.linked().maps.get(number).map_or(0, |map| u64::from(map.value_size));
        let end = offset.checked_add(bytes.len() as u64);
        let Some(addr) = self.program.task_storage(map, task.addr) else { return false };
        end.is_some_and(|end| end <= size)
            && self.program.memory().write(addr + offset, bytes).is_ok()
    }

    /// Writes `p->policy` (`SCHED_BATCH` is 3), which no operation of a workload sets. False: the task does not exist.
    pub fn set_task_policy(&mut self, id: TaskId, policy: u32) -> bool {
        let task = self.kernel.tasks.of_id(id);
        let mem = self.program.memory();
        task.is_some_and(|(_, task)| mem.store_u32(task.addr + field::POLICY, policy).is_ok())
    }

    /// How often each instruction of the scheduler was executed: the function, its slot, the number. Only under the
    /// interpreter.
    pub fn executed(&self) -> impl Iterator<Item = (&str, usize, u64)> {
        let functions = self.program.image().linked().functions.iter().enumerate();
        functions.flat_map(|(index, function)| {
            let counts = self.program.executed(index).iter().enumerate();
            counts.map(|(slot, count)| (function.name.as_str(), slot, *count))
        })
    }

    /// The tasks that exist, as `name[pid]`, in the order of their places in the kernel.
    pub fn living_tasks(&self) -> Vec<String> {
        let living = self.kernel.tasks.iter().filter(|(_, task)| task.scx_state != ScxState::None);
        living.map(|(slot, _)| self.kernel.describe(slot)).collect()
    }

    /// A task's state now; `None` if it does not exist (any more).
    pub fn task(&self, id: TaskId) -> Option<TaskView> {
        let (slot, task) = self.kernel.tasks.of_id(id)?;
        let lives = !self.kernel.tasks.free_places().contains(&slot);
        lives.then(|| TaskView::of(task, self.program.memory()))?
    }

    /// The state of every task that exists, in the order of their places in the kernel, each with the 64-bit words
    /// `words` of what the scheduler keeps for it: a task-storage map, and bytes from the start of its value. `None`:
    /// that task has none.
    pub fn tasks(&self, words: &[(String, u64)]) -> Vec<(TaskId, TaskView, Vec<Option<u64>>)> {
        let mut exists = vec![true; self.kernel.tasks.len()];
        for slot in self.kernel.tasks.free_places() {
            exists[slot.index()] = false;
        }
        let living = self.kernel.tasks.iter().filter(|(slot, _)| exists[slot.index()]);
        living
            .filter_map(|(slot, task)| {
                let (view, words) = self.read_task(slot, words)?;
                Some((task.id, view, words))
            })
            .collect()
    }

    /// The same of the task at a place.
    pub(crate) fn read_task(
        &self,
        slot: Slot,
        words: &[(String, u64)],
    ) -> Option<(TaskView, Vec<Option<u64>>)> {
        let (task, mem) = (self.kernel.task(slot), self.program.memory());
        let word = |(map, offset): &(String, u64)| {
            let at = self.program.task_storage(map, task.addr)?;
            mem.load_u64(at.checked_add(*offset)?).ok()
        };
        Some((TaskView::of(task, mem)?, words.iter().map(word).collect()))
    }
}

impl TaskView {
    fn of(task: &Task, mem: &Memory) -> Option<TaskView> {
        Some(TaskView {
            cpu: task.cpu,
            dsq_vtime: task.vtime(mem).ok()?,
            slice_ns: task.slice(mem).ok()?,
            sum_exec_ns: mem.load_u64(task.addr + field::SUM_EXEC).ok()?,
            runnable: task.queued,
        })
    }
}
