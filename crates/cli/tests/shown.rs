//! No input reaches the terminal with characters that control it: in results, notes and errors of every kind of input.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::{Files, bootable};

/// An escape sequence that sets the window's title, a CSI of one byte (C1), an override, an isolate, a mark.
const HOSTILE: &str =
    "evil\x1b]0;x\x07\u{9b}31m\u{85}\u{202e}\u{2066}\u{200f}\u{200e}\u{2069}\x7fevil";

fn controls(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || turns
}

/// Runs the program; what it prints must repeat the input, and hold no such character.
fn repeats_harmlessly(what: &str, command: &mut Command) {
    command.env("COLUMNS", "400").env("NO_COLOR", "1");
    let output = command.output().expect("the program starts");
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = str::from_utf8(bytes).unwrap_or_else(|e| panic!("{what}: {name}: {e}"));
        if let Some(c) = text.chars().find(|c| controls(*c)) {
            panic!("{what}: {c:?} reaches {name}:\n{}", text.escape_debug());
        }
    }
    let all = [output.stdout, output.stderr].concat();
    let all = String::from_utf8_lossy(&all);
    assert!(all.contains("evil"), "{what}: the input is not repeated:\n{all}");
}

fn fairground(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairground"));
    command.args(arguments).env_remove("FAIRGROUND_SEED");
    command
}

#[test]
fn of_arguments_and_variables() {
    let cases: [&[&str]; 16] = [
        &[HOSTILE],
        &["run", "hogs:2", HOSTILE],
        &[&format!("--{HOSTILE}")],
        &["run", HOSTILE],
        &["run", &format!("./{HOSTILE}.toml")],
        &["run", &format!("hogs:{HOSTILE}")],
        &["run", "hogs:2", "--sched", HOSTILE],
        &["run", "hogs:2", "--sched", &format!("./{HOSTILE}.bpf.o")],
        &["run", "hogs:2", "--set", &format!("{HOSTILE}=1")],
        &["run", "hogs:2", "--duration", HOSTILE],
        &["run", "hogs:2", "--topology", HOSTILE],
        &["run", "hogs:2", "--on", HOSTILE],
        &["run", "hogs:2", "--format", HOSTILE],
        &["analyze", HOSTILE],
        &["reproduce", HOSTILE],
        &["convert", "x.dat", &format!("{HOSTILE}.y")],
    ];
    for case in cases {
        repeats_harmlessly(&format!("{case:?}"), &mut fairground(case));
    }
    let mut seed = fairground(&["run", "hogs:2"]);
    repeats_harmlessly("FAIRGROUND_SEED", seed.env("FAIRGROUND_SEED", HOSTILE));
    let mut raw = fairground(&["run"]);
    let bytes = OsString::from(HOSTILE);
    repeats_harmlessly("a word that is no option", raw.arg("hogs:2").arg("--seed").arg(bytes));
    // The name by which it was called is not repeated at all.
    let output = fairground(&["--help"]).arg0(HOSTILE).output().expect("the program starts");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("evil"));
}

#[test]
fn of_files() {
    let files = Files::new();
    let key = HOSTILE.escape_unicode().to_string().replace("\\u{", "\\U").replace('}', "");
    // TOML wants eight digits.
    let key: String = key
        .split("\\U")
        .filter(|part| !part.is_empty())
        .map(|digits| format!("\\U{digits:0>8}"))
        .collect();
    let toml = format!("format = 1\n\"{key}\" = 1\n");
    let json = serde_json::json!({ "tasks": { HOSTILE: { "run": 1, HOSTILE: 2 } }, HOSTILE: 1 });
    let workload = files.write("w.toml", &toml);
    let task = format!(
        "format = 1\nname = \"w\"\nduration = \"1s\"\n[[task]]\nname = \"{key}\"\nprogram = [{{ run = \"1ms\" }}]\n"
    );
    let task = files.write("task.toml", task);
    let rt_app = files.write("w.json", json.to_string());
    let topology = files.write("box.toml", &toml);
    let profile = files.write("p.toml", &toml);
    let experiment = files.write("e.toml", &toml);
    let broken = files.write("broken.toml", format!("format = 1\n{HOSTILE}"));
    let named = files.write(&format!("{HOSTILE}.toml"), "format = 1\n");
    let cases: [&[&str]; 9] = [
        &["run", &workload],
        &["run", &task],
        &["workload", "check", &rt_app],
        &["run", "hogs:2", "--topology", &topology],
        &["run", "hogs:2", "--sched", "cfs", "--profile", &profile],
        &["reproduce", &experiment],
        &["run", &broken],
        &["run", &named],
        &["workload", "check", &named],
    ];
    for case in cases {
        repeats_harmlessly(&format!("{case:?}"), &mut fairground(case));
    }
}

