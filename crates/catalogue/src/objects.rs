//! Compiling and linking the sources of one object, as the scx project's own build does (`scx_cargo`'s `BpfBuilder`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fairground_scratch::die_with_parent;
use libbpf_rs::Linker;

use crate::FetchError;
use crate::recipe::Recipe;

/// The flags of the scx project's build on x86-64.
const FLAGS: &[&str] = &[
    "-target",
    "bpf",
    "-g",
    "-O2",
    "-mcpu=v3",
    "-mlittle-endian",
    "-Wno-compare-distinct-pointer-types",
    "-D__TARGET_ARCH_x86",
    "-D__SCX_TARGET_ARCH_x86",
];
/// Lines of a compiler's message that are shown.
const MESSAGE_LINES: usize = 4;

/// The folders of an unpacked package and of what its build needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folders<'a> {
    pub(crate) package: &'a Path,
    /// Those of `scx_cargo`, with `vmlinux` unpacked in it.
    pub(crate) headers: &'a Path,
    /// Those of `libbpf-sys`.
    pub(crate) libbpf: &'a Path,
}

/// Compiles the sources with `clang` and links them into `object`.
pub(crate) fn build(
    package: &str,
    recipe: &Recipe,
    folders: Folders<'_>,
    clang: &str,
    object: &Path,
) -> Result<(), FetchError> {
    let includes = includes(folders)?;
    let mut parts = Vec::with_capacity(recipe.sources.len());
    for source in &recipe.sources {
        let part = object.with_extension(format!("{}.o", parts.len()));
        compile(package, source, folders.package, &includes, clang, &part)?;
        parts.push(part);
    }
    link(&parts, object).map_err(|error| FetchError::Recipe {
        package: package.to_owned(),
        problem: format!("libbpf does not link its objects: {error}"),
    })
}

fn link(parts: &[PathBuf], object: &Path) -> libbpf_rs::Result<()> {
    let mut linker = Linker::new(object)?;
    for part in parts {
        linker.add_file(part)?;
    }
    linker.link()
}

/// The folders of headers, the first ones first. libbpf's are included as `<bpf/…>`.
fn includes(folders: Folders<'_>) -> Result<Vec<PathBuf>, FetchError> {
    let libbpf = folders.libbpf.join("include");
    let link = libbpf.join("bpf");
    if !link.exists() {
        fs::create_dir_all(&libbpf).map_err(FetchError::io(&libbpf))?;
        std::os::unix::fs::symlink(folders.libbpf.join("libbpf/src"), &link)
            .map_err(FetchError::io(&link))?;
    }
    let bpf_h = folders.headers.join("bpf_h");
    let types = folders.headers.join("vmlinux/arch/x86");
    Ok(vec![types, bpf_h.clone(), bpf_h.join("bpf-compat"), libbpf])
}

fn compile(
    package: &str,
    source: &str,
    folder: &Path,
    includes: &[PathBuf],
    clang: &str,
    part: &Path,
) -> Result<(), FetchError> {
    let mut command = Command::new(clang);
    command.current_dir(folder).args(FLAGS);
    // The same source gives the same object, wherever it is built.
    command.arg(format!("-ffile-prefix-map={}=.", folder.display()));
    command.arg("-fdebug-compilation-dir=.");
    for include in includes {
        command.arg("-I").arg(include);
    }
    command.arg("-idirafter").arg("/usr/include");
    command.arg("-idirafter").arg("/usr/include/x86_64-linux-gnu");
    command.arg("-c").arg(source).arg("-o").arg(part);
    die_with_parent(&mut command);
    let output = command.output().map_err(|error| FetchError::Program {
        program: "clang",
        package: "clang-19",
        problem: error.to_string(),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = text.lines().skip_while(|line| !line.contains("error:")).take(MESSAGE_LINES);
    let plain = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    let (package, clang) = (package.to_owned(), clang.to_owned());
    let message = lines.map(plain).collect::<Vec<_>>().join("\n");
    Err(FetchError::Compile { package, clang, source_file: source.to_owned(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_does_not_compile_shows_the_compilers_first_error() {
        let clang = fairground_policies::find_clang().expect("the schedulers were compiled");
        let folder = tempfile::tempdir().expect("a folder");
        let source = "broken.bpf.c";
        fs::write(folder.path().join(source), "int broken(void) { return nothing; }\n")
            .expect("it is written");
        let part = folder.path().join("broken.o");
        let error = compile("scx_broken 1.0.0", source, folder.path(), &[], &clang, &part);
        let text = error.expect_err("it does not compile").to_string();
        assert!(text.contains("scx_broken 1.0.0") && text.contains("'nothing'"), "{text}");
        assert!(!part.exists(), "nothing is left of it");
    }
}
