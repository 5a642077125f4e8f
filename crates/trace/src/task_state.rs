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
