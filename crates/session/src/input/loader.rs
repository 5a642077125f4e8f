//! `--loader`: a scheduler's own loader, a program with its arguments.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The end of a loader's name where a scheduler is named.
const SUFFIX: &str = " (its loader)";
/// Bytes at the start of an ELF file up to and with its machine (`e_machine`).
const ELF_HEAD_BYTES: usize = 20;
/// Where the machine is, and that of x86-64.
const ELF_MACHINE: (usize, [u8; 2]) = (18, [62, 0]);

/// A scheduler's own loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoaderProgram {
    /// Its name as a scheduler: `scx_bpfland (its loader)`.
    pub label: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl LoaderProgram {
    /// Reads a command: a program, by its path or by a name on `PATH`, and its arguments. Quotes and backslashes have
    /// the shell's meaning; nothing is expanded.
    ///
    /// # Errors
    /// If it is no command, or its program is no ELF program for x86-64 that can be executed.
    pub fn find(command: &str) -> Result<LoaderProgram, Failure> {
        Self::find_on(command, &env::var_os("PATH").unwrap_or_default())
    }

    fn find_on(command: &str, path: &OsStr) -> Result<LoaderProgram, Failure> {
        let wrong = |what: &str| Failure::new(format_args!("--loader: {what}"));
        let mut words = words(command).map_err(|quote| {
            wrong(&format!("`{command}` has a {quote} without its end"))
                .help("quote a word on both sides, or write a backslash before the quote")
        })?;
        if words.is_empty() {
            return Err(wrong("it names no program").help("give `--loader 'PROGRAM ARGUMENTS'`"));
        }
        let name = words.remove(0);
        let program = locate(&name, path).ok_or_else(|| {
            let help = match name.contains('/') {
                true => "give the path of the scheduler's program".to_owned(),
                false => format!("it is not on PATH; a file here is `./{name}`"),
            };
            wrong(&format!("there is no program `{name}`")).help(help)
        })?;
        check(&program)?;
        let file = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(LoaderProgram { label: format!("{file}{SUFFIX}"), program, arguments: words })
    }
}

/// Whether a scheduler's name stands for a loader ([`LoaderProgram::label`]).
pub(crate) fn is_loader(scheduler: &str) -> bool {
    scheduler.ends_with(SUFFIX)
}

/// The file of a program: a path as it is, a name in the folders of `path`.
fn locate(name: &str, path: &OsStr) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| file.exists());
    }
    env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Checks that a file is an ELF program for x86-64 that may be executed.
fn check(program: &Path) -> Result<(), Failure> {
    let name = program.display();
    let wrong = |what: &str| Failure::new(format_args!("--loader: {name} {what}"));
    let mut file =
        File::open(program).map_err(|e| Failure::io(format_args!("--loader: {name}"), &e))?;
    let metadata =
        file.metadata().map_err(|e| Failure::io(format_args!("--loader: {name}"), &e))?;
    if !metadata.is_file() {
        return Err(wrong("is no file").help("give the path of the scheduler's program"));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(wrong("is not executable").help(format_args!("run `chmod +x {name}`")));
    }
    let mut head = [0; ELF_HEAD_BYTES];
    let is_elf = file.read_exact(&mut head).is_ok() && head.starts_with(b"\x7fELF\x02\x01");
    let (at, machine) = ELF_MACHINE;
    if !is_elf || head[at..] != machine {
        return Err(wrong("is no ELF program for x86-64").help(
            "the guest has no shell and no interpreters: name the program itself, not a script",
        ));
    }
    Ok(())
}

/// The words of a command, as the shell splits them. An error names the quote that does not end.
fn words(command: &str) -> Result<Vec<String>, char> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                word.get_or_insert_default().push(characters.next().ok_or('\\')?);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.map_or(Ok(words), Err)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn words_are_the_shells() {
        let cases: [(&str, &[&str]); 6] = [
            ("", &[]),
            ("  a  b\tc ", &["a", "b", "c"]),
            ("a 'b c' \"d e\"", &["a", "b c", "d e"]),
            (r#"a\ b "c\"d" 'e\f'"#, &["a b", "c\"d", r"e\f"]),
            ("a '' --b=''", &["a", "", "--b="]),
            ("a'b'\"c\"", &["abc"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text).expect(text), expected, "{text}");
        }
        assert_eq!((words("a 'b"), words("a \"b"), words("a\\")), (Err('\''), Err('"'), Err('\\')));
    }

    #[test]
    fn a_program_is_found_by_its_path_and_on_path() {
        let found = LoaderProgram::find_on("/bin/echo 'a b' c", OsStr::new("")).expect("a program");
        assert_eq!(found.label, "echo (its loader)");
        assert_eq!(found.arguments, ["a b", "c"]);
        let by_name = LoaderProgram::find_on("echo", OsStr::new("/nowhere:/bin")).expect("on PATH");
        assert_eq!(by_name.program, Path::new("/bin/echo"));
        assert!(is_loader(&by_name.label) && !is_loader("echo"));
    }

    #[test]
    fn what_is_no_program_is_named_with_a_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("script");
        fs::write(&script, "#!/bin/sh\nexec scx_simple\n").expect("written");
        let refused = |command: &str| {
            let error = LoaderProgram::find_on(command, OsStr::new("/nowhere"));
            error.expect_err(command).to_string()
        };
        let script = script.display().to_string();
        assert!(refused(&script).contains("is not executable"), "{}", refused(&script));
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&script, mode).expect("made executable");
        assert!(refused(&script).contains("no ELF program"), "{}", refused(&script));
        let missing = refused("./gone --fast");
        assert!(missing.contains("no program `./gone`"), "{missing}");
        assert!(refused("gone").contains("not on PATH"), "{}", refused("gone"));
        assert!(refused(" ").contains("names no program"), "{}", refused(" "));
        assert!(refused("/tmp").contains("is no file"), "{}", refused("/tmp"));
        assert!(refused("a 'b").contains("without its end"), "{}", refused("a 'b"));
    }
}
