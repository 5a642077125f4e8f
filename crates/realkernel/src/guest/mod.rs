//! The guest's side: this program as the first process of a virtual machine.
//!
//! It mounts what Linux user space expects, finds the shared memory, unpacks what the host sent into
//! [`crate::channel::GUEST_FOLDER`], runs the command that stands there — the program itself with other arguments — and
//! hands back each file that the command left in that folder. Then it ends the machine. It measures nothing and does
//! nothing meanwhile: it waits for its children.

mod mounts;
mod power;
pub mod turns;
mod window;

use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use nix::errno::Errno;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::channel::{
    COMMAND_FILE, CommandFile, Entry, GUEST_FOLDER, GuestPage, GuestState, INIT, KERNEL_CONFIG,
    STDOUT_FILE, read_bundle, write_bundle,
};
use window::Window;

/// Whether this process is the first one of a guest that the program has booted.
pub fn is_init() -> bool {
    std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == INIT)
}

/// The first process: prepares the machine, runs what it is told, hands back what came of it, switches off.
pub fn main() -> ! {
    // A first process that ends is a kernel panic: whatever happens below, the machine is ended in order.
    let done = std::panic::catch_unwind(|| {
        mounts::mount_all()?;
        raise_limits();
        link_kernel_config();
        let mut window = Window::open()?;
        match serve(&mut window) {
            Ok(page) => window.tell(&page),
            Err(message) => {
                let state = GuestState::Failed;
                window.tell(&GuestPage { state, message, ..GuestPage::default() });
            }
        }
        Ok::<(), String>(())
    });
    match done {
        Ok(Ok(())) => {}
        Ok(Err(message)) => eprintln!("fairground: {message}"),
        Err(_) => eprintln!("fairground: the guest's first process panicked"),
    }
    power::off()
}

/// Overwrites what this guest tells the host with nonsense, and ends the machine: what a broken guest would do.
///
/// # Errors
///
/// When there is no shared memory.
pub fn scribble() -> Result<(), String> {
    let mut window = Window::open()?;
    window.scribble();
    power::off()
}

/// Runs the command; leaves its results in the window; what to tell about them.
fn serve(window: &mut Window) -> Result<GuestPage, String> {
    let inputs = unpack(window)?;
    let path = Path::new(GUEST_FOLDER).join(COMMAND_FILE);
    let text = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let command: CommandFile =
        serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    window.tell(&GuestPage { state: GuestState::Running, ..GuestPage::default() });
    let status = run(&command)?;
    window.tell(&GuestPage { state: GuestState::Collecting, ..GuestPage::default() });
    let output_len = pack(window, &inputs)?;
    let exit_code = status.code().or(status.signal().map(|s| -s)).unwrap_or(i32::MIN);
    Ok(GuestPage { state: GuestState::Finished, exit_code, output_len, ..GuestPage::default() })
}

/// Writes what the host sent into the guest's folder; the files' names.
fn unpack(window: &Window) -> Result<Vec<String>, String> {
    let folder = Path::new(GUEST_FOLDER);
    fs::create_dir_all(folder).map_err(|e| format!("{GUEST_FOLDER}: {e}"))?;
    let (input, length) = window.input();
    read_bundle(input, length, |name| File::create(folder.join(name)))
        .map_err(|e| format!("what the host sent: {e}"))
}

/// Runs the program with the command's arguments, and waits for it and for every orphan that comes along.
fn run(command: &CommandFile) -> Result<ExitStatus, String> {
    let stdout = Path::new(GUEST_FOLDER).join(STDOUT_FILE);
    let file = File::create(&stdout).map_err(|e| format!("{}: {e}", stdout.display()))?;
    let child = Command::new(INIT)
        .args(&command.arguments)
        .current_dir(GUEST_FOLDER)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/")
        .env("TMPDIR", "/tmp")
        .stdin(Stdio::null())
        .stdout(file)
        .spawn()
        .map_err(|e| format!("start the command: {e}"))?;
    let child = Pid::from_raw(child.id().cast_signed());
    loop {
        match waitpid(None::<Pid>, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => {
                return Ok(ExitStatus::from_raw((code & 0xff) << 8));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                return Ok(ExitStatus::from_raw(signal as i32));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(format!("wait for the command: {error}")),
        }
    }
}

/// Puts each file of the guest's folder that the host did not send into the window, by name; their bytes together.
fn pack(window: &mut Window, inputs: &[String]) -> Result<u64, String> {
    let fail = |e: std::io::Error| format!("results: {e}");
    let mut files = Vec::new();
    for entry in fs::read_dir(GUEST_FOLDER).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let length = entry.metadata().map_err(fail)?.len();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(fail)?.is_file() && !inputs.contains(&name) {
            files.push((name, length));
        }
    }
    files.sort();
    let mut entries = Vec::with_capacity(files.len());
    for (name, length) in &files {
        let file = File::open(Path::new(GUEST_FOLDER).join(name)).map_err(fail)?;
        entries.push(Entry { name, length: *length, content: Box::new(BufReader::new(file)) });
    }
    write_bundle(&mut window.output(), entries).map_err(|e| {
        let most = files.iter().max_by_key(|f| f.1);
        let largest = most.map_or(String::new(), |(n, l)| format!(" (largest: {n}, {l} bytes)"));
        format!("the results do not fit into the shared memory: {e}{largest}")
    })
}

/// Puts the kernel's configuration where a distribution has it.
fn link_kernel_config() {
    let release = nix::sys::utsname::uname();
    let release = release.ok().map(|u| u.release().to_string_lossy().into_owned());
    if let Some(release) = release.filter(|_| Path::new(KERNEL_CONFIG).exists()) {
        // Without it a reader finds no configuration, and says so.
        let _ = std::os::unix::fs::symlink(KERNEL_CONFIG, format!("{KERNEL_CONFIG}-{release}"));
    }
}

/// Lets the command open files, lock memory and use priorities without limit.
fn raise_limits() {
    use nix::sys::resource::{RLIM_INFINITY, Resource, setrlimit};
    const MAX_OPEN_FILES: u64 = 1 << 20;
    let limits = [
        (Resource::RLIMIT_NOFILE, MAX_OPEN_FILES),
        (Resource::RLIMIT_NPROC, RLIM_INFINITY),
        (Resource::RLIMIT_MEMLOCK, RLIM_INFINITY),
        (Resource::RLIMIT_RTPRIO, RLIM_INFINITY),
        (Resource::RLIMIT_NICE, RLIM_INFINITY),
    ];
    for (resource, limit) in limits {
        if let Err(error) = setrlimit(resource, limit, limit) {
            eprintln!("fairground: limit {resource:?}: {error}");
        }
    }
}
