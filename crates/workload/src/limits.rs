//! The limits of a workload, each named, so that a message can say which one was passed.

/// The longest file that is read, bytes.
pub const FILE_BYTES_MAX: usize = 64 << 20;
/// Groups of tasks in one workload.
pub const GROUPS_MAX: usize = 65_536;
/// Tasks in one workload, those that are forked included.
pub const TASKS_MAX: u64 = 1_000_000;
/// Pipes, queues, locks, conditions, barriers and timers in one workload, each.
pub const OBJECTS_MAX: usize = 65_536;
/// Control groups in one workload, the root included.
pub const CGROUPS_MAX: usize = 1_024;
/// Control groups inside one another below the root.
pub const CGROUP_DEPTH_MAX: usize = 16;
/// The weight of a control group when nobody says otherwise (`CGROUP_WEIGHT_DFL` of Linux).
pub const CGROUP_WEIGHT_DEFAULT: u32 = 100;
/// The largest weight of a control group (`CGROUP_WEIGHT_MAX` of Linux); the smallest is 1.
pub const CGROUP_WEIGHT_MAX: u32 = 10_000;
/// Operations in all programs of one workload, as written (a loop's body counts once).
pub const OPERATIONS_MAX: usize = 8_000_000;
/// Loops inside one another.
pub const LOOP_DEPTH_MAX: usize = 16;
/// Characters in a name.
pub const NAME_CHARS_MAX: usize = 64;
/// The highest CPU number (Linux builds for at most 8,192 CPUs).
pub const CPU_MAX: u32 = 8_191;
/// The longest length of time that can be written, ns: 10⁶ s, eleven and a half days.
pub const TIME_MAX_NS: u64 = 1_000_000_000_000_000;
/// Locks that one task has at the same time (`MAX_LOCK_DEPTH` of Linux' lock checker).
pub const LOCKS_HELD_MAX: usize = 48;
/// The smallest buffer of a socket (`SOCK_MIN_SNDBUF` of Linux on 64 bits).
pub const SOCKET_BUFFER_MIN: u64 = 4_608;
/// Turns of a counted loop whose body takes no time and waits for nothing.
pub const TIMELESS_TURNS_MAX: u64 = 100_000;
/// Bytes and messages in one operation, capacities.
pub const AMOUNT_MAX: u64 = 1 << 32;
/// Operations that the search for cyclic waits executes before it gives up and finds nothing.
pub const CHECK_STEPS_MAX: u64 = 200_000;
/// Tasks that the search for cyclic waits follows; with more it is left out.
pub const CHECK_TASKS_MAX: usize = 100_000;
/// Problems that are shown; the rest is counted.
pub const PROBLEMS_SHOWN_MAX: usize = 20;
/// Workloads that one specification joins, and groups of one `mix`.
pub const PARTS_MAX: usize = 256;
/// Operations at which tasks wait that a cyclic wait is searched among; those beyond are left out.
pub const CHECK_WAITS_MAX: usize = 500;
