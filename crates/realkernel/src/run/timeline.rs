//! The time between start and end of a run: timed changes, and checks of the scheduler and of forks.

use std::io::Write;

use super::RunError;
use super::in_charge::InCharge;
use crate::job::{Change, Charge, GlobalWrite, Job, Knob};
use crate::knobs::Knobs;
use crate::tasks::Executor;
use crate::tasks::clock::{now_ns, sleep_until};
use crate::tracefs::Recorder;

/// Interval of the checks whether the scheduler is still enabled, ns. Each check takes a CPU from a task, for 1 ms in
/// a guest whose clock counts instructions. The end of the run is checked in any case, so shorter runs are not
/// disturbed.
const SCHEDULER_LOOK_NS: u64 = 5_000_000_000;
/// Interval in which the runner reaps orphans and checks for failed forks, if tasks fork tasks, ns.
const ORPHANS_LOOK_NS: u64 = 1_000_000_000;
/// Interval of the programs that a scheduler's loader runs each second, ns.
const PROGRAMS_NS: u64 = 1_000_000_000;

/// A timed action of a run.
#[derive(Clone, Copy, Debug)]
enum Event<'j> {
    Write(&'j GlobalWrite),
    Knob(&'j Knob),
    /// Run the programs of each full second.
    Programs,
}

/// The parts of a run that are in use while the tasks run.
#[derive(Debug)]
pub(super) struct Running<'r> {
    pub(super) executor: &'r mut Executor,
    pub(super) in_charge: &'r mut InCharge,
    pub(super) recorder: Option<&'r Recorder>,
    pub(super) knobs: &'r mut Knobs,
    /// The tasks start at a whole multiple of this, ns.
    pub(super) tick_ns: u64,
}

/// Start and end of the run, and the changes in it.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) changes: Vec<Change>,
    /// Whether the scheduler was in charge at both ends; `None`: it is the kernel's own.
    pub(super) charge: Option<Charge>,
}

impl Running<'_> {
    /// Starts the tasks; returns after the job's duration, or when the scheduler is no longer enabled. If it is not any
    /// more before they start, they do not.
    pub(super) fn run(&mut self, job: &Job) -> Result<Ended, RunError> {
        if self.in_charge.exited().is_some() {
            let (now_ns, charge) = (now_ns(), Some(Charge { at_start: false, at_end: false }));
            return Ok(Ended { start_ns: now_ns, end_ns: now_ns, charge, ..Ended::default() });
        }
        let start_ns = self.executor.release(job.hold_ns, self.tick_ns);
        let mut ended = Ended { start_ns, ..Ended::default() };
        self.go_through(job, &mut ended)?;
        ended.end_ns = now_ns();
        let at_end = self.in_charge.exited().is_none();
        ended.charge = self.in_charge.may_exit().then_some(Charge { at_start: true, at_end });
        Ok(ended)
    }

    /// Makes the timed changes, up to the end of the job's duration or of the scheduler.
    fn go_through(&mut self, job: &Job, ended: &mut Ended) -> Result<(), RunError> {
        let start_ns = ended.start_ns;
        let events = events(job);
        for (at_ns, event) in events {
            if !self.sleep(start_ns + at_ns)? {
                return Ok(());
            }
            let label = match event {
                Event::Write(write) => {
                    self.in_charge.write(write)?;
                    write.label.clone()
                }
                Event::Knob(knob) => {
                    self.knobs.turn(knob)?;
                    format!("{}={}", knob.name, knob.value)
                }
                Event::Programs => {
                    self.in_charge.each_second()?;
                    continue;
                }
            };
            let time_ns = now_ns();
            self.mark_change(&label);
            ended.changes.push(Change { time_ns, label });
        }
        self.sleep(start_ns + job.duration_ns)?;
        Ok(())
    }

    /// Sleeps until a time, with periodic checks. `false`: the scheduler is no longer enabled.
    fn sleep(&mut self, until_ns: u64) -> Result<bool, RunError> {
        let look_ns = match (self.in_charge.may_exit(), self.executor.forks()) {
            (true, _) => SCHEDULER_LOOK_NS,
            (false, true) => ORPHANS_LOOK_NS,
            (false, false) => u64::MAX,
        };
        loop {
            let next_ns = now_ns().saturating_add(look_ns).min(until_ns);
            sleep_until(next_ns);
            if self.executor.forks() {
                self.executor.reap_ended();
                if let Some(error) = self.executor.failed_fork() {
                    return Err(error.into());
                }
            }
            if self.in_charge.exited().is_some() {
                return Ok(false);
            }
            if next_ns == until_ns {
                return Ok(true);
            }
        }
    }

    /// Writes a mark of a change to the recording.
    fn mark_change(&self, label: &str) {
        let marker = self.recorder.and_then(Recorder::marker);
        if let Some(Ok(marker)) = marker.map(|marker| marker.try_clone_to_owned()) {
            let mut marker = std::fs::File::from(marker);
            // The outcome contains the change in any case.
            let _ = marker.write_all(format!("fairground:param {label}").as_bytes());
        }
    }
}

/// The timed actions of a run, in order of time.
fn events(job: &Job) -> Vec<(u64, Event<'_>)> {
    let writes = job.scheduler.iter().flat_map(|scheduler| &scheduler.writes);
    let writes = writes.filter_map(|write| Some((write.at_ns?, Event::Write(write))));
    let knobs = job.knobs.iter().filter_map(|knob| Some((knob.at_ns?, Event::Knob(knob))));
    let has_programs = job.scheduler.iter().any(|s| !s.setup.each_second.is_empty());
    let seconds = if has_programs { job.duration_ns / PROGRAMS_NS } else { 0 };
    let programs = (1..=seconds).map(|second| (second * PROGRAMS_NS, Event::Programs));
    let all = writes.chain(knobs).chain(programs);
    let mut events: Vec<_> = all.filter(|(at_ns, _)| *at_ns < job.duration_ns).collect();
    events.sort_by_key(|(at_ns, _)| *at_ns);
    events
}
