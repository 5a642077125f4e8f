//! Watches a guest from its start to its end, with a deadline for each phase.

use std::time::{Duration, Instant};

use super::console::panic_reason;
use super::deadlines::Deadlines;
use super::error::VmError;
use super::machine::Machine;
use super::memory::SharedMemory;
use super::progress::{Progress, Watch};
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
    watch: &mut Watch<'_>,
) -> Result<Watched, VmError> {
    let mut phase = Phase::start(deadlines);
    let mut changed = Some(Progress::Booting);
    loop {
        if !watch(changed.take()) {
            machine.kill();
            return Err(VmError::Interrupted);
        }
        // Check for the end first: the page read after it is the last one.
        let ended = machine.ended()?;
        let page = memory.guest().map_err(|e| VmError::Channel(format!("its page: {e}")))?;
        if phase.state != page.state {
            changed = match page.state {
                GuestState::Running => Some(Progress::Running),
                GuestState::Collecting => Some(Progress::Collecting),
                _ => None,
            };
            phase.enter(page.state, machine.waited());
        }
        if let Some(status) = ended {
            return judge(machine, page, status, &phase);
        }
        if phase.is_over(|| machine.waited()) {
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
    /// How long QEMU had waited for a CPU of the host before.
    waited: Duration,
    limits: [Duration; 3],
    /// Booting, running, ending.
    took: [Duration; 3],
}

impl Phase {
    fn start(Deadlines { boot, run, shutdown }: Deadlines) -> Self {
        let (state, since) = (GuestState::Booting, Instant::now());
        let (waited, took) = (Duration::ZERO, [Duration::ZERO; 3]);
        Self { state, since, waited, limits: [boot, run, shutdown], took }
    }

    fn number(&self) -> usize {
        match self.state {
            GuestState::Booting => 0,
            GuestState::Running => 1,
            GuestState::Collecting | GuestState::Finished | GuestState::Failed => 2,
        }
    }

    fn enter(&mut self, state: GuestState, waited: Duration) {
        self.took[self.number()] += self.since.elapsed();
        (self.state, self.waited) = (state, waited);
        self.since = Instant::now();
    }

    /// Whether the phase takes longer than its limit, without the time in which QEMU waited for a CPU of the host: a
    /// busy host makes no guest hang.
    fn is_over(&self, waited: impl FnOnce() -> Duration) -> bool {
        let took = self.since.elapsed();
        took > self.limit()
            && took.saturating_sub(waited().saturating_sub(self.waited)) > self.limit()
    }

    fn limit(&self) -> Duration {
        self.limits[self.number()]
    }

    fn name(&self) -> &'static str {
        ["booting", "running", "shutting down"][self.number()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_cpu_of_the_host_is_no_hang() {
        let second = Duration::from_secs(1);
        let mut phase =
            Phase::start(Deadlines { boot: second, run: 10 * second, shutdown: second });
        phase.since = Instant::now().checked_sub(90 * second).expect("the host has run longer");
        assert!(phase.is_over(|| 88 * second));
        assert!(!phase.is_over(|| 90 * second));
        phase.enter(GuestState::Running, 90 * second);
        phase.since = Instant::now().checked_sub(15 * second).expect("the host has run longer");
        assert!(phase.is_over(|| 94 * second), "11 s, of which it waited in this phase");
        assert!(!phase.is_over(|| 96 * second));
    }
}
