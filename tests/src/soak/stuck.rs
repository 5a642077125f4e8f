//! Diagnosis of a step that does not end: prints the running and the blocked tasks on the console, as long as the
//! machine responds.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use fairground_realkernel::kernel_log::KernelLog;

use super::guest::become_real_time;

/// A step that takes longer than this is diagnosed. The longest, the verifier's work for one scheduler, takes 10 s;
/// the kernel ejects a scheduler when RCU has stalled for 21 s.
const PATIENCE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(500);
/// Limit of the lines of each kind.
const SHOWN: usize = 24;
/// Files for the kernel's dump of a sched_ext scheduler: its output, its switch, its trigger.
const TRACE: &str = "/sys/kernel/tracing/trace";
const DUMP_EVENT: &str = "/sys/kernel/tracing/events/sched_ext/sched_ext_dump/enable";
const SYSRQ: &str = "/proc/sysrq-trigger";
const DUMP: &str = "D";
/// Its trigger for the location of each CPU. That takes no lock, unlike the dump, which waits for those of the run
/// queues: a CPU that holds one for ever is named before.
const LOCATIONS: &str = "l";
/// Limit of the callers that are named of a CPU.
const CALLERS: usize = 10;

/// Watches from a thread that is not run by a scheduler under test.
#[derive(Clone)]
pub(super) struct Watchdog {
    steps: Arc<AtomicU64>,
}

impl Watchdog {
    pub(super) fn start() -> Watchdog {
        let steps = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&steps);
        thread::spawn(move || {
            if let Err(error) = become_real_time() {
                return eprintln!("no watchdog: {error}");
            }
            if let Err(error) = fs::write(DUMP_EVENT, "1") {
                eprintln!("the kernel gives no account of its queues: {DUMP_EVENT}: {error}");
            }
            let (mut steps, mut since) = (0, Instant::now());
            loop {
                thread::sleep(POLL);
                let now = seen.load(Relaxed);
                if now == steps && since.elapsed() < PATIENCE {
                    continue;
                }
                if now == steps {
                    say_who_is_busy();
                }
                (steps, since) = (now, Instant::now());
            }
        });
        Watchdog { steps }
    }

    /// A step was made.
    pub(super) fn step(&self) {
        self.steps.fetch_add(1, Relaxed);
    }
}

fn say_who_is_busy() {
    eprintln!(
        "no step for {} s; the location of each CPU, the busy threads, and the waiting tasks of each queue:",
        PATIENCE.as_secs()
    );
    show(&locations());
    show(&busy_threads());
    let account = fs::write(SYSRQ, DUMP).and_then(|()| fs::read_to_string(TRACE));
    show(&account.map_or_else(|error| vec![error.to_string()], |text| waiting(&text)));
    let _ = fs::write(TRACE, "");
}

fn show(lines: &[String]) {
    lines.iter().take(SHOWN).for_each(|line| eprintln!("  {line}"));
}

/// Where each CPU is in the kernel: the function, and its callers.
fn locations() -> Vec<String> {
    let mut log = KernelLog::from_now_on();
    if let Err(error) = fs::write(SYSRQ, LOCATIONS) {
        return vec![format!("{SYSRQ}: {error}")];
    }
    described(&log.messages(|_| true).unwrap_or_default())
}

/// The kernel's report of its CPUs, a line for each.
fn described(report: &[String]) -> Vec<String> {
    let mut cpus: Vec<Vec<&str>> = Vec::new();
    for line in report {
        if let Some((_, cpu)) = line.split_once("NMI backtrace for ") {
            cpus.push(vec![cpu]);
        }
        let function = line.strip_prefix("RIP: ").or_else(|| line.strip_prefix(' '));
        let function = function.filter(|text| !text.contains('?') && text.contains("+0x"));
        let name = function.and_then(|text| text.trim().split_once('+'));
        if let (Some((name, _)), Some(cpu)) = (name, cpus.last_mut())
            && cpu.len() <= CALLERS
        {
            cpu.push(name);
        }
    }
    cpus.iter().map(|cpu| cpu.join(" < ")).collect()
}

