//! What a kernel itself can be told: features and tunables of its scheduler. What was there before comes back at the end.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::job::Knob;

/// Names that an error proposes.
const NEAR_MAX: usize = 3;
/// How alike a proposed name must be, of 1.
const NEAR_SIMILARITY: f64 = 0.5;

/// Why the kernel could not be told something.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// The kernel has no such feature or tunable.
    #[error(
        "this kernel has no switch or tunable `{name}`{}",
        if near.is_empty() { String::new() } else { format!("\n  help: did you mean {}?", near.join(", ")) }
    )]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// Names that it has and that are like it, the likeliest first.
        near: Vec<String>,
    },
    /// Neither of the folders can be read.
    #[error("the switches and tunables of the kernel's scheduler cannot be read: {path}: {error}\n  help: that takes root, and debugfs: mount -t debugfs none /sys/kernel/debug", path = path.display())]
    Closed {
        /// The folder.
        path: PathBuf,
        /// What the kernel says.
        error: io::Error,
    },
    /// A feature is on or off.
    #[error("the feature `{name}` is `on` or `off`, not `{value}`")]
    NoSwitch {
        /// The feature.
        name: String,
        /// The value that was asked for.
        value: String,
    },
    /// The kernel does not take the value.
    #[error("the kernel refuses `{name}={value}`: {error}")]
    Refused {
        /// The feature or tunable.
        name: String,
        /// The value.
        value: String,
        /// What the kernel says.
        error: io::Error,
    },
}

/// Where the kernel keeps its switches and tunables.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// `/sys/kernel/debug/sched`.
    pub(crate) debug: PathBuf,
    /// `/proc/sys/kernel`.
    pub(crate) sysctl: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self { debug: "/sys/kernel/debug/sched".into(), sysctl: "/proc/sys/kernel".into() }
    }
}

/// What must be written where to have something as it was: a file and its text.
pub(crate) type Original = (PathBuf, String);

/// The knobs of one run. What they were is written back when this is dropped.
#[derive(Debug)]
pub(crate) struct Knobs {
    places: Places,
    originals: Vec<Original>,
    /// How many of the originals belong to knobs that were turned; all of them once one was.
    turned: bool,
}

/// A knob that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// A feature, by its name without `NO_`; whether that was before it.
    Feature {
        name: String,
        negated: bool,
    },
    File(PathBuf),
}

impl Knobs {
    /// Looks every knob up, and keeps what it is now. Nothing is changed yet.
    pub(crate) fn find(knobs: &[Knob], places: Places) -> Result<Self, KnobError> {
        let mut found = Self { places, originals: Vec::new(), turned: false };
        let mut seen = BTreeSet::new();
        for knob in knobs {
            let original = match found.place(&knob.name)? {
                Found::Feature { name, negated } => {
                    switch(&knob.value, &knob.name)?;
                    let _ = negated;
                    let on = found.features().contains(&name);
                    (found.feature_file(), feature_word(&name, on))
                }
                Found::File(path) => {
                    let text = read(&path)?;
                    (path, chosen(&text).to_owned())
                }
            };
            if seen.insert((original.0.clone(), original.1.trim_start_matches("NO_").to_owned())) {
                found.originals.push(original);
            }
        }
        Ok(found)
    }

    /// What to write where to undo everything, in this order.
    pub(crate) fn originals(&self) -> Vec<Original> {
        self.originals.iter().rev().cloned().collect()
    }

    /// Turns a knob.
    pub(crate) fn turn(&mut self, knob: &Knob) -> Result<(), KnobError> {
        let (path, text) = match self.place(&knob.name)? {
            Found::Feature { name, negated } => {
                let on = switch(&knob.value, &knob.name)? != negated;
                (self.feature_file(), feature_word(&name, on))
            }
            Found::File(path) => (path, knob.value.clone()),
        };
        self.turned = true;
        fs::write(&path, &text).map_err(|error| KnobError::Refused {
            name: knob.name.clone(),
            value: knob.value.clone(),
            error,
        })
    }

