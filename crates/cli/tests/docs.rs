//! Every command of the pages is run, and prints what the page says. `FAIRGROUND_DOCS=write` writes what it prints into the pages;
//! `FAIRGROUND_DOCS_PAGE=docs/diagnose.md` looks at one page only. With `FAIRGROUND_RELEASE_BINARY` that build is run, and the
//! long blocks too. A picture that a command draws is the one that the page shows. `FAIRGROUND_DOCS_ALSO=vm,network` runs the blocks with these words as well, and looks at their exit codes only: what a
//! guest measures belongs to one build of the program.

#[path = "support/console.rs"]
#[allow(dead_code)] // The test of the options uses the rest.
mod console;
#[path = "support/pages.rs"]
#[allow(dead_code)]
mod pages;

use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::{env, fs, thread};

use console::{EXEMPT, LONG, Step, agrees, renewed, steps, written};
use pages::{Block, Page, pages, read, root};
use tempfile::TempDir;

/// Longer than this no command of a page may take.
const SECONDS_MAX: &str = "120";

/// What a reader of any page has in the folder where the commands are typed.
struct Desk {
    folder: TempDir,
    path: String,
}

impl Desk {
    fn new(binary: &Path) -> Desk {
        let folder = TempDir::new().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["experiments", "policies"] {
            symlink(root().join(name), at(name)).expect("a link");
        }
        fs::create_dir(at("bin")).expect("a folder");
        symlink(binary, at("bin/fairground")).expect("a link");
        let own = read("docs/own-scheduler.md".to_owned());
        let source = own.blocks().into_iter().find(|b| b.file.as_deref() == Some("his.bpf.c"));
        let source = source.expect("docs/own-scheduler.md has the file his.bpf.c").text;
        fs::write(at("mine.bpf.c"), source).expect("a file");
        let recording = "experiments/recordings/mixed-2cpu-whole.perf-sched.txt.gz";
        let packed = fs::File::open(root().join(recording)).expect("the recording");
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(packed).read_to_end(&mut text).expect("gzip");
        fs::write(at("machine.txt"), text).expect("a file");
        let path = env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", at("bin").display());
        Desk { folder, path }
    }

