//! SIGINT, SIGTERM and SIGHUP end every command, and nothing is left of it.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Files, bootable, interruptible, success};
use fairground_testing::unavailable;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long something may take to be seen: the machine may be busy.
const DEADLINE: Duration = Duration::from_secs(60);
const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
const LONG: [&str; 5] = ["--cpus", "1", "--duration", "200000s", "--quiet"];

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < DEADLINE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process has a handler for a signal.
fn listens(pid: u32, signal: Signal) -> bool {
    has(pid, "SigCgt:", signal)
}

/// Whether a signal is in a set of a process, by its name in `/proc/PID/status`.
fn has(pid: u32, set: &str, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let found = status.lines().find_map(|line| line.strip_prefix(set));
    let bits = found.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    bits >> (signal as i32 - 1) & 1 == 1
}

/// Whether a process runs the compiler, to ask for its version or to compile. Signals are held by then; the mask in `/proc` does not show it, since
/// the kernel lifts it while a thread waits for these signals.
fn compiles(pid: u32) -> bool {
    let children =
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().any(|child| {
        let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        name.starts_with("clang")
    })
}

fn ended(child: &mut Child, what: &str) -> ExitStatus {
    let mut status = None;
    until(&format!("{what} ends"), || {
        status = child.try_wait().expect("a child");
        status.is_some()
    });
    status.expect("it was seen")
}

fn left(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().display().to_string()).collect()
}

/// Each signal ends the command with 130 and leaves its folder of temporary files empty. It is sent once the process
/// with this id is `ready`.
fn ends_with_130_and_leaves_nothing(command: &[&str], ready: impl Fn(u32, Signal)) {
    for signal in SIGNALS {
        let scratch = Files::new();
        let what = format!("{command:?}, {signal}");
        let mut child = interruptible()
            .args(command)
            .env("TMPDIR", scratch.path(""))
            .env_remove("FAIRGROUND_SEED")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        ready(child.id(), signal);
        kill(Pid::from_raw(child.id() as i32), signal).expect("it is there");
        assert_eq!(ended(&mut child, &what).code(), Some(130), "{what}");
        until("nothing is left", || left(&scratch.path("")).is_empty());
    }
}

#[test]
fn runs_end_with_130_and_leave_nothing() {
    let commands: [&[&str]; 3] = [
        &["run", "hogs:2"],
        &["compare", "hogs:2", "--sched", "cfs,rfs"],
        &["run", "hogs:2", "--on", "host", "--no-recording"],
    ];
    for command in commands {
        let long = if command.contains(&"host") { &LONG[2..] } else { &LONG[..] };
        ends_with_130_and_leaves_nothing(&[command, long].concat(), |pid, signal| {
            until("it listens", || listens(pid, signal));
            std::thread::sleep(Duration::from_millis(100));
        });
    }
}

/// The source includes a pipe without a writer.
#[test]
fn a_source_that_compiles_leaves_nothing() {
    let files = Files::new();
    let pipe = files.path("pipe.h");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let source = files.write("slow.bpf.c", "#include \"pipe.h\"\n");
    let commands: [&[&str]; 3] = [
        &["sched", "build", &source],
        &["sched", "show", &source],
        &["run", "hogs:2", "--sched", &source],
    ];
    for command in commands {
        ends_with_130_and_leaves_nothing(command, |pid, _| {
            until("it compiles", || compiles(pid));
        });
    }
    assert_eq!(left(&files.path("")).len(), 2, "no object");
}

#[test]
fn others_that_go_on_for_long() {
    let files = Files::new();
    let experiment = r#"format = 1
name = "long"
title = "Long"
source = "nowhere"
about = "Long."
[[run]]
name = "a"
sched = "cfs"
workload = "hogs:2"
cpus = 1
hz = 250
costs = "modern"
duration = "200000s"
[[claim]]
say = "It ends."
run = "a"
metric = "hog.cpu_share"
within = "1..100"
"#;
    let experiment = files.write("long.toml", experiment);
    // It blocks while it reads: nobody writes into the pipe.
    let pipe = files.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let pipe = pipe.display().to_string();
    let commands: [(&[&str], bool); 4] = [
        (&["reproduce", &experiment], true),
        (&["follow", &pipe, "--sched", "cfs"], false),
        (&["analyze", &pipe], false),
        (&["replay", &pipe], false),
    ];
    for (command, keeps) in commands {
        for signal in SIGNALS {
            let what = format!("{command:?}, {signal}");
            let mut child = interruptible()
                .args(command)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the program starts");
            until(&what, || !keeps || listens(child.id(), signal));
            std::thread::sleep(Duration::from_millis(100));
            kill(Pid::from_raw(child.id() as i32), signal).expect("it is there");
            let status = ended(&mut child, &what);
            let code = status.code().or(status.signal().map(|number| 128 + number));
            assert_eq!(code, Some(if keeps { 130 } else { 128 + signal as i32 }), "{what}");
        }
    }
}

