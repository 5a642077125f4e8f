//! The version of a file, checked before anything else: what another version has more is no misspelt key.

use serde::Deserialize;

use crate::failure::Failure;

/// Refuses a TOML text whose key `format` states another version than `ours`. A text that is no TOML, or states none,
/// has another fault, which its reader reports with the place.
///
/// # Errors
/// Names both versions.
pub fn check_version(file: &str, text: &str, ours: u32) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Version {
        format: i64,
    }
    match toml::from_str::<Version>(text) {
        Ok(Version { format }) if format != i64::from(ours) => Err(Failure::new(format_args!(
            "{file}: format = {format}, and this fairground reads format {ours}"
        ))
        .help("another version of fairground reads it")),
        _ => Ok(()),
    }
}
