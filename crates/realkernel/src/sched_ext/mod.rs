//! A sched_ext scheduler on the running kernel: opens an object, applies settings, loads, attaches, watches and
//! detaches it.
//!
//! The link to the kernel is a file descriptor of this process and is never pinned: when the process ends, the kernel
//! disables the scheduler.

mod captured;
mod constants;
mod error;
mod exit;
mod kconfig;
mod layout;
mod loader;
mod opened;
mod sections;
mod setup;
mod state;
mod topology;
mod verifier;

use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore, MapType, Object};

pub use error::{Cause, LoadError};
pub use exit::{ExitKind, asks_for_restart};
pub(crate) use loader::Loader;
pub use loader::{LOADER_START_MAX, LOADER_STOP_MAX};
pub use opened::{VerifiedProgram, verify};
pub use state::{KernelState, attachable};
pub use topology::units_of_host;

use crate::job::{GlobalWrite, ProgramJob, SchedulerExit, SchedulerJob};
use crate::kernel_log::KernelLog;
use exit::exit_of;
use layout::Layout;
use sections::Section;
use setup::Saved;
pub(crate) use verifier::NO_KCONFIG;

/// Maximum time for the kernel to disable a scheduler. It waits for every CPU and for RCU.
pub const DETACH_DEADLINE: Duration = Duration::from_secs(20);
/// Maximum attempts to attach a scheduler when `init_task` fails for lack of memory.
pub const ATTACH_TRIES_MAX: u32 = 3;
/// Polling interval of the kernel's state.
const POLL: Duration = Duration::from_millis(2);

/// An attached scheduler. Dropping it detaches it.
#[derive(Debug)]
pub struct Attached {
    // Dropped first: the link requires the object.
    link: Option<Link>,
    /// The programs that are called at events of the kernel.
    programs: Vec<Link>,
    sections: Vec<Section>,
    object: Object,
    layout: Layout,
    log: KernelLog,
    name: String,
    each_second: Vec<ProgramJob>,
    saved: Saved,
    /// The kernel's state once it was enabled.
    enabled: KernelState,
}

impl Attached {
    /// Loads an object and attaches it. Applies the job's writes without a time before it loads the object; the
    /// others are for [`Attached::write`]. Fills arrays with a `topology:` tag with the running machine's topology.
    /// Retries up to [`ATTACH_TRIES_MAX`] times if `init_task` fails for lack of memory.
    ///
    /// # Errors
    /// The kernel, the user's rights or the object do not permit it. No sched_ext scheduler is enabled then.
    pub fn attach(job: &SchedulerJob, object: &[u8]) -> Result<Attached, LoadError> {
        for _ in 1..ATTACH_TRIES_MAX {
            match Self::attach_once(job, object) {
                Err(LoadError::Ejected { exit, .. }) if exit::lacked_memory(&exit) => {}
                other => return other,
            }
        }
        Self::attach_once(job, object)
    }

    fn attach_once(job: &SchedulerJob, object: &[u8]) -> Result<Attached, LoadError> {
        state::check(&job.name)?;
        let log = KernelLog::from_now_on();
        let (mut object, layout) = opened::load(job, object)?;
        let mut saved = Saved::new();
        setup::run_programs(&job.name, &object, &job.setup.before, &mut saved)?;
        let programs = setup::attach_programs(&job.name, &mut object)?;
        // SAFETY: the sections live in `Attached` beside the object, which keeps the memory, and are not shared.
        let sections = unsafe { Section::all(&mut object) };
        let (name, each_second) = (job.name.clone(), job.setup.each_second.clone());
        let mut attached = Attached {
            link: None,
            programs,
            sections,
            object,
            layout,
            log,
            name,
            each_second,
            saved,
            enabled: KernelState::default(),
        };
        attached.enable()?;
        setup::run_programs(&job.name, &attached.object, &job.setup.after, &mut attached.saved)?;
        Ok(attached)
    }

