//! Knobs of the kernel: features and tunables of its scheduler, and CPUs that can go offline, restored at the end of a
//! run.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fairground_suggest::did_you_mean;

use crate::job::Knob;

/// Why a knob could not be set.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// The kernel has no such feature or tunable.
    #[error(
        "this kernel has no feature or tunable `{name}`{}",
        near.as_ref().map(|near| format!("\n  help: did you mean {near}?")).unwrap_or_default()
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// The name that it may mean.
        near: Option<String>,
    },
    /// Neither of the folders can be read.
    #[error("cannot read the features and tunables of the kernel's scheduler: {path}: {error}\n  \
             help: this requires root and debugfs: mount -t debugfs none /sys/kernel/debug", path = path.display())]
    Closed {
        /// The folder.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The machine has no such CPU.
    #[error("`{name}`: this machine has no CPU {cpu}")]
    NoCpu {
        /// The requested name.
        name: String,
        /// The CPU.
        cpu: u32,
    },
    /// The kernel does not take the CPU offline.
    #[error("`{name}`: CPU {cpu} cannot go offline on this kernel: it has no {path}, as CPU 0 on x86\n  help: take another CPU", path = path.display())]
    StaysOnline {
        /// The requested name.
        name: String,
        /// The CPU.
        cpu: u32,
        /// The file that would do it.
        path: PathBuf,
    },
    /// The value of a feature, or of a CPU, is neither `on` nor `off`.
    #[error("`{name}` is `on` or `off`, not `{value}`")]
    NoSwitch {
        /// The feature.
        name: String,
        /// The requested value.
        value: String,
    },
    /// The kernel rejects the value.
    #[error("the kernel rejects `{name}={value}`: {error}")]
    Refused {
        /// The feature or tunable.
        name: String,
        /// The value.
        value: String,
        /// The kernel's error.
        error: io::Error,
    },
}

/// The folders of the kernel's knobs.
#[derive(Clone, Debug)]
pub(crate) struct KnobFolders {
    /// `/sys/kernel/debug/sched`.
    pub(crate) debug: PathBuf,
    /// `/proc/sys/kernel`.
    pub(crate) sysctl: PathBuf,
    /// `/sys/devices/system/cpu`.
    pub(crate) cpus: PathBuf,
}

impl Default for KnobFolders {
    fn default() -> Self {
        Self {
            debug: "/sys/kernel/debug/sched".into(),
            sysctl: "/proc/sys/kernel".into(),
            cpus: "/sys/devices/system/cpu".into(),
        }
    }
}

/// The original value of a knob: a file and its text.
pub(crate) type Original = (PathBuf, String);

/// The knobs of one run. Dropping this restores their original values.
#[derive(Debug)]
pub(crate) struct Knobs {
    folders: KnobFolders,
    originals: Vec<Original>,
    /// How many of the originals to restore: all of them once a knob was set.
    turned: bool,
}

/// A knob that the kernel has.
struct Found {
    file: PathBuf,
    /// The text that gives it the requested value.
    wanted: String,
    /// The text that gives it the value that it has.
    now: String,
}

impl Knobs {
    /// Finds every knob and stores its current value. Does not change anything.
    pub(crate) fn find(knobs: &[Knob], folders: KnobFolders) -> Result<Self, KnobError> {
        let mut found = Self { folders, originals: Vec::new(), turned: false };
        let mut seen = BTreeSet::new();
        for knob in knobs {
            let Found { file, now, .. } = found.place(knob)?;
            if seen.insert((file.clone(), now.trim_start_matches("NO_").to_owned())) {
                found.originals.push((file, now));
            }
        }
        Ok(found)
    }

    /// The files and texts that restore all knobs, in this order.
    pub(crate) fn originals(&self) -> Vec<Original> {
        self.originals.iter().rev().cloned().collect()
    }

    /// Sets a knob.
    pub(crate) fn turn(&mut self, knob: &Knob) -> Result<(), KnobError> {
        let Found { file, wanted, .. } = self.place(knob)?;
        self.turned = true;
        fs::write(&file, &wanted).map_err(|error| KnobError::Refused {
            name: knob.name.clone(),
            value: knob.value.clone(),
            error,
        })
    }

    fn place(&self, knob: &Knob) -> Result<Found, KnobError> {
        let name = knob.name.as_str();
        if let Some(cpu) = cpu_of(name) {
            return self.online(knob, cpu);
        }
        let words = features(&self.folders);
        let bare = |word: &str| word.strip_prefix("NO_").unwrap_or(word).to_owned();
        let names: Vec<String> = words.iter().map(|word| bare(word)).collect();
        // The name of a feature may itself start with NO_.
        for (feature, negated) in [(name.to_owned(), false), (bare(name), true)] {
            if names.contains(&feature) {
                return Ok(Found {
                    file: self.folders.debug.join("features"),
                    wanted: feature_word(&feature, switch(&knob.value, name)? != negated),
                    now: feature_word(&feature, words.contains(&feature)),
                });
            }
        }
        let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        if plain && name != "features" {
            let files = [&self.folders.debug, &self.folders.sysctl].map(|folder| folder.join(name));
            if let Some(file) = files.into_iter().find(|file| file.is_file()) {
                let now = chosen(&read(&file)?).to_owned();
                return Ok(Found { file, wanted: knob.value.clone(), now });
            }
        }
        if let Err(error) = fs::read_dir(&self.folders.debug)
            && fs::read_dir(&self.folders.sysctl).is_err()
        {
            return Err(KnobError::Closed { path: self.folders.debug.clone(), error });
        }
        Err(KnobError::Unknown { name: name.to_owned(), near: self.near(name, names) })
    }

