//! A remedy for a mistyped command of which clap finds none similar: two letters that changed places in a short word.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use fairground_session::did_you_mean;

use super::Cli;

/// The error with the nearest command, where it is about a command and names none.
pub(crate) fn with_nearest_command(error: Error) -> Error {
    with_nearest(error, std::env::args().skip(1))
}

fn with_nearest(mut error: Error, words: impl Iterator<Item = String>) -> Error {
    let is_open = error.kind() == ErrorKind::InvalidSubcommand
        && error.get(ContextKind::SuggestedSubcommand).is_none();
    let wrong = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(wrong)) if is_open => wrong.clone(),
        _ => return error,
    };
    let mut command = Cli::command();
    for word in words.take_while(|word| *word != wrong) {
        if let Some(inner) = command.find_subcommand(&word) {
            command = inner.clone();
        }
    }
    let known = command.get_subcommands().filter(|one| !one.is_hide_set());
    if let Some(near) = did_you_mean(&wrong, known.map(clap::Command::get_name)) {
        let near = ContextValue::Strings(vec![near.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, near);
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn letters_that_changed_places_are_recognised() {
        let known = [
            (vec!["rnu", "slice:4"], Some("run")),
            (vec!["--quiet", "tpo"], Some("top")),
            (vec!["sched", "lits"], Some("list")),
            (vec!["xyzzy"], None),
        ];
        for (words, near) in known {
            let all = ["fairground"].into_iter().chain(words.iter().copied());
            let error = Cli::try_parse_from(all).expect_err("no such command");
            let text = with_nearest(error, words.iter().map(ToString::to_string)).to_string();
            match near {
                Some(near) => assert!(text.contains(&format!("'{near}'")), "{text}"),
                None => assert!(!text.contains("similar"), "{text}"),
            }
        }
    }
}
