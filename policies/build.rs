//! Compiles each `*.bpf.c` of this directory and writes the table that `src/lib.rs` includes.

#[expect(unreachable_pub, reason = "the library exports what this script shares with it")]
#[path = "src/compiler.rs"]
mod compiler;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Files of `dir` with this suffix, sorted by name.
fn files(dir: &Path, end: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(end));
    found.sort();
    Ok(found)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The summary in a scheduler's opening comment: the text after `NAME: ` up to the first full stop.
fn summary(source: &str) -> Option<String> {
    let comment = source.split("*/").nth(1)?.split_once("/*")?.1;
    let text: Vec<&str> =
        comment.lines().map(|line| line.trim().trim_start_matches('*').trim()).collect();
    let text = text.join(" ");
    let (_, what) = text.trim().split_once(": ")?;
    let end = what.find(". ").unwrap_or(what.len());
    Some(what[..end].trim_end_matches('.').to_owned())
}

fn compile(clang: &str, dir: &Path, source: &str, object: &Path) -> Result<(), String> {
    let output = Command::new(clang)
        .current_dir(dir)
        .args(compiler::CLANG_FLAGS)
        .args(["-Wextra", "-Werror", "-Wno-unused-parameter", "-Iinclude"])
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .output()
        .map_err(|e| format!("{clang}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{clang} does not compile policies/{source}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn build() -> Result<(), String> {
    let dir =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo sets CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let clang = compiler::find_clang().map_err(|e| e.to_string())?;
    compiler::find_headers().map_err(|e| e.to_string())?;

    let mut table = String::from("const POLICIES: &[Policy] = &[\n");
    for path in files(&dir, ".bpf.c")? {
        let source = file_name(&path);
        let name = source.trim_end_matches(".bpf.c");
        let object = out.join(format!("{name}.bpf.o"));
        compile(&clang, &dir, &source, &object)?;
        let text = fs::read_to_string(&path).map_err(|e| format!("{source}: {e}"))?;
        let summary = summary(&text).ok_or_else(|| {
            format!("policies/{source}: its opening comment must begin with `NAME: SUMMARY.`")
        })?;
        table += &format!(
            "    Policy {{ name: {name:?}, summary: {summary:?}, object: include_bytes!({object:?}), \
             source: include_str!({path:?}) }},\n"
        );
    }
    table += "];\n\n/// The header files that a scheduler includes: name and text.\n\
              pub const HEADERS: &[(&str, &str)] = &[\n";
    for path in files(&dir.join("include"), ".h")? {
        table += &format!("    ({:?}, include_str!({path:?})),\n", file_name(&path));
    }
    table += "];\n";
    fs::write(out.join("table.rs"), table).map_err(|e| format!("{}: {e}", out.display()))
}

fn main() {
    for watched in ["build.rs", "include", "src/compiler.rs", "."] {
        println!("cargo::rerun-if-changed={watched}");
    }
    println!("cargo::rerun-if-env-changed={}", compiler::CLANG_VARIABLE);
    if let Err(problem) = build() {
        for line in problem.lines() {
            println!("cargo::error={line}");
        }
        std::process::exit(1);
    }
}
