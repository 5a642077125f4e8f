//! Perfetto's protobuf format; opens in <https://ui.perfetto.dev> and in its trace processor.
//!
//! Events that the kernel has tracepoints for are written as the kernel's own (`FtraceEventBundle`, one for a stretch
//! of events of one CPU): from `sched_switch` and `sched_waking` Perfetto draws the CPUs' slices, the tasks' states and
//! the arrows of wake-ups itself. Everything else has tracks of its own (`TrackEvent`): who preempted a task, counters
//! and marks below the task that they belong to, a CPU's queue, callbacks of the scheduler, its printed lines, changes
//! of tunables.
//!
//! No event has a thread group, so each task is a process of its own: one that the trace shows the birth of begins
//! there (`task_newtask`), every other is in the process tree at the start. The next bundle of a CPU flags its lost
//! events, and the `FtraceStats` at the end have their number.

mod messages;
mod tracks;

use std::collections::HashMap;
use std::io::{self, Write};

use prost::Message;

use self::messages::{
    CgroupAttachTask, Data, Ftrace, FtraceCpuStats, FtraceEvent, FtraceEventBundle, FtraceStats,
    HrtimerExpireEntry, InternedData, InternedString, OnePacket, Process, ProcessTree,
    SchedMigrateTask, SchedProcessExit, SchedProcessFork, SchedSwitch, SchedWakeup, SystemInfo,
    TaskNewtask, TracePacket,
};
use self::tracks::Tracks;
use super::view::View;
use crate::{Counter, Event, EventKind, TaskId, TaskState, Trace};

/// Events of a bundle: a CPU's are written when there are so many.
const BUNDLE_EVENTS: usize = 256;
/// Bytes are written to the sink in blocks of about this size.
const CHUNK_BYTES: usize = 64 << 10;
/// All packets are of one writer.
const SEQUENCE: u32 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const STATE_CLEARED: u32 = 1;
/// The kernel's function of the tick, and its number in `InternedData`.
const TICK: (u64, &[u8]) = (1, b"tick_nohz_handler");
/// `TRACE_FLAG_HARDIRQ` in `common_flags`.
const HARD_INTERRUPT: u32 = 0x08;
/// `FtraceStats::Phase`.
const START: i32 = 1;
const END: i32 = 2;

/// Writes a trace with counters in Perfetto's format.
///
/// # Errors
/// Those of the sink.
pub fn write_perfetto(trace: &Trace, counters: &[Counter], sink: impl Write) -> io::Result<()> {
    let mut writer = Writer::new(trace, sink);
    writer.head()?;
    for event in trace.events() {
        writer.event(&event)?;
    }
    for cpu in 0..writer.bundles.len() {
        writer.bundle(cpu)?;
    }
    let stats = stats(END, &writer.lost);
    writer.packet(None, stats)?;
    for counter in counters {
        let Writer { tracks, packets, .. } = &mut writer;
        tracks.counter(counter, trace, |timestamp, data| packets.packet(timestamp, data))?;
    }
    writer.packets.finish()
}

/// Packets that are not written to the sink yet.
struct Packets<W> {
    out: Vec<u8>,
    sink: W,
    first: bool,
}

impl<W: Write> Packets<W> {
    fn packet(&mut self, timestamp: Option<u64>, data: Data) -> io::Result<()> {
        let first = std::mem::take(&mut self.first);
        let packet = TracePacket {
            timestamp,
            trusted_packet_sequence_id: Some(SEQUENCE),
            interned_data: first.then(|| InternedData {
                kernel_symbols: vec![InternedString { iid: TICK.0, text: TICK.1.to_vec() }],
            }),
            sequence_flags: first.then_some(STATE_CLEARED),
            data: Some(data),
        };
        // A vector has always room.
        let _ = OnePacket { packet: Some(packet) }.encode(&mut self.out);
        if self.out.len() >= CHUNK_BYTES {
            self.sink.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.sink.write_all(&self.out)?;
        self.sink.flush()
    }
}

/// The events of a CPU that are not written yet.
#[derive(Default)]
struct Bundle {
    events: Vec<FtraceEvent>,
    /// Events were lost before these.
    lost: bool,
}

struct Writer<'a, W> {
    view: View<'a>,
    packets: Packets<W>,
    tracks: Tracks,
    bundles: Vec<Bundle>,
    /// Lost events of each CPU.
    lost: Vec<u64>,
    /// Tasks whose birth is still to be written, and whether it is a fork.
    unborn: HashMap<TaskId, bool>,
}

