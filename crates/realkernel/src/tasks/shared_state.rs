//! The state that tasks share or inherit. The runner creates it before the first task.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use fairground_workload::prng::{Prng, STREAM_TASKS};
use fairground_workload::{Carrier, CpuList, Pipe, Workload};

use super::anchor::anchor;
use super::cgroups::Cgroups;
use super::conditions::{BarrierWords, ConditionWords};
use super::cpu_list::parse_cpu_list;
use super::error::TaskError;
use super::lock_words::{self, LockWords};
use super::plan::{CpuSet, Plan, Step};
use super::queue::Queue;
use super::shared::{Group, Head, MARKS_MAX, MarkSlot, SLOTS_MAX, Shared, TaskSlot, TimerWord};
use super::spin::Speed;

/// The state that tasks share or inherit.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) plan: Plan,
    pub(super) speed: Speed,
    /// Only forked, once per task; never drawn from.
    pub(super) prng: Prng,
    pub(super) head: Shared<Head>,
    pub(super) groups: Shared<Group>,
    pub(super) slots: Shared<TaskSlot>,
    pub(super) marks: Shared<MarkSlot>,
    pub(super) queues: Shared<Queue>,
    pub(super) locks: Shared<LockWords>,
    pub(super) conditions: Shared<ConditionWords>,
    pub(super) barriers: Shared<BarrierWords>,
    /// By index of the workload's timer; only shared timers use them.
    pub(super) timers: Shared<TimerWord>,
    /// Read end and write end.
    pub(super) pipes: Vec<(OwnedFd, OwnedFd)>,
    pub(super) cgroups: Option<Cgroups>,
    /// The file for marks in the recording.
    pub(super) marker: Option<OwnedFd>,
    /// Private to each process after its fork: the count of each mark, and the last expiry of each timer.
    pub(super) registers: Box<[AtomicU64]>,
    /// The leader of the tasks' process group.
    pub(super) anchor: libc::pid_t,
    /// Descriptors that tasks keep open, sorted.
    keep: Vec<RawFd>,
}

impl SharedState {
    /// The slots that hold or held a task.
    pub(super) fn used_slots(&self) -> &[TaskSlot] {
        &self.slots[..self.head[0].slots.load(SeqCst) as usize]
    }

    /// Creates the shared state. Adds a note to `notes` for each difference between the kernel and the workload.
    pub(super) fn new(
        workload: &Workload,
        seed: u64,
        marker: Option<OwnedFd>,
        notes: &mut Vec<String>,
    ) -> Result<Self, TaskError> {
        let plan = Plan::new(workload)?;
        check_cpus(&plan)?;
        check_memory(&plan)?;
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let online = parse_cpu_list(&online);
        let cpus: Vec<u32> = online.iter().flat_map(|(first, last)| *first..=*last).collect();
        let speed = Speed::measure(if computes(&plan) { &cpus } else { &[] });
        if speed.spread_percent > SPREAD_PERCENT_MAX {
            notes.push(format!(
                "other work disturbed the measurement of the CPU's speed (the median exceeds the \
                 fastest by {} %): computations use the fastest",
                speed.spread_percent
            ));
        }
        let queues = Shared::<Queue>::new(workload.queues.len())?;
        for (queue, spec) in queues.iter().zip(&workload.queues) {
            queue.set_up(spec.capacity, spec.initial);
        }
        let locks = Shared::new(workload.locks.len())?;
        let barriers = Shared::<BarrierWords>::new(workload.barriers.len())?;
        for (barrier, spec) in barriers.iter().zip(&workload.barriers) {
            barrier.set_up(spec.count);
        }
        lock_words::notes(workload, notes);
        let pipes = pipes(workload, notes)?;
        let cgroups = Cgroups::new(workload)?;
        let mut keep: Vec<RawFd> = pipes
            .iter()
            .flat_map(|(read, write)| [read.as_raw_fd(), write.as_raw_fd()])
            .chain(cgroups.iter().flat_map(Cgroups::descriptors))
            .chain(marker.iter().map(AsRawFd::as_raw_fd))
            .collect();
        keep.sort_unstable();
        Ok(Self {
            head: Shared::new(1)?,
            groups: Shared::new(plan.groups.len())?,
            slots: Shared::new(SLOTS_MAX)?,
            marks: Shared::new(if marker.is_none() { MARKS_MAX } else { 0 })?,
            registers: (0..plan.registers).map(|_| AtomicU64::new(0)).collect(),
            prng: Prng::new(seed).fork(STREAM_TASKS),
            anchor: anchor()?,
            plan,
            speed,
            queues,
            locks,
            conditions: Shared::new(workload.conditions.len())?,
            barriers,
            timers: Shared::new(workload.timers.len())?,
            pipes,
            cgroups,
            marker,
            keep,
        })
    }

    /// Closes all descriptors except [`SharedState::keep`], above all a scheduler's link, which must be closed with the
    /// runner.
    pub(super) fn close_others(&self) {
        let mut next: libc::c_uint = 0;
        for keep in &self.keep {
            let keep = *keep as libc::c_uint;
            if keep > next {
                // SAFETY: the process uses none of these any more.
                unsafe { libc::close_range(next, keep - 1, 0) };
            }
            next = keep + 1;
        }
        // SAFETY: as above.
        unsafe { libc::close_range(next, libc::c_uint::MAX, 0) };
    }
}

