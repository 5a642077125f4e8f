//! The real kernel on which a run's job is carried out: this machine's, or one in a virtual machine.

use std::path::Path;
use std::time::Duration;

use fairground_realkernel::job::{Job, Outcome};
use fairground_realkernel::packages::{Cache, Kernel};
use fairground_realkernel::vm::{self, VmConfig, VmError, run_in_vm};
use fairground_realkernel::{Limits, TargetError, on_host, on_host_by};

use crate::failure::Failure;
use crate::input::Target;
use crate::simulate::{CHUNK_NS, Watch};
use crate::spec::{TargetSpec, VmModeChoice};

/// What a run on the host may take beyond its own length: forking, reading the recording, ending every task.
const HOST_MARGIN: Duration = Duration::from_secs(60);

/// The kernel that `--on vm` boots when none is named: the newest with sched_ext.
const KERNEL_DEFAULT: &str = "newest";

/// A real kernel, and how it is set up.
#[derive(Clone, Copy, Debug)]
pub(super) struct RealTarget<'a> {
    pub(super) target: &'a Target,
    /// The options of the virtual machine and of the recording.
    pub(super) spec: &'a TargetSpec,
    /// Whether a kernel that is not in the cache is fetched.
    pub(super) fetch: bool,
    /// CPUs of a virtual machine.
    pub(super) cpus: u32,
    /// What an instruction takes in a virtual machine whose clock counts them, ns.
    pub(super) instruction_ns: u64,
    /// The program of the virtual machine, and of the runner on the host; `None`: the running one.
    pub(super) program: Option<&'a Path>,
}

impl RealTarget<'_> {
    /// Whether its time counts instructions.
    pub(super) fn counts_instructions(&self) -> bool {
        matches!(self.target, Target::Vm(_)) && self.spec.vm_mode == VmModeChoice::Deterministic
    }

    /// Carries out a job; the recording is in `folder` afterwards.
    ///
    /// # Errors
    /// If the target cannot be set up, or the job fails there: then with `remedy`.
    pub(super) fn carry_out(
        &self,
        label: &str,
        (job, object): (&Job, Option<&[u8]>),
        folder: &Path,
        watch: &dyn Watch,
        remedy: Option<String>,
    ) -> Result<Outcome, Failure> {
        match self.target {
            Target::Sim => Err(Failure::new("a simulated run is no job of a kernel")),
            Target::Host => {
                let deadline = Duration::from_nanos(job.duration_ns) + HOST_MARGIN;
                let goes_on = &|| watch.goes_on();
                let limits = Limits { deadline, stop: watch.stop_descriptor(), goes_on };
                let outcome = match self.program {
                    Some(program) => on_host_by(program, job, object, folder, limits),
                    None => on_host(job, object, folder, limits),
                };
                outcome.map_err(|error| match error {
                    TargetError::Job { .. } => Failure::new(error).help_if(remedy),
                    error => Failure::new(error),
                })
            }
            Target::Vm(kernel) => {
                let config = self.vm_config(kernel, watch)?;
                let mut tell = |changed: Option<vm::Progress>| {
                    match changed {
                        Some(vm::Progress::Booting) => watch.name(&format!("{label}: boots")),
                        Some(vm::Progress::Running) => watch.name(label),
                        Some(vm::Progress::Collecting) => {
                            watch.name(&format!("{label}: collects"));
                        }
                        None => {}
                    }
                    watch.goes_on()
                };
                let outcome = run_in_vm(job, object, &config, folder, &mut tell);
                let outcome = outcome.map_err(|error| match error {
                    VmError::GuestFailed { .. } => Failure::new(error).help_if(remedy),
                    error => Failure::new(error),
                })?;
                watch.advance(job.duration_ns.div_ceil(CHUNK_NS));
                Ok(outcome)
            }
        }
    }

    fn vm_config(&self, name: &str, watch: &dyn Watch) -> Result<VmConfig, Failure> {
        let cache = Cache::open().map_err(Failure::new)?;
        let mut say = |text: &str| watch.say(text);
        let name_or_default = if name.is_empty() { KERNEL_DEFAULT } else { name };
        let kernel = match &self.spec.kernel {
            Some(_) if !name.is_empty() => {
                return Err(Failure::new(format_args!(
                    "--kernel names a file, and --on names the kernel `{name}`"
                ))
                .help("with --kernel, give `--on vm`"));
            }
            Some(path) => Kernel::from_path(path),
            None if self.fetch => cache.kernel(name_or_default, &mut say),
            None => cache.cached_kernel(name_or_default),
        };
        let kernel = kernel.map_err(Failure::new)?;
        let qemu = if self.fetch { cache.qemu(&mut say) } else { cache.cached_qemu() };
        let qemu = qemu.map_err(Failure::new)?;
        let mut config = VmConfig::new(qemu, kernel, self.cpus);
        config.memory_mib = self.spec.memory;
        config.mode = self.spec.vm_mode.into();
        config.instruction_ns = self.instruction_ns;
        config.append = self.spec.append.clone();
        config.program = self.program.map(Path::to_owned);
        Ok(config)
    }
}