    fn enable(&mut self) -> Result<(), LoadError> {
        let scheduler = self.layout.scheduler().unwrap_or_default().to_owned();
        let (link, warnings) = verifier::with_warnings(|| {
            let mut maps = self.object.maps_mut();
            let table = maps.find(|map| {
                map.map_type() == MapType::StructOps && map.name().to_string_lossy() == *scheduler
            });
            table.map(|mut table| table.attach_struct_ops())
        });
        let failed = |error: String, log: Vec<String>| LoadError::Attach {
            name: self.name.clone(),
            error,
            log,
        };
        match link {
            Some(Ok(link)) => self.link = Some(link),
            Some(Err(error)) => {
                let mut log = verifier::messages(&warnings);
                log.extend(state::log_lines(&mut self.log));
                return Err(failed(format!("{error:#}"), log));
            }
            None => {
                return Err(failed(
                    "the object has no struct sched_ext_ops".to_owned(),
                    Vec::new(),
                ));
            }
        }
        // If `init` fails, attaching succeeds, and the kernel disables the scheduler before the call returns.
        if let Some(state) = KernelState::read().filter(|state| state.state == "enabled") {
            self.enabled = state;
            return Ok(());
        }
        self.link = None;
        let exit = Box::new(self.await_exit());
        let log = state::log_lines(&mut self.log);
        Err(LoadError::Ejected { name: self.name.clone(), exit, log })
    }

    /// Writes a variable of the attached scheduler.
    ///
    /// # Errors
    /// The object has no such bytes, or they are read-only (`.rodata`).
    pub fn write(&mut self, write: &GlobalWrite) -> Result<(), LoadError> {
        if write.section.starts_with(".rodata") {
            return Err(LoadError::Frozen { label: write.label.clone() });
        }
        let section = self.sections.iter_mut().find(|section| section.is(&write.section));
        let Some(section) = section else {
            return Err(opened::not_in_object(&self.name, write, None));
        };
        for patch in &write.patches {
            let done = usize::try_from(patch.offset).ok().and_then(|offset| {
                let old = section.read(offset, patch.bytes.len())?;
                section.write(offset, &patch.over(&old))
            });
            done.ok_or_else(|| opened::not_in_object(&self.name, write, Some(patch)))?;
        }
        Ok(())
    }

    /// Whether there are programs to run at each full second.
    pub fn has_each_second(&self) -> bool {
        !self.each_second.is_empty()
    }

    /// Runs the programs that the scheduler's loader runs at each full second.
    ///
    /// # Errors
    /// One of them fails.
    pub fn each_second(&mut self) -> Result<(), LoadError> {
        setup::run_programs(&self.name, &self.object, &self.each_second, &mut self.saved)
    }

    /// The current bytes of a data section; `None` if the object has no such bytes.
    pub fn read(&self, section: &str, offset: u64, length: u64) -> Option<Vec<u8>> {
        let found = self.sections.iter().find(|known| known.is(section))?;
        found.read(usize::try_from(offset).ok()?, usize::try_from(length).ok()?)
    }

    /// How the scheduler was disabled, if it is no longer enabled.
    pub fn exited(&mut self) -> Option<SchedulerExit> {
        if let Some(exit) = self.recorded_exit() {
            return Some(exit);
        }
        let is_here = KernelState::read().is_some_and(|state| state.is_still(&self.enabled));
        (!is_here).then(|| self.await_exit())
    }

    /// The programs of the object, with the verifier's statistics.
    pub fn programs(&self) -> Vec<VerifiedProgram> {
        opened::verified(&self.object)
    }

    /// Detaches it, and waits until the kernel has disabled it (at most [`DETACH_DEADLINE`]).
    pub fn detach(mut self) -> SchedulerExit {
        self.link = None;
        let exit = self.await_exit();
        self.programs.clear();
        exit
    }

    /// Waits until the kernel has disabled the scheduler; returns how it was disabled.
    fn await_exit(&mut self) -> SchedulerExit {
        let start = Instant::now();
        while start.elapsed() < DETACH_DEADLINE {
            match KernelState::read() {
                Some(state) if !state.is_disabled() => thread::sleep(POLL),
                _ => break,
            }
        }
        let late = start.elapsed() >= DETACH_DEADLINE;
        let recorded = self.recorded_exit();
        recorded.unwrap_or_else(|| exit::from_log(&state::log_lines(&mut self.log), late))
    }

    /// The exit record that the object's `exit` callback wrote.
    fn recorded_exit(&self) -> Option<SchedulerExit> {
        let record = self.layout.exit.as_ref()?;
        let section = self.sections.iter().find(|section| section.is(&record.section))?;
        exit_of(record, section)
    }
}