/// Whether a task computes for a length of time that is worth watching.
fn computes(plan: &Plan) -> bool {
    fn any(steps: &[Step]) -> bool {
        steps.iter().any(|step| match step {
            Step::Run(_) | Step::Busy(_) => true,
            Step::Loop(_, body) => any(body),
            _ => false,
        })
    }
    plan.groups.iter().any(|group| any(&group.program) || any(&group.handler))
}

/// Minimum spread of the speed measurements for a note, %.
const SPREAD_PERCENT_MAX: u64 = 25;

/// The unit of pipe sizes.
const PAGE_BYTES: u64 = 4_096;
/// Descriptors of the runner besides those of pipes.
const OTHER_DESCRIPTORS: u64 = 256;

fn pipes(
    workload: &Workload,
    notes: &mut Vec<String>,
) -> Result<Vec<(OwnedFd, OwnedFd)>, TaskError> {
    let needed = 2 * workload.pipes.len() as u64 + OTHER_DESCRIPTORS;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the limit in, then reads it.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        if limit.rlim_cur < needed {
            limit.rlim_cur = needed;
            limit.rlim_max = limit.rlim_max.max(needed);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
    let mut pipes = Vec::with_capacity(workload.pipes.len());
    for pipe in &workload.pipes {
        if pipe.carrier == Carrier::Socket {
            pipes.push(socket(pipe, workload.pipes.len(), notes)?);
            continue;
        }
        let mut ends = [0; 2];
        // SAFETY: the kernel fills in two descriptors, which have no other owner.
        let (read, write) = unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                let what =
                    format!("make the pipe `{}`, one of {}", pipe.name, workload.pipes.len());
                return Err(TaskError::last(
                    what,
                    Some("raise the limit of open files: ulimit -n"),
                ));
            }
            (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
        };
        let bytes = libc::c_int::try_from(pipe.capacity).unwrap_or(libc::c_int::MAX);
        // SAFETY: both calls only look at or change the pipe itself.
        let now = unsafe {
            libc::fcntl(write.as_raw_fd(), libc::F_SETPIPE_SZ, bytes);
            libc::fcntl(write.as_raw_fd(), libc::F_GETPIPE_SZ)
        };
        let pages = |bytes: u64| bytes.div_ceil(PAGE_BYTES);
        if u64::try_from(now).map(pages) != Ok(pages(pipe.capacity)) {
            notes.push(format!(
                "the pipe `{}` holds {now} bytes, not {}: the kernel rounds to pages",
                pipe.name, pipe.capacity
            ));
        }
        pipes.push((read, write));
    }
    Ok(pipes)
}

/// One direction of a socket pair: read end and write end.
fn socket(
    pipe: &Pipe,
    of: usize,
    notes: &mut Vec<String>,
) -> Result<(OwnedFd, OwnedFd), TaskError> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: the kernel fills in two descriptors, which have no other owner.
    let (read, write) = unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
            let what = format!("make the socket `{}`, one of {of}", pipe.name);
            return Err(TaskError::last(what, Some("raise the limit of open files: ulimit -n")));
        }
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    // The kernel doubles the requested size.
    let requested = libc::c_int::try_from(pipe.capacity / 2).unwrap_or(libc::c_int::MAX);
    let mut now: libc::c_int = 0;
    let mut length = size_of_val(&now) as libc::socklen_t;
    // SAFETY: the kernel reads and writes one number of that length.
    unsafe {
        let (end, level) = (write.as_raw_fd(), libc::SOL_SOCKET);
        libc::setsockopt(end, level, libc::SO_SNDBUF, (&raw const requested).cast(), length);
        libc::getsockopt(end, level, libc::SO_SNDBUF, (&raw mut now).cast(), &raw mut length);
    }
    if u64::try_from(now) != Ok(pipe.capacity / 2 * 2) {
        notes.push(format!(
            "the buffer of the socket `{}` has {now} bytes, not {} (net.core.wmem_max)",
            pipe.name, pipe.capacity
        ));
    }
    Ok((read, write))
}

/// Checks that this machine has the CPUs to which groups are pinned.
fn check_cpus(plan: &Plan) -> Result<(), TaskError> {
    let Ok(text) = std::fs::read_to_string("/sys/devices/system/cpu/online") else { return Ok(()) };
    let list = parse_cpu_list(&text);
    let online = CpuSet::new(&CpuList(list));
    for group in &plan.groups {
        if group.cpus.as_ref().is_some_and(|cpus| !cpus.meets(&online)) {
            return Err(TaskError::Unfit {
                problem: format!(
                    "the tasks of `{}` are pinned to CPUs that this machine does not have: it has {}",
                    group.name,
                    text.trim()
                ),
                help: "pin them to other CPUs, or use a machine with more CPUs".to_owned(),
            });
        }
    }
    Ok(())
}

/// Memory that stays free, bytes.
const MEMORY_SPARED: u64 = 64 << 20;

fn check_memory(plan: &Plan) -> Result<(), TaskError> {
    let wanted: u64 =
        plan.groups.iter().map(|group| u64::from(group.count) * group.memory_bytes).sum();
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return Ok(()) };
    let kib = text.lines().find_map(|line| {
        line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    let Some(available) = kib.map(|kib| kib << 10) else { return Ok(()) };
    if wanted > available.saturating_sub(MEMORY_SPARED) {
        let error = io::Error::from_raw_os_error(libc::ENOMEM);
        return Err(TaskError::System {
            what: format!(
                "allocate {} MiB of memory for the tasks: {} MiB are available",
                wanted >> 20,
                available >> 20
            ),
            error,
            help: Some(
                "reduce the memory that they touch, or use a machine with more memory".to_owned(),
            ),
        });
    }
    Ok(())
}
