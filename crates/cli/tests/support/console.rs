//! Blocks of commands with their output, as the pages have them:
//!
//! ```console
//! $ fairground sched list
//! …the output, to the letter
//! ```
//!
//! A line `...` matches any lines; `? 42` below a command is its exit code, 0 otherwise; a line that ends
//! in `\` goes on in the next, which begins with `> `. Of a command without a line below it only the exit code
//! counts. stdout and stderr are one stream. A word behind `console` says what a block needs ([`ABILITIES`],
//! [`TERMINAL`], [`LONG`]) or why it is not run here ([`EXEMPT`]).

use std::fmt::Write as _;

/// What a block needs that not every machine has, as `fairground doctor` calls it. It is run where doctor says that
/// this is ready; of its commands only the exit codes count.
pub(crate) const ABILITIES: [&str; 5] = ["fetch", "vm", "vm-load", "record", "load"];

/// Why else a block is not run: the word behind `console`, and the reason.
pub(crate) const EXEMPT: [(&str, &str); 2] = [
    (SLOW, "takes many minutes"),
    ("elsewhere", "another program's command, or a recording that the reader has"),
];

/// A block with this word has an hour where it is run.
pub(crate) const SLOW: &str = "slow";

/// The commands of such a block are typed on a terminal, and left with `q`.
pub(crate) const TERMINAL: &str = "terminal";

/// A block with this word is run by a release build only: it takes too long otherwise.
pub(crate) const LONG: &str = "long";

/// Any lines.
const ELISION: &str = "...";

/// A command and what it prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The lines of the command as the page has them.
    pub(crate) typed: Vec<String>,
    /// The command for a shell.
    pub(crate) command: String,
    /// Its exit code.
    pub(crate) code: i32,
    /// The lines below it.
    pub(crate) expected: Vec<String>,
}

/// The commands of a block.
///
/// # Errors
///
/// Text before the first command.
pub(crate) fn steps(text: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(command) = line.strip_prefix("$ ") {
            let mut typed = vec![line.to_owned()];
            let mut whole = command.to_owned();
            while whole.ends_with('\\') {
                let more = lines.next().and_then(|l| l.strip_prefix("> ")).ok_or_else(|| {
                    format!("`{whole}` ends in `\\`, and the next line has no `> `")
                })?;
                typed.push(format!("> {more}"));
                whole.pop();
                whole.push_str(more);
            }
            let code = lines.peek().and_then(|l| l.strip_prefix("? ")).and_then(|c| c.parse().ok());
            if code.is_some() {
                lines.next();
            }
            steps.push(Step { typed, command: whole, code: code.unwrap_or(0), expected: vec![] });
        } else {
            let step = steps.last_mut().ok_or("text before the first line with `$ `")?;
            step.expected.push(line.to_owned());
        }
    }
    for step in &mut steps {
        while step.expected.last().is_some_and(|line| line.trim().is_empty()) {
            step.expected.pop();
        }
    }
    Ok(steps)
}

/// The arguments of each `fairground` in a command; what a shell would do with pipes is left out.
pub(crate) fn invocations(command: &str) -> Vec<Vec<String>> {
    let words = shlex::split(command).unwrap_or_default();
    let joints = ["|", "&&", ";", "||"];
    let parts = words.split(|word| joints.contains(&word.as_str()));
    parts.filter_map(arguments).collect()
}

fn arguments(words: &[String]) -> Option<Vec<String>> {
    let is_redirection = |word: &&String| word.starts_with('>') || word.starts_with("2>");
    let words: Vec<String> =
        words.iter().take_while(|word| !is_redirection(word)).cloned().collect();
    let at = usize::from(words.first().is_some_and(|word| word == "sudo"));
    (words.get(at)? == "fairground").then(|| words[at..].to_vec())
}

/// Whether the lines are those of the page.
pub(crate) fn agrees(expected: &[String], actual: &[String]) -> bool {
    let mut parts: Vec<&[String]> = expected.split(|line| line == ELISION).collect();
    let Some(first) = parts.first().copied() else { return true };
    if parts.len() == 1 {
        return first == actual;
    }
    let Some(mut rest) = actual.strip_prefix(first) else { return false };
    let last = parts.pop().unwrap_or_default();
    for part in &parts[1..] {
        let Some(at) = (0..=rest.len()).find(|&at| rest[at..].starts_with(part)) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// What the page should have in place of `expected`: with one elision, as many lines before and after it as it had.
pub(crate) fn renewed(expected: &[String], actual: &[String]) -> Vec<String> {
    let parts: Vec<&[String]> = expected.split(|line| line == ELISION).collect();
    if let [first, last] = parts[..]
        && first.len() + last.len() < actual.len()
    {
        let mut lines = actual[..first.len()].to_vec();
        lines.push(ELISION.to_owned());
        lines.extend_from_slice(&actual[actual.len() - last.len()..]);
        return lines;
    }
    actual.to_vec()
}

/// The block's text, with a blank line between commands that have output.
pub(crate) fn written(steps: &[Step]) -> String {
    let mut text = String::new();
    for (at, step) in steps.iter().enumerate() {
        if at > 0 && !steps[at - 1].expected.is_empty() {
            text.push('\n');
        }
        for line in &step.typed {
            let _ = writeln!(text, "{line}");
        }
        if step.code != 0 {
            let _ = writeln!(text, "? {}", step.code);
        }
        for line in &step.expected {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}
