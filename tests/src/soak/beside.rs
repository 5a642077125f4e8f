//! A program that runs repeatedly beside the own load.

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a program's first run, after the time of the load.
const GRACE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// The option of stress-ng for the file of its figures.
const FIGURES_OPTION: &str = "--yaml";

/// A running program. Dropping it ends it.
pub(super) struct Beside {
    words: Vec<String>,
    child: Child,
    /// Number of completed runs.
    pub(super) runs: u64,
    /// Problems.
    pub(super) problems: Vec<String>,
}

impl Beside {
    pub(super) fn start(words: &[String]) -> io::Result<Beside> {
        let child = spawn(words)?;
        Ok(Beside { words: words.to_vec(), child, runs: 0, problems: Vec::new() })
    }

    /// Restarts it if it has ended.
    pub(super) fn keep_going(&mut self) {
        let Ok(Some(status)) = self.child.try_wait() else { return };
        if status.success() {
            self.runs += 1;
        } else {
            self.problems.push(format!("{}: {status}", self.words.join(" ")));
        }
        match spawn(&self.words) {
            Ok(next) => self.child = next,
            Err(error) => self.problems.push(format!("{}: {error}", self.words[0])),
        }
    }

    /// Ends it after at least one completed run. Returns the operations of each worker, and the runs of the program.
    pub(super) fn finish(&mut self) -> Vec<(String, u64)> {
        let deadline = Instant::now() + GRACE;
        while self.runs == 0 && self.problems.is_empty() && Instant::now() < deadline {
            thread::sleep(POLL);
            self.keep_going();
        }
        let mut done = vec![(self.words[0].clone(), self.runs)];
        if let Some(file) = self.words.iter().skip_while(|w| *w != FIGURES_OPTION).nth(1) {
            match fs::read_to_string(file).map(|text| figures(&text)) {
                Ok(found) if !found.is_empty() => done.extend(found),
                _ => self.problems.push(format!("{}: no figures in {file}", self.words[0])),
            }
        }
        done
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Its workers end with it, or when they see that it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(words: &[String]) -> io::Result<Child> {
    Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// The workers in stress-ng's figures, each with its operations.
fn figures(text: &str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut worker = None;
    for line in text.lines() {
        let line = line.trim().trim_start_matches("- ");
        if let Some(name) = line.strip_prefix("stressor:") {
            worker = Some(name.trim().to_owned());
        } else if let Some(ops) = line.strip_prefix("bogo-ops:")
            && let (Some(name), Ok(ops)) = (worker.take(), ops.trim().parse())
        {
            found.push((name, ops));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_stress_ngs_account() {
        let text = "---\nsystem-info:\n      user: root\n\nmetrics:\n    - stressor: cpu\n      bogo-ops: 917\n      \
                    wall-clock-time: 5.0\n\n    - stressor: fork\n      bogo-ops: 0\n\n...\n";
        assert_eq!(figures(text), [("cpu".to_owned(), 917), ("fork".to_owned(), 0)]);
        assert_eq!(figures("nothing"), []);
    }

    #[test]
    fn a_program_that_fails_is_a_problem_and_one_that_ends_has_run() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut good = Beside::start(&words("/bin/true")).expect("started");
        assert_eq!(good.finish(), [("/bin/true".to_owned(), 1)]);
        let mut bad = Beside::start(&words("/bin/false")).expect("started");
        assert_eq!(bad.finish(), [("/bin/false".to_owned(), 0)]);
        assert_eq!(bad.problems.len(), 1);
    }
}
