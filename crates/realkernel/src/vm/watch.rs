//! Watching a guest from its start to its end, each part with its deadline.

use std::time::{Duration, Instant};

use super::config::VmConfig;
use super::console::panic_reason;
use super::deadlines::Deadlines;
use super::error::VmError;
use super::machine::Machine;
use super::memory::SharedMemory;
use super::progress::Progress;
use crate::channel::{GuestPage, GuestState};

/// How often the guest's page is looked at. Looking does not disturb the guest: it is memory.
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
        // First whether it has ended, then what it told: it tells nothing more after its end.
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

/// What came of a machine that has ended.
fn judge(
    machine: &Machine,
    page: GuestPage,
    status: std::process::ExitStatus,
    phase: &Phase,
) -> Result<Watched, VmError> {
    let console = || machine.console.last_lines();
    if let Some(reason) = panic_reason(&machine.console.text()) {
        return Err(VmError::Panic { reason, console: console() });
    }
    match page.state {
        GuestState::Finished if status.success() => Ok(Watched {
            page,
            boot: phase.boot,
            run: phase.run,
            shutdown: phase.since.elapsed() + phase.collecting,
        }),
        GuestState::Failed => {
            Err(VmError::GuestFailed { message: page.message, console: console() })
        }
        _ if status.success() => Err(VmError::GuestFailed {
            message: format!("its first process gave up while {}", phase.name()),
            console: console(),
        }),
        _ => Err(VmError::QemuFailed { status: status.to_string(), console: console() }),
    }
}

/// The part of its life that the guest is in.
struct Phase {
    state: GuestState,
    since: Instant,
    deadlines: Deadlines,
    boot: Duration,
    run: Duration,
    collecting: Duration,
}

impl Phase {
    fn start(deadlines: Deadlines) -> Self {
        let zero = Duration::ZERO;
        let (state, since) = (GuestState::Booting, Instant::now());
        Self { state, since, deadlines, boot: zero, run: zero, collecting: zero }
    }

    fn enter(&mut self, state: GuestState) {
        let took = self.since.elapsed();
        match self.state {
            GuestState::Booting => self.boot += took,
            GuestState::Running => self.run += took,
            GuestState::Collecting | GuestState::Finished | GuestState::Failed => {
                self.collecting += took;
            }
        }
        self.state = state;
        self.since = Instant::now();
    }

    fn limit(&self) -> Duration {
        match self.state {
            GuestState::Booting => self.deadlines.boot,
            GuestState::Running => self.deadlines.run,
            GuestState::Collecting | GuestState::Finished | GuestState::Failed => {
                self.deadlines.shutdown
            }
        }
    }

    fn name(&self) -> &'static str {
        match self.state {
            GuestState::Booting => "booting",
            GuestState::Running => "running",
            GuestState::Collecting | GuestState::Finished | GuestState::Failed => "shutting down",
        }
    }
}
