//! Watches a guest from its start to its end, with a deadline for each phase.

use std::time::{Duration, Instant};

use super::config::VmConfig;
use super::console::panic_reason;
use super::deadlines::Deadlines;
use super::error::VmError;
use super::machine::Machine;
use super::memory::SharedMemory;
use super::progress::Progress;
use crate::channel::{GuestPage, GuestState};

/// Polling interval of the guest's page. Reading the memory does not disturb the guest.
const POLL: Duration = Duration::from_millis(10);

/// A guest that finished.
pub(super) struct Watched {
    pub(super) page: GuestPage,
    pub(super) boot: Duration,
    pub(super) run: Duration,
    pub(super) shutdown: Duration,
}

/// Waits for the guest to finish and for QEMU to end.
pub(super) fn to_the_end(
    machine: &mut Machine,
    memory: &SharedMemory,
    deadlines: Deadlines,
    duration_ns: u64,
    config: &VmConfig,
    progress: &mut dyn FnMut(Progress),
) -> Result<Watched, VmError> {
    let mut phase = Phase::start(deadlines);
    progress(Progress::Booting);
    loop {
        if config.is_stopped() {
            machine.kill();
            return Err(VmError::Interrupted);
        }
        // Check for the end first: the page read after it is the last one.
        let ended = machine.ended()?;
        let page = memory.guest().map_err(|e| VmError::Channel(format!("its page: {e}")))?;
        if phase.state != page.state {
            match page.state {
                GuestState::Running => {
                    progress(Progress::Running { done_ns: None, of_ns: duration_ns })
                }
                GuestState::Collecting => progress(Progress::Collecting),
                _ => {}
            }
            phase.enter(page.state);
        }
        if let Some(status) = ended {
            return judge(machine, page, status, &phase);
        }
        if phase.since.elapsed() > phase.limit() {
            machine.kill();
            return Err(VmError::Hang {
                phase: phase.name().to_owned(),
                after: phase.limit(),
                console: machine.console.last_lines(),
            });
        }
        std::thread::sleep(POLL);
    }
}

/// The result of a machine that has ended.
fn judge(
    machine: &Machine,
    page: GuestPage,
    status: std::process::ExitStatus,
    phase: &Phase,
) -> Result<Watched, VmError> {
    let console = || machine.console.last_lines();
    if let Some(reason) = panic_reason(&machine.console.text()) {
        return Err(VmError::Panic { reason, console: machine.console.fault_lines() });
    }
    match page.state {
        GuestState::Finished if status.success() => {
            let [boot, run, ending] = phase.took;
            Ok(Watched { page, boot, run, shutdown: phase.since.elapsed() + ending })
        }
        GuestState::Failed => {
            Err(VmError::GuestFailed { message: page.message, console: console() })
        }
        _ if status.success() => Err(VmError::GuestFailed {
            message: format!("its first process ended while {}", phase.name()),
            console: console(),
        }),
        _ => Err(VmError::QemuFailed { status: status.to_string(), console: console() }),
    }
}

/// The current phase of the guest.
struct Phase {
    state: GuestState,
    since: Instant,
    limits: [Duration; 3],
    /// Booting, running, ending.
    took: [Duration; 3],
}

impl Phase {
    fn start(Deadlines { boot, run, shutdown }: Deadlines) -> Self {
        let (state, since) = (GuestState::Booting, Instant::now());
        Self { state, since, limits: [boot, run, shutdown], took: [Duration::ZERO; 3] }
    }

    fn number(&self) -> usize {
        match self.state {
            GuestState::Booting => 0,
            GuestState::Running => 1,
            GuestState::Collecting | GuestState::Finished | GuestState::Failed => 2,
        }
    }

    fn enter(&mut self, state: GuestState) {
        self.took[self.number()] += self.since.elapsed();
        self.state = state;
        self.since = Instant::now();
    }

    fn limit(&self) -> Duration {
        self.limits[self.number()]
    }

    fn name(&self) -> &'static str {
        ["booting", "running", "shutting down"][self.number()]
    }
}
