//! Parquet from the command line: with the feature it is written, without it the program says how to build one that
//! can.

use std::path::PathBuf;

use crate::support::{Files, release, run};

/// A run that is over in a moment.
const RUN: [&str; 5] = ["run", "hogs:3", "--duration", "50ms", "--quiet"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    RUN.iter().chain(more).copied().collect()
}

/// A binary without the feature: this build, or else the release build.
fn binary_without_parquet() -> Option<PathBuf> {
    if cfg!(feature = "parquet") {
        release()
    } else {
        Some(env!("CARGO_BIN_EXE_fairground").into())
    }
}

#[test]
fn a_build_without_parquet_names_the_feature() {
    let Some(binary) = binary_without_parquet() else { return };
    let refusal = |more: &[&str]| {
        let output = run(&binary, &with(more));
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        String::from_utf8(output.stderr).expect("stderr is UTF-8")
    };
    let files = Files::new();
    for name in ["events.parquet", "events.arrow"] {
        let path = files.path(name).display().to_string();
        let message = refusal(&["--trace", &path]);
        assert!(message.contains("--features parquet"), "{message}");
        assert!(!files.path(name).exists());
    }
    let message = refusal(&["--format", "parquet"]);
    assert!(message.contains("--features parquet"), "{message}");
}

#[cfg(feature = "parquet")]
mod having {
    use std::path::Path;
    use std::process::Command;

    use fairground_testing::unavailable;

    use super::*;

    /// Rows of each of two files and the sum of a column of the second, by an independent reader.
    const COUNTS: &str = "import sys, pyarrow.parquet as p\n\
        e, m = p.read_table(sys.argv[1]), p.read_table(sys.argv[2])\n\
        print(e.num_rows, e.column('kind').to_pylist().count('switch'), m.num_rows)\n\
        print(e.schema.metadata[b'fairground.events'].decode())";

    /// The Python with the packages of `make test`, else that of the machine.
    fn python() -> PathBuf {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
        if own.exists() { own } else { "python3".into() }
    }

    /// Lines of ftrace text that are events.
    fn events_in(text: &str) -> Vec<&str> {
        text.lines().filter(|line| !line.starts_with('#')).collect()
    }

    #[test]
    fn events_and_figures_are_tables() {
        let files = Files::new();
        let path = |name: &str| files.path(name).display().to_string();
        let (events, arrow, figures) =
            (path("events.parquet"), path("events.arrow"), path("figures.parquet"));
        let text = crate::support::success(&with(&["--trace", "-"]));
        let switches = events_in(&text).into_iter().filter(|line| line.contains("sched_switch"));
        let switches = switches.count();
        assert!(switches > 5, "{text}");
        for file in [&events, &arrow] {
            crate::support::success(&with(&["--trace", file]));
        }
        let bytes = |path: &str| std::fs::read(path).expect("a file");
        assert_eq!(&bytes(&events)[..4], b"PAR1");
        assert_eq!(&bytes(&arrow)[..6], b"ARROW1");

        let output = crate::support::fairground(&with(&["--format", "parquet"]));
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(&output.stdout[..4], b"PAR1");
        std::fs::write(&figures, &output.stdout).expect("written");
        let csv = crate::support::success(&with(&["--format", "csv"]));

        let python = Command::new(python()).args(["-c", COUNTS, &events, &figures]).output();
        match python {
            Ok(python) if python.status.success() => {
                let said = String::from_utf8_lossy(&python.stdout).into_owned();
                let words: Vec<usize> =
                    said.split_whitespace().map(|word| word.parse().expect("numbers")).collect();
                assert_eq!((words[1], words[0]), (switches, words[3]), "{said}");
                assert_eq!(words[2], csv.lines().count() - 1, "a row per line below the header");
            }
            Ok(python) => {
                let said = String::from_utf8_lossy(&python.stderr).into_owned();
                let reason = said.lines().last().unwrap_or_default().to_owned();
                assert!(reason.contains("No module named"), "{said}");
                unavailable("python", reason);
            }
            Err(error) => unavailable("python", error),
        }
    }

    #[test]
    fn a_recording_becomes_a_table() {
        let files = Files::new();
        let text = files.path("run.txt").display().to_string();
        let table = files.path("run.parquet").display().to_string();
        crate::support::success(&with(&["--trace", &text]));
        crate::support::success(&["convert", &text, &table]);
        assert_eq!(&std::fs::read(&table).expect("a file")[..4], b"PAR1");
    }
}