    /// The exit code and the lines of a command.
    fn type_in(&self, command: &str) -> (i32, Vec<String>) {
        let output = Command::new("timeout")
            .args([SECONDS_MAX, "bash", "-c", &format!("exec 2>&1\n{command}")])
            .current_dir(self.folder.path())
            .env("PATH", &self.path)
            .env_remove("FAIRGROUND_SEED")
            .stdin(std::process::Stdio::null())
            .output()
            .expect("bash starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines: Vec<_> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        (output.status.code().unwrap_or(-1), lines)
    }
}

/// A build of the program.
struct Build {
    binary: PathBuf,
    quick: bool,
    /// Reasons that do not hold here.
    also: Vec<String>,
    /// Whether the pages are made right.
    writes: bool,
}

impl Build {
    fn here() -> Build {
        let also = env::var("FAIRGROUND_DOCS_ALSO").unwrap_or_default();
        let also = also.split(',').map(str::to_owned).collect();
        let writes = env::var("FAIRGROUND_DOCS").is_ok_and(|word| word == "write");
        match env::var_os("FAIRGROUND_RELEASE_BINARY") {
            Some(binary) => Build { binary: binary.into(), quick: true, also, writes },
            None => {
                let binary = env!("CARGO_BIN_EXE_fairground").into();
                Build { binary, quick: false, also, writes }
            }
        }
    }
}

/// Whether a block is run here.
fn is_run(block: &Block, build: &Build) -> Result<bool, String> {
    let mut run = true;
    for tag in block.tags() {
        if tag == LONG {
            run &= build.quick;
        } else if EXEMPT.iter().any(|(name, _)| name == tag) {
            run &= build.also.contains(tag);
        } else {
            return Err(format!("`console {tag}`: no such reason not to run a block"));
        }
    }
    Ok(run)
}

/// Runs the blocks of a page; the page as it should be, and what was wrong.
fn walk(page: &Page, build: &Build) -> (String, Vec<String>, usize) {
    let (mut text, mut faults, mut commands) = (page.text.clone(), Vec::new(), 0);
    let desk = Desk::new(&build.binary);
    let blocks = page.blocks();
    let mut edits = Vec::new();
    for block in &blocks {
        if let Some(file) = &block.file {
            fs::write(desk.folder.path().join(file), &block.text).expect("a file");
        }
        let place = format!("{}:{}", page.name, block.line);
        if !block.is_console() {
            if block
                .text
                .lines()
                .any(|line| line.starts_with("fairground ") || line.starts_with("$ "))
            {
                faults.push(format!("{place}: a command outside of a block ```console"));
            }
            continue;
        }
        match (is_run(block, build), steps(&block.text)) {
            (Err(fault), _) | (_, Err(fault)) => faults.push(format!("{place}: {fault}")),
            (Ok(true), Ok(mut steps)) => {
                let same_anywhere = block.tags().iter().all(|tag| tag == LONG);
                for step in &mut steps {
                    commands += 1;
                    if !same_anywhere {
                        step.expected.clear();
                    }
                    if let Some(fault) = follow(&desk, step) {
                        faults.push(format!("{place}: {fault}"));
                    }
                }
                if same_anywhere {
                    edits.push((block.range.clone(), written(&steps)));
                }
            }
            (Ok(false), Ok(_)) => {}
        }
    }
    for (range, new) in edits.into_iter().rev() {
        text.replace_range(range, &new);
    }
    faults.extend(
        page.drawn().into_iter().filter_map(|picture| compare_picture(&desk, build, picture)),
    );
    (text, faults, commands)
}

/// Whether a picture of a page is the one that its commands drew, where they were run; with `FAIRGROUND_DOCS=write` it is from now on.
fn compare_picture(
    desk: &Desk,
    build: &Build,
    (line, file, shown): (usize, String, PathBuf),
) -> Option<String> {
    let drawn = fs::read(desk.folder.path().join(&file)).ok()?;
    if fs::read(&shown).is_ok_and(|known| known == drawn) {
        return None;
    }
    if build.writes {
        fs::write(&shown, drawn).expect("the picture is written");
    }
    Some(format!("{}:{line}: the commands drew another {file}", shown.display()))
}

/// Runs a command; what is wrong with the page, which `step` then has right.
fn follow(desk: &Desk, step: &mut Step) -> Option<String> {
    let (code, lines) = desk.type_in(&step.command);
    let shown = lines.join("\n");
    if code != step.code {
        let fault = format!("`{}` ended with {code}, not {}:\n{shown}", step.command, step.code);
        step.code = code;
        return Some(fault);
    }
    if step.expected.is_empty() || agrees(&step.expected, &lines) {
        return None;
    }
    let page = step.expected.join("\n");
    let fault = format!("`{}` printed\n{shown}\n  and not\n{page}", step.command);
    step.expected = renewed(&step.expected, &lines);
    Some(fault)
}

#[test]
fn every_command_prints_what_the_page_says() {
    let build = Build::here();
    let only = env::var("FAIRGROUND_DOCS_PAGE").ok();
    let mut all = pages();
    all.retain(|page| only.as_ref().is_none_or(|name| *name == page.name));
    let queue = Mutex::new(all);
    let broken = Mutex::new((Vec::new(), 0));
    let work = || {
        loop {
            let Some(page) = queue.lock().expect("no panic").pop() else { return };
            let (text, faults, commands) = walk(&page, &build);
            if build.writes && text != page.text {
                fs::write(root().join(&page.name), text).expect("the page is written");
            }
            let mut broken = broken.lock().expect("no panic");
            broken.0.extend(faults);
            broken.1 += commands;
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (mut faults, commands) = broken.into_inner().expect("no panic");
    faults.sort();
    println!("{commands} commands were run");
    assert!(only.is_some() || commands > 50, "only {commands} commands were found");
    let remedy =
        "FAIRGROUND_DOCS=write cargo test -p fairground --test docs, and look at the difference";
    assert!(faults.is_empty(), "{}\n\n{remedy}", faults.join("\n"));
}

#[test]
fn a_page_that_says_something_else_is_found() {
    let binary = env!("CARGO_BIN_EXE_fairground").into();
    let build = Build { binary, quick: false, also: vec![], writes: false };
    let walk = |text: &str| {
        let page = Page { name: "docs/page.md".to_owned(), text: text.to_owned() };
        walk(&page, &build)
    };
    let right =
        "```console\n$ echo one; echo two; echo three\none\n...\nthree\n\n$ false\n? 1\n```\n";
    assert_eq!(walk(right), (right.to_owned(), vec![], 2));
    let (text, faults, _) = walk(&right.replace("\nthree\n", "\nfour\n").replace("? 1", "? 2"));
    assert_eq!((text.as_str(), faults.len()), (right, 2), "{faults:?}");
    for (wrong, why) in [
        ("```console\n$ fairground run --nonsense\n```", "ended with 2"),
        ("```console at-night\n$ true\n```", "no such reason"),
        ("```sh\nfairground sched list\n```", "outside of a block"),
        ("a\n\n    fairground sched list\n", "outside of a block"),
        (
            "```console\n$ echo new > p.svg\n```\n\n<!-- picture: p.svg -->\n![p](nowhere.svg)\n",
            "drew another p.svg",
        ),
    ] {
        let (_, faults, _) = walk(wrong);
        assert!(faults.len() == 1 && faults[0].contains(why), "{wrong}: {faults:?}");
    }
}
