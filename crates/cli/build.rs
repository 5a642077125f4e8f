//! Writes the table of the experiments that come with fairground: every `experiments/*.toml`, in the order of their
//! names.

use std::path::Path;
use std::{env, fs, io};

fn write_table() -> io::Result<()> {
    let variable = |name| env::var(name).map_err(|e| io::Error::other(format!("{name}: {e}")));
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../experiments");
    let mut files: Vec<_> = fs::read_dir(&folder)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let mut table = String::from("const BUILT_IN: &[(&str, &str)] = &[\n");
    for path in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        table += &format!("    ({name:?}, include_str!({path:?})),\n");
    }
    table += "];\n";
    println!("cargo::rerun-if-changed={}", folder.display());
    fs::write(Path::new(&variable("OUT_DIR")?).join("experiments.rs"), table)
}

fn main() {
    if let Err(problem) = write_table() {
        println!("cargo::error=the experiments cannot be listed: {problem}");
        std::process::exit(1);
    }
}
