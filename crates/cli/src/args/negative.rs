//! A message for a negative number where none can be: clap takes it for an option, or names the range of a C type.

use std::any::TypeId;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::Cli;

/// Cause and remedy, where the error is about a negative number for an option that takes a number from 0.
pub(crate) fn negative_number(error: &Error) -> Option<String> {
    message(error, &std::env::args().skip(1).collect::<Vec<_>>())
}

fn message(error: &Error, words: &[String]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, number) = match error.kind() {
        ErrorKind::UnknownArgument => {
            let number = text(ContextKind::InvalidArg)?;
            let at = words.iter().position(|word| word == number)?;
            (words.get(at.checked_sub(1)?)?.as_str(), number)
        }
        ErrorKind::ValueValidation => {
            let option = text(ContextKind::InvalidArg)?.split(' ').next()?;
            (option, text(ContextKind::InvalidValue)?)
        }
        _ => return None,
    };
    let is_negative = number.parse::<i128>().is_ok_and(|number| number < 0);
    (is_negative && takes_a_number(option, words)).then(|| {
        format!("fairground: {option}: `{number}` is negative\n  help: write a number that is not, as in `{option} 1`")
    })
}

/// Whether an option of the command that these words name takes a number from 0.
fn takes_a_number(option: &str, words: &[String]) -> bool {
    let mut command = Cli::command();
    for word in words {
        if let Some(inner) = command.find_subcommand(word) {
            command = inner.clone();
        }
    }
    let unsigned = [
        TypeId::of::<u8>(),
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
    ];
    let name = option.trim_start_matches("--");
    let mut arguments = command.get_arguments();
    arguments.any(|argument| {
        let kind = argument.get_value_parser().type_id();
        argument.get_long() == Some(name) && unsigned.iter().any(|known| kind == *known)
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn said(words: &[&str]) -> Option<String> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let all = ["fairground".to_owned()].into_iter().chain(words.clone());
        message(&Cli::try_parse_from(all).expect_err("a negative number"), &words)
    }

    #[test]
    fn a_negative_number_is_called_so() {
        for words in [&["run", "hogs:2", "--cpus", "-1"][..], &["run", "hogs:2", "--cpus=-1"]] {
            let text = said(words).unwrap_or_else(|| panic!("{words:?}"));
            assert!(text.starts_with("fairground: --cpus: `-1` is negative"), "{text}");
        }
        for words in [
            ["run", "hogs:2", "--seed", "-7"],
            ["contention", "x", "--depth", "-3"],
            ["contention", "x", "--top", "-3"],
        ] {
            assert!(said(&words).is_some_and(|text| text.contains("is negative")), "{words:?}");
        }
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        for words in [
            &["run", "-1"][..],
            &["run", "hogs:2", "--quiet", "-1"],
            &["run", "hogs:2", "--cpus", "x"],
            &["run", "hogs:2", "--cpus", "-x"],
            &["run", "hogs:2", "--set", "-1"],
        ] {
            assert_eq!(said(words), None, "{words:?}");
        }
    }
}
