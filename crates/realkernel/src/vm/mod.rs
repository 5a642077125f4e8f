//! The ground `vm`: a Debian kernel under QEMU, with this program as its first process.
//!
//! Nothing of the host reaches the guest but what it is told: its initial memory holds the kernel, an archive with the
//! program (`initramfs`) and the shared memory with the job (`crate::channel`). In the deterministic mode the same job
//! therefore gives the same bytes. Nothing of a run lies under a name on the host until its results are whole.

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
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};

pub use config::VmConfig;
pub use deadlines::Deadlines;
pub use error::VmError;
pub use initramfs::GuestFile;
pub use kvm::{NoKvm, kvm_opens, kvm_works};
pub use mode::VmMode;
pub use progress::Progress;
pub use qemu_command::INSTRUCTION_NS;

use crate::channel::{COMMAND_FILE, CommandFile, GUEST_FOLDER, GuestPage, KERNEL_CONFIG};
use crate::job::{ERROR_FILE, JOB_FILE, Job, OUTCOME_FILE, Outcome, SCHEDULER_FILE, TRACE_FILE};
use crate::run::RUNNER_COMMAND;
use machine::Machine;
use memory::SharedMemory;

/// Something that a guest is to run: the program with other arguments.
#[derive(Clone, Debug, Default)]
pub struct GuestCommand {
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// How long it takes, ns of the guest's time: the deadline follows from it.
    pub duration_ns: u64,
    /// Files for the folder that it runs in ([`GUEST_FOLDER`]); each file that it adds there comes back.
    pub files: Vec<(String, Vec<u8>)>,
    /// Files for elsewhere in the guest.
    pub packed: Vec<GuestFile>,
    /// Room for what comes back, bytes.
    pub room: u64,
}

/// What a guest's command left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestAnswer {
    /// Its exit code; −n: killed by signal n.
    pub exit_code: i32,
    /// The files that it left, now in the host's folder.
    pub files: Vec<String>,
    /// The console's last part, and with it what the command wrote on its standard error.
    pub console: String,
    /// From the start of QEMU to the command's start, wall time.
    pub boot: Duration,
    /// For the command, wall time.
    pub run: Duration,
    /// For bringing the results out and ending the machine, wall time.
    pub shutdown: Duration,
}

/// Runs `job` in a virtual machine; leaves the recording and the outcome in `folder`.
///
/// # Errors
///
/// See [`VmError`]: what the guest did wrong, with its console's last lines, or what failed on this machine.
pub fn run_in_vm(
    job: &Job,
    object: Option<&[u8]>,
    config: &VmConfig,
    folder: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, VmError> {
    let text = serde_json::to_vec(job).expect("a job is plain data");
    let mut files = vec![(JOB_FILE.to_owned(), text)];
    files.extend(object.map(|bytes| (SCHEDULER_FILE.to_owned(), bytes.to_vec())));
    let command = GuestCommand {
        arguments: vec![RUNNER_COMMAND.to_owned(), GUEST_FOLDER.to_owned()],
        duration_ns: job.duration_ns,
        files,
        packed: Vec::new(),
        room: room_for(job, config.cpus),
    };
    let scratch = tempfile::Builder::new().prefix(".vm-").tempdir_in(folder);
    let scratch = scratch.map_err(VmError::io(format!("make a folder in {}", folder.display())))?;
    let answer = run_command(&command, config, scratch.path(), progress)?;
    let console: Vec<String> = answer.console.lines().map(str::to_owned).collect();
    let Ok(bytes) = fs::read(scratch.path().join(OUTCOME_FILE)) else {
        let said = fs::read_to_string(scratch.path().join(ERROR_FILE));
        let message = said.unwrap_or_else(|_| {
            format!("the runner left no outcome (its exit code: {})", answer.exit_code)
        });
        return Err(VmError::GuestFailed { message: message.trim_end().to_owned(), console });
    };
    let outcome: Outcome =
        serde_json::from_slice(&bytes).map_err(|e| VmError::Channel(format!("outcome: {e}")))?;
    // The outcome last: where it is, all is.
    for name in [TRACE_FILE, OUTCOME_FILE] {
        if answer.files.iter().any(|f| f == name) {
            let (from, to) = (scratch.path().join(name), folder.join(name));
            fs::rename(&from, &to).map_err(VmError::io(format!("move to {}", to.display())))?;
        }
    }
    Ok(outcome)
}

/// Boots a machine, runs `command` in it, and leaves what came back in `folder`.
///
/// # Errors
///
/// See [`VmError`]. A command that ends with an exit code other than 0 is an answer, no error.
pub fn run_command(
    command: &GuestCommand,
    config: &VmConfig,
    folder: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<GuestAnswer, VmError> {
    config.check()?;
    let program = match &config.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(VmError::io("find the running program"))?,
    };
    let mut packed = command.packed.clone();
    if let Some(path) = &config.kernel.config {
        let content = fs::read(path).map_err(VmError::io(format!("read {}", path.display())))?;
        packed.push(GuestFile { path: KERNEL_CONFIG.to_owned(), executable: false, content });
    }
    let archive = NamelessFile::new(&initramfs::build(&program, &packed)?)?;
    let arguments = command.arguments.clone();
    let text = serde_json::to_vec(&CommandFile { arguments }).expect("plain data");
    let mut files = vec![(COMMAND_FILE.to_owned(), text)];
    files.extend(command.files.iter().cloned());
    let memory = SharedMemory::new(&files, command.room)?;
    let qemu = qemu_command::for_guest(config, &archive.path(), &memory);
    let mut machine = Machine::spawn(qemu, config.mode == VmMode::Deterministic)?;
    let deadlines = config.deadlines(command.duration_ns);
    let watched =
        watch::to_the_end(&mut machine, &memory, deadlines, command.duration_ns, config, progress)?;
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

/// Writes the guest's files into `folder`; their names.
fn collect(memory: &SharedMemory, page: &GuestPage, folder: &Path) -> Result<Vec<String>, VmError> {
    memory
        .results(page.output_len, |name| Ok(io::BufWriter::new(File::create(folder.join(name))?)))
        .map_err(|e| VmError::Channel(format!("its files: {e}")))
}

/// Room for a job's results: its recording, its outcome, and what it says.
fn room_for(job: &Job, cpus: u32) -> u64 {
    const OTHERS: u64 = 16 << 20;
    let recording = job.recording.as_ref().map_or(0, |r| u64::from(r.kib_per_cpu) << 10);
    // A recording is the CPUs' buffers, and formats and names before them.
    OTHERS + recording * u64::from(cpus)
}

/// A file without a name, which a child of this process can open: nothing is left of it when both are gone.
struct NamelessFile {
    file: File,
}

impl NamelessFile {
    fn new(content: &[u8]) -> Result<Self, VmError> {
        let make = || -> io::Result<File> {
            let mut file = File::from(memfd_create("fairground", MFdFlags::MFD_CLOEXEC)?);
            file.write_all(content)?;
            Ok(file)
        };
        make()
            .map(|file| Self { file })
            .map_err(VmError::io("keep the guest's first files in memory"))
    }

    fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }
}
