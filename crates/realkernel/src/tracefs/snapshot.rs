//! The state of this machine when a recording begins ([`StartState`]).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fairground_trace::{
    CgroupId, CgroupInfo, Origin, OriginTarget, Policy, RtPrio, StartState, TaskInfo,
};

use super::recorder::numbers;
use super::vruntimes::{Queues, last_cpu};
use crate::run::kernel_info;
use crate::tasks::{parse_cpu_list, scheduling_of};

/// Tasks that are described; further ones are left out.
const TASKS_MAX: usize = 1 << 16;
/// The name of the kernel's own scheduler, as `--sched` takes it.
const OWN_SCHEDULER: &str = "kernel";
/// Where the hierarchy of the CPU controller may be mounted, version 1, then 2.
const CPU_CONTROLLERS: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// `1` where tasks of the root group are in groups of their sessions.
const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";
/// The weight of a session's group whose nice value is 0.
const WEIGHT_DEFAULT: u32 = 100;
/// `cpu.shares` of a group with the weight 100.
const SHARES_OF_100: u64 = 1024;

/// The description of this machine while a recording begins. What cannot be read is unknown.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) origin: Origin,
    cgroups: Cgroups,
    tasks: BTreeMap<u32, TaskInfo>,
}

impl Snapshot {
    /// To be taken before events are recorded.
    pub(super) fn take() -> Self {
        let cgroups = Cgroups { has_autogroups: has_autogroups(), ..Cgroups::default() };
        let mut snapshot = Self { origin: origin(), cgroups, tasks: BTreeMap::new() };
        snapshot.add_tasks();
        snapshot
    }

    /// Adds the tasks that were made since. Called a second time when events are recorded: later ones have an event.
    pub(super) fn add_tasks(&mut self) {
        for pid in numbers("/proc") {
            for tid in numbers(&format!("/proc/{pid}/task")) {
                if self.tasks.len() < TASKS_MAX && !self.tasks.contains_key(&tid) {
                    let info = task(tid, &mut self.cgroups);
                    self.tasks.extend(info.map(|info| (tid, info)));
                }
            }
        }
        self.place_tasks();
    }

    /// Where each task is now: its CPU, and its place in the queue there.
    fn place_tasks(&mut self) {
        let queues = Queues::read();
        for (&tid, known) in &mut self.tasks {
            let stat = fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
            known.last_cpu = last_cpu(&stat);
            let path = known.cgroup.map_or("/", |id| &self.cgroups.found[id.index()].path);
            known.vruntime_ahead_ns =
                known.last_cpu.and_then(|cpu| queues.ahead_ns(tid, cpu, path));
        }
    }

    /// The state read so far.
    pub(super) fn state(&self) -> StartState {
        let mut tasks: Vec<TaskInfo> = self.tasks.values().cloned().collect();
        forget_usual_slices(&mut tasks);
        let (origin, cgroups) = (self.origin.clone(), self.cgroups.found.clone());
        StartState { origin, cgroups, tasks }
    }
}

/// `sched_getattr` returns the slice in use (`get_params`, Linux 6.12 and later), which is the scheduler's unless the
/// task has its own: the one that most tasks have is the scheduler's.
fn forget_usual_slices(tasks: &mut [TaskInfo]) {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for slice_ns in tasks.iter().filter_map(|task| task.slice_ns) {
        *counts.entry(slice_ns).or_default() += 1;
    }
    let usual = counts.into_iter().max_by_key(|(_, count)| *count).map(|(slice_ns, _)| slice_ns);
    for task in tasks {
        task.slice_ns = task.slice_ns.filter(|_| task.slice_ns != usual);
    }
}

