//! The steps for each scheduler, in the guest.

use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fairground_policies::Policy;
use fairground_realkernel::job::{SchedulerExit, SchedulerJob};
use fairground_realkernel::kernel_log::KernelLog;
use fairground_realkernel::sched_ext::{Attached, ExitKind, KernelState};

use super::kernel_log::complaints;
use super::load::Load;
use super::stuck::Watchdog;
use super::{PLAN_FILE, Plan, REPORT_FILE, Report, SchedulerReport};

/// Interval of the checks of the scheduler.
const WATCH: Duration = Duration::from_millis(50);
/// How long the load goes on after a CPU has gone off or come on line: longer than a search for work takes to come.
const AFTER_HOTPLUG: Duration = Duration::from_secs(1);
/// Limit of the duration of a load that begins again because a task made no progress.
const LOAD_MAX: Duration = Duration::from_secs(64);
/// Duration of a load that is ended explicitly.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);
/// `SCX_EXIT_UNREG`: detached by its user.
const UNREGISTERED: u64 = 64;

/// Runs the plan in the current folder, and writes the report there.
///
/// # Errors
/// If there is no plan, or the report cannot be written. Problems of a scheduler are in the report.
pub fn guest() -> Result<(), Box<dyn Error>> {
    let plan: Plan = serde_json::from_slice(&fs::read(PLAN_FILE)?)?;
    let mut report = Report {
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        schedulers: Vec::new(),
    };
    become_real_time()?;
    let watchdog = Watchdog::start();
    for policy in fairground_policies::all() {
        if !plan.schedulers.is_empty() && !plan.schedulers.iter().any(|name| name == policy.name) {
            continue;
        }
        let mut soak = Soak::new(policy, &plan, &watchdog);
        let (start, mut log) = (Instant::now(), KernelLog::from_now_on());
        if let Err(problem) = soak.run() {
            soak.report.problems.push(problem);
        }
        soak.report.total_ms = start.elapsed().as_millis() as u64;
        soak.report.complaints = complaints(&mut log);
        eprintln!("{}", serde_json::to_string(&soak.report)?);
        report.schedulers.push(soak.report);
    }
    fs::write(REPORT_FILE, serde_json::to_vec(&report)?)?;
    Ok(())
}

struct Soak<'a> {
    policy: &'a Policy,
    plan: &'a Plan,
    watchdog: &'a Watchdog,
    report: SchedulerReport,
}

