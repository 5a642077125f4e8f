//! The Rust registry: versions, checksums and packages.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fairground_scratch::die_with_parent;
use fairground_scratch::unpack::{Budget, unpack_only};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::FetchError;
use crate::entry::nearest;

const INDEX: &str = "https://index.crates.io";
const PACKAGES: &str = "https://static.crates.io/crates";
/// Bytes of one download at most.
const DOWNLOAD_MAX: u64 = 256 << 20;
/// How long one download may take, s.
const DOWNLOAD_SECONDS: &str = "300";
/// Versions that an error lists.
const LISTED_MAX: usize = 8;
/// Characters of a package's name or version at most.
const NAME_MAX: usize = 64;
/// The end of curl's message for an address that the registry does not have.
const NOT_FOUND: &str = "error: 404";

/// A published version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct PublishedVersion {
    #[serde(rename = "vers")]
    pub(crate) version: String,
    #[serde(rename = "cksum")]
    pub(crate) sha256: String,
    #[serde(default)]
    yanked: bool,
}

impl PublishedVersion {
    pub(crate) fn of(version: String, sha256: String) -> PublishedVersion {
        PublishedVersion { version, sha256, yanked: false }
    }
}

/// The version of a package: the newest one, or the one that is asked for.
pub(crate) fn version(name: &str, wanted: Option<&str>) -> Result<PublishedVersion, FetchError> {
    check_name(name)?;
    let text = get(&format!("{INDEX}/{}", index_path(name))).map_err(|error| match error {
        FetchError::Download { problem, .. } if problem.ends_with(NOT_FOUND) => {
            FetchError::NotPublished { name: name.to_owned(), nearest: nearest(name) }
        }
        other => other,
    })?;
    choose(name, wanted, &String::from_utf8_lossy(&text))
}

/// The index has a line of JSON for each version, the oldest first.
fn choose(name: &str, wanted: Option<&str>, index: &str) -> Result<PublishedVersion, FetchError> {
    let mut all: Vec<PublishedVersion> =
        index.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    all.retain(|one| !one.yanked);
    let found = match wanted {
        Some(wanted) => all.iter().find(|one| one.version == wanted),
        None => all.last(),
    };
    let found = found.cloned().ok_or_else(|| FetchError::NoVersion {
        name: name.to_owned(),
        version: wanted.unwrap_or("of any kind").to_owned(),
        published: all.iter().rev().take(LISTED_MAX).map(|one| one.version.clone()).collect(),
    })?;
    check_version(name, &found.version)?;
    Ok(found)
}

/// Refuses the name of a package that no registry has: it becomes a part of addresses and paths.
fn check_name(name: &str) -> Result<(), FetchError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    match (1..=NAME_MAX).contains(&name.len()) && name.chars().all(plain) {
        true => Ok(()),
        false => Err(FetchError::NotPublished { name: name.to_owned(), nearest: nearest(name) }),
    }
}

/// Refuses a version that is none, such as one with `/` or `..`: it becomes a part of addresses and paths.
pub(crate) fn check_version(package: &str, version: &str) -> Result<(), FetchError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    let is_one = (1..=NAME_MAX).contains(&version.len())
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(plain)
        && !version.contains("..");
    match is_one {
        true => Ok(()),
        false => Err(FetchError::Recipe {
            package: package.to_owned(),
            problem: format!("`{}` is no version", version.escape_default()),
        }),
    }
}

/// Where the index has a package: `sc/x_/scx_lavd`.
fn index_path(name: &str) -> String {
    match name.len() {
        0..=2 => format!("{}/{name}", name.len()),
        3 => format!("3/{}/{name}", &name[..1]),
        _ => format!("{}/{}/{name}", &name[..2], &name[2..4]),
    }
}

/// Downloads a package, checks it, and unpacks those of its files that are `wanted`; the folder of its files is
/// `into/NAME-VERSION`.
pub(crate) fn unpack(
    name: &str,
    PublishedVersion { version, sha256, .. }: &PublishedVersion,
    into: &Path,
    wanted: fn(&Path) -> bool,
    budget: &mut Budget,
) -> Result<PathBuf, FetchError> {
    let package = format!("{name} {version}");
    let content = get(&format!("{PACKAGES}/{name}/{name}-{version}.crate"))?;
    let found = digest(&content);
    if found != *sha256 {
        let expected = sha256.clone();
        return Err(FetchError::Checksum { what: package, found, expected });
    }
    let file = into.join(format!("{name}.crate"));
    fs::write(&file, content).map_err(FetchError::io(&file))?;
    unpack_only(&file, into, wanted, budget).map_err(FetchError::unpack(&package))?;
    let folder = into.join(format!("{name}-{version}"));
    match folder.is_dir() {
        true => Ok(folder),
        false => Err(FetchError::Unpack {
            package,
            problem: format!("it has no folder `{name}-{version}`"),
        }),
    }
}

/// Downloads what is at an address.
fn get(url: &str) -> Result<Vec<u8>, FetchError> {
    let failed = |problem: String| FetchError::Download { url: url.to_owned(), problem };
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--location", "--retry", "3"]);
    curl.args(["--proto", "=https", "--max-filesize", &DOWNLOAD_MAX.to_string()]);
    curl.args(["--max-time", DOWNLOAD_SECONDS, url]);
    curl.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    die_with_parent(&mut curl);
    let mut child = curl.spawn().map_err(|error| FetchError::Program {
        program: "curl",
        package: "curl",
        problem: error.to_string(),
    })?;
    let output = child.stdout.take().expect("its standard output is a pipe");
    let mut content = Vec::new();
    // A server need not say how much it sends.
    let read = output.take(DOWNLOAD_MAX + 1).read_to_end(&mut content);
    let is_too_long = content.len() as u64 > DOWNLOAD_MAX;
    if is_too_long || read.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let ended = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    read.map_err(|error| failed(error.to_string()))?;
    if is_too_long {
        return Err(failed(format!("it has more than {DOWNLOAD_MAX} bytes")));
    }
    if !ended.status.success() {
        let text = String::from_utf8_lossy(&ended.stderr);
        return Err(failed(text.lines().last().unwrap_or("no message").trim().to_owned()));
    }
    Ok(content)
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
        let chosen = |wanted| choose("a", wanted, INDEX).map(|one| one.sha256).ok();
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
    #[test]
    fn names_and_versions_that_are_paths_are_refused() {
        for version in ["1.1.4", "0.2.0-rc.1", "1.7.0+v1.7.0"] {
            check_version("a", version).expect(version);
        }
        for version in ["", "x/../..", "1/2", "1..2", "..", ".1", "1 2", "1\0", &"1".repeat(65)] {
            let text = check_version("a", version).expect_err(version).to_string();
            assert!(text.contains("is no version"), "{text}");
        }
        for name in ["", "..", "a/b", "a b", "a.b", "ä"] {
            check_name(name).expect_err(name);
        }
        let index = r#"{"name":"a","vers":"1/../../x","cksum":"aa"}"#;
        choose("a", None, index).expect_err("no version");
    }
}