    /// The file by which a CPU goes offline and comes back.
    fn online(&self, knob: &Knob, cpu: u32) -> Result<Found, KnobError> {
        let name = knob.name.clone();
        let wanted = if switch(&knob.value, &name)? { "1" } else { "0" }.to_owned();
        let folder = self.folders.cpus.join(format!("cpu{cpu}"));
        let file = folder.join("online");
        if !folder.is_dir() {
            return Err(KnobError::NoCpu { name, cpu });
        }
        if !file.is_file() {
            return Err(KnobError::StaysOnline { name, cpu, path: file });
        }
        let now = read(&file)?;
        Ok(Found { file, wanted, now })
    }

    fn near(&self, name: &str, mut known: Vec<String>) -> Option<String> {
        for folder in [&self.folders.debug, &self.folders.sysctl] {
            known.extend(files(folder));
        }
        did_you_mean(name, known.iter().map(String::as_str)).map(str::to_owned)
    }
}

impl Drop for Knobs {
    fn drop(&mut self) {
        if self.turned {
            restore(&self.originals());
        }
    }
}

/// Restores original values.
pub(crate) fn restore(originals: &[Original]) {
    for (path, text) in originals {
        // At this point an error can be neither reported nor handled.
        let _ = fs::write(path, text);
    }
}

