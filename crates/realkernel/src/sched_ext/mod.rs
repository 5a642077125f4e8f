//! A scheduler on the running kernel: an object is opened, told its settings, loaded, attached, watched and detached.
//!
//! The link to the kernel is a file descriptor of this process and is never pinned: when the process ends, however it ends,
//! the kernel takes its own scheduler back.

mod constants;
mod error;
mod exit;
mod kconfig;
mod layout;
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
pub use opened::{VerifiedProgram, verify};
pub use state::{KernelState, attachable};

use crate::job::{GlobalWrite, SchedulerExit, SchedulerJob};
use crate::kernel_log::KernelLog;
use exit::exit_of;
use layout::Layout;
use sections::Section;

/// How long the kernel may take to give the CPUs back to its own scheduler. It waits for every CPU and for RCU.
pub const DETACH_DEADLINE: Duration = Duration::from_secs(20);
/// How often an object is loaded and attached when the kernel had no memory for one of the tasks at that instant.
pub const ATTACH_TRIES_MAX: u32 = 3;
/// How often the kernel is asked meanwhile.
const POLL: Duration = Duration::from_millis(2);

/// A scheduler in charge of the running kernel. Dropping it detaches it.
#[derive(Debug)]
pub struct Attached {
    // The link goes first: it needs the object.
    link: Option<Link>,
    sections: Vec<Section>,
    object: Object,
    layout: Layout,
    log: KernelLog,
    name: String,
    each_second: Vec<String>,
}

impl Attached {
    /// Loads an object and puts it in charge, as the job says. Writes without a time are applied before the object is loaded;
    /// the others are left to [`Attached::write`]. Arrays with a `topology:` tag get the running machine's topology. Where the kernel
    /// ends it for want of memory for one of the tasks, it is tried again ([`ATTACH_TRIES_MAX`]).
    ///
    /// # Errors
    /// If the kernel, the user's rights or the object do not allow it; the kernel's own scheduler is in charge then.
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
        setup::run_programs(&job.name, &object, &job.setup.before)?;
        // SAFETY: the sections live in `Attached` beside the object, which keeps the memory; nobody else gets them.
        let sections = unsafe { Section::all(&mut object) };
        let (name, each_second) = (job.name.clone(), job.setup.each_second.clone());
        let mut attached =
            Attached { link: None, sections, object, layout, log, name, each_second };
        attached.take_charge()?;
        Ok(attached)
    }

    fn take_charge(&mut self) -> Result<(), LoadError> {
        let scheduler = self.layout.scheduler().unwrap_or_default().to_owned();
        let (link, said) = verifier::listening(|| {
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
                let mut log = verifier::messages(&said);
                log.extend(state::log_lines(&mut self.log));
                return Err(failed(format!("{error:#}"), log));
            }
            None => return Err(failed("its callback table is not there".to_owned(), Vec::new())),
        }
        // A scheduler that fails in `init` is attached without an error, and ended before the call returns.
        if KernelState::read().is_some_and(|state| state.state == "enabled") {
            return Ok(());
        }
        self.link = None;
        let exit = Box::new(self.await_exit());
        let log = state::log_lines(&mut self.log);
        Err(LoadError::Ejected { name: self.name.clone(), exit, log })
    }

    /// Changes a variable of the scheduler while it is in charge.
    ///
    /// # Errors
    /// If the object has no such bytes, or they were frozen when it was loaded (`.rodata`).
    pub fn write(&mut self, write: &GlobalWrite) -> Result<(), LoadError> {
        if write.section.starts_with(".rodata") {
            return Err(LoadError::Frozen { label: write.label.clone() });
        }
        let section = self.sections.iter_mut().find(|section| section.is(&write.section));
        let done = usize::try_from(write.offset)
            .ok()
            .and_then(|offset| section?.write(offset, &write.bytes));
        done.ok_or_else(|| opened::no_place(&self.name, write))
    }

    /// Whether there is something to do at each full second.
    pub fn has_each_second(&self) -> bool {
        !self.each_second.is_empty()
    }

    /// What its loader does at each full second: runs programs of the object.
    ///
    /// # Errors
    /// If one of them fails.
    pub fn each_second(&self) -> Result<(), LoadError> {
        setup::run_programs(&self.name, &self.object, &self.each_second)
    }

    /// Bytes of a data section as they are now; `None` if the object has none there.
    pub fn read(&self, section: &str, offset: u64, length: u64) -> Option<Vec<u8>> {
        let found = self.sections.iter().find(|known| known.is(section))?;
        found.read(usize::try_from(offset).ok()?, usize::try_from(length).ok()?)
    }

    /// How it ended, if it is not in charge any more.
    pub fn exited(&mut self) -> Option<SchedulerExit> {
        if let Some(exit) = self.recorded_exit() {
            return Some(exit);
        }
        let gone = KernelState::read().is_none_or(|state| state.is_disabled());
        gone.then(|| self.await_exit())
    }

    /// The programs of the object, with how many instructions the verifier looked at for each.
    pub fn programs(&self) -> Vec<VerifiedProgram> {
        opened::verified(&self.object)
    }

    /// Takes it off, and waits until the kernel's own scheduler is in charge ([`DETACH_DEADLINE`]).
    pub fn detach(mut self) -> SchedulerExit {
        self.link = None;
        self.await_exit()
    }

    /// Waits until the kernel's own scheduler is in charge, and says how it came to it.
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

    /// What the object's own `exit` callback wrote down.
    fn recorded_exit(&self) -> Option<SchedulerExit> {
        let place = self.layout.exit.as_ref()?;
        let section = self.sections.iter().find(|section| section.is(&place.section))?;
        exit_of(place, section)
    }
}
