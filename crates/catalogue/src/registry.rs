//! The Rust registry: versions, checksums and packages.

use std::fs;
use std::path::Path;
use std::process::Command;

use fairground_scratch::die_with_parent;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::FetchError;

const INDEX: &str = "https://index.crates.io";
const PACKAGES: &str = "https://static.crates.io/crates";
/// Bytes of one download at most.
const DOWNLOAD_MAX: &str = "268435456";
/// How long one download may take, s.
const DOWNLOAD_SECONDS: &str = "300";
/// Versions that an error lists.
const LISTED_MAX: usize = 8;

/// A published version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Published {
    pub(crate) vers: String,
    pub(crate) cksum: String,
    #[serde(default)]
    yanked: bool,
}

/// The version of a package: the newest one, or the one that is asked for.
pub(crate) fn version(name: &str, wanted: Option<&str>) -> Result<Published, FetchError> {
    let url = format!("{INDEX}/{}", index_path(name));
    let text = String::from_utf8_lossy(&get(&url)?).into_owned();
    choose(name, wanted, &text)
}

/// The index has a line of JSON for each version, the oldest first.
fn choose(name: &str, wanted: Option<&str>, index: &str) -> Result<Published, FetchError> {
    let mut all: Vec<Published> =
        index.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    all.retain(|one| !one.yanked);
    let found = match wanted {
        Some(wanted) => all.iter().find(|one| one.vers == wanted),
        None => all.last(),
    };
    found.cloned().ok_or_else(|| FetchError::NoVersion {
        name: name.to_owned(),
        version: wanted.unwrap_or("of any kind").to_owned(),
        published: all.iter().rev().take(LISTED_MAX).map(|one| one.vers.clone()).collect(),
    })
}

/// Where the index has a package: `sc/x_/scx_lavd`.
fn index_path(name: &str) -> String {
    match name.len() {
        0..=2 => format!("{}/{name}", name.len()),
        3 => format!("3/{}/{name}", &name[..1]),
        _ => format!("{}/{}/{name}", &name[..2], &name[2..4]),
    }
}

/// Downloads a package, checks it, and unpacks it; the folder of its files is `into/NAME-VERSION`.
pub(crate) fn unpack(
    name: &str,
    version: &str,
    sha256: &str,
    into: &Path,
) -> Result<std::path::PathBuf, FetchError> {
    let content = get(&format!("{PACKAGES}/{name}/{name}-{version}.crate"))?;
    let found = digest(&content);
    if found != sha256 {
        let what = format!("{name} {version}");
        return Err(FetchError::Checksum { what, found, expected: sha256.to_owned() });
    }
    let file = into.join(format!("{name}.crate"));
    fs::write(&file, content).map_err(FetchError::io(&file))?;
    untar(&file, into)?;
    Ok(into.join(format!("{name}-{version}")))
}

/// Unpacks an archive, compressed as its name says.
pub(crate) fn untar(file: &Path, into: &Path) -> Result<(), FetchError> {
    let how = if file.extension().is_some_and(|end| end == "zst") { "--zstd" } else { "--gzip" };
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--no-same-owner", how, "--file"])
        .arg(file)
        .arg("--directory")
        .arg(into);
    run(tar, "tar", "tar zstd").map(drop)
}

fn get(url: &str) -> Result<Vec<u8>, FetchError> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--location", "--retry", "3"]);
    curl.args(["--proto", "=https", "--max-filesize", DOWNLOAD_MAX]);
    curl.args(["--max-time", DOWNLOAD_SECONDS, url]);
    run(curl, "curl", "curl").map_err(|error| match error {
        FetchError::Failed { problem, .. } => FetchError::Download { url: url.to_owned(), problem },
        other => other,
    })
}

/// What a program writes on stdout.
fn run(
    mut command: Command,
    program: &'static str,
    package: &'static str,
) -> Result<Vec<u8>, FetchError> {
    die_with_parent(&mut command);
    let output = command.output().map_err(|error| FetchError::Program {
        program,
        package,
        problem: error.to_string(),
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let problem = text.lines().last().unwrap_or("no message").to_owned();
    Err(FetchError::Failed { program, problem })
}

/// SHA-256, hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = r#"{"name":"a","vers":"1.0.0","cksum":"aa","yanked":false}
{"name":"a","vers":"1.1.0","cksum":"bb","yanked":false}
{"name":"a","vers":"1.2.0","cksum":"cc","yanked":true}
"#;

    #[test]
    fn the_newest_version_that_was_not_withdrawn_or_the_one_asked_for() {
        let chosen = |wanted| choose("a", wanted, INDEX).map(|one| one.cksum).ok();
        assert_eq!(chosen(None).as_deref(), Some("bb"));
        assert_eq!(chosen(Some("1.0.0")).as_deref(), Some("aa"));
        let text = choose("a", Some("1.2.0"), INDEX).expect_err("withdrawn").to_string();
        assert_eq!(text, "a has no version 1.2.0; published are 1.1.0, 1.0.0");
    }

    #[test]
    fn names_lead_to_folders_of_the_index() {
        let paths = ["ab", "abc", "scx_lavd"].map(index_path);
        assert_eq!(paths, ["2/ab", "3/a/abc", "sc/x_/scx_lavd"]);
    }
}