#[test]
fn of_recordings() {
    let files = Files::new();
    let name = "evil\x1b]0\u{202e}x\u{9b}\x07";
    let mut text = String::from("# tracer: nop\n");
    for turn in 0..200 {
        let at = format!("{}.{:06}", 100 + turn / 10, turn % 10 * 100_000);
        let (from, to) = if turn % 2 == 0 { (name, "other") } else { ("other", name) };
        let (from_pid, to_pid) = if turn % 2 == 0 { (7, 8) } else { (8, 7) };
        text += &format!(
            "  {from}-{from_pid} [000] d..2. {at}: sched_switch: prev_comm={from} prev_pid={from_pid} prev_prio=120 \
             prev_state=R ==> next_comm={to} next_pid={to_pid} next_prio=120\n"
        );
    }
    let recording = files.write("hostile.txt", text);
    for format in ["table", "json", "csv", "markdown"] {
        let arguments = ["analyze", &recording, "--per", "task", "--format", format];
        repeats_harmlessly(&format!("{arguments:?}"), &mut fairground(&arguments));
    }
    for arguments in [
        &["convert", &recording, "-"][..],
        &["replay", &recording, "--sched", "fifo"],
        &["diagnose", &recording],
    ] {
        let output = fairground(arguments).output().expect("the program starts");
        let all = [output.stdout, output.stderr].concat();
        let all = String::from_utf8(all).expect("UTF-8");
        assert!(!all.contains(controls), "{arguments:?}: {}", all.escape_debug());
    }
}

/// An object that calls a kernel function of such a name: the name is in its symbols and its types.
#[test]
fn of_objects() {
    let files = Files::new();
    let plain = "scx_bpf_evil_function_of_a_name_that_is_replaced";
    let source = format!(
        "#include \"scx.bpf.h\"\nchar _license[] SEC(\"license\") = \"GPL\";\nextern void {plain}(s32 cpu) __ksym;\n\
         void BPF_STRUCT_OPS(evil_tick, struct task_struct *p)\n{{\n    {plain}(0);\n}}\n\
         SCX_OPS_DEFINE(evil_ops, .tick = (void *)evil_tick, .name = \"evil\");\n"
    );
    let object = files.compile("evil", &source, fairground_policies::CLANG_FLAGS);
    let mut bytes = std::fs::read(&object).expect("the object");
    let mut name = format!("scx_bpf_{HOSTILE}").into_bytes();
    name.resize(plain.len(), b'z');
    let places: Vec<usize> = bytes
        .windows(plain.len())
        .enumerate()
        .filter(|(_, w)| *w == plain.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "the name is in the object");
    for at in places {
        bytes[at..at + name.len()].copy_from_slice(&name);
    }
    let object = files.write("evil.bpf.o", bytes);
    for format in ["table", "json", "csv", "markdown"] {
        let run = ["run", "hogs:2", "--duration", "20ms", "--sched", &object, "--format", format];
        repeats_harmlessly(&format!("{run:?}"), &mut fairground(&run));
    }
    repeats_harmlessly("sched show", &mut fairground(&["sched", "show", &object]));
}

/// What the program prints, which has no such character.
fn harmless(what: &str, command: &mut Command) -> String {
    let output = command.env("COLUMNS", "400").env("NO_COLOR", "1").output();
    let output = output.expect("the program starts");
    let all = [output.stdout, output.stderr].concat();
    let all = String::from_utf8(all).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(!all.contains(controls), "{what}: {}", all.escape_debug());
    all
}

/// Bytes with a text replaced everywhere by one of the same length that begins with an escape and an override.
fn with_hostile(bytes: &[u8], text: &str) -> Vec<u8> {
    let mut name = "\x1b\u{202e}".as_bytes().to_vec();
    assert!(text.len() >= name.len(), "{text} is too short");
    name.resize(text.len(), b'e');
    let mut bytes = bytes.to_vec();
    let (mut at, mut count) = (0, 0);
    while at + name.len() <= bytes.len() {
        if bytes[at..].starts_with(text.as_bytes()) {
            bytes[at..at + name.len()].copy_from_slice(&name);
            (at, count) = (at + name.len(), count + 1);
        } else {
            at += 1;
        }
    }
    assert!(count > 0, "no {text} to replace");
    bytes
}

/// A recording of the repository, unpacked.
fn recording(name: &str) -> Vec<u8> {
    let path = format!("{}/../trace/tests/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    if !name.ends_with(".gz") {
        return bytes;
    }
    let mut whole = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut whole).expect("gzip");
    whole
}

