//! The limits of a workload, each with a name that messages cite.

/// The longest file that is read, bytes.
pub const FILE_BYTES_MAX: usize = 64 << 20;
/// Groups of tasks in one workload.
pub const GROUPS_MAX: usize = 65_536;
/// Tasks in one workload, including forked ones.
pub const TASKS_MAX: u64 = 1_000_000;
/// Pipes, queues, locks, conditions, barriers and timers in one workload; a limit for each kind.
pub const OBJECTS_MAX: usize = 262_144;
/// Control groups in one workload, the root included.
pub const CGROUPS_MAX: usize = 1_024;
/// Nesting depth of control groups below the root.
pub const CGROUP_DEPTH_MAX: usize = 16;
/// The default weight of a control group (`CGROUP_WEIGHT_DFL` of Linux).
pub const CGROUP_WEIGHT_DEFAULT: u32 = 100;
/// The largest weight of a control group (`CGROUP_WEIGHT_MAX` of Linux); the smallest is 1.
pub const CGROUP_WEIGHT_MAX: u32 = 10_000;
/// Periods of a control group's quota, us (`min_bw_quota_period_us`, `max_bw_quota_period_us` of Linux).
pub const BANDWIDTH_PERIOD_US: std::ops::RangeInclusive<u64> = 1_000..=1_000_000;
/// The smallest quota of a control group, us (`min_bw_quota_period_us` of Linux).
pub const BANDWIDTH_QUOTA_MIN_US: u64 = 1_000;
/// The largest quota of a control group, us: the longest time.
pub const BANDWIDTH_QUOTA_MAX_US: u64 = TIME_MAX_NS / 1_000;
/// Operations in all programs of one workload, as written (a loop's body counts once).
pub const OPERATIONS_MAX: usize = 8_000_000;
/// Nesting depth of loops.
pub const LOOP_DEPTH_MAX: usize = 16;
/// Characters in a name.
pub const NAME_CHARS_MAX: usize = 64;
/// The highest CPU number (Linux builds for at most 8,192 CPUs).
pub const CPU_MAX: u32 = 8_191;
/// The longest duration that a file can contain, ns: 10⁶ s, eleven and a half days.
pub const TIME_MAX_NS: u64 = 1_000_000_000_000_000;
/// Locks that one task holds at the same time (`MAX_LOCK_DEPTH` of Linux' lock checker).
pub const LOCKS_HELD_MAX: usize = 48;
/// The smallest buffer of a socket (`SOCK_MIN_SNDBUF` of Linux on 64 bits).
pub const SOCKET_BUFFER_MIN: u64 = 4_608;
/// Iterations of a counted loop whose body takes no time and waits for nothing.
pub const TIMELESS_ITERATIONS_MAX: u64 = 100_000;
/// Bytes and messages in one operation, capacities.
pub const AMOUNT_MAX: u64 = 1 << 32;
/// Operations that the search for cyclic waits executes before it gives up without a finding.
pub const CHECK_STEPS_MAX: u64 = 200_000;
/// Tasks that the search for cyclic waits follows; with more it is skipped.
pub const CHECK_TASKS_MAX: usize = 100_000;
/// Problems that are shown; the rest is counted.
pub const PROBLEMS_SHOWN_MAX: usize = 20;
/// Workloads in one specification, and groups in one `mix`.
pub const PARTS_MAX: usize = 256;
/// Waiting operations among which a cyclic wait is searched; further ones are ignored.
pub const CHECK_WAITS_MAX: usize = 500;
