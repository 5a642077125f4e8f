//! The state that tasks share or inherit. The runner creates it before the first task.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use fairground_workload::prng::{Prng, STREAM_TASKS};
use fairground_workload::{Carrier, LockKind, Pipe, Workload};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::cgroups::Cgroups;
use super::conditions::{BarrierWords, ConditionWords};
use super::cpu_list::parse_cpu_list;
use super::error::TaskError;
use super::plan::{CpuSet, GroupPlan, Plan};
use super::queue::Queue;
use super::shared::{Group, Head, LockWords, MARKS_MAX, MarkSlot, SLOTS_MAX, Shared, TaskSlot};
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
    /// By index of the workload's timer: the last expiry, ns of the monotonic clock; 0 before it starts, and for
    /// timers that are not shared.
    pub(super) timers: Shared<AtomicU64>,
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
        check_queues(workload)?;
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let online = parse_cpu_list(&online);
        let cpus: Vec<u32> = online.iter().flat_map(|(first, last)| *first..=*last).collect();
        let speed = Speed::measure(if plan.computes { &cpus } else { &[] });
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
        let barriers = Shared::<BarrierWords>::new(workload.barriers.len())?;
        for (barrier, spec) in barriers.iter().zip(&workload.barriers) {
            barrier.set_up(spec.count);
        }
        note_locks(workload, notes);
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
            registers: (0..plan.registers()).map(|_| AtomicU64::new(0)).collect(),
            prng: Prng::new(seed).fork(STREAM_TASKS),
            anchor: anchor()?,
            plan,
            speed,
            queues,
            locks: Shared::new(workload.locks.len())?,
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

/// Adds a note for each lock that a real kernel does not provide as the workload describes it.
fn note_locks(workload: &Workload, notes: &mut Vec<String>) {
    for lock in &workload.locks {
        if lock.kind.inherits() && !lock.adaptive {
            notes.push(format!(
                "waiters for the lock `{}` spin while its owner runs: a real kernel has no \
                 rt_mutex without adaptive spinning",
                lock.name
            ));
        }
        if lock.kind == LockKind::Spin {
            notes.push(format!(
                "the spin lock `{}` is implemented in user space: its owner can be preempted, and \
                 a waiter that spins for long yields its CPU",
                lock.name
            ));
        }
    }
}

/// Forks a process that only sleeps and leads the tasks' process group, so that the group's number stays valid for
/// the whole run. Returns its process number.
fn anchor() -> Result<libc::pid_t, TaskError> {
    // SAFETY: the child only makes calls that are allowed after a fork.
    unsafe {
        let runner = libc::getpid();
        let pid = libc::fork();
        if pid < 0 {
            return Err(TaskError::last("start a process", None));
        }
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            libc::prctl(libc::PR_SET_NAME, c"anchor".as_ptr(), 0, 0, 0);
            libc::close_range(0, libc::c_uint::MAX, 0);
            while libc::getppid() == runner {
                libc::pause();
            }
            libc::_exit(0);
        }
        libc::setpgid(pid, pid);
        Ok(pid)
    }
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
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < needed
    {
        // If the kernel refuses, a pipe cannot be made.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, needed, hard.max(needed));
    }
    let mut pipes = Vec::with_capacity(workload.pipes.len());
    for pipe in &workload.pipes {
        let (kind, made) = match pipe.carrier {
            Carrier::Pipe => ("pipe", io::pipe().map(|(read, write)| (read.into(), write.into()))),
            Carrier::Socket => ("socket", UnixStream::pair().map(|(a, b)| (a.into(), b.into()))),
        };
        let (read, write): (OwnedFd, OwnedFd) = made.map_err(|error| TaskError::System {
            what: format!("make the {kind} `{}`, one of {}", pipe.name, workload.pipes.len()),
            error,
            help: Some("raise the limit of open files: ulimit -n".to_owned()),
        })?;
        notes.extend(match pipe.carrier {
            Carrier::Pipe => set_pipe_capacity(pipe, &write),
            Carrier::Socket => set_socket_buffer(pipe, &write),
        });
        pipes.push((read, write));
    }
    Ok(pipes)
}

/// Sets the capacity of a pipe; returns a note if the kernel chooses another one.
fn set_pipe_capacity(pipe: &Pipe, write: &OwnedFd) -> Option<String> {
    let bytes = libc::c_int::try_from(pipe.capacity).unwrap_or(libc::c_int::MAX);
    // If the kernel refuses, the note tells the capacity.
    let _ = fcntl(write, FcntlArg::F_SETPIPE_SZ(bytes));
    let now = fcntl(write, FcntlArg::F_GETPIPE_SZ).unwrap_or(-1);
    let pages = |bytes: u64| bytes.div_ceil(PAGE_BYTES);
    (u64::try_from(now).map(pages) != Ok(pages(pipe.capacity))).then(|| {
        format!(
            "the pipe `{}` holds {now} bytes, not {}: the kernel rounds to pages",
            pipe.name, pipe.capacity
        )
    })
}

/// Sets the buffer of a socket; returns a note if the kernel chooses another size.
fn set_socket_buffer(pipe: &Pipe, write: &OwnedFd) -> Option<String> {
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
    (u64::try_from(now) != Ok(pipe.capacity / 2 * 2)).then(|| {
        format!(
            "the buffer of the socket `{}` has {now} bytes, not {} (net.core.wmem_max)",
            pipe.name, pipe.capacity
        )
    })
}

/// Checks that this machine has the CPUs to which groups are pinned.
fn check_cpus(plan: &Plan) -> Result<(), TaskError> {
    let Ok(text) = std::fs::read_to_string("/sys/devices/system/cpu/online") else { return Ok(()) };
    let online = CpuSet::new(&parse_cpu_list(&text));
    for GroupPlan { spec, .. } in &plan.groups {
        if spec.cpus.as_ref().is_some_and(|cpus| !CpuSet::new(&cpus.0).meets(&online)) {
            return Err(TaskError::Unfit {
                problem: format!(
                    "the tasks of `{}` are pinned to CPUs that this machine does not have: it has {}",
                    spec.name,
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

/// A queue in shared memory counts the messages that it holds.
fn check_queues(workload: &Workload) -> Result<(), TaskError> {
    match workload.queues.iter().find(|queue| queue.capacity == Some(0)) {
        None => Ok(()),
        Some(queue) => Err(TaskError::Unfit {
            problem: format!("the queue `{}` holds no message", queue.name),
            help: "run it in the simulated machine, or give the queue a `capacity`".to_owned(),
        }),
    }
}

fn check_memory(plan: &Plan) -> Result<(), TaskError> {
    let wanted: u64 =
        plan.groups.iter().map(|group| u64::from(group.spec.count) * group.memory_bytes).sum();
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
