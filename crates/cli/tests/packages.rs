//! What `make packages` puts into packages, laid out and unpacked again: here the tarball; the Debian package holds
//! the same files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program that is packed: the release build where there is one.
fn program() -> PathBuf {
    let release = std::env::var_os("FAIRGROUND_RELEASE_BINARY").map(PathBuf::from);
    release.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_fairground")))
}

/// Runs a script of `packaging/`; what it printed.
fn script(name: &str, arguments: &[&Path]) -> String {
    let output = Command::new(root().join("packaging").join(name))
        .args(arguments)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .expect("the script starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_tarball_holds_a_program_that_needs_nothing_else_and_is_the_same_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let (stage, name) = (folder.path().join("stage"), Path::new("fairground-test"));
    let tarball = |output: &str| {
        let output = folder.path().join(output);
        script("stage.sh", &[&program(), &stage]);
        script("tarball.sh", &[&stage, name, &output]);
        output.join("fairground-test.tar.gz")
    };
    let (first, second) = (tarball("first"), tarball("second"));
    let bytes = |path: &Path| fs::read(path).expect("it was made");
    assert!(bytes(&first) == bytes(&second), "two tarballs of one program differ");
    // Unpacks it, looks for pages, scripts and licences, and simulates with an empty environment.
    let said = script("check.sh", &[&first]);
    assert!(said.contains("7 schedulers, hogs:2 ran"), "{said}");
}

#[test]
fn the_debian_package_takes_the_same_files_and_depends_on_nothing() {
    let text = fs::read_to_string(root().join("crates/cli/Cargo.toml")).expect("the manifest");
    let manifest: toml::Table = text.parse().expect("TOML");
    let deb = &manifest["package"]["metadata"]["deb"];
    assert_eq!(deb["depends"].as_str(), Some(""), "the program is static");
    for asset in deb["assets"].as_array().expect("a list") {
        let source = asset[0].as_str().expect("a path");
        assert!(source.starts_with("../../target/package/stage/"), "{source}");
    }
    let licence = deb["license-file"][0].as_str().expect("a path");
    let licence = fs::read_to_string(root().join("crates/cli").join(licence)).expect("it is there");
    for part in ["GPL-2.0-only", "MIT or Apache-2.0", "libbpf", "libelf", "zlib", "echarts"] {
        assert!(licence.contains(part), "packaging/copyright does not speak of {part}");
    }
}
