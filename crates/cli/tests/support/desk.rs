//! Where the commands of a page are typed, and by which build of the program.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use fairground_testing::unavailable;
use tempfile::TempDir;

use crate::support::console::{ABILITIES, EXEMPT, LONG, SLOW, TERMINAL};
use crate::support::pages::{Block, root};
use crate::support::terminal::Terminal;

/// Longer than this no command of a page may take; one that is slow, an hour.
const SECONDS_MAX: &str = "120";
const SLOW_SECONDS_MAX: &str = "3600";
/// Other programs that the pages call on real machines: what is tried is fairground.
const STAND_INS: [(&str, &str); 3] =
    [("sudo", "exec \"$@\""), ("hackbench", "exec sleep 0.2"), ("make", "exec true")];

/// What a reader of any page has in the folder where the commands are typed.
pub(crate) struct Desk {
    pub(crate) folder: TempDir,
    path: String,
}

impl Desk {
    pub(crate) fn new(binary: &Path) -> Desk {
        let folder = TempDir::new().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["experiments", "policies"] {
            symlink(root().join(name), at(name)).expect("a link");
        }
        fs::create_dir(at("bin")).expect("a folder");
        symlink(binary, at("bin/fairground")).expect("a link");
        for (name, does) in STAND_INS {
            let file = at("bin").join(name);
            fs::write(&file, format!("#!/bin/sh\n{does}\n")).expect("a file");
            fs::set_permissions(&file, Permissions::from_mode(0o755)).expect("ours");
        }
        let path = env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", at("bin").display());
        Desk { folder, path }
    }

    /// A command for a shell, typed at the desk; behind another program, where there is one.
    fn shell(&self, before: &[&str], command: &str) -> Command {
        let script = format!("exec 2>&1\n{command}");
        let words = [before, &["bash", "-c", &script]].concat();
        let mut shell = Command::new(words[0]);
        shell.args(&words[1..]);
        shell.current_dir(self.folder.path()).env("PATH", &self.path).env_remove("FAIRGROUND_SEED");
        shell
    }

    /// The exit code and the lines of a command of a block with these words.
    pub(crate) fn type_in(&self, command: &str, tags: &[String]) -> (i32, Vec<String>) {
        let has = |word: &str| tags.iter().any(|tag| tag == word);
        let (code, text) = if has(TERMINAL) {
            // A terminal waits only so long itself; behind `timeout` a program could not read its keys.
            let mut terminal = Terminal::start(self.shell(&[], command), 24, 132);
            terminal.until("anything", |screen| !screen.trim().is_empty());
            terminal.press("q");
            let (status, screen) = terminal.ends();
            (status.code(), screen)
        } else {
            let limit = if has(SLOW) { SLOW_SECONDS_MAX } else { SECONDS_MAX };
            let mut shell = self.shell(&["timeout", limit], command);
            let output = shell.stdin(std::process::Stdio::null()).output().expect("bash starts");
            (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let mut lines: Vec<_> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        (code.unwrap_or(-1), lines)
    }
}

/// What a machine can do, by doctor's answer in CSV: the verdicts on abilities, not those on the checks that each
/// rests on.
pub(crate) fn ready_abilities(csv: &str) -> BTreeSet<&'static str> {
    let verdicts = csv.lines().filter(|line| line.starts_with(",abilities,"));
    let ready: Vec<_> = verdicts.filter_map(|line| line.strip_suffix(",verdict,ready,")).collect();
    let is_ready = |ability: &&str| ready.iter().any(|row| row.split(',').nth(2) == Some(ability));
    ABILITIES.into_iter().filter(is_ready).collect()
}

/// A build of the program.
pub(crate) struct Build {
    pub(crate) binary: PathBuf,
    /// It is the release build: what takes long is run too, and what only some machines can.
    pub(crate) quick: bool,
    /// What this machine can do, as doctor says.
    ready: BTreeSet<&'static str>,
    /// Reasons not to run a block that do not hold here.
    also: Vec<String>,
    /// Whether the pages are made right.
    pub(crate) writes: bool,
}

impl Build {
    /// The release build where there is one, else that of the test.
    pub(crate) fn here() -> Build {
        let Some(binary) = env::var_os("FAIRGROUND_RELEASE_BINARY") else { return Build::debug() };
        let also = env::var("FAIRGROUND_DOCS_ALSO").unwrap_or_default();
        let also = also.split(',').map(str::to_owned).collect();
        let binary = PathBuf::from(binary);
        let asked = [&["doctor", "--format", "csv"][..], &ABILITIES].concat();
        let said = Command::new(&binary).args(asked).output().expect("doctor starts");
        let ready = ready_abilities(&String::from_utf8_lossy(&said.stdout));
        for ability in ABILITIES.iter().filter(|ability| !ready.contains(*ability)) {
            let name = match *ability {
                "fetch" => "network",
                "vm" | "vm-load" => "kernel",
                "record" => "recording",
                _ => "sched-ext",
            };
            let reason = format!("blocks marked `{ability}`: see `fairground doctor {ability}`");
            unavailable(name, reason);
        }
        Build { binary, quick: true, ready, also, ..Build::debug() }
    }

    /// The test's own build, which does what every machine can.
    pub(crate) fn debug() -> Build {
        let writes = env::var("FAIRGROUND_DOCS").is_ok_and(|word| word == "write");
        let binary = env!("CARGO_BIN_EXE_fairground").into();
        Build { binary, quick: false, ready: BTreeSet::new(), also: Vec::new(), writes }
    }

    /// Whether a block is run here.
    pub(crate) fn runs(&self, block: &Block) -> Result<bool, String> {
        let mut runs = true;
        for tag in block.tags() {
            runs &= if ABILITIES.contains(&tag.as_str()) {
                self.ready.contains(tag.as_str())
            } else if EXEMPT.iter().any(|(name, _)| name == tag) {
                self.also.contains(tag)
            } else if tag == LONG {
                self.quick
            } else if tag == TERMINAL {
                true
            } else {
                return Err(format!("`console {tag}`: no such reason not to run a block"));
            };
        }
        Ok(runs)
    }
}
