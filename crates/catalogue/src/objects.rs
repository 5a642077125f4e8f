//! Compiling and linking the sources of one object, as the scx project's own build does (`scx_cargo`'s `BpfBuilder`).

use std::path::{Path, PathBuf};
use std::process::Command;

use fairground_scratch::{die_with_parent, limit};
use libbpf_rs::Linker;

use crate::FetchError;

/// The flags of the scx project's build on x86-64.
pub const SCX_FLAGS: &[&str] = &[
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

/// Memory of the compiler. A source of others may include a file without an end.
const MEMORY_BYTES_MAX: u64 = 2 << 30;
/// Processor time of the compiler for one source, s.
const COMPILE_SECONDS_MAX: u64 = 600;

/// Where sources come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    /// The package and its version.
    pub(crate) package: &'a str,
    /// Where it is unpacked.
    pub(crate) folder: &'a Path,
    /// The folders of headers, the first ones first.
    pub(crate) includes: &'a [PathBuf],
}

/// Compiles the sources with `clang` and links them into `object`. The parts stay in the package's folder.
pub(crate) fn build(
    origin: Origin<'_>,
    sources: &[String],
    clang: &str,
    object: &Path,
) -> Result<(), FetchError> {
    let mut parts = Vec::with_capacity(sources.len());
    for source in sources {
        let part = origin.folder.join(format!("part.{}.o", parts.len()));
        compile(origin, source, clang, &part)?;
        parts.push(part);
    }
    link(&parts, object).map_err(|error| FetchError::Recipe {
        package: origin.package.to_owned(),
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

fn compile(origin: Origin<'_>, source: &str, clang: &str, part: &Path) -> Result<(), FetchError> {
    let Origin { package, folder, includes } = origin;
    let mut command = Command::new(clang);
    command.current_dir(folder).args(SCX_FLAGS);
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
    limit(&mut command, MEMORY_BYTES_MAX, COMPILE_SECONDS_MAX);
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
    use std::fs;

    use super::*;

    #[test]
    fn a_source_that_does_not_compile_shows_the_compilers_first_error() {
        let clang = fairground_policies::find_clang().expect("the schedulers were compiled");
        let folder = tempfile::tempdir().expect("a folder");
        let source = "broken.bpf.c";
        fs::write(folder.path().join(source), "int broken(void) { return nothing; }\n")
            .expect("it is written");
        let part = folder.path().join("broken.o");
        let origin = Origin { package: "scx_broken 1.0.0", folder: folder.path(), includes: &[] };
        let error = compile(origin, source, &clang, &part);
        let text = error.expect_err("it does not compile").to_string();
        assert!(text.contains("scx_broken 1.0.0") && text.contains("'nothing'"), "{text}");
        assert!(!part.exists(), "nothing is left of it");
    }
}