fn origin() -> Origin {
    let kernel = kernel_info();
    let line = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let is_enabled = line("/sys/kernel/sched_ext/state").as_deref() == Some("enabled");
    let attached = line("/sys/kernel/sched_ext/root/ops").filter(|_| is_enabled);
    let scheduler = attached.map_or(OWN_SCHEDULER.to_owned(), |name| format!("scx:{name}"));
    Origin {
        target: Some(OriginTarget::Kernel),
        scheduler: Some(scheduler),
        kernel: Some(kernel.release),
        hz: kernel.hz,
        features: kernel.features,
        tunables: kernel.tunables,
        topology: topology(Path::new("/sys/devices/system/cpu"), kernel.cpus),
        ..Origin::default()
    }
}

/// `SOCKETSxCORESxTHREADS` of a machine whose sockets and cores are equal and numbered one after the other.
fn topology(root: &Path, cpus: u32) -> Option<String> {
    let list = |cpu: u32, names: [&str; 2]| {
        let folder = root.join(format!("cpu{cpu}/topology"));
        let text = names.iter().find_map(|name| fs::read_to_string(folder.join(name)).ok())?;
        Some(parse_cpu_list(text.trim()))
    };
    let count = |names: [&str; 2]| {
        let ranges = |cpu| list(cpu, names);
        let [(0, last)] = ranges(0)?[..] else { return None };
        let each = last + 1;
        let is_regular = (0..cpus).all(|cpu| {
            let first = cpu / each * each;
            ranges(cpu).is_some_and(|ranges| ranges == [(first, first + each - 1)])
        });
        (cpus.is_multiple_of(each) && is_regular).then_some(each)
    };
    let threads = count(["core_cpus_list", "thread_siblings_list"])?;
    let socket = count(["package_cpus_list", "core_siblings_list"])?;
    socket
        .is_multiple_of(threads)
        .then(|| format!("{}x{}x{threads}", cpus / socket, socket / threads))
}

fn task(tid: u32, cgroups: &mut Cgroups) -> Option<TaskInfo> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{tid}/{file}")).ok();
    let comm = read("comm")?;
    let mut info = TaskInfo::new(tid, comm.strip_suffix('\n').unwrap_or(&comm));
    let status = read("status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    info.allowed_cpus = allowed.map(|list| parse_cpu_list(list.trim()));
    info.cgroup = read("cgroup").and_then(|text| cgroups.of(&text));
    if let Some(session) = read("autogroup").filter(|_| cgroups.is_root(info.cgroup)) {
        info.cgroup = cgroups.of_session(&session).or(info.cgroup);
    }
    if let Some(scheduling) = scheduling_of(tid) {
        info.policy = Policy::of_number(scheduling.policy);
        match info.policy {
            Some(Policy::Fifo | Policy::Rr) => {
                info.rt_prio = RtPrio::new(99 - scheduling.priority as i32);
            }
            Some(Policy::Deadline) => info.rt_prio = RtPrio::new(-1),
            Some(_) => {
                info.nice = i8::try_from(scheduling.nice).ok();
                // 0 before Linux 6.12, which has no slices of tasks.
                info.slice_ns = Some(scheduling.runtime_ns).filter(|slice_ns| *slice_ns > 0);
            }
            None => {}
        }
    }
    Some(info)
}

/// The cgroups so far, by their paths.
#[derive(Debug, Default)]
struct Cgroups {
    found: Vec<CgroupInfo>,
    by_path: BTreeMap<String, CgroupId>,
    has_autogroups: bool,
}

