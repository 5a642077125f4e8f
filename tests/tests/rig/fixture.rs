//! Objects of the tests, compiled on demand.

use std::path::Path;
use std::process::Command;

use fairground_bpf::Object;

/// Compiles `tests/fixtures/NAME.bpf.c` against the schedulers' headers, with macros (`-DNAME=VALUE`).
pub fn object(name: &str, defines: &[&str]) -> Object {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let label: String =
        defines.concat().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{name}{label}-{:?}.o", std::thread::current().id()));
    let clang = fairground_policies::find_clang().unwrap_or_else(|e| panic!("{e}"));
    let done = Command::new(clang)
        .args(fairground_policies::CLANG_FLAGS)
        .arg("-I")
        .arg(dir.join("../policies/include"))
        .args(defines)
        .arg("-c")
        .arg(dir.join(format!("tests/fixtures/{name}.bpf.c")))
        .arg("-o")
        .arg(&out)
        .output()
        .expect("clang runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = std::fs::read(&out).expect("clang wrote the object");
    Object::parse(&format!("{name}.bpf.o"), &bytes).unwrap_or_else(|e| panic!("{e}"))
}
