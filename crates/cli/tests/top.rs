//! `top`, on a real terminal.

use std::process::{Command, Stdio};

use crate::support::terminal::Terminal;
use crate::support::{fairground, interruptible, refusal, success};
use fairground_testing::unavailable;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::openpty;
use nix::sys::signal::Signal;
use nix::sys::termios::{FlowArg, tcflow, tcgetattr};

fn top(arguments: &[&str]) -> Terminal {
    sized(arguments, 24, 132)
}

fn sized(arguments: &[&str], lines: u16, columns: u16) -> Terminal {
    let mut command = interruptible();
    command.arg("top").args(arguments).env_remove("FAIRGROUND_SEED");
    Terminal::start(command, lines, columns)
}

/// The words of the line of a task.
fn line<'t>(screen: &'t str, task: &str) -> Vec<&'t str> {
    let found = screen.lines().find(|line| line.split_whitespace().nth(1) == Some(task));
    found.unwrap_or_else(|| panic!("no {task} in:\n{screen}")).split_whitespace().collect()
}

#[test]
fn a_run_is_held_stepped_and_left() {
    let mut top = top(&["hogs:3", "--sched", "rfs", "--cpus", "2", "--hold"]);
    let screen = top.shows("HELD");
    assert!(screen.contains("hogs:3 under rfs") && screen.contains("2 CPUs, 250 Hz"), "{screen}");
    assert!(screen.contains("at 0.000000000 s"), "{screen}");
    top.press("s");
    top.shows("CPU 0   ");
    top.press("g500ms\r");
    top.shows("at 0.500000000 s");
    top.press(" ");
    top.until("time passes", |screen| {
        !screen.contains("at 0.500000000 s") && screen.contains(" runs ")
    });
    top.press("q");
    let (status, _) = top.ends();
    assert_eq!(status.code(), Some(0));
}

/// The figures on the screen are those of the command that measures such a run.
#[test]
fn figures_are_those_of_run() {
    let same = ["hogs:3+sleepers:1", "--sched", "cfs", "--cpus", "2"];
    let run =
        [&["run"], &same[..], &["--duration", "2s", "--per", "task", "--format", "csv"]].concat();
    let csv = success(&run);
    let measured = |task: &str, metric: &str| {
        let found = csv.lines().find(|line| line.contains(task) && line.contains(metric));
        found.unwrap_or_else(|| panic!("no {metric} of {task} in:\n{csv}")).to_owned()
    };
    let mut top = top(&[&same[..], &["--hold"]].concat());
    top.shows("HELD");
    top.press("g2s\r");
    let screen = top.shows("at 2.000000000 s");
    for task in ["hog/0", "hog/1", "hog/2"] {
        let shown: f64 = line(&screen, task)[6].parse().expect("a share");
        let cell = measured(task, "cpu_share");
        let value: f64 = cell
            .split(',')
            .filter_map(|cell| cell.parse().ok())
            .find(|value: &f64| (value - shown).abs() < 0.06)
            .unwrap_or_else(|| panic!("{task} has {shown} on the screen, but {cell}"));
        assert!(value > 10.0);
    }
    top.press("q");
    top.ends();
}

/// What ended a run, and which tasks never ran, is said in the words of `run`.
#[test]
fn verdicts_are_those_of_run() {
    for (name, duration, words) in
        [("leaves", "1s", "the scheduler left after "), ("forgets", "2s", "1 task never ran: ")]
    {
        let path = format!("{}/tests/schedulers/{name}.bpf.c", env!("CARGO_MANIFEST_DIR"));
        let same = ["hogs:3", "--cpus", "1", "--sched", &path, "--duration", duration];
        let run = fairground(&[&["run"], &same[..]].concat());
        let run = String::from_utf8(run.stdout).expect("UTF-8");
        let said = run.lines().next().and_then(|line| line.find(words).map(|at| &line[at..]));
        let said = said.unwrap_or_else(|| panic!("no `{words}` in:\n{run}"));
        // What follows is where the task was.
        let said = &said[..said.find(" s, ").map_or(said.len().min(80), |at| at + 2)];
        let mut top = sized(&[&same[..], &["--hold"]].concat(), 24, 300);
        top.shows("HELD");
        top.press(&format!("g{duration}\r"));
        top.shows(said);
        top.press("q");
        top.ends();
    }
}

/// Changes a tunable by its keys.
fn change(top: &mut Terminal, name: &str, value: &str) {
    top.press("t");
    let screen = top.shows(name);
    let tunables: Vec<&str> = screen
        .lines()
        .skip_while(|line| !line.contains("Tunables"))
        .skip(1)
        .filter_map(|line| line.trim_start_matches(['│', ' ']).split_whitespace().next())
        .collect();
    let at = tunables.iter().position(|tunable| *tunable == name).expect("it is in the list");
    top.press(&"\x1b[B".repeat(at));
    top.press("\r");
    top.shows(&format!("{name} = "));
    top.press(&"\x7f".repeat(20));
    top.press(&format!("{value}\r"));
    top.shows(&format!("{name}={value} from here on"));
    top.press("t");
    top.until("the list is closed", |screen| !screen.contains("Tunables"));
}