/// The words of the features file; empty if it cannot be read.
pub(crate) fn features(folders: &KnobFolders) -> Vec<String> {
    let text = fs::read_to_string(folders.debug.join("features")).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// The tunables of `/sys/kernel/debug/sched` with their values, by name; and [`longest_search`], which is none, but by
/// which the scheduler decides as by one.
pub(crate) fn tunables(folders: &KnobFolders) -> Vec<(String, String)> {
    /// Files that are reports, not tunables.
    const REPORTS: [&str; 2] = ["features", "debug"];
    let names = files(&folders.debug).into_iter().filter(|name| !REPORTS.contains(&name.as_str()));
    names
        .filter_map(|name| {
            let text = read(&folders.debug.join(&name)).ok()?;
            let one_line = !text.is_empty() && !text.contains('\n');
            one_line.then(|| (name, chosen(&text).to_owned()))
        })
        .chain(longest_search(&folders.debug).map(|ns| (LONGEST_SEARCH.to_owned(), ns.to_string())))
        .collect()
}

/// A file of each scheduling domain: how long a search of a CPU that became idle took at most, ns.
const LONGEST_SEARCH: &str = "max_newidle_lb_cost";

/// The longest search of any CPU and domain; `None`: the kernel does not tell (before 5.13).
fn longest_search(debug: &Path) -> Option<u64> {
    let folders = |of: &Path| {
        let entries = fs::read_dir(of).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let cpus = folders(&debug.join("domains"));
    let domains = cpus.iter().flat_map(|cpu| folders(cpu));
    domains.filter_map(|domain| read(&domain.join(LONGEST_SEARCH)).ok()?.parse().ok()).max()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn read(path: &Path) -> Result<String, KnobError> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| KnobError::Closed { path: path.to_owned(), error })?;
    Ok(text.trim_end().to_owned())
}

/// The value in the text of a file. Of a choice, such as `none (voluntary) full`, the one in parentheses.
fn chosen(text: &str) -> &str {
    let inside = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    match inside {
        Some((chosen, _)) if !text.contains('\n') => chosen,
        _ => text,
    }
}

fn feature_word(name: &str, on: bool) -> String {
    if on { name.to_owned() } else { format!("NO_{name}") }
}

/// The CPU of `cpu.N.online`.
fn cpu_of(name: &str) -> Option<u32> {
    name.strip_prefix("cpu.")?.strip_suffix(".online")?.parse().ok()
}

fn switch(value: &str, name: &str) -> Result<bool, KnobError> {
    match value {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err(KnobError::NoSwitch { name: name.to_owned(), value: value.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> (tempfile::TempDir, KnobFolders) {
        let folder = tempfile::tempdir().expect("a folder");
        let [debug, sysctl, cpus] = ["sched", "kernel", "cpu"].map(|name| folder.path().join(name));
        for (dir, file, text) in [
            (&debug, "features", "GENTLE_FAIR_SLEEPERS NO_NEXT_BUDDY NO_NO_HZ_X \n"),
            (&debug, "latency_ns", "12000000\n"),
            (&debug, "preempt", "none (voluntary) full \n"),
            (&sysctl, "sched_child_runs_first", "0\n"),
            (&cpus.join("cpu0"), "uevent", ""),
            (&cpus.join("cpu1"), "online", "1\n"),
        ] {
            fs::create_dir_all(dir).expect("a folder");
            fs::write(dir.join(file), text).expect("a file");
        }
        (folder, KnobFolders { debug, sysctl, cpus })
    }

    fn knob(name: &str, value: &str) -> Knob {
        Knob { name: name.to_owned(), value: value.to_owned(), at_ns: None }
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).expect("a file")
    }

    #[test]
    fn knobs_are_turned_and_turned_back() {
        let (_folder, folders) = folders();
        let all = [
            knob("GENTLE_FAIR_SLEEPERS", "off"),
            knob("latency_ns", "6000000"),
            knob("sched_child_runs_first", "1"),
            knob("preempt", "full"),
        ];
        let mut knobs = Knobs::find(&all, folders.clone()).expect("known names");
        let mut written = Vec::new();
        for (knob, file) in all.iter().zip([
            folders.debug.join("features"),
            folders.debug.join("latency_ns"),
            folders.sysctl.join("sched_child_runs_first"),
            folders.debug.join("preempt"),
        ]) {
            knobs.turn(knob).expect("taken");
            written.push(text(&file));
        }
        assert_eq!(written, ["NO_GENTLE_FAIR_SLEEPERS", "6000000", "1", "full"]);
        // A kernel's features file would list all features again; this one contains the word written last.
        fs::write(folders.debug.join("features"), "NO_GENTLE_FAIR_SLEEPERS").expect("a file");
        drop(knobs);
        let after =
            ["features", "latency_ns", "preempt"].map(|file| text(&folders.debug.join(file)));
        assert_eq!(after, ["GENTLE_FAIR_SLEEPERS", "12000000", "voluntary"]);
    }

    #[test]
    fn a_cpu_goes_and_comes_back() {
        let (_folder, folders) = folders();
        let off = knob("cpu.1.online", "off");
        let mut knobs = Knobs::find(std::slice::from_ref(&off), folders.clone()).expect("a CPU");
        knobs.turn(&off).expect("taken");
        let file = folders.cpus.join("cpu1/online");
        assert_eq!(text(&file), "0");
        drop(knobs);
        assert_eq!(text(&file), "1");
        let error = |name: &str| {
            Knobs::find(&[knob(name, "off")], folders.clone()).unwrap_err().to_string()
        };
        assert_eq!(error("cpu.7.online"), "`cpu.7.online`: this machine has no CPU 7");
        assert!(error("cpu.0.online").contains("CPU 0 cannot go offline"));
    }

    #[test]
    fn the_negated_form_means_the_opposite() {
        let (_folder, folders) = folders();
        let file = folders.debug.join("features");
        for (name, value, word) in [
            ("NO_GENTLE_FAIR_SLEEPERS", "on", "NO_GENTLE_FAIR_SLEEPERS"),
            ("NO_NEXT_BUDDY", "off", "NEXT_BUDDY"),
            ("NO_HZ_X", "1", "NO_HZ_X"),
        ] {
            let before = text(&file);
            let mut knobs = Knobs::find(&[knob(name, value)], folders.clone()).expect("known");
            knobs.turn(&knob(name, value)).expect("taken");
            assert_eq!(text(&file), word);
            knobs.turned = false;
            fs::write(&file, before).expect("a file");
        }
    }

    #[test]
    fn a_wrong_name_gets_near_ones_and_changes_nothing() {
        let (_folder, folders) = folders();
        let error = |name: &str, value: &str| {
            Knobs::find(&[knob(name, value)], folders.clone()).unwrap_err().to_string()
        };
        assert_eq!(
            error("latency", "1"),
            "this kernel has no feature or tunable `latency`\n  help: did you mean latency_ns?"
        );
        assert!(error("GENTLE_SLEEPERS", "on").contains("did you mean GENTLE_FAIR_SLEEPERS"));
        assert_eq!(error("../x", "1"), "this kernel has no feature or tunable `../x`");
        assert_eq!(error("NEXT_BUDDY", "maybe"), "`NEXT_BUDDY` is `on` or `off`, not `maybe`");
    }

    #[test]
    fn tunables_are_files_of_one_line() {
        let (_folder, folders) = folders();
        assert_eq!(
            tunables(&folders),
            [("latency_ns", "12000000"), ("preempt", "voluntary")]
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        assert_eq!(features(&folders), ["GENTLE_FAIR_SLEEPERS", "NO_NEXT_BUDDY", "NO_NO_HZ_X"]);
        for (cpu, ns) in [("cpu0", "4000\n"), ("cpu1", "9000\n")] {
            let domain = folders.debug.join("domains").join(cpu).join("domain0");
            fs::create_dir_all(&domain).unwrap();
            fs::write(domain.join(LONGEST_SEARCH), ns).unwrap();
        }
        let last = tunables(&folders).pop();
        assert_eq!(last, Some((LONGEST_SEARCH.to_owned(), "9000".to_owned())));
    }
}
