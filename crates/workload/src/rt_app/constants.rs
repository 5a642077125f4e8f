//! rt-app's defaults, and values that its files leave open.

/// Device time of a byte of an `iorun`, ns: 500 MB a second, a solid-state disk.
pub const IORUN_NS_PER_BYTE: u64 = 2;
/// Duration of a file without `duration`, ns: rt-app would continue until its threads end.
pub const RT_APP_DURATION_NS: u64 = 10_000_000_000;
/// Default size of each thread's memory for `mem`, bytes: rt-app's `DEFAULT_MEM_BUF_SIZE`.
pub const RT_APP_MEM_BUFFER: u64 = 4 << 20;
/// The priority of a real-time thread that names none: rt-app's `DEFAULT_THREAD_PRIORITY`.
pub(super) const RT_APP_PRIORITY: u8 = 10;
