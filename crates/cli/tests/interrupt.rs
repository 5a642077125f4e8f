//! Ctrl-C: what there is is kept, and says that it is partial.

use std::fs::File;
use std::time::{Duration, Instant};

use crate::support::terminal::Terminal;
use crate::support::{Files, interruptible, success};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Longer than any test runs, ns.
const LENGTH_NS: u64 = 200_000_000_000_000;

/// Runs a command that would last very long, interrupts it as soon as its progress shows a label and that time
/// passed, and returns the exit code, what was on the terminal, and stdout.
fn interrupted(arguments: &[&str], label: &str) -> (Option<i32>, String, String) {
    let files = Files::new();
    let path = files.path("out");
    let mut command = interruptible();
    command.args(arguments).args(["--duration", "200000s"]).env_remove("FAIRGROUND_SEED");
    let out = File::create(&path).expect("a file");
    let mut terminal = Terminal::start_into(command, 24, 120, Some(out));
    // The bar is drawn when a step is done; the time that is left is then known.
    terminal.until("progress", |screen| {
        screen.lines().any(|line| {
            let line = line.trim();
            line.starts_with(label) && line.ends_with("left") && !line.contains(" 0s left")
        })
    });
    terminal.signal(Signal::SIGINT);
    let (status, said) = terminal.ends();
    (status.code(), said, std::fs::read_to_string(&path).expect("text"))
}

fn entry<'d>(document: &'d Value, section: &str, name: &str) -> Option<&'d Value> {
    let sections = document["sections"].as_array().expect("sections");
    let section = sections.iter().find(|known| known["name"] == section)?;
    let entries = section["entries"].as_array().expect("entries");
    entries.iter().find(|entry| entry["name"] == name).map(|entry| &entry["value"])
}

fn has_verdict(document: &Value, text: &str) -> bool {
    let verdicts = document["verdicts"].as_array().expect("verdicts");
    verdicts.iter().any(|verdict| verdict["text"].as_str().is_some_and(|said| said.contains(text)))
}

#[test]
fn a_run_keeps_what_it_reached() {
    let (code, said, out) =
        interrupted(&["run", "hogs:2", "--cpus", "1", "--format", "json"], "cfs");
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("interrupted: what there is follows"), "{said}");
    let document: Value = serde_json::from_str(&out).expect("JSON");
    let reached = entry(&document, "run cfs", "partial").and_then(Value::as_u64).expect("a time");
    assert!(reached > 0 && reached < LENGTH_NS && reached.is_multiple_of(50_000_000), "{reached}");
    assert!(document["title"].as_str().is_some_and(|title| title.ends_with("(partial)")));
    assert!(has_verdict(&document, "partial: it was interrupted after"));
    let whole = format!("{reached}ns");
    let whole = ["run", "hogs:2", "--cpus", "1", "--format", "json", "--duration", &whole];
    let whole: Value = serde_json::from_str(&success(&whole)).expect("JSON");
    assert_eq!(document["tables"], whole["tables"], "the figures of a run of that length");
    assert!(entry(&whole, "run cfs", "partial").is_none() && !has_verdict(&whole, "partial"));
}

#[test]
fn a_comparison_keeps_the_runs_that_it_reached() {
    let files = Files::new();
    let page = files.path("page.html").display().to_string();
    let arguments = ["compare", "hogs:2", "--cpus", "1", "--sched", "rfs,cfs", "--html", &page];
    let (code, said, out) = interrupted(&arguments, "rfs");
    assert_eq!(code, Some(130), "{said}");
    for text in
        ["(partial)", "rfs: partial: it was interrupted after", "cfs: not run: it was interrupted"]
    {
        assert!(out.contains(text), "no {text:?} in:\n{out}");
    }
    let page = std::fs::read_to_string(&page).expect("a page");
    assert!(page.contains("(partial)") && page.contains("rfs: partial: it was interrupted after"));
}

/// On the host: the processes of the run are gone, and so is the folder that it worked in.
#[test]
fn a_run_on_this_machine_ends_and_leaves_nothing() {
    let (files, scratch) = (Files::new(), Files::new());
    let out = File::create(files.path("out")).expect("a file");
    let mut command = interruptible();
    // No other test has a task of this name.
    let workload = files.write(
        "w.toml",
        "format = 1\nname = \"lingering\"\nduration = \"10s\"\n[[task]]\nname = \"lingers-here\"\n\
         program = [{ loop = [{ sleep = \"10ms\" }] }]\n",
    );
    command.args(["run", &workload, "--on", "host", "--no-recording", "--duration", "1000s"]);
    command.env("TMPDIR", scratch.path(".")).env_remove("FAIRGROUND_SEED");
    let mut terminal = Terminal::start_into(command, 24, 120, Some(out));
    terminal.until("its progress", |screen| screen.contains("host") || screen.contains("kernel"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while lingering() == 0 {
        assert!(Instant::now() < deadline, "the task was never seen: {}", terminal.text());
        std::thread::sleep(Duration::from_millis(20));
    }
    terminal.signal(Signal::SIGINT);
    let (status, said) = terminal.ends();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted before anything was measured"), "{said}");
    // The kernel ends them as soon as the runner is gone.
    while lingering() > 0 {
        assert!(Instant::now() < deadline, "a task goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = std::fs::read_dir(scratch.path(".")).expect("a folder").count();
    assert_eq!(left, 0, "files are left in the temporary folder");
}

/// How many processes have the name of the task above.
fn lingering() -> usize {
    let named = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("comm")).ok();
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes.filter_map(named).filter(|name| name.trim() == "lingers-here").count()
}