/// With tools that never end in place of apt and curl.
#[test]
fn fetching_ends_with_its_tools_and_leaves_the_cache_as_it_was() {
    let files = Files::new();
    let tool = "#!/bin/sh\ncase \"$1\" in *version*) exit 0;; esac\necho $$ > \"$MARK\"\nexec sleep 1000\n";
    for name in ["apt-get", "apt-cache", "curl"] {
        let path = files.write(name, tool);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    if !Path::new("/usr/share/keyrings/debian-archive-keyring.gpg").is_file() {
        return unavailable("kernel", "no keys of Debian's archive");
    }
    for command in [&["kernels", "fetch", "newest"][..], &["sched", "fetch", "scx_lavd"]] {
        for signal in SIGNALS {
            let (cache, scratch) = (Files::new(), Files::new());
            let mark = scratch.path("mark");
            let what = format!("{command:?}, {signal}");
            let mut child = interruptible()
                .args(command)
                .env("PATH", format!("{}:/usr/bin:/bin", files.path("").display()))
                .env("FAIRGROUND_CACHE", cache.path(""))
                .env("MARK", &mark)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the program starts");
            let tool = || fs::read_to_string(&mark).ok()?.trim().parse::<u32>().ok();
            until("the tool runs", || tool().is_some());
            let tool = tool().expect("it was seen");
            kill(Pid::from_raw(child.id() as i32), signal).expect("it is there");
            let status = ended(&mut child, &what);
            let code = status.code().or(status.signal().map(|number| 128 + number));
            assert_eq!(code, Some(128 + signal as i32), "{what}");
            until("the tool is gone", || !Path::new(&format!("/proc/{tool}")).exists());
            until("only lists and locks are left", || {
                let names = |folder: &str| left(&cache.path(folder));
                let begun = names("").iter().any(|name| name.starts_with('.') || name == "kernels");
                let built = cache.path("schedulers").exists() && !names("schedulers").is_empty();
                !begun && !built
            });
        }
    }
}

/// What was recorded until then is kept, and the command gets the signal first.
#[test]
fn recordings_end_and_are_kept() {
    for command in [&[][..], &["--", "sleep", "1000"]] {
        for signal in SIGNALS {
            let (files, scratch) = (Files::new(), Files::new());
            let what = format!("record {command:?}, {signal}");
            let said = scratch.path("said");
            let mut child = interruptible()
                .args(["record", "-o", "load.dat"])
                .args(command)
                .current_dir(files.path(""))
                .stdin(Stdio::null())
                .stderr(File::create(&said).expect("a file"))
                .spawn()
                .expect("the program starts");
            let said = || fs::read_to_string(&said).expect("text");
            let id = child.id();
            let mut status = None;
            until("it holds its signals", || {
                status = child.try_wait().expect("a child");
                status.is_some() || has(id, "SigBlk:", signal)
            });
            if status.is_some() {
                assert!(said().contains("root"), "{what}: {}", said());
                return unavailable("recording", said());
            }
            std::thread::sleep(Duration::from_millis(500));
            kill(Pid::from_raw(id as i32), signal).expect("it is there");
            let status = ended(&mut child, &what);
            assert_eq!(status.code(), Some(0), "{what}: {}", said());
            let end = format!("the command ended with signal: {} ({signal})", signal as i32);
            assert_eq!(said().contains(&end), !command.is_empty(), "{what}: {}", said());
            until("nothing else is left", || left(&files.path("")) == ["load.dat"]);
            let recording = files.path("load.dat").display().to_string();
            assert!(success(&["analyze", &recording]).contains("switches"), "{what}");
            let instances = Path::new("/sys/kernel/tracing/instances");
            let of_it = format!("fairground-{id}-");
            let is_its = |name: &String| name.starts_with(&of_it);
            assert!(!instances.is_dir() || !left(instances).iter().any(is_its), "{what}");
        }
    }
}

#[test]
fn a_guest_that_boots() {
    let Some(target) = bootable() else { return };
    for signal in SIGNALS {
        let scratch = Files::new();
        let mut child = interruptible()
            .args(["run", "hogs:2", "--on", target, "--duration", "100s", "--quiet"])
            .env("TMPDIR", scratch.path(""))
            .env_remove("FAIRGROUND_SEED")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        until("it has its folder", || !left(&scratch.path("")).is_empty());
        std::thread::sleep(Duration::from_millis(300));
        kill(Pid::from_raw(child.id() as i32), signal).expect("it is there");
        assert_eq!(ended(&mut child, "the run").code(), Some(130), "{signal}");
        until("nothing is left", || left(&scratch.path("")).is_empty());
    }
}

/// It is not told by a signal: the terminal is not the one that controls it. Its stderr may have gone away with it.
#[test]
fn a_view_ends_with_its_terminal() {
    for stderr_is_terminal in [false, true] {
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).expect("a terminal");
        // Or the programs of other tests would hold it.
        fcntl(&pty.master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("a descriptor");
        let side = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
        let mut command = interruptible();
        command.args(["top", "hogs:2", "--sched", "cfs"]).env_remove("FAIRGROUND_SEED");
        command.stdin(side()).stdout(side()).env("TERM", "xterm-256color");
        command.stderr(if stderr_is_terminal { side() } else { Stdio::null() });
        let mut child = command.spawn().expect("the program starts");
        drop((command, pty.slave));
        let mut screen = File::from(pty.master);
        let (mut seen, mut part) = (Vec::new(), [0; 4096]);
        until("the view is drawn", || {
            let count = screen.read(&mut part).expect("what it draws");
            seen.extend_from_slice(&part[..count]);
            seen.windows(3).any(|window| window == b"hog")
        });
        drop(screen);
        let status = ended(&mut child, "the view");
        assert_eq!(status.code(), Some(2), "its terminal is an error: {status}");
    }
}
