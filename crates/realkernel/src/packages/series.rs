//! The series of kernels that can be fetched, and the Debian suites that contain them.

/// A series of kernels in Debian's archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSeries {
    /// Its name: `6.1`, `newest-rt`.
    pub name: &'static str,
    /// Its purpose.
    pub what: &'static str,
    /// Whether it supports sched_ext (`CONFIG_SCHED_CLASS_EXT`).
    pub(super) sched_ext: bool,
    /// The series, `6.1`; `None`: the newest series of the suites.
    pub(super) series: Option<&'static str>,
    /// Debian's name of the build: `cloud` or `rt`.
    pub(super) flavour: &'static str,
    /// The suites of Debian's archive that contain it.
    pub(super) suites: &'static [&'static str],
}

/// The series that can be fetched.
pub const KERNEL_SERIES: [KernelSeries; 4] = [
    KernelSeries {
        name: "6.1",
        what: "the last line with CFS that Debian ships (bookworm)",
        sched_ext: false,
        series: Some("6.1"),
        flavour: "cloud",
        suites: &["bookworm", "bookworm-security"],
    },
    KernelSeries {
        name: "6.12",
        what: "EEVDF (trixie); sched_ext is off in this build",
        sched_ext: false,
        series: Some("6.12"),
        flavour: "cloud",
        suites: &["trixie", "trixie-security"],
    },
    KernelSeries {
        name: "newest",
        what: "the newest that Debian has (sid): EEVDF and sched_ext",
        sched_ext: true,
        series: None,
        flavour: "cloud",
        suites: &["sid"],
    },
    KernelSeries {
        name: "newest-rt",
        what: "the same with PREEMPT_RT",
        sched_ext: true,
        series: None,
        flavour: "rt",
        suites: &["sid"],
    },
];

/// Whether a kernel supports sched_ext, by its name.
pub fn takes_schedulers(name: &str) -> Option<bool> {
    KernelSeries::find(name).map(|series| series.sched_ext)
}

/// A package with a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelPackage {
    /// The package.
    pub(super) package: String,
    /// Its release (`uname -r`): `7.2.13+deb14-cloud-amd64`.
    pub(super) release: String,
    /// Its series: `7.2`.
    pub(super) series: String,
}

impl KernelSeries {
    /// The series named `name`, or the newest for one of that number (`7.2`, `7.2-rt`).
    pub(super) fn find(name: &str) -> Option<Self> {
        let exact = KERNEL_SERIES.iter().find(|e| e.name == name).copied();
        exact.or_else(|| {
            let (series, newest) = match name.strip_suffix("-rt") {
                Some(series) => (series, "newest-rt"),
                None => (name, "newest"),
            };
            series_parts(series)?;
            KERNEL_SERIES.iter().find(|e| e.name == newest).copied()
        })
    }

    /// The name in the cache of a kernel of `series`.
    pub(super) fn cache_name(&self, series: &str) -> String {
        match self.flavour {
            "rt" => format!("{series}-rt"),
            _ => series.to_owned(),
        }
    }

    /// The package with the highest version of this series and build.
    pub(super) fn choose(&self, names: &[String]) -> Option<KernelPackage> {
        let mut found: Vec<KernelPackage> = names
            .iter()
            .filter_map(|name| kernel_package(name, self.flavour))
            .filter(|k| self.series.is_none_or(|series| k.series == series))
            .collect();
        // Prefer the packages that contain the files: `image` before 7.0, `binary` since.
        found.sort_by_key(|k| (numbers(&k.release), k.package.starts_with("linux-binary-")));
        found.pop()
    }
}

impl KernelPackage {
    /// The package with its configuration, if the archive has one beside the kernel's (since 7.0).
    pub(super) fn config_package(&self, names: &[String]) -> Option<String> {
        let name = format!("linux-base-{}", self.release);
        names.contains(&name).then_some(name)
    }
}