impl<'a, W: Write> Writer<'a, W> {
    fn new(trace: &'a Trace, sink: W) -> Self {
        let cpus = trace.cpus as usize;
        Self {
            view: View::new(trace),
            packets: Packets { out: Vec::with_capacity(2 * CHUNK_BYTES), sink, first: true },
            tracks: Tracks::default(),
            bundles: std::iter::repeat_with(Bundle::default).take(cpus).collect(),
            lost: vec![0; cpus],
            unborn: births(trace),
        }
    }

    fn packet(&mut self, timestamp: Option<u64>, data: Data) -> io::Result<()> {
        self.packets.packet(timestamp, data)
    }

    fn head(&mut self) -> io::Result<()> {
        let trace = self.view.trace;
        self.packet(None, Data::SystemInfo(SystemInfo { num_cpus: trace.cpus }))?;
        let start = stats(START, &vec![0; self.lost.len()]);
        self.packet(None, start)?;
        let tasks = (0..).map(TaskId).zip(trace.tasks()).skip(1);
        let old = tasks.filter(|(id, _)| !self.unborn.contains_key(id));
        let processes = old.map(|(_, task)| Process {
            pid: Some(task.pid as i32),
            cmdline: vec![task.comm.clone()],
            cmdline_is_comm: Some(true),
        });
        let tree = ProcessTree { processes: processes.collect() };
        self.packet(Some(trace.start_ns), Data::ProcessTree(tree))
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        let running = self.view.running(event);
        self.view.note(event);
        if let Some((task, is_fork)) = newborn(event.kind)
            && self.unborn.get(&task) == Some(&is_fork)
        {
            self.unborn.remove(&task);
            // From this Perfetto knows that a pid is another task now, and that it is runnable.
            let new = TaskNewtask { pid: self.pid(task), comm: self.comm(task), clone_flags: 0 };
            let parent = if is_fork { running } else { TaskId::IDLE };
            self.ftrace(event, parent, Ftrace::TaskNewtask(new))?;
        }
        match event.kind {
            EventKind::Fork { parent, child } => {
                let fork = SchedProcessFork {
                    parent_comm: self.comm(parent),
                    parent_pid: self.pid(parent),
                    child_comm: self.comm(child),
                    child_pid: self.pid(child),
                };
                self.ftrace(event, running, Ftrace::SchedProcessFork(fork))
            }
            EventKind::Lost { count } => {
                let cpu = event.cpu as usize;
                self.bundle(cpu)?;
                if let Some((bundle, lost)) = self.bundles.get_mut(cpu).zip(self.lost.get_mut(cpu))
                {
                    bundle.lost = true;
                    *lost = lost.saturating_add(count);
                }
                Ok(())
            }
            _ => {
                if let Some(ftrace) = self.tracepoint(event) {
                    self.ftrace(event, running, ftrace)?;
                }
                let Self { tracks, packets, view, .. } = self;
                tracks.event(event, view.trace, |timestamp, data| packets.packet(timestamp, data))
            }
        }
    }

    /// The kernel's event for one of the trace; `None` where the kernel has none.
    fn tracepoint(&self, event: &Event) -> Option<Ftrace> {
        Some(match event.kind {
            EventKind::Switch { prev, prev_state, next } => Ftrace::SchedSwitch(SchedSwitch {
                prev_comm: self.comm_on(prev, event.cpu),
                prev_pid: self.pid(prev),
                prev_prio: self.view.prio(prev),
                prev_state: state_bits(prev_state),
                next_comm: self.comm_on(next, event.cpu),
                next_pid: self.pid(next),
                next_prio: self.view.prio(next),
            }),
            EventKind::Waking { task, target_cpu, .. } => {
                Ftrace::SchedWaking(self.wakeup(task, target_cpu))
            }
            EventKind::Wakeup { task, target_cpu } => {
                Ftrace::SchedWakeup(self.wakeup(task, target_cpu))
            }
            EventKind::WakeupNew { task, target_cpu } => {
                Ftrace::SchedWakeupNew(self.wakeup(task, target_cpu))
            }
            EventKind::Migrate { task, from_cpu, to_cpu } => {
                Ftrace::SchedMigrateTask(SchedMigrateTask {
                    comm: self.comm(task),
                    pid: self.pid(task),
                    prio: self.view.prio(task),
                    orig_cpu: from_cpu as i32,
                    dest_cpu: to_cpu as i32,
                })
            }
            EventKind::Exit { task } => Ftrace::SchedProcessExit(SchedProcessExit {
                comm: self.comm(task),
                pid: self.pid(task),
                prio: self.view.prio(task),
            }),
            EventKind::Tick { .. } => Ftrace::HrtimerExpireEntry(HrtimerExpireEntry {
                now: event.time_ns as i64,
                function: TICK.0,
            }),
            EventKind::CgroupMove { task, to, .. } => Ftrace::CgroupAttachTask(CgroupAttachTask {
                dst_id: to.0 as i32 + 1,
                pid: self.pid(task),
                comm: self.comm(task),
                dst_path: self.view.cgroup_path(to).to_owned(),
            }),
            _ => return None,
        })
    }