impl Cgroups {
    /// The cgroup of the CPU controller in a text of `/proc/PID/cgroup`; without that controller, the one of the
    /// unified hierarchy.
    fn of(&mut self, text: &str) -> Option<CgroupId> {
        let mut parts = text.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            Some((parts.next()?, parts.next()?, parts.next()?))
        });
        let has_cpu = |names: &str| names.split(',').any(|name| name == "cpu");
        let unified = parts.clone().find(|(number, ..)| *number == "0");
        let legacy = parts.find(|(_, names, _)| has_cpu(names));
        let (folders, (_, _, path)) = match legacy {
            Some(legacy) => (CPU_CONTROLLERS, legacy),
            None => (UNIFIED, unified?),
        };
        Some(self.numbered(path, || folders.iter().find_map(|folder| weight(folder, path))))
    }

    /// The group of a session in a text of `/proc/PID/autogroup`, `/autogroup-40 nice 0`, where there are such groups.
    fn of_session(&mut self, text: &str) -> Option<CgroupId> {
        let (path, nice) = text.trim().split_once(" nice ").filter(|_| self.has_autogroups)?;
        Some(self.numbered(path, || (nice == "0").then_some(WEIGHT_DEFAULT)))
    }

    fn is_root(&self, group: Option<CgroupId>) -> bool {
        group.is_none_or(|id| self.found[id.index()].path == "/")
    }

    fn numbered(&mut self, path: &str, weight: impl FnOnce() -> Option<u32>) -> CgroupId {
        if let Some(known) = self.by_path.get(path) {
            return *known;
        }
        let id = CgroupId(self.found.len() as u32);
        self.found.push(CgroupInfo { path: path.to_owned(), parent: None, weight: weight() });
        self.by_path.insert(path.to_owned(), id);
        id
    }
}

/// Whether tasks of the root are in groups of their sessions (`sched_autogroup_enabled`).
fn has_autogroups() -> bool {
    fs::read_to_string(AUTOGROUP).is_ok_and(|text| text.trim() == "1")
}

/// The weight of a group, 1…10,000. The root has none.
fn weight(folder: &str, path: &str) -> Option<u32> {
    let group = PathBuf::from(folder).join(path.trim_start_matches('/'));
    let number = |file: &str| -> Option<u64> {
        fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()
    };
    let of_shares = |shares: u64| (shares * 100 + SHARES_OF_100 / 2) / SHARES_OF_100;
    let weight = number("cpu.weight").or_else(|| number("cpu.shares").map(of_shares))?;
    u32::try_from(weight.clamp(1, 10_000)).ok().filter(|_| path != "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_described() {
        let state = Snapshot::take().state();
        let own = std::process::id();
        let info = state.tasks.iter().find(|task| task.pid == own).expect("this task");
        assert_eq!((info.policy, info.nice.is_some()), (Some(Policy::Other), true));
        assert!(info.allowed_cpus.as_ref().is_some_and(|cpus| !cpus.is_empty()));
        let cgroup = info.cgroup.expect("every kernel here has cgroups");
        assert!(state.cgroups[cgroup.index()].path.starts_with('/'));
        assert!(state.origin.hz.is_some() && state.origin.kernel.is_some());
    }

    #[test]
    fn the_slice_that_most_tasks_have_is_the_scheduler_s() {
        let task = |slice_ns| TaskInfo { slice_ns, ..TaskInfo::new(7, "t") };
        let mut tasks = [Some(3), None, Some(1), Some(3)].map(task);
        forget_usual_slices(&mut tasks);
        assert_eq!(tasks.map(|task| task.slice_ns), [None, None, Some(1), None]);
        forget_usual_slices(&mut []);
    }

    #[test]
    fn a_group_is_that_of_the_cpu_controller() {
        let mut cgroups = Cgroups::default();
        let legacy = "9:name=systemd:/s\n4:cpu,cpuacct:/a:b\n0::/u\n";
        assert_eq!(cgroups.of(legacy), Some(CgroupId(0)));
        assert_eq!(cgroups.of("0::/u\n"), Some(CgroupId(1)));
        assert_eq!(cgroups.of("0::/u\n"), Some(CgroupId(1)));
        assert_eq!(cgroups.of("3:cpuset:/c\n"), None);
        let session = "/autogroup-40 nice 0\n";
        assert_eq!(cgroups.of_session(session), None);
        cgroups.has_autogroups = true;
        assert_eq!(
            [cgroups.of_session(session), cgroups.of_session("")],
            [Some(CgroupId(2)), None]
        );
        let paths: Vec<_> = cgroups.found.iter().map(|group| group.path.as_str()).collect();
        assert_eq!(paths, ["/a:b", "/u", "/autogroup-40"]);
    }
}