/// Parses `linux-image-6.1.0-50-cloud-amd64` and `linux-binary-7.2.13+deb14-cloud-amd64`; rejects other names.
fn kernel_package(name: &str, flavour: &str) -> Option<KernelPackage> {
    let release =
        name.strip_prefix("linux-image-").or_else(|| name.strip_prefix("linux-binary-"))?;
    let version = release.strip_suffix("-amd64")?.strip_suffix(flavour)?.strip_suffix('-')?;
    let numbers = version.split(['+', '-']).next()?;
    let mut parts = numbers.split('.');
    let series = format!("{}.{}", parts.next()?, parts.next()?);
    series_parts(&series)?;
    // Rejects release candidates and other builds (`6.12-rc5`, `6.1.0-0.deb11.5-cloud-amd64-unsigned`).
    let patch = parts.next()?;
    if !patch.bytes().all(|b| b.is_ascii_digit()) || version.contains("rc") {
        return None;
    }
    Some(KernelPackage { package: name.to_owned(), release: release.to_owned(), series })
}

/// The two numbers of `6.12`.
pub(super) fn series_parts(series: &str) -> Option<(u32, u32)> {
    let (major, minor) = series.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The numbers of a version, for comparison: `6.1.0-50` is above `6.1.0-9`.
pub(super) fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(entry: &str, names: &[&str]) -> Option<String> {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        KernelSeries::find(entry)?.choose(&names).map(|k| k.package)
    }

    const BOOKWORM: [&str; 7] = [
        "linux-image-6.1.0-9-cloud-amd64",
        "linux-image-6.1.0-56-cloud-amd64",
        "linux-image-6.1.0-56-cloud-amd64-unsigned",
        "linux-image-6.1.0-56-rt-amd64",
        "linux-image-6.1.0-56-amd64",
        "linux-image-cloud-amd64",
        "linux-image-cloud-amd64-dbg",
    ];
    const SID: [&str; 8] = [
        "linux-base-7.2.13+deb14-cloud-amd64",
        "linux-base-7.2.13+deb14-rt-amd64",
        "linux-image-7.2.13+deb14-cloud-amd64",
        "linux-binary-7.2.13+deb14-cloud-amd64",
        "linux-binary-7.2.9+deb14-cloud-amd64",
        "linux-binary-7.2.13+deb14-rt-amd64",
        "linux-image-7.2.13+deb14-cloud-amd64-dbg",
        "linux-headers-7.2.13+deb14-cloud-amd64",
    ];

    #[test]
    fn the_highest_number_is_the_newest() {
        assert_eq!(choose("6.1", &BOOKWORM).as_deref(), Some("linux-image-6.1.0-56-cloud-amd64"));
    }

    #[test]
    fn the_package_with_the_files_is_taken() {
        assert_eq!(
            choose("newest", &SID).as_deref(),
            Some("linux-binary-7.2.13+deb14-cloud-amd64")
        );
        assert_eq!(choose("7.2-rt", &SID).as_deref(), Some("linux-binary-7.2.13+deb14-rt-amd64"));
    }

    #[test]
    fn the_configuration_is_that_of_the_same_build() {
        let config = |entry: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            KernelSeries::find(entry)?.choose(&names)?.config_package(&names)
        };
        assert_eq!(config("newest", &SID).as_deref(), Some("linux-base-7.2.13+deb14-cloud-amd64"));
        assert_eq!(config("7.2-rt", &SID).as_deref(), Some("linux-base-7.2.13+deb14-rt-amd64"));
        assert_eq!(config("6.1", &BOOKWORM), None, "it is in the kernel's own package");
    }

    #[test]
    fn a_series_is_no_other_series() {
        assert_eq!(choose("6.12", &BOOKWORM), None);
        assert_eq!(KernelSeries::find("6.1").map(|e| e.cache_name("6.1")).as_deref(), Some("6.1"));
        assert_eq!(
            KernelSeries::find("newest-rt").map(|e| e.cache_name("7.2")).as_deref(),
            Some("7.2-rt")
        );
    }

    #[test]
    fn the_names_say_which_kernels_take_schedulers() {
        let known = ["6.1", "6.12", "newest", "7.2", "7.2-rt", "fish"].map(takes_schedulers);
        assert_eq!(known, [Some(false), Some(false), Some(true), Some(true), Some(true), None]);
    }

    #[test]
    fn a_name_that_is_no_series_is_unknown() {
        for name in ["", "fish", "6", "6.x", "6.1.2", "../6.1", "-rt"] {
            assert_eq!(KernelSeries::find(name), None, "{name:?}");
        }
    }
}
