//! The state in which a task leaves the CPU.

/// Defines [`TaskState`]: each state with the text that `sched_switch` prints.
macro_rules! states {
    ($($(#[$doc:meta])* $state:ident = $text:literal,)*) => {
        /// The state in which a task left the CPU: what `sched_switch` prints as `prev_state`
        /// (`__trace_sched_switch_state`, `TASK_REPORT`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum TaskState {
            $($(#[$doc])* $state,)*
        }

        impl TaskState {
            /// Every state, in numerical order.
            pub const ALL: [TaskState; [$($text),*].len()] = [$(TaskState::$state),*];

            /// As `sched_switch` prints it.
            pub fn text(self) -> &'static str {
                match self {
                    $(TaskState::$state => $text,)*
                }
            }
        }
    };
}

states! {
    /// `R`: still runnable. It was preempted on its way out of the kernel, or it yielded; the kernel counts both as
    /// involuntary.
    Runnable = "R",
    /// `S`: interruptible sleep.
    Sleeping = "S",
    /// `D`: uninterruptible sleep.
    Uninterruptible = "D",
    /// `T`: stopped by a signal.
    Stopped = "T",
    /// `X`: dead; its parent does not wait for it.
    Dead = "X",
    /// `P`: a parked kernel thread. Also a state that has no name.
    Parked = "P",
    /// `R+`: still runnable, preempted inside the kernel.
    Preempted = "R+",
    /// `t`: stopped by a debugger.
    Traced = "t",
    /// `Z`: dead; its parent has to fetch its status.
    Zombie = "Z",
    /// `I`: a kernel thread without work (`TASK_IDLE`), which does not count for the load.
    Idle = "I",
}

impl TaskState {
    /// The state of a `prev_state` in bits: the lowest one that has a name, as since Linux 4.14 (`TASK_REPORT`,
    /// `task_state_array`); above them stands that it was preempted (`TASK_REPORT_MAX`).
    pub(crate) fn of_bits(bits: u64) -> Self {
        const NAMED: [TaskState; 8] = [
            TaskState::Sleeping,
            TaskState::Uninterruptible,
            TaskState::Stopped,
            TaskState::Traced,
            TaskState::Dead,
            TaskState::Zombie,
            TaskState::Parked,
            TaskState::Idle,
        ];
        match NAMED.get(bits.trailing_zeros() as usize) {
            Some(state) => *state,
            None if bits == 0 => Self::Runnable,
            None => Self::Preempted,
        }
    }

    /// `R` and `R+`: the task did not block.
    #[inline]
    pub fn is_runnable(self) -> bool {
        matches!(self, Self::Runnable | Self::Preempted)
    }

    /// `X` and `Z`: the task does not run again.
    #[inline]
    pub fn is_dead(self) -> bool {
        matches!(self, Self::Dead | Self::Zombie)
    }
}