/// What was changed by keys can be had again with the flags that are named at the end.
#[test]
fn a_tunable_is_changed_and_the_change_can_be_repeated() {
    let mut top = top(&["hogs:3", "--sched", "rfs,cfs", "--cpus", "1", "--hold"]);
    top.shows("HELD");
    top.press("g300ms\r");
    top.shows("at 0.300000000 s");
    change(&mut top, "bonus_ns", "1234");
    top.press("\t");
    top.shows("under cfs (2 of 2)");
    top.shows("at 0.300000001 s");
    top.press("\t");
    top.shows("under rfs (1 of 2)");
    top.press("q");
    let (status, said) = top.ends();
    assert_eq!(status.code(), Some(0));
    let again = "fairground run hogs:3 --sched rfs --at 300000001ns:bonus_ns=1234";
    assert!(said.contains(again), "{said}");
    let mut words: Vec<&str> = again.split_whitespace().skip(1).collect();
    words.extend(["--cpus", "1", "--duration", "400ms", "--format", "json"]);
    assert!(success(&words).contains("1234 at 300 ms"));
}

/// Each run has its own changes, whichever is shown in the end.
#[test]
fn the_changes_of_every_run_are_told() {
    let mut top = top(&["hogs:3", "--sched", "rfs,cfs", "--cpus", "1", "--hold"]);
    top.shows("HELD");
    change(&mut top, "bonus_ns", "1234");
    top.press("\t");
    top.shows("under cfs (2 of 2)");
    change(&mut top, "sched_latency_ns", "7000000");
    top.press("q");
    let (status, said) = top.ends();
    assert_eq!(status.code(), Some(0));
    for (sched, changed) in [("rfs", "bonus_ns=1234"), ("cfs", "sched_latency_ns=7000000")] {
        let start = format!("fairground run hogs:3 --sched {sched} --at ");
        let shown = said.lines().any(|line| line.contains(&start) && line.ends_with(changed));
        assert!(shown, "{changed} of {sched}:\n{said}");
    }
}

/// The changes that led to an error are those that are wanted again.
#[test]
fn the_changes_before_an_error_are_told() {
    let arguments = ["hackbench:1", "--cpus", "4", "--check", "--idle-bound", "1ns", "--sched"];
    let mut top = top(&[&arguments[..], &["o1", "--hold"]].concat());
    top.shows("HELD");
    change(&mut top, "INTERACTIVE_DELTA", "3");
    top.press(" ");
    top.until("it ends", |screen| screen.contains("fairground: "));
    let (status, said) = top.ends();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("fairground run hackbench:1 --sched o1 --at "), "{said}");
    assert!(said.contains(":INTERACTIVE_DELTA=3"), "{said}");
}

/// A terminal whose output is stopped fails after its mode was changed.
#[test]
fn a_terminal_that_cannot_be_drawn_on_is_left_as_it_was() {
    let pty = openpty(None, None).expect("a terminal");
    let before = tcgetattr(&pty.slave).expect("it has a state");
    fcntl(&pty.slave, FcntlArg::F_SETFL(OFlag::O_NONBLOCK | OFlag::O_RDWR))
        .expect("it does not wait");
    tcflow(&pty.slave, FlowArg::TCOOFF).expect("it is stopped");
    let side = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairground"));
    command.args(["top", "hogs:2"]).stdin(side()).stdout(side()).stderr(Stdio::piped());
    let output = command.spawn().expect("it starts").wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the terminal cannot be drawn on"), "{said}");
    let after = tcgetattr(&pty.slave).expect("it has a state");
    assert_eq!(after.local_flags, before.local_flags, "echo, lines, signals");
    assert_eq!(after.input_flags, before.input_flags);
}

#[test]
fn ctrl_c_and_signals_leave_the_terminal_as_it_was() {
    let mut by_key = top(&["hogs:2"]);
    by_key.shows(" runs ");
    by_key.press("\x03");
    assert_eq!(by_key.ends().0.code(), Some(0));
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut by_signal = top(&["hogs:2"]);
        by_signal.shows(" runs ");
        by_signal.signal(signal);
        assert_eq!(by_signal.ends().0.code(), Some(0), "{signal}");
    }
}

#[test]
fn an_error_on_the_way_leaves_the_terminal_as_it_was() {
    // No CPU may rest while a task waits: with one tick in ten ms some CPU soon does.
    let mut top =
        top(&["hackbench:1", "--cpus", "4", "--check", "--idle-bound", "1ns", "--sched", "o1"]);
    top.until("it ends", |screen| screen.contains("fairground: "));
    let (status, said) = top.ends();
    assert_eq!(status.code(), Some(2), "{said}");
}

