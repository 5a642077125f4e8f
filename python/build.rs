//! The digest of the sources that a result depends on. A build with another one may measure something else, whatever
//! its version says; the schedulers are not among them, as each is known by the digest of its own object.

use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest, Sha256};

/// What a sweep's values and files come from, as seen from this folder. A lock file says which versions of other
/// people's code.
const SOURCES: [&str; 8] = [
    "../Cargo.lock",
    "../crates/analysis/src",
    "../crates/bpf/src",
    "../crates/machine/src",
    "../crates/session/src",
    "../crates/trace/src",
    "../crates/workload/src",
    "src",
];

/// The files of a folder and of those below it, in the order of their names.
fn files(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().try_for_each(|entry| files(entry, found))
}

fn main() -> Result<(), String> {
    let here = env::var("CARGO_MANIFEST_DIR").map_err(|e| format!("CARGO_MANIFEST_DIR: {e}"))?;
    let mut all = Sha256::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        let mut found = Vec::new();
        files(&Path::new(&here).join(source), &mut found)?;
        for path in found {
            let content = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let name = path.strip_prefix(&here).unwrap_or(&path).display().to_string();
            all.update(name);
            all.update(Sha256::digest(content));
        }
    }
    let hex: String = all.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=FAIRGROUND_SOURCES_SHA256={hex}");
    Ok(())
}