    fn feature_file(&self) -> PathBuf {
        self.places.debug.join("features")
    }

    /// The words of the features' file: `NAME` for one that is on, `NO_NAME` for one that is off.
    fn features(&self) -> Vec<String> {
        features(&self.places)
    }

    fn place(&self, name: &str) -> Result<Found, KnobError> {
        let words = self.features();
        let bare = |word: &str| word.strip_prefix("NO_").unwrap_or(word).to_owned();
        let names: Vec<String> = words.iter().map(|word| bare(word)).collect();
        // A feature's own name may begin with NO_.
        for (candidate, negated) in
            [(name, false), (name.strip_prefix("NO_").unwrap_or(name), true)]
        {
            if names.iter().any(|known| known == candidate) {
                return Ok(Found::Feature { name: candidate.to_owned(), negated });
            }
        }
        let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        if plain && name != "features" {
            for folder in [&self.places.debug, &self.places.sysctl] {
                let path = folder.join(name);
                if path.is_file() {
                    return Ok(Found::File(path));
                }
            }
        }
        if let Err(error) = fs::read_dir(&self.places.debug)
            && fs::read_dir(&self.places.sysctl).is_err()
        {
            return Err(KnobError::Closed { path: self.places.debug.clone(), error });
        }
        Err(KnobError::Unknown { name: name.to_owned(), near: self.near(name, names) })
    }

    fn near(&self, name: &str, mut known: Vec<String>) -> Vec<String> {
        for folder in [&self.places.debug, &self.places.sysctl] {
            known.extend(files(folder));
        }
        let likeness = |other: &str| {
            strsim::normalized_damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase())
        };
        let mut near: Vec<(f64, String)> = known
            .into_iter()
            .map(|other| (likeness(&other), other))
            .filter(|(likeness, _)| *likeness >= NEAR_SIMILARITY)
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        near.into_iter().map(|(_, name)| name).take(NEAR_MAX).collect()
    }
}

impl Drop for Knobs {
    fn drop(&mut self) {
        if self.turned {
            restore(&self.originals());
        }
    }
}

/// Writes back what was there before.
pub(crate) fn restore(originals: &[Original]) {
    for (path, text) in originals {
        // There is nobody left to tell, and nothing else to try.
        let _ = fs::write(path, text);
    }
}