#[test]
fn what_cannot_be_shown_is_said() {
    let said = refusal(&["top", "hogs:2"]);
    assert!(said.contains("stdout is none") || said.contains("draws on a terminal"), "{said}");
    assert!(said.contains("help: `fairground run`"), "{said}");
    for (arguments, words) in [
        (&["top"][..], "no workload"),
        (&["top", "hogs:2", "--on", "vm:6.12"], "cannot be watched"),
        (&["top", "hogs:2", "--on", "host"], "starts nothing"),
        (&["top", "hogs:2", "--on", "sim,host"], "one target"),
        (&["top", "hogs:2", "--interval", "0s"], "--interval 0"),
        (&["top", "hogs:2", "--interval", "10.1s"], "--interval 10.1s is too long"),
        (&["top", "nothing-like-it"], "nothing-like-it"),
    ] {
        let said = refusal(arguments);
        assert!(said.contains(words) && said.contains("fairground: "), "{arguments:?}: {said}");
    }
}

/// An option that would do nothing is refused by its name, or does not exist.
#[test]
fn options_without_an_effect_are_refused() {
    let of_runs: &[&[&str]] = &[
        &["--sched", "cfs"],
        &["--set", "a=1"],
        &["--at", "1s:a=1"],
        &["--profile", "x.toml"],
        &["--engine", "jit"],
        &["--null-loads", "error"],
        &["--cpus", "2"],
        &["--topology", "1x2x1"],
        &["--hz", "250"],
        &["--timers", "hrtimer"],
        &["--seed", "1"],
        &["--costs", "modern"],
        &["--cost", "a=1"],
        &["--check"],
        &["--duration", "1s"],
        &["--lead-in", "1s"],
        &["--locks", "spin"],
        &["--speed", "0"],
        &["--hold"],
        &["--format", "json"],
    ];
    for option in of_runs {
        let said = refusal(&[&["top", "--on", "host"], *option].concat());
        let words = format!("{} has no effect on this machine", option[0]);
        assert!(said.contains(&words), "{option:?}: {said}");
    }
    let several = ["top", "--on", "host", "--interval", "1s", "--hz", "250", "--check"];
    assert!(refusal(&several).contains("--check, --hz have no effect"));
    for option in [["--buffer", "1024"], ["--format", "json"]] {
        let said = refusal(&[&["top", "hogs:2"], &option[..]].concat());
        assert!(
            said.contains(&format!("{} has no effect on a simulated run", option[0])),
            "{said}"
        );
    }
    let of_kernels: &[&[&str]] = &[
        &["--stacks"],
        &["--no-recording"],
        &["--kernel", "x"],
        &["--append", "x"],
        &["--memory", "512"],
        &["--vm-mode", "fast"],
    ];
    for option in of_kernels {
        for of in [&["top", "hogs:2"][..], &["top", "--on", "host"]] {
            let said = refusal(&[of, *option].concat());
            assert!(said.contains(&format!("unexpected argument '{}'", option[0])), "{said}");
        }
    }
}

/// Environment variables apply to other commands too.
#[test]
fn a_seed_of_the_environment_is_no_option() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairground"));
    command.args(["top", "--on", "host"]).env("FAIRGROUND_SEED", "3").stdin(Stdio::null());
    let said = command.output().expect("it starts").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("draws on a terminal"), "{said}");
}

#[test]
fn this_machine() {
    let mut top = top(&["--on", "host", "--interval", "300ms"]);
    let screen = top.until("this machine, or why not", |screen| {
        screen.contains("live") || screen.contains("fairground: ")
    });
    if screen.contains("fairground: ") {
        assert!(screen.contains("help: ") && screen.contains("root"), "{screen}");
        return unavailable("recording", screen.trim());
    }
    // The view itself is one of the tasks that it shows.
    top.shows("this machine under its kernel");
    top.until("the program among the tasks", |screen| {
        screen.lines().any(|line| line.split_whitespace().nth(1) == Some("fairground"))
    });
    top.press("g");
    top.shows("a real machine does not wait");
    top.press("q");
    assert_eq!(top.ends().0.code(), Some(0));
}

/// The screen in the page is the one that its command shows.
#[test]
fn the_page_shows_what_is_seen() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/howto/watch-a-run.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let arguments = ["hogs:3+sleepers:2", "--sched", "cfs", "--cpus", "2", "--hold"];
    assert!(page.contains(&format!("fairground top {}", arguments.join(" "))));
    let mut top = sized(&arguments, 16, 110);
    top.shows("HELD");
    top.press("g3s\r");
    let screen = top.shows("at 3.000000000 s");
    top.press("q");
    top.ends();
    let trimmed: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let screen = trimmed.join("\n").trim_end().to_owned();
    assert!(
        page.contains(&screen),
        "docs/howto/watch-a-run.md has another screen; it is:\n{screen}"
    );
}
