//! The kernel's part of one CPU, for a scheduler without a machine ([`super::callbacks`]).

use fairground_bpf::{FuncRef, Host, Memory, Trap};

use super::diff;

/// `p->scx.dsq_vtime` in a task.
pub(super) const DSQ_VTIME: u64 = 8;

/// An iteration over a queue, in its state at the beginning.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) queue: u64,
    pub(super) left: Vec<u64>,
    pub(super) vtime: u64,
}

/// The state for kfuncs: a clock, and queues by number.
#[derive(Debug, Default)]
pub struct OneCpu {
    pub(super) now_ns: u64,
    /// Queue and task, in the order of their arrival.
    pub(super) waiting: Vec<(u64, u64)>,
    pub(super) next: Option<u64>,
    pub(super) kicks: u32,
    /// `scx_bpf_task_cpu` of all tasks, and whether no task comes to this CPU from a queue.
    pub(super) home: u64,
    pub(super) refuses: bool,
    pub(super) walks: Vec<Walk>,
    pub(super) tasks: Vec<u64>,
}

impl OneCpu {
    /// The tasks of a queue by key, those with equal keys in order of arrival.
    pub(super) fn in_order(&self, mem: &Memory, queue: u64) -> Result<Vec<u64>, Trap> {
        let mut keyed = Vec::new();
        for &(_, task) in self.waiting.iter().filter(|(of, _)| *of == queue) {
            keyed.push((mem.load_u64(task + DSQ_VTIME)?, task));
        }
        // Keys wrap; those of one queue lie within half the range.
        keyed.sort_by(|a, b| diff(a.0, b.0).cmp(&0));
        Ok(keyed.into_iter().map(|(_, task)| task).collect())
    }

    pub(super) fn leave(&mut self, task: u64) {
        self.waiting.retain(|(_, waiting)| *waiting != task);
    }

    pub(super) fn walk(&mut self, mem: &Memory, it: u64) -> Result<&mut Walk, Trap> {
        let number = mem.load_u64(it)? as usize;
        self.walks.get_mut(number).ok_or_else(|| Trap::host("no iteration"))
    }
}

impl Host for OneCpu {
    fn random_u32(&mut self) -> u32 {
        panic!("built-in schedulers draw no random numbers")
    }

    fn print(&mut self, line: &str) {
        panic!("an unexpected line: {line}")
    }

    /// A timer never expires: the test's operations are all that happens.
    fn timer_start(&mut self, _: u64, _: FuncRef, _: [u64; 5], _: u64, _: u64) -> i64 {
        0
    }

    fn timer_cancel(&mut self, _: u64) -> i64 {
        0
    }
}
