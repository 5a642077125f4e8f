//! Holds the pages against the definitions here: every option is in the table of its command's page, and every command
//! line in the pages can be typed. `FAIRGROUND_DOCS=write` writes the tables.

#[path = "../../tests/support/console.rs"]
#[allow(dead_code)] // The test that runs the commands uses the rest.
mod console;
#[path = "../../tests/support/pages.rs"]
#[allow(dead_code)]
mod pages;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::{env, fs};

use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory, Parser};

use super::Cli;
use console::{invocations, steps};
use pages::{Page, pages, read, root};

/// Options of other programs that the pages mention.
const FOREIGN: [&str; 7] =
    ["--ns", "--release", "--features", "--threads", "--deltatime", "--reltime", "--ts-diff"];

/// The commands that a user types, from the outermost word on.
fn commands() -> Vec<(String, Command)> {
    let mut root = Cli::command();
    root.build();
    let shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    root.get_subcommands().filter(shown).map(|c| (c.get_name().to_owned(), c.clone())).collect()
}

/// A command and the commands below it, each with its words.
fn tree(words: &str, command: &Command) -> Vec<(String, Command)> {
    let below: Vec<_> = command.get_subcommands().filter(|c| c.get_name() != "help").collect();
    if below.is_empty() {
        return vec![(words.to_owned(), command.clone())];
    }
    below.into_iter().flat_map(|c| tree(&format!("{words} {}", c.get_name()), c)).collect()
}

/// How an argument is typed.
fn typed(argument: &Arg) -> String {
    let value = argument.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
    let takes_value = argument.get_action().takes_values();
    let mut text = String::new();
    if argument.is_positional() {
        let dots =
            if argument.get_num_args().is_some_and(|n| n.max_values() > 1) { "…" } else { "" };
        let dashes = if argument.is_last_set() { "-- " } else { "" };
        let _ = write!(text, "`{dashes}{value}{dots}`");
        return text;
    }
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let names: Vec<_> = long.into_iter().chain(short).collect();
    let names = names.iter().map(|name| match takes_value {
        true => format!("`{name} {value}`"),
        false => format!("`{name}`"),
    });
    text.push_str(&names.collect::<Vec<_>>().join(", "));
    text
}

/// Its description, values and default.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
    let mut text = help.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let values: Vec<PossibleValue> = match argument.get_action().takes_values() {
        true => argument.get_possible_values().into_iter().filter(|v| !v.is_hide_set()).collect(),
        false => Vec::new(),
    };
    for value in &values {
        let help = value.get_help().map(|h| format!(": {h}")).unwrap_or_default();
        let _ = write!(text, "<br>`{}`{}", value.get_name(), help.replace('\n', " "));
    }
    let default: Vec<_> =
        argument.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect();
    if !default.is_empty() && argument.get_action().takes_values() {
        let _ = write!(text, "<br>Default: `{}`", default.join(" "));
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, "<br>Environment: `{}`", variable.to_string_lossy());
    }
    text.replace('|', "\\|")
}

/// The table of a command's arguments.
fn table(words: &str, command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("**`fairground {words}`** — {about}.\n\n");
    let shown = |a: &&Arg| !a.is_hide_set() && !a.is_global_set() && a.get_id() != "help";
    let arguments: Vec<_> = command.get_arguments().filter(shown).collect();
    if arguments.is_empty() {
        text.push_str("Takes nothing of its own.\n");
        return text;
    }
    text.push_str("| | |\n|---|---|\n");
    let (first, then): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|a| a.is_positional());
    for argument in first.into_iter().chain(then) {
        let _ = writeln!(text, "| {} | {} |", typed(argument), meaning(argument));
    }
    text
}

/// A page with the text between the markers replaced; `None` where it has none.
fn with_options(page: &Page, tables: &str) -> Option<String> {
    const FROM: &str = "<!-- options: written by a test from the program's own definitions -->\n";
    const TO: &str = "<!-- end of options -->\n";
    let (before, rest) = page.text.split_once(FROM)?;
    let (_, after) = rest.split_once(TO)?;
    Some(format!("{before}{FROM}\n{tables}\n{TO}{after}"))
}

