//! Counters of the machine.

use fairground_trace::CallbackKind;

/// A path through the kernel on which a scheduler's program is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// A switch between different tasks, the idle task included: from leaving the one to choosing the other.
    Switch,
    /// A pass of `__schedule` after which the same task goes on.
    Repick,
    /// A wake-up: choosing the CPU, and enqueueing.
    Wakeup,
    /// A timer tick.
    Tick,
    /// `sched_yield`, without the pass of `__schedule` that follows.
    Yield,
}

impl Path {
    /// Every path, in the order of their numbers.
    pub const ALL: [Path; 5] = [Path::Switch, Path::Repick, Path::Wakeup, Path::Tick, Path::Yield];
}

/// Instructions of the scheduler's program on one path, over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCost {
    /// How often the path was taken.
    pub times: u64,
    /// Instructions, in total.
    pub insns: u64,
    /// The most instructions at one time.
    pub insns_max: u64,
    /// Divisions and remainders among them, in total.
    pub divisions: u64,
    /// The most at one time.
    pub divisions_max: u64,
}

/// Counts of one run. Each is a count of what the simulated kernel did, not an estimate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Switches between different tasks, the idle task included.
    pub switches: u64,
    /// Wake-ups of sleeping tasks, new tasks included.
    pub wakeups: u64,
    /// Moves of a task between the run queues of two CPUs.
    pub migrations: u64,
    /// Timer ticks on busy CPUs.
    pub ticks: u64,
    /// Interrupts that one CPU sent to another.
    pub ipis: u64,
    /// Times that a task was forced off its CPU because its affinity no longer allowed it.
    pub affinity_moves: u64,
    /// Moves to another cgroup that the scheduler refused (`ops.cgroup_prep_move()`), whole groups counted once.
    pub cgroup_moves_refused: u64,
    /// Slices that the core refilled because no other task waited for the CPU.
    pub slice_refills: u64,
    /// Slices that the core set to the default: those refills, and those of tasks that it put into a queue itself.
    pub default_slices: u64,
    /// Times that `ops.select_cpu()` chose a CPU that its task may not use.
    pub select_cpu_fallbacks: u64,
    /// Dispatches into the local queue of a CPU that was offline.
    pub local_dispatches_offline: u64,
    /// Times that a task went on because there was no other one (without `SCX_OPS_ENQ_LAST`).
    pub kept_last: u64,
    /// Enqueues of exiting tasks that passed the scheduler by (without `SCX_OPS_ENQ_EXITING`).
    pub skipped_exiting: u64,
    /// Tasks that went to the scheduler again because they could not run at once (`SCX_ENQ_IMMED`).
    pub reenqueued_immed: u64,
    /// Times that tasks came back to a queue that was being enqueued again.
    pub reenqueue_repeats: u64,
    /// Dispatches that the core ignored because the scheduler no longer owned the task.
    pub stale_dispatches: u64,
    /// Instructions of the scheduler's program.
    pub insns: u64,
    /// Lines that the scheduler printed beyond the log's limit.
    pub log_lines_dropped: u64,
    /// Steps of the simulation (queue entries handled).
    pub steps: u64,
    callbacks: [u64; CallbackKind::ALL.len()],
    paths: [PathCost; Path::ALL.len()],
}

impl Counters {
    /// How often a callback ran.
    pub fn callbacks(&self, kind: CallbackKind) -> u64 {
        self.callbacks[kind as usize]
    }

    /// Instructions of the scheduler's program on a path.
    pub fn path(&self, path: Path) -> PathCost {
        self.paths[path as usize]
    }

    /// A counter of `scx_bpf_events()` by its name; 0 for one that counts what does not happen here.
    pub(crate) fn event(&self, name: &str) -> u64 {
        match name {
            "SCX_EV_SELECT_CPU_FALLBACK" => self.select_cpu_fallbacks,
            "SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE" => self.local_dispatches_offline,
            "SCX_EV_DISPATCH_KEEP_LAST" => self.kept_last,
            "SCX_EV_ENQ_SKIP_EXITING" => self.skipped_exiting,
            "SCX_EV_REENQ_IMMED" => self.reenqueued_immed,
            "SCX_EV_REENQ_LOCAL_REPEAT" => self.reenqueue_repeats,
            "SCX_EV_ENQ_SLICE_DFL" | "SCX_EV_REFILL_SLICE_DFL" => self.default_slices,
            _ => 0,
        }
    }

    pub(crate) fn count_callback(&mut self, kind: CallbackKind) {
        self.callbacks[kind as usize] += 1;
    }

    #[inline]
    pub(crate) fn count_path(&mut self, path: Path, insns: u64, divisions: u64) {
        let cost = &mut self.paths[path as usize];
        cost.times += 1;
        cost.insns += insns;
        cost.insns_max = cost.insns_max.max(insns);
        cost.divisions += divisions;
        cost.divisions_max = cost.divisions_max.max(divisions);
    }
}