/// The names of tasks in each binary format, and other texts of it that errors repeat.
#[test]
fn of_binary_recordings() {
    let files = Files::new();
    let cases = [
        ("recordings/perf.data.gz", "perf.data", "busy1"),
        ("recordings/version-6.dat.gz", "6.dat", "other-process-2"),
        ("recordings/version-7.dat.gz", "7.dat", "other-process-2"),
        ("samples/perfetto/columns.pftrace", "columns.pftrace", "audio"),
        ("samples/ctf/kernel.tar", "kernel.tar", "other"),
    ];
    for (source, name, task) in cases {
        let recording = files.write(name, with_hostile(&recording(source), task));
        for format in ["table", "json", "csv", "markdown"] {
            let arguments = ["analyze", &recording, "--per", "task", "--all", "--format", format];
            let what = format!("{source}, {format}");
            let all = harmless(&what, &mut fairground(&arguments));
            assert!(all.contains(['\u{fffd}', '\\']), "{what}: no name is replaced:\n{all}");
        }
        for arguments in [
            &["diagnose", &recording][..],
            &["contention", &recording],
            &["convert", &recording, "-"],
            &["replay", &recording, "--sched", "fifo"],
            &["follow", &recording, "--sched", "cfs"],
            &["compare", &recording, &recording],
            &["diagnose", &recording, "--tree", "no-such-task"],
        ] {
            harmless(&format!("{source}, {arguments:?}"), &mut fairground(arguments));
        }
    }
}

#[test]
fn of_damaged_binary_recordings() {
    let files = Files::new();
    let cases = [
        ("recordings/perf.data.gz", "perf.data", "sched_switch"),
        ("recordings/version-6.dat.gz", "6.dat", "sched_switch"),
        ("recordings/version-6.dat.gz", "clock.dat", "mono"),
        ("recordings/version-6.dat.gz", "field.dat", "prev_comm"),
        ("recordings/version-7.dat.gz", "7.dat", "sched"),
        ("samples/perf/pipe.data", "pipe.data", "sched_switch"),
        ("samples/ctf/kernel.tar", "words.tar", "typealias"),
        ("samples/ctf/kernel.tar", "clock.tar", "monotonic"),
        ("samples/ctf/kernel.tar", "event.tar", "sched_switch"),
    ];
    for (source, name, text) in cases {
        let bytes = with_hostile(&recording(source), text);
        for (part, length) in [("whole", bytes.len()), ("half", bytes.len() / 2)] {
            let path = files.write(&format!("{part}-{name}"), &bytes[..length]);
            let what = format!("{source} without {text}, {part}");
            harmless(&what, &mut fairground(&["analyze", &path]));
        }
    }
}

/// A program in place of QEMU: what it prints is the console.
#[test]
fn of_a_guests_console() {
    let files = Files::new();
    // What is looked at of a bzImage.
    let mut image = vec![0; 4096];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    let image = files.write("bzImage", image);
    let script = "#!/bin/sh\ncase \"$*\" in *--version*) cat \"$CONSOLE.version\";;\n\
                  *) cat \"$CONSOLE\"; exit 1;; esac\n";
    let program = files.write("qemu-system-x86_64", script);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(program, mode).expect("executable");
    let with_console = |arguments: &[&str], name: &str| {
        let mut command = fairground(arguments);
        command.env("PATH", format!("{}:/usr/bin:/bin", files.path("").display()));
        command.env("FAIRGROUND_CACHE", files.path("cache")).env("CONSOLE", files.path(name));
        command
    };
    let consoles = [
        ("lines", format!("{HOSTILE}\r\n{HOSTILE}\n")),
        ("panic", format!("[ 1.0] Kernel panic - not syncing: {HOSTILE}\n{HOSTILE}\n")),
    ];
    for (name, console) in consoles {
        files.write(name, console);
        files.write(&format!("{name}.version"), "QEMU emulator version 10.0.2\n");
        for mode in ["fast", "deterministic"] {
            let run = ["run", "hogs:1", "--on", "vm", "--kernel", &image, "--vm-mode", mode];
            repeats_harmlessly(&format!("{name}, {mode}"), &mut with_console(&run, name));
        }
    }
    files.write("odd.version", format!("{HOSTILE}\n"));
    for command in [&["doctor"][..], &["kernels", "list"]] {
        repeats_harmlessly(&format!("{command:?}"), &mut with_console(command, "odd"));
    }
}

/// In a guest, where there is one.
#[test]
fn of_a_loader() {
    let Some(target) = bootable() else { return };
    let loader = format!("/bin/echo '{HOSTILE}'");
    let run = ["run", "hogs:1", "--cpus", "1", "--duration", "1s", "--on", target];
    let mut command = fairground(&[&run[..], &["--loader", &loader]].concat());
    repeats_harmlessly("a loader that ends", &mut command);
    // What one that attaches a scheduler printed is part of the result. The guest's first process is the program.
    let script = format!("/bin/sh -c 'echo \"{HOSTILE}\"; exec /init load cfs'");
    for format in ["table", "json"] {
        let with = ["--loader", &script, "--format", format];
        let mut command = fairground(&[&run[..], &with].concat());
        let all = harmless(&format!("a loader that attaches, {format}"), &mut command);
        assert!(all.contains("its loader printed") && all.contains("evil"), "{all}");
    }
}
