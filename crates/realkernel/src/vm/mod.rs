//! The target `vm`: a Debian kernel under QEMU, with this program as its first process.
//!
//! The guest depends only on the kernel, an archive with the program (`initramfs`) and the shared memory with the job
//! (`crate::channel`). In the deterministic mode, the same job therefore gives the same bytes. A run creates no named
//! file on the host until its results are complete.

mod conductor;
mod config;
mod console;
mod cpio;
mod deadlines;
mod elf;
mod error;
mod initramfs;
mod kvm;
mod machine;
mod memory;
mod mode;
mod progress;
mod qemu_command;
mod watch;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use config::VmConfig;
pub use deadlines::Deadlines;
pub use error::VmError;
pub use initramfs::GuestFile;
pub use kvm::{NoKvm, kvm_opens, kvm_works};
pub use mode::VmMode;
pub use progress::{Progress, Watch};

use fairground_scratch::Folder;

use crate::channel::{
    COMMAND_FILE, CommandFile, GUEST_FOLDER, GuestPage, KERNEL_CONFIG, LOADER_FOLDER,
};
use crate::child::nameless_file;
use crate::files::{TEXT_BYTES_MAX, read_file};
use crate::job::{
    ERROR_FILE, JOB_FILE, Job, LoaderJob, OUTCOME_FILE, Outcome, SCHEDULER_FILE, TRACE_FILE,
};
use crate::packages::Kernel;
use crate::run::RUNNER_COMMAND;
use crate::sched_ext::{LOADER_START_MAX, LOADER_STOP_MAX, NO_KCONFIG};
use machine::Machine;
use memory::{SharedMemory, path_of};

/// A command for a guest: the program with other arguments.
#[derive(Clone, Debug, Default)]
pub struct GuestCommand {
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// Its duration, ns of the guest's clock, from which the deadline is computed.
    pub duration_ns: u64,
    /// Files for its working directory ([`GUEST_FOLDER`]). Files that it adds there are copied back.
    pub files: Vec<(String, Vec<u8>)>,
    /// Files for other folders of the guest.
    pub packed: Vec<GuestFile>,
    /// Maximum bytes of the results.
    pub room: u64,
}

/// The result of a guest's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestAnswer {
    /// Its exit code; −n if it was killed by signal n.
    pub exit_code: i32,
    /// The names of its files, now in the host's folder.
    pub files: Vec<String>,
    /// The last part of the console, which includes the command's standard error.
    pub console: String,
    /// From the start of QEMU to the command's start, wall time.
    pub boot: Duration,
    /// Duration of the command, wall time.
    pub run: Duration,
    /// For copying the results and ending the machine, wall time.
    pub shutdown: Duration,
}

