//! Schedulers of the catalogue, by name: `NAME`, `NAME@VERSION`, with options `NAME:OPTION=VALUE:OPTION=VALUE`.

use fairground_catalogue::{CatalogueEntry, Store, find};
use fairground_realkernel::packages::Cache;

use super::{Profile, split_set};
use crate::failure::Failure;

/// The character before an option.
const OPTION: char = ':';

/// The cache of built schedulers.
pub fn scheduler_store() -> Result<Store, Failure> {
    let cache = Cache::open().map_err(Failure::new)?;
    Ok(Store::at(cache.root().join("schedulers")))
}

/// A published scheduler, as it was named.
struct Named<'s> {
    name: &'s str,
    /// `None`: it is built, and nothing describes its loader.
    entry: Option<&'static CatalogueEntry>,
    version: Option<&'s str>,
    /// The text after the first `:`.
    options: Option<&'s str>,
}

/// `None` if that is no published scheduler: none of the catalogue, and none that is built.
fn named(spec: &str) -> Option<Named<'_>> {
    let (name, options) = match spec.split_once(OPTION) {
        Some((name, options)) => (name, Some(options)),
        None => (spec, None),
    };
    let (name, version) = split_set(name);
    let entry = find(name);
    (entry.is_some() || is_built(name)).then_some(Named { name, entry, version, options })
}

/// Whether a published scheduler without an entry is built.
fn is_built(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    name.chars().all(plain)
        && fairground_policies::get(name).is_none()
        && scheduler_store().is_ok_and(|store| !store.built(name).is_empty())
}

/// Whether that is a published scheduler.
pub(crate) fn is_published(spec: &str) -> bool {
    named(spec).is_some()
}

/// A scheduler's name without the options of an entry of the catalogue.
pub(super) fn without_options(spec: &str) -> &str {
    let options = named(spec).and_then(|named| named.options);
    options.map_or(spec, |options| &spec[..spec.len() - options.len() - OPTION.len_utf8()])
}

/// The object file of a scheduler of the catalogue; `None` if it is none.
pub(super) fn object_of(spec: &str) -> Option<Result<String, Failure>> {
    let Named { name, version, .. } = named(spec)?;
    Some(scheduler_store().and_then(|store| {
        let built = store.cached(name, version).map_err(Failure::new)?;
        Ok(built.object.display().to_string())
    }))
}

/// The profile of a published scheduler's entry: the settings that its loader would make. `None`: it is none, or has no
/// entry.
pub fn profile_of(spec: &str) -> Option<Result<Profile, Failure>> {
    let Named { name, entry, version, options } = named(spec)?;
    let options = options.into_iter().flat_map(|all| all.split(OPTION)).map(|option| {
        option.split_once('=').ok_or_else(|| {
            Failure::new(format_args!("{spec}: `{option}` is no option"))
                .help(format_args!("write `{name}:NAME=VALUE`"))
        })
    });
    let options = match options.collect::<Result<Vec<_>, _>>() {
        Ok(options) => options,
        Err(failure) => return Some(Err(failure)),
    };
    let Some(entry) = entry else {
        return (!options.is_empty()).then(|| {
            Err(Failure::new(format_args!("{name} has no options: no entry describes its loader"))
                .help("set its variables with --set, or with a profile"))
        });
    };
    let path = format!("catalogue/{name}.toml").into();
    let profile = Profile::of_text(path, &entry.profile()).and_then(|profile| {
        let version = version.map(str::to_owned).or_else(|| built_version(name));
        profile.of_version(version, entry.version()).with_options(spec, &options)
    });
    Some(profile)
}

/// The newest version that is built.
fn built_version(name: &str) -> Option<String> {
    Some(scheduler_store().ok()?.built(name).into_iter().next()?.version)
}

/// The note of a published scheduler without an entry; `None` if it is none.
pub(super) fn without_entry(spec: &str) -> Option<String> {
    let Named { name, entry: None, .. } = named(spec)? else { return None };
    Some(format!(
        "{name}: no entry of the catalogue describes what its loader sets; give --set or --profile"
    ))
}

#[cfg(test)]
mod tests {
    use fairground_bpf::Object;

    use super::*;

    #[test]
    fn options_follow_the_name_and_the_version() {
        let plain = "scx_bpfland@1.1.4";
        assert_eq!(without_options(&format!("{plain}:primary=powersave")), plain);
        for spec in [plain, "cfs@6.1", "./dir:x/mine.bpf.o"] {
            assert_eq!(without_options(spec), spec);
        }
        let named = named("scx_bpfland@1.1.4:a=b:c=d").expect("it is in the catalogue");
        assert_eq!((named.version, named.options), (Some("1.1.4"), Some("a=b:c=d")));
    }

    /// An entry describes one version; another one may lack what it sets.
    #[test]
    fn a_certain_version_is_not_set_what_it_lacks() {
        let text =
            "object = \"cfs\"\n[set]\nrule_scaling_cpus_max = 8\nof_later = 1\n\"x[1].y\" = 2\n";
        let topology = "2".parse().expect("a topology");
        let bytes = fairground_policies::get("cfs").expect("a policy").object;
        let mut object = Object::parse("cfs", bytes).expect("an object");
        let entry = || Profile::of_text("entry.toml".into(), text).expect("a profile");
        let refused = entry().apply(&mut object, &topology).expect_err("a lack").to_string();
        assert!(refused.contains("has no variable `of_later`"), "{refused}");
        let older = entry().of_version(Some("1.0.9".to_owned()), "1.0.10");
        let applied = older.apply(&mut object, &topology).expect("the rest");
        assert_eq!(
            applied.settings.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
            ["rule_scaling_cpus_max"]
        );
        assert_eq!(applied.lacking, ["of_later", "x"]);
    }

    #[test]
    fn what_is_no_option_lists_those_that_there_are() {
        let refused = |spec: &str| profile_of(spec).expect("an entry").expect_err(spec).to_string();
        assert!(refused("scx_bpfland:primary=fast").contains("`primary=powersave`"));
        assert!(refused("scx_bpfland:primry=all").contains("there are"));
        assert!(refused("scx_bpfland:primary").contains("write `scx_bpfland:NAME=VALUE`"));
        let profile = profile_of("scx_bpfland:primary=powersave").expect("an entry").expect("good");
        assert!(profile.is_for("scx_bpfland:primary=powersave") && !profile.is_for("scx_bpfland"));
    }
}
