//! The state of a machine at the beginning of a recording: what no event says.

use std::fmt::Write as _;

use crate::cpu_list::cpu_list_text;
use crate::escape::escape;
use crate::{CgroupInfo, Origin, TaskInfo};

/// The facts that a recorder knows when it begins: the origin, the tasks with their attributes, and the cgroups with
/// their weights. `trace.dat` has it as an option of its own ([`StartState::OPTION`]), whose text has a line for each
/// fact, in the form of the header of ftrace text. A reader takes over what it says of tasks that appear in an event;
/// of a task that is forked later, what it says of the parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartState {
    /// The origin of the recording.
    pub origin: Origin,
    /// The cgroups in which there are tasks. Parents are not stated: paths tell them.
    pub cgroups: Vec<CgroupInfo>,
    /// The tasks, each with the index of its cgroup in [`StartState::cgroups`].
    pub tasks: Vec<TaskInfo>,
}

impl StartState {
    /// The number of the option of `trace.dat` (`trace-cmd.dat.v6(5)`); libtracecmd skips it.
    pub const OPTION: u16 = 0x6672;

    /// The text of the option.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (key, value) in self.origin.lines() {
            let _ = writeln!(text, "origin {key} {}", escape(&value));
        }
        for cgroup in &self.cgroups {
            cgroup_line(&mut text, "", cgroup);
        }
        for task in &self.tasks {
            task_line(&mut text, "", task);
        }
        text
    }
}

/// Writes a line of a task with its attributes.
pub(crate) fn task_line(out: &mut String, prefix: &str, task: &TaskInfo) {
    let _ = write!(out, "{prefix}task pid={}", task.pid);
    if let Some(nice) = task.nice {
        let _ = write!(out, " nice={nice}");
    }
    if let Some(prio) = task.rt_prio {
        let _ = write!(out, " prio={}", prio.prio());
    }
    if let Some(policy) = task.policy {
        let _ = write!(out, " policy={}", policy.name());
    }
    if let Some(slice_ns) = task.slice_ns {
        let _ = write!(out, " slice_ns={slice_ns}");
    }
    if let Some(ahead_ns) = task.vruntime_ahead_ns {
        let _ = write!(out, " vruntime_ahead_ns={ahead_ns}");
    }
    if let Some(cpu) = task.last_cpu {
        let _ = write!(out, " last_cpu={cpu}");
    }
    if let Some(ranges) = &task.allowed_cpus {
        let _ = write!(out, " cpus={}", cpu_list_text(ranges));
    }
    if let Some(cgroup) = task.cgroup {
        let _ = write!(out, " cgroup={}", cgroup.0);
    }
    let _ = writeln!(out, " comm={}", escape(&task.comm));
}

/// Writes a line of a cgroup.
pub(crate) fn cgroup_line(out: &mut String, prefix: &str, cgroup: &CgroupInfo) {
    let _ = write!(out, "{prefix}cgroup");
    if let Some(parent) = cgroup.parent {
        let _ = write!(out, " parent={}", parent.0);
    }
    if let Some(weight) = cgroup.weight {
        let _ = write!(out, " weight={weight}");
    }
    let _ = writeln!(out, " path={}", escape(&cgroup.path));
}