    fn wakeup(&self, task: TaskId, target_cpu: u32) -> SchedWakeup {
        SchedWakeup {
            comm: self.comm(task),
            pid: self.pid(task),
            prio: self.view.prio(task),
            success: 1,
            target_cpu: target_cpu as i32,
        }
    }

    /// Puts an event into its CPU's bundle.
    fn ftrace(&mut self, event: &Event, running: TaskId, ftrace: Ftrace) -> io::Result<()> {
        let pid = Some(self.view.pid(running));
        let cpu = event.cpu as usize;
        // A CPU beyond the trace's count is damage.
        let Some(bundle) = self.bundles.get_mut(cpu) else { return Ok(()) };
        let timestamp = Some(event.time_ns);
        let in_interrupt = !running.is_idle()
            && matches!(event.kind, EventKind::Waking { waker: TaskId::IDLE, .. });
        let common_flags = in_interrupt.then_some(HARD_INTERRUPT);
        bundle.events.push(FtraceEvent { timestamp, pid, common_flags, event: Some(ftrace) });
        if bundle.events.len() >= BUNDLE_EVENTS {
            self.bundle(cpu)?;
        }
        Ok(())
    }

    /// Writes what a CPU's bundle holds.
    fn bundle(&mut self, cpu: usize) -> io::Result<()> {
        let Some(bundle) = self.bundles.get_mut(cpu).map(std::mem::take) else { return Ok(()) };
        if bundle.events.is_empty() && !bundle.lost {
            return Ok(());
        }
        let bundle = FtraceEventBundle {
            cpu: Some(cpu as u32),
            event: bundle.events,
            lost_events: bundle.lost.then_some(true),
        };
        self.packet(None, Data::FtraceEvents(bundle))
    }

    fn pid(&self, task: TaskId) -> i32 {
        self.view.pid(task) as i32
    }

    fn comm(&self, task: TaskId) -> String {
        self.view.trace.tasks()[task.index()].comm.clone()
    }

    /// A name; the idle task is called after its CPU.
    fn comm_on(&self, task: TaskId, cpu: u32) -> String {
        if task.is_idle() { format!("swapper/{cpu}") } else { self.comm(task) }
    }
}

/// The tasks that a trace shows the birth of, and whether by a fork.
fn births(trace: &Trace) -> HashMap<TaskId, bool> {
    let mut births = HashMap::new();
    for (task, is_fork) in trace.events().filter_map(|event| newborn(event.kind)) {
        *births.entry(task).or_insert(is_fork) |= is_fork;
    }
    births
}

/// The task that an event shows the birth of, and whether by a fork.
fn newborn(kind: EventKind) -> Option<(TaskId, bool)> {
    let (task, is_fork) = match kind {
        EventKind::Fork { child, .. } => (child, true),
        EventKind::WakeupNew { task, .. } => (task, false),
        _ => return None,
    };
    (!task.is_idle()).then_some((task, is_fork))
}

fn stats(phase: i32, lost: &[u64]) -> Data {
    let cpu = |(cpu, lost): (usize, &u64)| FtraceCpuStats { cpu: cpu as u64, overrun: *lost };
    let cpu_stats = lost.iter().enumerate().map(cpu).collect();
    Data::FtraceStats(FtraceStats { phase: Some(phase), cpu_stats })
}

/// The bits of `prev_state` as Linux 4.4 has them (`TASK_STATE_TO_CHAR_STR`): those that Perfetto assumes of a trace
/// that names no kernel.
fn state_bits(state: TaskState) -> i64 {
    match state {
        TaskState::Runnable => 0,
        TaskState::Sleeping => 1,
        TaskState::Uninterruptible => 2,
        TaskState::Stopped => 4,
        TaskState::Traced => 8,
        TaskState::Dead => 16,
        TaskState::Zombie => 32,
        TaskState::Parked => 512,
        // `TASK_IDLE`: TASK_UNINTERRUPTIBLE | TASK_NOLOAD.
        TaskState::Idle => 2 | 1024,
        // `TASK_STATE_MAX`.
        TaskState::Preempted => 2048,
    }
}
