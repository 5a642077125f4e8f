//! From a plan for a real kernel to the target that carries it out.

use std::path::Path;
use std::time::Duration;

use fairground_realkernel::catalogue::{Cache, Kernel};
use fairground_realkernel::job::{Job, Outcome};
use fairground_realkernel::vm::{self, VmConfig, VmError, VmMode, run_in_vm};
use fairground_realkernel::{Limits, TargetError, on_host};
use fairground_session::{CHUNK_NS, Failure, Target, Watch};

use crate::args::VmModeArg;
use crate::interrupt;
use crate::progress::Progress;
use crate::real::RealPlan;

/// What a run on the host may take beyond its own length: forking, reading the recording, ending every task.
const HOST_MARGIN: Duration = Duration::from_secs(60);

/// The kernel that `--on vm` boots when none is named: the newest with sched_ext.
const KERNEL_DEFAULT: &str = "newest";

/// Runs a job where the plan says; the recording is in `folder` afterwards.
pub(crate) fn carry_out(
    plan: &RealPlan<'_>,
    job: &Job,
    object: Option<&[u8]>,
    folder: &Path,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    match plan.target {
        Target::Sim => Err(Failure::new("a simulated run is no job of a kernel")),
        Target::Host => {
            let deadline = Duration::from_nanos(plan.duration_ns) + HOST_MARGIN;
            let limits = Limits { deadline, stop: interrupt::descriptor() };
            on_host(job, object, folder, limits).map_err(|error| match error {
                TargetError::Job { .. } => of_job(plan, &error),
                error => Failure::new(error),
            })
        }
        Target::Vm(kernel) => {
            let config = vm_config(plan, kernel, progress)?;
            let mut tell = |at: vm::Progress| match at {
                vm::Progress::Booting => progress.name(&format!("{}: boots", plan.label)),
                vm::Progress::Running { .. } => progress.name(&plan.label),
                vm::Progress::Collecting => progress.name(&format!("{}: collects", plan.label)),
            };
            let outcome = run_in_vm(job, object, &config, folder, &mut tell);
            let outcome = outcome.map_err(|error| match error {
                VmError::GuestFailed { .. } => of_job(plan, &error),
                error => Failure::new(error),
            })?;
            progress.advance(plan.duration_ns.div_ceil(CHUNK_NS));
            Ok(outcome)
        }
    }
}

/// A job that failed where it ran; what its scheduler's loader would have set may be what is missing.
fn of_job(plan: &RealPlan<'_>, error: &dyn std::fmt::Display) -> Failure {
    let unset = plan.object.and_then(|object| object.left_at_zero(&plan.settings));
    Failure::new(error).help_if(unset)
}

fn vm_config(plan: &RealPlan<'_>, name: &str, progress: &Progress) -> Result<VmConfig, Failure> {
    let cache = Cache::open().map_err(Failure::new)?;
    let mut say = |text: &str| progress.say(text);
    let kernel = match (&plan.args.kernel, name) {
        (Some(path), "") => Kernel::from_path(path).map_err(Failure::new)?,
        (Some(_), name) => {
            return Err(Failure::new(format_args!(
                "--kernel names a file, and --on names the kernel `{name}`"
            ))
            .help("with --kernel, give `--on vm`"));
        }
        (None, "") => find_kernel(&cache, KERNEL_DEFAULT, plan.args.fetch, &mut say)?,
        (None, name) => find_kernel(&cache, name, plan.args.fetch, &mut say)?,
    };
    let qemu = match plan.args.fetch {
        true => cache.qemu(&mut say),
        false => cache.cached_qemu(),
    };
    let qemu = qemu.map_err(Failure::new)?;
    let mut config = VmConfig::new(qemu, kernel, plan.cpus);
    config.memory_mib = plan.args.memory;
    config.mode = match plan.args.vm_mode {
        VmModeArg::Deterministic => VmMode::Deterministic,
        VmModeArg::Fast => VmMode::Fast,
    };
    config.append = plan.args.append.clone();
    config.stop = Some(interrupt::flag());
    Ok(config)
}

fn find_kernel(
    cache: &Cache,
    name: &str,
    fetch: bool,
    say: &mut dyn FnMut(&str),
) -> Result<Kernel, Failure> {
    let kernel = if fetch { cache.kernel(name, say) } else { cache.cached_kernel(name) };
    kernel.map_err(Failure::new)
}