/// The tasks of the kernel's dump, CPU by CPU: name, waiting time, and the id of the queue.
fn waiting(account: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut task = "";
    for line in account.lines().filter_map(|line| line.split_once("sched_ext_dump: ")) {
        let line = line.1.trim();
        if line.starts_with("CPU ") {
            lines.push(line.to_owned());
        } else if line.ends_with("ms") && line.contains('[') {
            task = line;
        } else if let Some(queue) = line.split_whitespace().find(|word| word.starts_with("dsq_id="))
        {
            lines.push(format!("{task} {queue}"));
        }
    }
    lines
}

/// The tasks in state R and D: name, number, state, CPU, switches, and their location in the kernel.
fn busy_threads() -> Vec<String> {
    let mut lines = Vec::new();
    for process in numbered(Path::new("/proc")) {
        for thread in numbered(&Path::new("/proc").join(process).join("task")) {
            lines.extend(describe(&Path::new("/proc").join(thread)));
        }
    }
    lines
}

fn numbered(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.bytes().all(|b| b.is_ascii_digit())).collect()
}

fn describe(thread: &Path) -> Option<String> {
    /// `state` and `processor`, fields 3 and 39 of `/proc/PID/stat`, counted from after the name.
    const STATE: usize = 0;
    const CPU: usize = 36;
    let stat = fs::read_to_string(thread.join("stat")).ok()?;
    let (name, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let (state, cpu) = (*fields.get(STATE)?, *fields.get(CPU)?);
    if !["R", "D"].contains(&state) {
        return None;
    }
    let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
    let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
    let switches: Vec<&str> = switches.filter_map(|line| line.split_whitespace().nth(1)).collect();
    let place = fs::read_to_string(thread.join("wchan")).unwrap_or_default();
    Some(format!("{name}) {state} cpu {cpu} switches {} {place}", switches.join("+")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_looks_runs() {
        let lines = busy_threads();
        let own = format!("{} (", thread_id());
        assert!(
            lines.iter().any(|line| line.starts_with(&own) && line.contains(") R cpu ")),
            "{lines:?}"
        );
    }

    #[test]
    fn of_the_kernels_account_queues_are_shown() {
        let account = "# tracer: nop\n init-105 [000] D.... 57.1: sched_ext_dump: CPU 0   : nr_run=14 flags=0x3\n \
                       init-105 [000] D.... 57.1: sched_ext_dump:   R rcu_preempt[15] *root -15104ms\n \
                       init-105 [000] D.... 57.1: sched_ext_dump:       sticky/holding_cpu=-1/-1 dsq_id=0x1\n \
                       init-105 [000] D.... 57.1: sched_ext_dump:     kthread+0xe4/0x120\n";
        let expected =
            ["CPU 0   : nr_run=14 flags=0x3", "R rcu_preempt[15] *root -15104ms dsq_id=0x1"];
        assert_eq!(waiting(account), expected);
    }

    #[test]
    fn of_the_report_of_the_cpus_functions_are_shown() {
        let report = [
            "sysrq: Show backtrace of all active CPUs",
            "NMI backtrace for cpu 1",
            "CPU: 1 UID: 0 PID: 102 Comm: init Not tainted 7.2.0 #1",
            "RIP: 0010:queued_spin_lock_slowpath+0x7c/0x2b0",
            "Call Trace:",
            " <TASK>",
            " raw_spin_rq_lock_nested+0x1e/0x30",
            " ? stale+0x1/0x2",
            " __schedule+0x10/0x20",
            "NMI backtrace for cpu 0 skipped: idling at pv_native_safe_halt+0xb/0x10",
        ];
        let expected = [
            "cpu 1 < 0010:queued_spin_lock_slowpath < raw_spin_rq_lock_nested < __schedule",
            "cpu 0 skipped: idling at pv_native_safe_halt+0xb/0x10",
        ];
        assert_eq!(described(&report.map(str::to_owned)), expected);
    }

    fn thread_id() -> String {
        let link = fs::read_link("/proc/thread-self").expect("a thread");
        link.file_name().expect("its number").to_string_lossy().into_owned()
    }
}
