//! Lines that are no events: comments, trace-cmd's preamble, lost-events lines, call chains.

use super::line::{CPUS_MAX, leading_number};
use super::stated::value;
use super::tie_order::CpuRun;
use crate::escape::unescape;
use crate::{CgroupId, CgroupInfo, Policy, RtPrio, TaskInfo};

/// The meaning of a line that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Remark {
    /// Nothing that is used.
    Nothing,
    /// A line of another kind of record.
    OtherRecord,
    /// The number of CPUs.
    Cpus(u32),
    /// ftrace's count of the events that were overwritten before the recording begins, and of the CPUs.
    Entries { overwritten: u64, cpus: Option<u32> },
    /// Events of one CPU that were lost here.
    Lost { cpu: u32, count: u64 },
    /// From our writer: the window, ns.
    Window { start_ns: u64, end_ns: u64 },
    /// From our writer: a task, in the order of their numbers.
    Task(TaskInfo),
    /// From our writer: a cgroup, in the order of their numbers.
    Cgroup(CgroupInfo),
    /// From our writer: a label, in the order of their numbers.
    Label(String),
    /// From our writer: the order of the events of one time.
    Order { time_ns: u64, runs: Vec<CpuRun> },
    /// A fact about the origin of the recording ([`crate::Origin`]): its key and its value.
    Origin { key: String, value: String },
}

/// The title of the console's dump (`ftrace_dump`, kernel/trace/trace.c).
const DUMP: &str = "Dumping ftrace buffer:";

/// Recognises a line that is no event; `None` when it is to be parsed as one.
pub(super) fn remark(text: &str) -> Option<Remark> {
    // The console's dump of the buffer has a title, and rows of dashes.
    if text.bytes().all(|byte| byte == b'-' || byte == b' ') || text == DUMP {
        return Some(Remark::Nothing);
    }
    // Names are padded to 16 columns, so that a line of an event begins with a blank, whatever its task is called.
    if let Some(comment) = text.strip_prefix('#') {
        let own = text.strip_prefix("# fairground: ").and_then(own_comment);
        return Some(own.or_else(|| kernel_comment(comment)).unwrap_or(Remark::Nothing));
    }
    // Blanks stand for the name of the instance where others have one (`trace-cmd report` of a file with instances).
    if let Some(rest) = text.trim_start().strip_prefix("CPU:") {
        let is_padded = text.starts_with(' ');
        return lost(rest).or_else(|| (!is_padded).then_some(Remark::OtherRecord));
    }
    if let Some(cpus) = text.strip_prefix("cpus=") {
        return Some(Remark::Cpus(cpu_count(cpus)?));
    }
    let preamble = text.starts_with("version = ") || text.starts_with("CPU ");
    if preamble && !text.contains('[') {
        return Some(Remark::Nothing);
    }
    None
}

fn cpu_count(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|cpus| (1..=CPUS_MAX).contains(cpus))
}

/// `# entries-in-buffer/entries-written: 72/90   #P:2` (ftrace) `# nrcpus online : 2` and `# os release : 6.18.44`
/// (perf).
fn kernel_comment(comment: &str) -> Option<Remark> {
    let comment = comment.trim();
    if let Some(rest) = comment.strip_prefix("nrcpus online :") {
        return Some(Remark::Cpus(cpu_count(rest)?));
    }
    if let Some(release) = comment.strip_prefix("os release :") {
        return Some(Remark::Origin { key: "kernel".to_owned(), value: release.trim().to_owned() });
    }
    let rest = comment.strip_prefix("entries-in-buffer/entries-written:")?;
    let (kept, rest) = leading_number(rest.trim_start())?;
    let (written, rest) = leading_number(rest.strip_prefix('/')?)?;
    let cpus = rest.split_once("#P:").and_then(|(_, cpus)| cpu_count(cpus));
    Some(Remark::Entries { overwritten: written.saturating_sub(kept), cpus })
}

/// `1 [LOST 35 EVENTS]` (the kernel), `1 [35 EVENTS DROPPED]` and `1 [EVENTS DROPPED]` (trace-cmd: at least one).
fn lost(text: &str) -> Option<Remark> {
    let (cpu, rest) = leading_number(text.trim_start())?;
    let inside = rest.trim().strip_prefix('[')?.strip_suffix(']')?;
    if !inside.contains("LOST") && !inside.contains("DROPPED") {
        return None;
    }
    let cpu = u32::try_from(cpu).ok().filter(|cpu| *cpu < CPUS_MAX)?;
    let count = inside.split(' ').find_map(|word| word.parse().ok()).unwrap_or(1);
    Some(Remark::Lost { cpu, count })
}

/// The lines that [`crate::write_ftrace`] puts into the header, so that nothing is lost on the way.
pub(super) fn own_comment(text: &str) -> Option<Remark> {
    let (kind, rest) = text.split_once(' ')?;
    match kind {
        "window" => {
            let number = |key| value(rest, key)?.parse::<u64>().ok();
            let (start_ns, end_ns) = (number("start_ns=")?, number("end_ns=")?);
            (start_ns <= end_ns).then_some(Remark::Window { start_ns, end_ns })
        }
        "cpus" => Some(Remark::Cpus(cpu_count(rest)?)),
        "origin" => {
            let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
            let value = unescape(value).into_owned();
            Some(Remark::Origin { key: key.to_owned(), value })
        }
        "label" => Some(Remark::Label(unescape(rest).into_owned())),
        "order" => {
            let run = |run: &str| {
                let (cpu, count) = run.split_once('*').unwrap_or((run, "1"));
                Some((cpu.parse().ok()?, count.parse().ok()?))
            };
            let time_ns = value(rest, "time_ns=")?.parse().ok()?;
            let runs = value(rest, "cpus=")?.split(',').map(run).collect::<Option<_>>()?;
            Some(Remark::Order { time_ns, runs })
        }
        "cgroup" => {
            let (fixed, path) = rest.split_once("path=")?;
            let parent = value(fixed, "parent=").and_then(|parent| parent.parse().ok());
            let weight = value(fixed, "weight=").and_then(|weight| weight.parse().ok());
            let path = unescape(path).into_owned();
            Some(Remark::Cgroup(CgroupInfo { path, parent: parent.map(CgroupId), weight }))
        }
        "task" => {
            let (fixed, comm) = rest.split_once(" comm=")?;
            let mut info = TaskInfo::new(value(fixed, "pid=")?.parse().ok()?, &unescape(comm));
            info.nice = value(fixed, "nice=").and_then(|nice| nice.parse().ok());
            info.rt_prio =
                value(fixed, "prio=").and_then(|prio| prio.parse().ok()).and_then(RtPrio::new);
            info.policy = value(fixed, "policy=").and_then(Policy::of_name);
            info.slice_ns = value(fixed, "slice_ns=").and_then(|slice_ns| slice_ns.parse().ok());
            info.vruntime_ahead_ns =
                value(fixed, "vruntime_ahead_ns=").and_then(|ahead_ns| ahead_ns.parse().ok());
            info.last_cpu = value(fixed, "last_cpu=").and_then(|cpu| cpu.parse().ok());
            info.cgroup =
                value(fixed, "cgroup=").and_then(|cgroup| cgroup.parse().ok()).map(CgroupId);
            info.allowed_cpus = value(fixed, "cpus=").and_then(crate::cpu_list::parse_cpu_list);
            Some(Remark::Task(info))
        }
        _ => None,
    }
}
