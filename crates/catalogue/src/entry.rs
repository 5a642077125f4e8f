//! The entries: one file for each scheduler in `catalogue/` of the repository.

use fairground_suggest::did_you_mean;

/// A scheduler that others publish.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueEntry {
    /// Its name, which is also that of its package in the Rust registry.
    pub name: &'static str,
    /// The text of its file: keys of its own, and those of a profile.
    pub text: &'static str,
}

macro_rules! entries {
    ($($name:literal)*) => {
        /// All entries, sorted by name.
        pub const ENTRIES: &[CatalogueEntry] = &[$(CatalogueEntry {
            name: $name,
            text: include_str!(concat!("../../../catalogue/", $name, ".toml")),
        }),*];
    };
}

entries! {
    "scx_beerland"
    "scx_bpfland"
    "scx_cake"
    "scx_cosmos"
    "scx_flash"
    "scx_lavd"
    "scx_layered"
    "scx_p2dq"
    "scx_rusty"
    "scx_tickless"
}

/// The keys of an entry that a profile does not have; each is a line with a text, before the tables.
const OWN_KEYS: [&str; 3] = ["summary", "version", "limits"];

impl CatalogueEntry {
    /// Its kind, in a few words.
    pub fn summary(&self) -> &'static str {
        self.own("summary").unwrap_or_default()
    }

    /// The version of the package that the entry describes.
    pub fn version(&self) -> &'static str {
        self.own("version").unwrap_or_default()
    }

    /// The parts that the simulated machine leaves out of it, or its needs, in a few words; `None`: there are none.
    pub fn limits(&self) -> Option<&'static str> {
        self.own("limits")
    }

    fn own(&self, key: &str) -> Option<&'static str> {
        let value = |line: &'static str| line.strip_prefix(key)?.strip_prefix(" = \"");
        self.text.lines().find_map(value)?.strip_suffix('"')
    }

    /// The entry as a profile (docs/howto/third-party-schedulers.md): without the keys of its own.
    pub fn profile(&self) -> String {
        let is_own =
            |line: &str| line.split_once(" = ").is_some_and(|(key, _)| OWN_KEYS.contains(&key));
        // A line's number in an error is that of the file.
        let lines = self.text.lines().map(|line| if is_own(line) { "" } else { line });
        lines.collect::<Vec<_>>().join("\n") + "\n"
    }
}

/// The entry of this name.
pub fn find(name: &str) -> Option<&'static CatalogueEntry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// The entry with a similar name.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    did_you_mean(name, ENTRIES.iter().map(|entry| entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_and_say_what_they_are() {
        assert!(ENTRIES.is_sorted_by_key(|entry| entry.name));
        for entry in ENTRIES {
            assert!(!entry.summary().is_empty(), "{}", entry.name);
            let table: toml::Table = entry.text.parse().expect("an entry is TOML");
            assert_eq!(table["summary"].as_str(), Some(entry.summary()));
            assert_eq!(table["version"].as_str(), Some(entry.version()));
            assert_eq!(table.get("limits").and_then(|text| text.as_str()), entry.limits());
            assert_eq!(table["object"].as_str(), Some(entry.name));
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        assert_eq!([nearest("scx_lavdd"), nearest("zzz")], [Some("scx_lavd"), None]);
    }
}
