//! Scheduling policies.

/// Defines [`Policy`]: each policy with its number (`SCHED_…` of `include/uapi/linux/sched.h`) and its name.
macro_rules! policies {
    ($($(#[$doc:meta])* $policy:ident = $number:literal, $name:literal,)*) => {
        /// A task's scheduling policy (`SCHED_…`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Policy {
            $($(#[$doc])* $policy = $number,)*
        }

        impl Policy {
            /// Every policy, in the order of their numbers.
            pub const ALL: [Policy; [$($name),*].len()] = [$(Policy::$policy),*];

            /// Its name in texts.
            pub fn name(self) -> &'static str {
                match self {
                    $(Policy::$policy => $name,)*
                }
            }

            /// The policy of a name.
            pub fn of_name(name: &str) -> Option<Policy> {
                Policy::ALL.into_iter().find(|policy| policy.name() == name)
            }

            /// The policy of the kernel's number.
            pub fn of_number(number: u32) -> Option<Policy> {
                Policy::ALL.into_iter().find(|policy| *policy as u32 == number)
            }
        }
    };
}

policies! {
    /// `SCHED_OTHER`: the normal class.
    Other = 0, "other",
    /// `SCHED_FIFO`.
    Fifo = 1, "fifo",
    /// `SCHED_RR`.
    Rr = 2, "rr",
    /// `SCHED_BATCH`: the normal class, without preemption at wake-ups.
    Batch = 3, "batch",
    /// `SCHED_IDLE`: the normal class with the smallest weight.
    Idle = 5, "idle",
    /// `SCHED_DEADLINE`.
    Deadline = 6, "deadline",
    /// `SCHED_EXT`: the class of sched_ext, where only those tasks are in it.
    Ext = 7, "ext",
}
