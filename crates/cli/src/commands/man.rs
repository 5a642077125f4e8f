//! `man` and `completions`: made from the definitions that also make the parsing and `--help`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use fairground_session::Failure;

use crate::args::{Cli, CompletionsArgs, EXIT_CODES, ManArgs};
use crate::present;

const PROGRAM: &str = "fairground";

/// A script for a shell, on stdout.
pub(super) fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    // By way of memory: clap_complete panics when the reader of a pipe goes away.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), PROGRAM, &mut script);
    present::write_stdout(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// The program's page on stdout, or every page as a file of a folder.
pub(super) fn man(args: &ManArgs) -> Result<ExitCode, Failure> {
    let pages = pages();
    match &args.folder {
        Some(folder) => write_pages(folder, &pages)?,
        None => {
            let whole = pages.iter().find(|page| page.file == format!("{PROGRAM}.1"));
            present::write_stdout(whole.map_or("", |page| page.text.as_str()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

struct Page {
    /// `fairground-run.1`.
    file: String,
    /// roff.
    text: String,
}

fn write_pages(folder: &Path, pages: &[Page]) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|e| Failure::io(folder.display(), &e))?;
    for page in pages {
        let path = folder.join(&page.file);
        fs::write(&path, &page.text).map_err(|e| Failure::io(path.display(), &e))?;
    }
    Ok(())
}

/// One for each command that is not hidden, those below it after it.
fn pages() -> Vec<Page> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add_pages(&root, &mut pages);
    pages
}

fn add_pages(command: &Command, pages: &mut Vec<Page>) {
    let version = env!("CARGO_PKG_VERSION");
    let man = Man::new(command.clone()).source(format!("{PROGRAM} {version}")).manual(PROGRAM);
    // Two quotes are an empty date; without them the source would be taken for it. A date of the build would change
    // the bytes.
    let man = man.date("\"\"");
    let text = page_text(&man, command);
    pages.push(Page { file: man.get_filename(), text });
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_pages(below, pages);
    }
}

fn page_text(man: &Man, command: &Command) -> String {
    let mut text = Vec::new();
    let has_commands = command.get_subcommands().any(|below| !below.is_hide_set());
    // Writing into memory cannot fail.
    let _ = man.render_title(&mut text);
    let _ = man.render_name_section(&mut text);
    let _ = man.render_synopsis_section(&mut text);
    let _ = man.render_description_section(&mut text);
    let _ = man.render_options_section(&mut text);
    if has_commands {
        let _ = man.render_subcommands_section(&mut text);
    }
    let _ = exit_status().to_writer(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn exit_status() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (code, when) in EXIT_CODES {
        roff.control("TP", ["6"]);
        roff.text([bold(code.to_string())]);
        roff.text([roman(when)]);
    }
    roff
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    fn every_command(of: &Command) -> Vec<Command> {
        let below = of.get_subcommands().flat_map(every_command);
        std::iter::once(of.clone()).chain(below).collect()
    }

    fn built() -> Command {
        let mut root = Cli::command().disable_help_subcommand(true);
        root.build();
        root
    }

    #[test]
    fn every_command_and_every_option_says_what_it_is() {
        let commands = every_command(&built());
        assert!(commands.len() > 20, "the whole tree is walked, not {} commands", commands.len());
        for command in &commands {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} does not say what it does");
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.len() > 7, "{name}: {argument} has no help: {help:?}");
                assert!(!help.ends_with('.'), "{name}: {argument}: no full stop, as elsewhere");
            }
        }
    }

    #[test]
    fn every_choice_is_listed_with_what_it_means() {
        let mut choices = 0;
        for command in every_command(&built()) {
            for argument in command.get_arguments() {
                let values = argument.get_possible_values();
                let takes_one = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
                // What a shell is needs no explanation.
                if !takes_one || values.is_empty() || argument.get_id() == "shell" {
                    continue;
                }
                choices += 1;
                assert!(!argument.is_hide_possible_values_set(), "{argument} hides its values");
                for value in values {
                    let (command, name) = (command.get_name(), value.get_name());
                    assert!(value.get_help().is_some(), "{command}: {argument}: what is `{name}`?");
                }
            }
        }
        assert!(choices > 10, "only {choices} choices were looked at");
    }

    #[test]
    fn each_command_has_a_page_that_lists_its_options_and_their_values() {
        let pages = pages();
        let page = |file: &str| {
            let found = pages.iter().find(|page| page.file == file);
            &found.unwrap_or_else(|| panic!("{file} is missing")).text
        };
        assert!(!pages.iter().any(|page| page.file.contains("run-job")), "hidden ones have none");
        let visible = every_command(&built()).into_iter().filter(|c| !c.is_hide_set()).count();
        assert_eq!(pages.len(), visible);
        let run = page("fairground-run.1");
        let title =
            format!(".TH fairground-run 1 \"\" \"fairground {}\"", env!("CARGO_PKG_VERSION"));
        assert!(run.contains(&title), "{run}");
        for part in ["\\-\\-topology", "\\-\\-engine", "interpreter", "EXIT STATUS", "workload"] {
            assert!(run.contains(part), "`{part}` is missing from:\n{run}");
        }
        assert!(page("fairground.1").contains("fairground\\-run(1)"));
        assert!(page("fairground-kernels-boot.1").contains("bzImage"));
    }
}