impl Soak<'_> {
    fn new<'a>(policy: &'a Policy, plan: &'a Plan, watchdog: &'a Watchdog) -> Soak<'a> {
        let report = SchedulerReport { name: policy.name.to_owned(), ..SchedulerReport::default() };
        Soak { policy, plan, watchdog, report }
    }

    fn run(&mut self) -> Result<(), String> {
        let start = Instant::now();
        let mut attached = self.attach()?;
        self.say("attached");
        self.report.attach_ms = start.elapsed().as_millis() as u64;
        self.report.programs =
            attached.programs().into_iter().map(|p| (p.name, p.verified_insns)).collect();
        let half = Duration::from_secs(self.plan.load_s) / 2;
        self.under_load(&mut attached, half)?;
        let mut load = self.start_load(FOR_EVER)?;
        for _ in 0..self.plan.hotplugs {
            self.hotplug(&mut attached)?;
        }
        for _ in 0..self.plan.reloads {
            attached = self.reload(attached, &mut load)?;
        }
        drop(load);
        self.under_load(&mut attached, half)?;
        let exit = attached.detach();
        self.check_taken_off(&exit);
        self.report.exit = Some(exit);
        Ok(())
    }

    /// A line on the console: the last one if the machine hangs.
    fn say(&self, what: &str) {
        eprintln!("{}: {what}", self.report.name);
        self.watchdog.step();
    }

    fn attach(&self) -> Result<Attached, String> {
        let job = SchedulerJob { name: self.policy.name.to_owned(), ..SchedulerJob::default() };
        Attached::attach(&job, self.policy.object).map_err(|e| e.to_string())
    }

    /// Runs the load until each of its tasks has made progress: for the given time, or for twice as long, and so on.
    /// A machine on a busy host has little CPU time in a second.
    fn under_load(&mut self, attached: &mut Attached, length: Duration) -> Result<(), String> {
        let mut length = length;
        loop {
            let idle = self.one_load(attached, length)?;
            if idle.is_empty() {
                break;
            }
            length *= 2;
            if length > LOAD_MAX {
                let problem = |name: &String| format!("{name} made no progress");
                self.report.problems.extend(idle.iter().map(problem));
                break;
            }
        }
        self.say("through a load");
        Ok(())
    }

    /// Runs the load to its end. Returns the tasks that made no progress.
    fn one_load(
        &mut self,
        attached: &mut Attached,
        length: Duration,
    ) -> Result<Vec<String>, String> {
        let mut load = self.start_load(length)?;
        while load.is_running(&mut self.report) {
            thread::sleep(WATCH);
            self.watchdog.step();
            if let Some(exit) = attached.exited() {
                return Err(format!("it left under load: {exit:?}"));
            }
        }
        Ok(load.finish(&mut self.report))
    }

    fn start_load(&self, length: Duration) -> Result<Load, String> {
        Load::start(Path::new("/tmp/load"), length, &self.plan.programs)
            .map_err(|e| format!("the load: {e}"))
    }

    /// Takes the last CPU off line and back, under load. The scheduler stays.
    fn hotplug(&mut self, attached: &mut Attached) -> Result<(), String> {
        let last = (1..1024).take_while(|cpu| Path::new(&online(*cpu)).exists()).last();
        let last = last.ok_or("this machine has one CPU")?;
        for state in ["0", "1"] {
            self.say(&format!("CPU {last} to {state}"));
            fs::write(online(last), state).map_err(|e| format!("CPU {last} to {state}: {e}"))?;
            thread::sleep(AFTER_HOTPLUG);
            if let Some(exit) = attached.exited() {
                return Err(format!("CPU {last} to {state}: it left: {exit:?}"));
            }
        }
        self.report.hotplugs += 1;
        Ok(())
    }

    /// Detaches and attaches it, under a continuous load.
    fn reload(&mut self, attached: Attached, load: &mut Load) -> Result<Attached, String> {
        let exit = attached.detach();
        self.check_taken_off(&exit);
        let start = Instant::now();
        let attached = self.attach()?;
        let took = start.elapsed().as_millis() as u64;
        self.report.reload_total_ms += took;
        self.report.reload_max_ms = self.report.reload_max_ms.max(took);
        self.report.reloads += 1;
        self.say(&format!("attached again, {} times", self.report.reloads));
        thread::sleep(WATCH);
        if !load.is_running(&mut self.report) {
            return Err("the load ended while it was attached anew".to_owned());
        }
        Ok(attached)
    }

    /// Detached by its user without an error, with the kernel's own scheduler active.
    fn check_taken_off(&mut self, exit: &SchedulerExit) {
        let kind = exit.kind == Some(UNREGISTERED)
            && exit.kind.and_then(ExitKind::of) == Some(ExitKind::UnregisteredByUser);
        if !kind || exit.code != Some(0) || !exit.message.is_empty() {
            self.report.problems.push(format!("taken off, it says {exit:?}"));
        }
        if !KernelState::read().is_some_and(|state| state.is_disabled()) {
            self.report.problems.push("the kernel has not taken its own scheduler back".to_owned());
        }
    }
}

/// Runs with real-time priority, before all tasks of a sched_ext scheduler: the load has more tasks than CPUs, and as
/// one of them this program would take ten times as long for the verifier's work. Its children are ordinary tasks.
pub(super) fn become_real_time() -> io::Result<()> {
    // SAFETY: plain numbers; those that are not 0 are set below.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the call reads the parameters, which are alive.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn online(cpu: u32) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/online")
}