/// Runs `job` in a virtual machine; writes the recording and the outcome to `folder`. The program of the job's loader
/// is one of this machine; it is copied to the guest with its libraries.
///
/// # Errors
///
/// See [`VmError`]: a failure of the guest, with the last lines of its console, or of the host.
pub fn run_in_vm(
    job: &Job,
    object: Option<&[u8]>,
    config: &VmConfig,
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<Outcome, VmError> {
    let mut job = job.clone();
    let mut packed = Vec::new();
    let mut duration_ns = job.duration_ns;
    if let Some(loader) = &mut job.loader {
        packed = pack_loader(loader)?;
        let most = u64::try_from((LOADER_START_MAX + LOADER_STOP_MAX).as_nanos());
        duration_ns = duration_ns.saturating_add(most.unwrap_or(u64::MAX));
    }
    let text = serde_json::to_vec(&job).expect("a job has no map whose keys are no text");
    let mut files = vec![(JOB_FILE.to_owned(), text)];
    files.extend(object.map(|bytes| (SCHEDULER_FILE.to_owned(), bytes.to_vec())));
    let command = GuestCommand {
        arguments: vec![RUNNER_COMMAND.to_owned(), GUEST_FOLDER.to_owned()],
        duration_ns,
        files,
        packed,
        room: room_for(&job, config.cpus),
    };
    let scratch = Folder::within(folder, ".vm-")
        .map_err(VmError::io(format!("make a folder in {}", folder.display())))?;
    let answer = run_command(&command, config, scratch.path(), watch)?;
    let Ok(bytes) = fs::read(scratch.path().join(OUTCOME_FILE)) else {
        let (message, console) = match fs::read_to_string(scratch.path().join(ERROR_FILE)) {
            Ok(message) => (message, Vec::new()),
            Err(_) => (
                format!("the runner wrote no outcome (exit code {})", answer.exit_code),
                answer.console.lines().map(str::to_owned).collect(),
            ),
        };
        let message =
            with_config_remedy(message.trim_end().to_owned(), &config.kernel, job.loader.is_some());
        return Err(VmError::GuestFailed { message, console });
    };
    let outcome: Outcome =
        serde_json::from_slice(&bytes).map_err(|e| VmError::Channel(format!("outcome: {e}")))?;
    // The outcome last: if it exists, the results are complete.
    for name in [TRACE_FILE, OUTCOME_FILE] {
        if answer.files.iter().any(|f| f == name) {
            let (from, to) = (scratch.path().join(name), folder.join(name));
            fs::rename(&from, &to).map_err(VmError::io(format!("move to {}", to.display())))?;
        }
    }
    Ok(outcome)
}

/// The files of a loader for the guest; changes its program to the path there.
fn pack_loader(loader: &mut LoaderJob) -> Result<Vec<GuestFile>, VmError> {
    let program = PathBuf::from(&loader.program);
    let name = program.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    loader.program = format!("{LOADER_FOLDER}/{name}");
    let packed = initramfs::pack(&program, &loader.program)?;
    loader.library_path = packed.library_path;
    Ok(packed.files)
}

/// Adds the remedy to a message about a configuration that the guest did not have. A loader may not print the message
/// of libbpf, so its failure may be one.
fn with_config_remedy(message: String, kernel: &Kernel, is_of_loader: bool) -> String {
    if kernel.config.is_some() || !(is_of_loader || message.contains(NO_KCONFIG)) {
        return message;
    }
    let name = &kernel.name;
    let remedy = match kernel.is_packaged() {
        true => format!(
            "the kernel {name} is in the cache without its configuration, which many schedulers \
             read: run `fairground kernels fetch {name}`"
        ),
        false => format!("put the configuration of {name} beside it, as `config` or `.config`"),
    };
    format!("{message}\n  help: {remedy}")
}

/// Boots a machine, runs `command` in it, and writes the results to `folder`.
///
/// # Errors
///
/// See [`VmError`]. An exit code of the command other than 0 is not an error.
pub fn run_command(
    command: &GuestCommand,
    config: &VmConfig,
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<GuestAnswer, VmError> {
    config.check()?;
    let program = match &config.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(VmError::io("find the running program"))?,
    };
    let mut packed = command.packed.clone();
    if let Some(path) = &config.kernel.config {
        let content = read_file(path, TEXT_BYTES_MAX)
            .map_err(VmError::io(format!("read {}", path.display())))?;
        packed.push(GuestFile { path: KERNEL_CONFIG.to_owned(), executable: false, content });
    }
    let initramfs = initramfs::build(&program, &packed)?;
    let in_memory = |what: &str, bytes: &[u8]| {
        nameless_file()
            .and_then(|file| file.write_all_at(bytes, 0).map(|()| file))
            .map_err(VmError::io(format!("create {what} in memory")))
    };
    let archive = in_memory("the initramfs", &initramfs)?;
    let image = in_memory("the kernel's image", &config.kernel.read()?)?;
    let arguments = command.arguments.clone();
    let text = serde_json::to_vec(&CommandFile { arguments }).expect("arguments are text");
    let mut files = vec![(COMMAND_FILE.to_owned(), text)];
    files.extend(command.files.iter().cloned());
    let memory = SharedMemory::new(&files, command.room)?;
    let qemu = qemu_command::for_guest(config, [&path_of(&image), &path_of(&archive)], &memory);
    let mut machine = Machine::spawn(qemu, config.mode == VmMode::Deterministic)?;
    let deadlines = config.deadlines(command.duration_ns);
    let watched = watch::to_the_end(&mut machine, &memory, deadlines, watch)?;
    let files = collect(&memory, &watched.page, folder)?;
    Ok(GuestAnswer {
        exit_code: watched.page.exit_code,
        files,
        console: machine.console.text(),
        boot: watched.boot,
        run: watched.run,
        shutdown: watched.shutdown,
    })
}

/// Writes the guest's files to `folder`; returns their names.
fn collect(memory: &SharedMemory, page: &GuestPage, folder: &Path) -> Result<Vec<String>, VmError> {
    memory
        .results(page.output_len, |name| Ok(io::BufWriter::new(File::create(folder.join(name))?)))
        .map_err(|e| VmError::Channel(format!("its files: {e}")))
}

/// Maximum bytes of a job's results: recording, outcome, output.
fn room_for(job: &Job, cpus: u32) -> u64 {
    const OTHERS: u64 = 16 << 20;
    let recording = job.recording.as_ref().map_or(0, |r| u64::from(r.kib_per_cpu) << 10);
    // A recording consists of the CPUs' buffers and a header with formats and names.
    OTHERS + recording * u64::from(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_configuration_has_a_remedy_that_names_the_kernel() {
        let mut kernel = Kernel {
            name: "7.2".to_owned(),
            image: "/cache/vmlinuz".into(),
            config: None,
            sha256: String::new(),
        };
        let message = format!("scx_mine cannot be loaded:\n    {NO_KCONFIG}");
        let told = with_config_remedy(message.clone(), &kernel, false);
        assert!(told.ends_with("run `fairground kernels fetch 7.2`"), "{told}");
        kernel.name = "./bzImage".to_owned();
        let told = with_config_remedy(message.clone(), &kernel, false);
        assert!(told.contains("beside it") && !told.contains("fetch"), "{told}");
        kernel.config = Some("/cache/config".into());
        assert_eq!(with_config_remedy(message.clone(), &kernel, false), message);
        kernel.config = None;
        let other = "no such scheduler".to_owned();
        assert_eq!(with_config_remedy(other.clone(), &kernel, false), other);
        assert!(with_config_remedy(other, &kernel, true).contains("`config`"));
    }
}