#[test]
fn every_command_has_a_page_with_all_its_options() {
    let write = env::var("FAIRGROUND_DOCS").is_ok_and(|word| word == "write");
    let mut stale = Vec::new();
    let mut names = BTreeSet::from(["README.md".to_owned()]);
    for (name, command) in commands() {
        let page = read(format!("docs/reference/commands/{name}.md"));
        names.insert(format!("{name}.md"));
        let all = tree(&name, &command);
        let tables: Vec<_> = all.iter().map(|(words, c)| table(words, c)).collect();
        let right = with_options(&page, &tables.join("\n"))
            .unwrap_or_else(|| panic!("{}: no markers for the table of options", page.name));
        if right != page.text {
            stale.push(page.name.clone());
            if write {
                fs::write(root().join(&page.name), right).expect("the page is written");
            }
        }
    }
    let folder =
        fs::read_dir(root().join("docs/reference/commands")).expect("docs/reference/commands");
    let there = folder.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let there: BTreeSet<_> = there.collect();
    assert_eq!(there, names, "a page for each command in docs/reference/commands");
    let remedy = "FAIRGROUND_DOCS=write cargo test -p fairground documented";
    assert!(stale.is_empty() || write, "options that changed: {stale:?}\n{remedy}");
}

/// Whether a word is a placeholder.
fn is_placeholder(word: &str) -> bool {
    let letters = |c: char| c.is_ascii_uppercase() || c == '_' || c == '.';
    word.contains('…')
        || word.contains("...")
        || word.contains('[')
        || word.contains('|')
        || word.split([':', '=', ',', '@']).any(|part| part.len() > 1 && part.chars().all(letters))
}

/// Whether the words only name a command, as prose does.
fn is_command(words: &[String]) -> bool {
    let mut command = Cli::command();
    words.iter().all(|word| match command.find_subcommand(word).cloned() {
        Some(below) => {
            command = below;
            true
        }
        None => false,
    })
}

#[test]
fn every_command_line_in_the_pages_can_be_typed() {
    let mut wrong = Vec::new();
    let mut typed = 0;
    for page in pages() {
        let mut lines = Vec::new();
        for block in page.blocks().iter().filter(|block| block.is_console()) {
            let steps = steps(&block.text).unwrap_or_else(|e| panic!("{}: {e}", page.name));
            let right = steps.into_iter().filter(|step| step.code != 2);
            lines.extend(right.map(|step| (block.line, step.command)));
        }
        let spans = page.code_spans().into_iter();
        lines.extend(spans.filter(|(_, text)| {
            text.starts_with("fairground ") && !text.split_whitespace().any(is_placeholder)
        }));
        for (line, command) in lines {
            for arguments in invocations(&command) {
                typed += 1;
                if is_command(&arguments[1..]) {
                    continue;
                }
                if let Err(error) = Cli::try_parse_from(&arguments)
                    && error.use_stderr()
                {
                    wrong.push(format!("{}:{line}: `{command}`\n{error}", page.name));
                }
            }
        }
    }
    assert!(typed > 50, "only {typed} command lines were found");
    assert!(wrong.is_empty(), "command lines that the program refuses:\n{}", wrong.join("\n"));
}

#[test]
fn every_option_in_the_prose_exists() {
    let mut known: BTreeSet<String> = FOREIGN.iter().map(|&word| word.to_owned()).collect();
    known.extend(["--help".to_owned(), "--version".to_owned()]);
    for (name, command) in commands() {
        for (_, command) in tree(&name, &command) {
            let long = command.get_arguments().filter_map(Arg::get_long);
            known.extend(long.map(|long| format!("--{long}")));
        }
    }
    let mut wrong = Vec::new();
    for page in pages() {
        for (line, span) in page.code_spans() {
            let word = span.split([' ', '=']).next().unwrap_or_default();
            if word.starts_with("--") && word.len() > 2 && !known.contains(word) {
                wrong.push(format!("{}:{line}: `{word}`", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "options that no command has:\n  {}", wrong.join("\n  "));
}