/// The words of the features' file; none where it cannot be read.
pub(crate) fn features(places: &Places) -> Vec<String> {
    let text = fs::read_to_string(places.debug.join("features")).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// The tunables of `/sys/kernel/debug/sched` with their values, by name.
pub(crate) fn tunables(places: &Places) -> Vec<(String, String)> {
    /// Files that hold a report.
    const REPORTS: [&str; 2] = ["features", "debug"];
    let names = files(&places.debug).into_iter().filter(|name| !REPORTS.contains(&name.as_str()));
    names
        .filter_map(|name| {
            let text = read(&places.debug.join(&name)).ok()?;
            let one_line = !text.is_empty() && !text.contains('\n');
            one_line.then(|| (name, chosen(&text).to_owned()))
        })
        .collect()
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

/// The value in a file's text: of a choice, `none (voluntary) full`, the one in brackets.
fn chosen(text: &str) -> &str {
    let inside = |text: &'_ str| {
        let (_, rest) = text.split_once('(')?;
        Some(rest.split_once(')')?.0.len())
    };
    match (text.find('('), inside(text)) {
        (Some(at), Some(len)) if !text.contains('\n') => &text[at + 1..at + 1 + len],
        _ => text,
    }
}

fn feature_word(name: &str, on: bool) -> String {
    if on { name.to_owned() } else { format!("NO_{name}") }
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

    fn places() -> (tempfile::TempDir, Places) {
        let folder = tempfile::tempdir().expect("a folder");
        let (debug, sysctl) = (folder.path().join("sched"), folder.path().join("kernel"));
        for (dir, file, text) in [
            (&debug, "features", "GENTLE_FAIR_SLEEPERS NO_NEXT_BUDDY NO_NO_HZ_X \n"),
            (&debug, "latency_ns", "12000000\n"),
            (&debug, "preempt", "none (voluntary) full \n"),
            (&sysctl, "sched_child_runs_first", "0\n"),
        ] {
            fs::create_dir_all(dir).expect("a folder");
            fs::write(dir.join(file), text).expect("a file");
        }
        (folder, Places { debug, sysctl })
    }

    fn knob(name: &str, value: &str) -> Knob {
        Knob { name: name.to_owned(), value: value.to_owned(), at_ns: None }
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).expect("a file")
    }

    #[test]
    fn knobs_are_turned_and_turned_back() {
        let (_folder, places) = places();
        let all = [
            knob("GENTLE_FAIR_SLEEPERS", "off"),
            knob("latency_ns", "6000000"),
            knob("sched_child_runs_first", "1"),
            knob("preempt", "full"),
        ];
        let mut knobs = Knobs::find(&all, places.clone()).expect("known names");
        let mut written = Vec::new();
        for (knob, file) in all.iter().zip([
            places.debug.join("features"),
            places.debug.join("latency_ns"),
            places.sysctl.join("sched_child_runs_first"),
            places.debug.join("preempt"),
        ]) {
            knobs.turn(knob).expect("taken");
            written.push(text(&file));
        }
        assert_eq!(written, ["NO_GENTLE_FAIR_SLEEPERS", "6000000", "1", "full"]);
        // In the kernel the file of features has all of them again; here it has the word that was written.
        fs::write(places.debug.join("features"), "NO_GENTLE_FAIR_SLEEPERS").expect("a file");
        drop(knobs);
        let after =
            ["features", "latency_ns", "preempt"].map(|file| text(&places.debug.join(file)));
        assert_eq!(after, ["GENTLE_FAIR_SLEEPERS", "12000000", "voluntary"]);
    }

    #[test]
    fn the_negated_form_means_the_opposite() {
        let (_folder, places) = places();
        let file = places.debug.join("features");
        for (name, value, word) in [
            ("NO_GENTLE_FAIR_SLEEPERS", "on", "NO_GENTLE_FAIR_SLEEPERS"),
            ("NO_NEXT_BUDDY", "off", "NEXT_BUDDY"),
            ("NO_HZ_X", "1", "NO_HZ_X"),
        ] {
            let before = text(&file);
            let mut knobs = Knobs::find(&[knob(name, value)], places.clone()).expect("known");
            knobs.turn(&knob(name, value)).expect("taken");
            assert_eq!(text(&file), word);
            knobs.turned = false;
            fs::write(&file, before).expect("a file");
        }
    }

    #[test]
    fn a_wrong_name_gets_near_ones_and_changes_nothing() {
        let (_folder, places) = places();
        let error = |name: &str, value: &str| {
            Knobs::find(&[knob(name, value)], places.clone()).unwrap_err().to_string()
        };
        assert_eq!(
            error("latency", "1"),
            "this kernel has no switch or tunable `latency`\n  help: did you mean latency_ns?"
        );
        assert!(error("GENTLE_SLEEPERS", "on").contains("did you mean GENTLE_FAIR_SLEEPERS"));
        assert_eq!(error("../x", "1"), "this kernel has no switch or tunable `../x`");
        assert_eq!(
            error("NEXT_BUDDY", "maybe"),
            "the feature `NEXT_BUDDY` is `on` or `off`, not `maybe`"
        );
    }

    #[test]
    fn tunables_are_files_of_one_line() {
        let (_folder, places) = places();
        assert_eq!(
            tunables(&places),
            [("latency_ns", "12000000"), ("preempt", "voluntary")]
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        assert_eq!(features(&places), ["GENTLE_FAIR_SLEEPERS", "NO_NEXT_BUDDY", "NO_NO_HZ_X"]);
    }
}
