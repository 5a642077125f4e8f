//! Compiling a scheduler written in BPF C.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;

/// What the name of a source ends with.
pub(super) const SOURCE_END: &str = ".bpf.c";

/// Compiles `NAME.bpf.c` with the headers that fairground's own schedulers use. The compiler's messages go to stderr.
pub fn compile_scheduler(source: &Path, output: &Path) -> Result<(), Failure> {
    let name = source.display().to_string();
    if !name.ends_with(SOURCE_END) {
        return Err(Failure::new(format_args!(
            "{name}: the source of a scheduler is called NAME{SOURCE_END}"
        )));
    }
    fs::metadata(source).map_err(|e| Failure::io(&name, &e))?;
    let folder = tempfile::tempdir().map_err(|e| Failure::io("<temporary folder>", &e))?;
    for (name, text) in fairground_policies::HEADERS {
        fs::write(folder.path().join(name), text).map_err(|e| Failure::io(name, &e))?;
    }
    let clang = fairground_policies::find_clang().map_err(Failure::new)?;
    fairground_policies::find_headers().map_err(Failure::new)?;
    let status = Command::new(&clang)
        .args(fairground_policies::CLANG_FLAGS)
        .args(without_paths(source, folder.path()))
        .arg("-I")
        .arg(folder.path())
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(output)
        .status()
        .map_err(|e| Failure::io(&clang, &e))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format_args!("{name}: clang did not compile it; its messages stand above")))
}

/// The same source gives the same object, wherever it lies and wherever the headers are.
fn without_paths(source: &Path, headers: &Path) -> Vec<String> {
    let own = source.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folders = [Some(headers), own].into_iter().flatten();
    folders.map(|folder| format!("-ffile-prefix-map={}/=", folder.display())).collect()
}

/// Compiles a source; the object's bytes. No file is left.
pub(super) fn bytes_of_source(name: &str) -> Result<Vec<u8>, Failure> {
    let folder = tempfile::tempdir().map_err(|e| Failure::io("<temporary folder>", &e))?;
    let object = folder.path().join("scheduler.bpf.o");
    compile_scheduler(Path::new(name), &object)?;
    fs::read(&object).map_err(|e| Failure::io(object.display(), &e))
}
