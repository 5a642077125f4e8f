//! Test objects, compiled from C when the tests run.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::Path;
use std::process::Command;

/// Compiles `tests/objects/<name>.bpf.c`.
pub(crate) fn compile(name: &str, flags: &[&str]) -> Vec<u8> {
    let objects = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects");
    let clang = std::env::var("FAIRGROUND_CLANG").unwrap_or_else(|_| "clang-19".into());
    let output = Command::new(&clang)
        .current_dir(objects)
        .args(["-target", "bpfel", "-mcpu=v3", "-g", "-O2", "-Wall", "-Wno-unused-variable"])
        .args(flags)
        .args(["-c", &format!("{name}.bpf.c"), "-o", "-"])
        .output()
        .unwrap_or_else(|error| panic!("{clang}: {error}; install clang-19"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
