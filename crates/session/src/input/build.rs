//! Compiling a scheduler written in BPF C.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use fairground_catalogue::{HEADERS, SCX_FLAGS};
use fairground_realkernel::files::read_text;
use fairground_realkernel::signals::EndSignals;
use fairground_scratch::{Folder, die_with_parent};

use super::published::scheduler_store;
use crate::failure::Failure;

/// The end of a source's name.
pub(super) const SOURCE_END: &str = ".bpf.c";
/// Folders of the scx project's headers that sources include from.
const SCX_FOLDERS: [&str; 2] = ["scx/", "lib/"];
/// How long a signal may wait while the compiler runs.
const SIGNAL_DELAY: Duration = Duration::from_millis(5);

/// Compiles `NAME.bpf.c` with the headers that fairground's own schedulers use, and with those of the scx project where
/// the source includes them (`#include <scx/common.bpf.h>`). Warnings of the compiler go to stderr.
///
/// # Errors
/// It does not compile, with the compiler's messages, or a signal asks to end; nothing is left of it then.
pub fn compile_scheduler(source: &Path, output: &Path) -> Result<(), Failure> {
    let name = source.display().to_string();
    if !name.ends_with(SOURCE_END) {
        return Err(Failure::new(format_args!(
            "{name}: the source of a scheduler is called NAME{SOURCE_END}"
        )));
    }
    let text = read_text(source).map_err(|e| Failure::io(&name, &e))?;
    let signals = hold_signals()?;
    let folder = temporary()?;
    for (name, text) in fairground_policies::HEADERS {
        fs::write(folder.path().join(name), text).map_err(|e| Failure::io(name, &e))?;
    }
    let clang = fairground_policies::find_clang().map_err(Failure::new)?;
    let mut command = Command::new(&clang);
    command.args(fairground_policies::CLANG_FLAGS).args(without_paths(source, folder.path()));
    command.arg("-I").arg(folder.path());
    if includes_scx(&text) {
        command.args(SCX_FLAGS);
        for include in scx_headers(&name)? {
            command.arg("-I").arg(include);
        }
    } else {
        fairground_policies::find_headers().map_err(Failure::new)?;
    }
    // What is there stays until the new one is whole.
    let made = folder.path().join("made.o");
    command.arg("-c").arg(source).arg("-o").arg(&made);
    let messages = folder.path().join("messages");
    let file = File::create(&messages).map_err(|e| Failure::io(messages.display(), &e))?;
    command.stderr(file);
    let status = ended(&mut command, &signals).map_err(|e| Failure::io(&clang, &e))?;
    let messages = fs::read(&messages).map_err(|e| Failure::io(messages.display(), &e))?;
    let messages = String::from_utf8_lossy(&messages);
    match status {
        None => Err(Failure::interrupted(format_args!("{name}: interrupted while it compiles"))),
        Some(status) if status.success() => {
            // The object is complete, also where the messages cannot be written.
            let _ = io::stderr().write_all(messages.as_bytes());
            fs::copy(&made, output).map(drop).map_err(|e| Failure::io(output.display(), &e))
        }
        Some(_) => Err(Failure::new(format_args!(
            "{name}: clang did not compile it:\n{}",
            messages.trim_end()
        ))),
    }
}

/// Holds the signals that end the program. What is made after that is removed before they take effect.
fn hold_signals() -> Result<EndSignals, Failure> {
    EndSignals::hold().map_err(|e| Failure::io("<signals>", &e))
}

fn temporary() -> Result<Folder, Failure> {
    Folder::new().map_err(|e| Failure::io("<temporary folder>", &e))
}

/// How a compiler ended; `None`: a signal asked to end, and it was killed.
fn ended(command: &mut Command, signals: &EndSignals) -> io::Result<Option<ExitStatus>> {
    die_with_parent(command);
    let mut child = command.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if signals.wait(SIGNAL_DELAY).is_some() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
    }
}

/// Whether a source includes headers of the scx project.
fn includes_scx(text: &str) -> bool {
    let included = text.lines().filter_map(|line| {
        let file = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        file.trim_start().strip_prefix(['<', '"'])
    });
    included.into_iter().any(|file| SCX_FOLDERS.iter().any(|folder| file.starts_with(folder)))
}

/// The folders of the scx project's headers.
fn scx_headers(source: &str) -> Result<Vec<PathBuf>, Failure> {
    scheduler_store()?.include_folders().ok_or_else(|| {
        Failure::new(format_args!(
            "{source} includes headers of the scx project, which are not here"
        ))
        .help(format_args!("run `fairground sched fetch {HEADERS}`"))
    })
}

/// The same source gives the same object, wherever it lies and wherever the headers are.
fn without_paths(source: &Path, headers: &Path) -> Vec<String> {
    let own = source.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folders = [Some(headers), own].into_iter().flatten();
    folders.map(|folder| format!("-ffile-prefix-map={}/=", folder.display())).collect()
}

/// Compiles a source; the object's bytes. No file is left.
pub(super) fn bytes_of_source(name: &str) -> Result<Vec<u8>, Failure> {
    let _signals = hold_signals()?;
    let folder = temporary()?;
    let object = folder.path().join("scheduler.bpf.o");
    compile_scheduler(Path::new(name), &object)?;
    fs::read(&object).map_err(|e| Failure::io(object.display(), &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_scx_project_are_recognized() {
        for text in ["#include <scx/common.bpf.h>", "int x;\n # include \"scx/compat.bpf.h\"\n"] {
            assert!(includes_scx(text), "{text}");
        }
        for text in ["#include \"scx.bpf.h\"", "// scx/common.bpf.h", "#include <bpf/bpf.h>"] {
            assert!(!includes_scx(text), "{text}");
        }
    }
}
