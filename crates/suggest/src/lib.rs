//! The known names that a mistyped one may mean: for every message about an unknown name.
//!
//! This crate knows no other crate of the workspace.

/// How many names [`nearest`] returns.
pub const NEAREST_MAX: usize = 3;

/// The known name that takes the fewest edits (insertions, deletions, replacements and swaps of characters; case does
/// not count), if they are at most a third of the longer name's characters. The first one of several in byte order.
pub fn did_you_mean<'n>(
    written: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let lower = written.to_lowercase();
    let candidates = known.into_iter().map(|name| (edits(&lower, name), name));
    let (edits, name) = candidates.min()?;
    let longer = name.chars().count().max(written.chars().count());
    (edits <= longer.div_ceil(3) && edits < longer).then_some(name)
}

/// The name of [`did_you_mean`]; where there is none, up to [`NEAREST_MAX`] names: those that contain the written one
/// first, then by edits.
pub fn nearest<'n>(written: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let mut names: Vec<&str> = known.into_iter().collect();
    if let Some(name) = did_you_mean(written, names.iter().copied()) {
        return vec![name.to_owned()];
    }
    let lower = written.to_lowercase();
    names.sort_by_cached_key(|name| {
        (!name.to_lowercase().contains(&lower), edits(&lower, name), *name)
    });
    names.into_iter().take(NEAREST_MAX).map(str::to_owned).collect()
}

fn edits(lower: &str, name: &str) -> usize {
    strsim::damerau_levenshtein(lower, &name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_means_one_name() {
        let names = ["cfs", "eevdf", "latency_ns", "rfs", "scx_bpf_dsq_insert", "o1"];
        for (written, name) in [
            ("cfz", Some("cfs")),
            ("EEVFD", Some("eevdf")),
            ("latency", Some("latency_ns")),
            ("scx_bpf_dsq_inserts", Some("scx_bpf_dsq_insert")),
            ("xyz", None),
            ("z", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(written, names), name, "{written}");
        }
        assert_eq!(did_you_mean("fs", []), None);
        assert_eq!(did_you_mean("ffs", names), Some("cfs"), "the first of two");
    }

    #[test]
    fn of_several_those_that_contain_it_come_first() {
        let names =
            ["min_granularity_ns", "wakeup_granularity_ns", "ran", "rand", "migration_cost"];
        assert_eq!(
            nearest("granul", names),
            ["min_granularity_ns", "wakeup_granularity_ns", "ran"]
        );
        assert_eq!(nearest("migrationcost", names), ["migration_cost"]);
        assert_eq!(nearest("none", []), Vec::<String>::new());
    }
}
