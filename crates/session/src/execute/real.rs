//! One run on a real kernel, and its analysis.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use fairground_analysis::{Analysis, Options};
use fairground_machine::{Setting, Topology};
use fairground_realkernel::job::{Job, Knob, LoaderJob, RecordingJob, SchedulerJob, TRACE_FILE};
use fairground_realkernel::stream::Stream;
use fairground_scratch::Folder;
use fairground_trace::Trace;
use fairground_workload::{Workload, to_toml};

use super::kernel::RealTarget;
use crate::failure::Failure;
use crate::input::{LoaderProgram, OWN_SCHEDULER, SchedulerObject, global_writes, resize_writes};
use crate::origin::kernel_origin;
use crate::outcome::{Outcome, TargetReport};
use crate::simulate::Watch;
use crate::variables::Variables;

/// Why there is no recording where the spec asks for none.
const NOT_ASKED_FOR: &str = "none was asked for";
/// Why there is none of a load that did not start.
const NOT_STARTED: &str = "its scheduler was not in charge when the load was to begin";

#[derive(Debug)]
pub(super) struct RealPlan<'a> {
    pub(super) label: String,
    pub(super) on: RealTarget<'a>,
    /// The scheduler; `None`: the kernel's own.
    pub(super) object: Option<&'a SchedulerObject>,
    /// The scheduler's own loader, in place of an object.
    pub(super) loader: Option<&'a LoaderProgram>,
    /// Whether what that loader sets is read from the kernel.
    pub(super) capture: bool,
    /// Tunables of the scheduler beyond the parameter set: before the run, and during it.
    pub(super) settings: Vec<Setting>,
    /// Tunables of the kernel.
    pub(super) knobs: Vec<Knob>,
    /// The topology of the target, for words in settings.
    pub(super) topology: Topology,
    pub(super) workload: &'a Workload,
    /// Seed of the workload's random draws.
    pub(super) seed: u64,
    /// The length, ns.
    pub(super) duration_ns: u64,
    /// How much later the tasks start, ns.
    pub(super) hold_ns: u64,
    /// How to measure; the window is the run's.
    pub(super) options: Options,
}

impl RealPlan<'_> {
    pub(super) fn run(self, watch: &dyn Watch) -> Result<Outcome, Failure> {
        watch.name(&self.label);
        let (settings, settings_of_set) = match self.object {
            Some(object) => {
                let mut settings = object.settings.clone();
                settings.extend(self.settings.iter().cloned());
                (settings, object.settings.len())
            }
            None => (Vec::new(), 0),
        };
        let job = self.job(&settings)?;
        let folder = Folder::new().map_err(|e| Failure::io("<temporary folder>", &e))?;
        let object = self.object.map(|object| &*object.bytes);
        // A job that fails may lack what the scheduler's own loader would have set.
        let remedy = self.object.and_then(|object| object.left_at_zero(&self.settings));
        let asked = (&job, object);
        let mut job_outcome =
            self.on.carry_out(&self.label, asked, folder.path(), watch, remedy)?;
        if job_outcome.charge.is_some_and(|charge| !charge.at_start) {
            job_outcome.not_recorded = Some(NOT_STARTED.to_owned());
        } else if !self.on.spec.record {
            job_outcome.not_recorded = Some(NOT_ASKED_FOR.to_owned());
        }
        let recording = match job_outcome.not_recorded {
            None => read_recording(&folder.path().join(TRACE_FILE))?,
            Some(_) => Trace::new(job_outcome.kernel.cpus),
        };
        let Stream { mut trace, window } = Stream::of(&job_outcome, &recording);
        drop(recording);
        let object_and_settings = self.object.map(|object| (object, &*self.settings));
        trace.origin = kernel_origin(trace.origin, &job_outcome.kernel, object_and_settings);
        if let Some(loader) = self.loader {
            trace.origin.scheduler = Some(loader.label.clone());
        }
        let analysis =
            Analysis::of(&trace, &Options { window: Some(window), ..self.options.clone() });
        let instruction_ns = self.instruction_ns();
        Ok(Outcome {
            label: self.label,
            scheduler: match (self.object, self.loader) {
                (Some(object), _) => object.label.clone(),
                (None, Some(loader)) => loader.label.clone(),
                (None, None) => OWN_SCHEDULER.to_owned(),
            },
            sizes: self.object.map(|object| object.sizes),
            settings,
            settings_of_set,
            variables: Variables::default(),
            trace,
            partial_ns: None,
            numbers: Vec::new(),
            numbers_note: None,
            analysis,
            report: TargetReport::Real {
                target: self.on.target.to_string(),
                instruction_ns,
                job: Box::new(job_outcome),
            },
        })
    }

    /// What an instruction takes of the time that the run measures, where that is known.
    fn instruction_ns(&self) -> Option<u64> {
        self.on.counts_instructions().then_some(self.on.instruction_ns)
    }

    fn job(&self, settings: &[Setting]) -> Result<Job, Failure> {
        let scheduler = self.object.map(|object| {
            let mut writes = resize_writes(object);
            writes.extend(global_writes(&object.object, settings, &self.topology)?);
            Ok::<_, Failure>(SchedulerJob {
                name: object.label.clone(),
                writes,
                setup: object.setup.clone(),
            })
        });
        Ok(Job {
            workload: to_toml(self.workload),
            duration_ns: self.duration_ns,
            hold_ns: self.hold_ns,
            // There the clock jumps to the next timer while every CPU is idle.
            on_the_second: self.instruction_ns().is_some(),
            seed: self.seed,
            scheduler: scheduler.transpose()?,
            loader: self.loader.map(|loader| loader_job(loader, self.capture)),
            knobs: self.knobs.clone(),
            recording: self.on.spec.record.then(|| RecordingJob {
                kib_per_cpu: self.on.spec.buffer,
                stacks: self.on.spec.stacks,
                calls: self.on.spec.calls,
                // Without calls, a run stays the same to the instruction.
                details: self.on.spec.calls,
                ..RecordingJob::default()
            }),
        })
    }
}

/// A loader as its job describes it. Its libraries are found when it is copied.
fn loader_job(loader: &LoaderProgram, capture: bool) -> LoaderJob {
    LoaderJob {
        name: loader.label.clone(),
        program: loader.program.display().to_string(),
        arguments: loader.arguments.clone(),
        library_path: Vec::new(),
        capture,
    }
}

fn read_recording(path: &Path) -> Result<Trace, Failure> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| Failure::io(&name, &e))?;
    fairground_trace::read(&name, BufReader::new(file)).map_err(Failure::new)
}
