//! Completion scripts are tried in their shells, man pages in a reader. `make test` installs them.

use std::fs;
use std::process::Command;

use fairground_testing::unavailable;

use crate::support::{Files, success};

/// Each shell, how it checks a script without running it, and what stands before the script for that: elvish has the
/// namespace `edit:` on a terminal only.
const SHELLS: [(&str, &[&str], &str); 4] = [
    ("bash", &["-n"], ""),
    ("zsh", &["-n"], ""),
    ("fish", &["--no-execute"], ""),
    ("elvish", &["-compileonly"], "var edit: = (ns [&])\n"),
];

/// What a program printed; `None`, with the reason on stdout, where it is not installed.
fn tried(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let Ok(output) = Command::new(program).args(arguments).env("LC_ALL", "C.UTF-8").output() else {
        unavailable("shell", format!("no program `{program}`"));
        return None;
    };
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

#[test]
fn every_shell_reads_its_script() {
    let files = Files::new();
    for (shell, flags, before) in SHELLS {
        let script = success(&["completions", shell]);
        assert!(script.contains("reproduce") && script.contains("write-workload"), "{shell}");
        let path = files.write(&format!("script.{shell}"), before.to_owned() + &script);
        let Some((fine, said)) = tried(shell, &[flags, &[path.as_str()]].concat()) else {
            continue;
        };
        assert!(fine && said.is_empty(), "{shell}: {said}");
    }
    let script = success(&["completions", "powershell"]);
    assert!(script.contains("Register-ArgumentCompleter") && script.contains("'reproduce'"));
}

/// What bash offers after `line`, whose last word is being typed.
fn bash_offers(files: &Files, line: &str) -> Option<String> {
    let script = files.write("fairground.bash", success(&["completions", "bash"]));
    let words: Vec<&str> = line.split(' ').collect();
    let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
    let ask = format!(
        "source {script}; COMP_WORDS=({line}); COMP_CWORD={}; _fairground fairground '{last}' '{before}'; \
         echo \"${{COMPREPLY[@]}}\"",
        words.len() - 1
    );
    tried("bash", &["--norc", "-c", &ask]).map(|(_, said)| said)
}

#[test]
fn bash_completes_commands_options_and_values() {
    let files = Files::new();
    for (line, offered) in [
        ("fairground re", "record replay reproduce"),
        ("fairground workload c", "convert check"),
        ("fairground run slice:16 --eng", "--engine"),
        ("fairground run slice:16 --engine i", "interpreter"),
        ("fairground completions f", "fish"),
    ] {
        let Some(said) = bash_offers(&files, line) else { return };
        let mut words: Vec<&str> = said.split_whitespace().collect();
        let mut wanted: Vec<&str> = offered.split(' ').collect();
        words.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(words, wanted, "{line}");
    }
}

#[test]
fn fish_completes_commands() {
    let files = Files::new();
    let script = files.write("fairground.fish", success(&["completions", "fish"]));
    let ask = format!("source {script}; complete -C 'fairground rep'");
    let Some((_, said)) = tried("fish", &["--no-config", "-c", &ask]) else { return };
    let offered: Vec<&str> = said.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(offered, ["replay", "reproduce"], "{said}");
}

#[test]
fn man_pages_are_rendered_without_a_complaint() {
    let files = Files::new();
    let folder = files.path("man");
    success(&["man", &folder.display().to_string()]);
    let mut pages: Vec<_> = fs::read_dir(&folder)
        .expect("the folder was made")
        .map(|e| e.expect("read").path())
        .collect();
    pages.sort();
    assert!(pages.len() > 20, "{pages:?}");
    for page in &pages {
        let page = page.display().to_string();
        // Warnings are about the generator's style; an error would be a page that is shown wrongly.
        let Some((fine, said)) = tried("mandoc", &["-T", "lint", "-W", "error", &page]) else {
            return;
        };
        assert!(fine, "{page}: {said}");
    }
    let page = folder.join("fairground-run.1").display().to_string();
    let Some((fine, said)) = tried("mandoc", &["-T", "html", &page]) else { return };
    for part in
        ["id=\"OPTIONS\"", "<b>--engine</b>", "interpreter: ", "id=\"EXIT_STATUS\"", "stalled"]
    {
        assert!(fine && said.contains(part), "`{part}` is missing from:\n{said}");
    }
}

#[test]
fn the_page_of_the_program_goes_to_stdout() {
    let page = success(&["man"]);
    assert!(page.contains(".TH fairground 1"), "{page}");
    assert!(page.contains(".SH \"EXIT STATUS\""), "{page}");
}
