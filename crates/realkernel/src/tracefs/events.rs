//! The recorded events.

use super::RecordError;
use super::instance::Instance;
use crate::job::RecordingJob;

/// The events of every recording.
const SCHEDULING: [&str; 7] = [
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "sched:sched_migrate_task",
    "sched:sched_process_fork",
    "sched:sched_process_exit",
];
/// Events that are recorded if the kernel has them: moves between control groups, `bpf_printk`.
const WHERE_THERE: [&str; 2] = ["cgroup:cgroup_attach_task", "bpf_trace:bpf_trace_printk"];
/// Additional events of a recording with details: what the kernel charges its tasks, and timers, of which the tick is
/// one.
const DETAILS: [&str; 2] = ["sched:sched_stat_runtime", TIMERS];
const TIMERS: &str = "timer:hrtimer_expire_entry";
/// Additional events of a recording with stacks, if the kernel has them (5.19 and newer).
const OF_LOCKS: [&str; 2] = ["lock:contention_begin", "lock:contention_end"];
/// The triggers that record stacks. Switches away from the idle task need none.
const STACKS_OF: [(&str, &str); 2] =
    [("sched:sched_switch", "stacktrace if prev_pid != 0"), (OF_LOCKS[0], "stacktrace")];

/// The folder of an event `system:event` below an instance.
fn folder(event: &str) -> String {
    format!("events/{}", event.replacen(':', "/", 1))
}

/// Whether a text has the form `system:event` and cannot name another folder.
fn well_formed(event: &str) -> bool {
    let sound = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    event.split_once(':').is_some_and(|(system, name)| sound(system) && sound(name))
}

/// The events of a system call (`CONFIG_FTRACE_SYSCALLS`).
fn of_call(name: &str) -> [String; 2] {
    ["enter", "exit"].map(|side| format!("syscalls:sys_{side}_{name}"))
}

/// The enabled events.
#[derive(Debug, Default)]
pub(super) struct Enabled {
    /// Their names `system:event`, in order, without duplicates.
    pub(super) events: Vec<String>,
    /// Events that were requested and that the kernel does not have, in words.
    pub(super) missing: Option<String>,
}

/// Enables the events.
pub(super) fn enable(instance: &Instance, job: &RecordingJob) -> Result<Enabled, RecordError> {
    let mut enabled: Vec<String> = Vec::new();
    let (calls, missing) = match job.calls {
        true => calls(instance),
        false => (Vec::new(), None),
    };
    let requested = SCHEDULING.iter().copied().chain(job.events.iter().map(String::as_str));
    let of_locks = OF_LOCKS.iter().filter(|_| job.stacks);
    let details = DETAILS.iter().filter(|_| job.details);
    let offered = WHERE_THERE.iter().chain(of_locks).chain(details).copied();
    let offered = offered.filter(|event| instance.has(&folder(event)));
    for event in requested.chain(offered).chain(calls.iter().map(String::as_str)) {
        if enabled.iter().any(|known| known == event) {
            continue;
        }
        if !well_formed(event) || !instance.has(&format!("{}/enable", folder(event))) {
            return Err(RecordError::NoEvent { event: event.to_owned() });
        }
        if event == TIMERS && job.details && !job.events.iter().any(|asked| asked == TIMERS) {
            only_ticks(instance)?;
        }
        instance.write(&format!("{}/enable", folder(event)), "1")?;
        enabled.push(event.to_owned());
    }
    for (event, trigger) in STACKS_OF {
        if job.stacks && enabled.iter().any(|known| known == event) {
            instance.write(&format!("{}/trigger", folder(event)), trigger)?;
        }
    }
    Ok(Enabled { events: enabled, missing })
}

/// The kernel's functions with their addresses (`/proc/kallsyms`): nothing if they cannot be read, addresses of 0
/// without the rights.
fn symbols() -> String {
    std::fs::read_to_string("/proc/kallsyms").unwrap_or_default()
}

/// The lines of `/proc/kallsyms` that a reader of the recording needs: all for stacks, the tick's for timers.
pub(super) fn symbols_of(events: &[String], stacks: bool) -> String {
    let has_timers = events.iter().any(|event| event == TIMERS);
    if stacks {
        symbols()
    } else if has_timers {
        let symbols = symbols();
        fairground_trace::tick_symbols(&symbols).map(|(_, line)| format!("{line}\n")).collect()
    } else {
        String::new()
    }
}

/// Leaves out the timers that are not the tick's, where the addresses of the kernel's functions can be read.
fn only_ticks(instance: &Instance) -> Result<(), RecordError> {
    let symbols = symbols();
    let addresses = fairground_trace::tick_symbols(&symbols).map(|(address, _)| address);
    let ticks: Vec<String> = addresses
        .filter(|address| *address != 0)
        .map(|address| format!("function=={address:#x}"))
        .collect();
    if ticks.is_empty() {
        return Ok(());
    }
    instance.write(&format!("{}/filter", folder(TIMERS)), &ticks.join("||"))
}

/// The events of the calls that the kernel has, and which it does not have, in words.
fn calls(instance: &Instance) -> (Vec<String>, Option<String>) {
    let is_there = |name: &&str| of_call(name).iter().all(|event| instance.has(&folder(event)));
    let (there, missing): (Vec<&str>, Vec<&str>) =
        fairground_trace::system_calls().partition(is_there);
    let words = match (there.is_empty(), missing.is_empty()) {
        (true, _) => {
            Some("no calls were recorded: the kernel has no events of system calls (CONFIG_FTRACE_SYSCALLS)".to_owned())
        }
        (false, true) => None,
        (false, false) => {
            Some(format!("calls without events in this kernel: {}", missing.join(", ")))
        }
    };
    (there.iter().flat_map(|name| of_call(name)).collect(), words)
}

/// The formats of the events, by system, in order of their names.
pub(super) fn formats(
    instance: &Instance,
    events: &[String],
) -> Result<Vec<(String, Vec<String>)>, RecordError> {
    let mut systems: Vec<(String, Vec<String>)> = Vec::new();
    let mut sorted: Vec<&String> = events.iter().collect();
    sorted.sort();
    for event in sorted {
        let system = event.split(':').next().unwrap_or_default();
        let format = instance.read(&format!("{}/format", folder(event)))?;
        match systems.last_mut().filter(|(name, _)| name == system) {
            Some((_, formats)) => formats.push(format),
            None => systems.push((system.to_owned(), vec![format])),
        }
    }
    Ok(systems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_system_and_a_name() {
        assert!(SCHEDULING.iter().chain(&WHERE_THERE).all(|event| well_formed(event)));
        for bad in ["", "sched", "sched:", ":x", "sched:../../x", "a/b:c", "sched:*", "a:b:c"] {
            assert!(!well_formed(bad), "{bad}");
        }
        assert_eq!(folder("sched:sched_switch"), "events/sched/sched_switch");
        let calls = fairground_trace::system_calls().flat_map(of_call);
        assert!(calls.into_iter().all(|event| well_formed(&event)));
    }
}
