//! The guest's side: this program as the first process of a virtual machine.
//!
//! It mounts the usual file systems, maps the shared memory, unpacks the host's bundle to
//! [`crate::channel::GUEST_FOLDER`], runs the command in it (this program with other arguments), copies the files
//! that the command created to the shared memory, and ends the machine. While the command runs, it only waits for its
//! children.

mod mounts;
mod power;
pub mod slices;
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

/// Whether this process is the first process of a guest that the program has booted.
pub fn is_init() -> bool {
    std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == INIT)
}

/// The first process: prepares the machine, runs the command, returns its results, and ends the machine.
pub fn main() -> ! {
    // The kernel panics if the first process ends, so errors and panics are caught here.
    let done = std::panic::catch_unwind(|| {
        mounts::mount_all()?;
        raise_limits();
        link_kernel_config();
        let mut window = Window::open()?;
        match serve(&mut window) {
            Ok(page) => window.publish(&page),
            Err(message) => {
                let state = GuestState::Failed;
                window.publish(&GuestPage { state, message, ..GuestPage::default() });
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

/// Overwrites the guest's page with invalid data and ends the machine, to test the host.
///
/// # Errors
///
/// There is no shared memory.
pub fn scribble() -> Result<(), String> {
    let mut window = Window::open()?;
    window.scribble();
    power::off()
}

/// Runs the command and writes its results to the shared memory; returns the guest's final page.
fn serve(window: &mut Window) -> Result<GuestPage, String> {
    let inputs = unpack(window)?;
    let path = Path::new(GUEST_FOLDER).join(COMMAND_FILE);
    let text = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let command: CommandFile =
        serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    window.publish(&GuestPage { state: GuestState::Running, ..GuestPage::default() });
    let status = run(&command)?;
    window.publish(&GuestPage { state: GuestState::Collecting, ..GuestPage::default() });
    let output_len = pack(window, &inputs)?;
    let exit_code = status.code().or(status.signal().map(|s| -s)).unwrap_or(i32::MIN);
    Ok(GuestPage { state: GuestState::Finished, exit_code, output_len, ..GuestPage::default() })
}

/// Unpacks the host's bundle to the guest's folder; returns the files' names.
fn unpack(window: &Window) -> Result<Vec<String>, String> {
    let folder = Path::new(GUEST_FOLDER);
    fs::create_dir_all(folder).map_err(|e| format!("{GUEST_FOLDER}: {e}"))?;
    let input = window.input();
    read_bundle(input, input.len() as u64, |name| File::create(folder.join(name)))
        .map_err(|e| format!("the host's bundle: {e}"))
}

/// Runs the program with the command's arguments. Waits for it, and reaps orphans.
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

/// Writes each file of the guest's folder that the host did not send to the shared memory, sorted by name; returns
/// the total bytes.
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

/// Links the kernel's configuration to the path that distributions use.
fn link_kernel_config() {
    let release = nix::sys::utsname::uname();
    let release = release.ok().map(|u| u.release().to_string_lossy().into_owned());
    if let Some(release) = release.filter(|_| Path::new(KERNEL_CONFIG).exists()) {
        // A missing link is reported by the readers of the configuration.
        let _ = std::os::unix::fs::symlink(KERNEL_CONFIG, format!("{KERNEL_CONFIG}-{release}"));
    }
}

/// Removes the limits of open files, processes, locked memory and priorities.
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
