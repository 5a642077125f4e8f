//! Which scheduler a recording was made under, and what can be set there. Rules do not depend on it; advice does.

use fairground_trace::Origin;

use super::Rule;

/// The scheduler that made a recording, as far as the recording says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The O(1) scheduler, before Linux 2.6.23.
    O1,
    /// CFS of Linux 2.6.23 to 6.5.
    Cfs {
        /// It gives sleepers half of the credit (`GENTLE_FAIR_SLEEPERS`, since Linux 2.6.32).
        gentle: bool,
        /// Its tunables are files of `/sys/kernel/debug/sched` (since Linux 5.13), not of `/proc/sys/kernel`.
        debugfs: bool,
    },
    /// EEVDF, since Linux 6.6.
    Eevdf {
        /// Tasks may have slices of their own (since Linux 6.12).
        own_slices: bool,
    },
    /// Another one, such as a sched_ext scheduler: its own tunables are what can be set.
    Other,
    /// The recording does not say.
    Unknown,
}

/// The kernel's scheduler that is in charge if no other is attached.
fn of_release(release: &str) -> Family {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0u32);
    let version = (next(), next(), next());
    match version {
        (0, ..) => Family::Unknown,
        version if version < (2, 6, 23) => Family::O1,
        version if version < (6, 6, 0) => {
            Family::Cfs { gentle: version >= (2, 6, 32), debugfs: version >= (5, 13, 0) }
        }
        version => Family::Eevdf { own_slices: version >= (6, 12, 0) },
    }
}

impl Family {
    /// Of a recording.
    pub fn of(origin: &Origin) -> Self {
        let Some(scheduler) = origin.scheduler.as_deref().filter(|name| *name != "kernel") else {
            return origin.kernel.as_deref().map_or(Self::Unknown, of_release);
        };
        let (name, version) = scheduler.split_once('@').unwrap_or((scheduler, ""));
        match name {
            "o1" => Self::O1,
            "cfs" | "cfs_2_6_23" | "eevdf" if version.starts_with(|c: char| c.is_ascii_digit()) => {
                of_release(version)
            }
            "cfs_2_6_23" => Self::Cfs { gentle: false, debugfs: false },
            "cfs" => Self::Cfs { gentle: true, debugfs: true },
            "eevdf" => Self::Eevdf { own_slices: true },
            _ => Self::Other,
        }
    }

    /// Advice about the findings of a rule there; `None` where nothing depends on the scheduler.
    pub(super) fn advice(self, rule: Rule) -> Option<String> {
        let advice = match rule {
            Rule::CutSlices => self.against_cuts(),
            Rule::WakeupTail => self.against_tails(),
            Rule::PingPong => self.against_migrations(),
            _ => return None,
        };
        Some(advice)
    }

    fn against_cuts(self) -> String {
        let batch = "SCHED_BATCH for the task that wakes up: it does not preempt then";
        let own = match self {
            Family::O1 => return "O(1) prefers interactive tasks: a higher nice value for the sleeper".to_owned(),
            Family::Cfs { gentle, debugfs } => format!(
                "{} off, or a larger `{}` (CFS)",
                if gentle { "the feature `WAKEUP_PREEMPTION`" } else { "the feature `NEW_FAIR_SLEEPERS`" },
                if debugfs { "wakeup_granularity_ns" } else { "kernel.sched_wakeup_granularity_ns" }
            ),
            Family::Eevdf { own_slices } => format!(
                "a larger `base_slice_ns` with the feature `RUN_TO_PARITY` on{} (EEVDF; it gives no credit for sleep)",
                if own_slices { ", `PREEMPT_SHORT` off, or no shorter slice of the sleeper's own" } else { "" }
            ),
            Family::Other => return "the scheduler's own tunables for wake-up preemption (`fairground sched show` lists those of an object)".to_owned(),
            Family::Unknown => return format!(
                "{batch}; under CFS (Linux 2.6.23 to 6.5) a larger `wakeup_granularity_ns`, under EEVDF (since 6.6) a larger `base_slice_ns`"
            ),
        };
        format!("{batch}; {own}")
    }

    fn against_tails(self) -> String {
        match self {
            Family::O1 => "a lower nice value for the task that waits".to_owned(),
            Family::Cfs { debugfs, .. } => format!(
                "a smaller `{}` and a lower nice value for the task that waits (CFS)",
                if debugfs { "min_granularity_ns" } else { "kernel.sched_min_granularity_ns" }
            ),
            Family::Eevdf { own_slices: true } => {
                "a shorter slice of its own for the task that waits (`sched_setattr`, `sched_runtime`), or a smaller \
                 `base_slice_ns` (EEVDF)"
                    .to_owned()
            }
            Family::Eevdf { own_slices: false } => {
                "a smaller `base_slice_ns` (EEVDF; slices of a task's own come with Linux 6.12)".to_owned()
            }
            Family::Other => "the scheduler's own tunables for slices".to_owned(),
            Family::Unknown => "under CFS (Linux 2.6.23 to 6.5) a smaller `min_granularity_ns`, under EEVDF (since 6.6) a \
                                smaller `base_slice_ns`"
                .to_owned(),
        }
    }

    fn against_migrations(self) -> String {
        match self {
            Family::O1 | Family::Other => "CPU affinity for the tasks".to_owned(),
            Family::Cfs { debugfs: false, .. } => {
                "a larger `kernel.sched_migration_cost_ns`, or CPU affinity for the tasks".to_owned()
            }
            _ => "a larger `migration_cost_ns` (`/sys/kernel/debug/sched` since Linux 5.13), or CPU affinity for the \
                  tasks"
                .to_owned(),
        }
    }
}

/// The scheduler in words; empty where the recording does not say.
pub(super) fn describe(origin: &Origin) -> String {
    let kernel = origin.kernel.as_ref().map(|release| format!("Linux {release}"));
    let name = match (origin.scheduler.as_deref(), Family::of(origin)) {
        (Some(name), _) if name != "kernel" => {
            let name = name
                .strip_prefix("scx:")
                .map_or(name.to_owned(), |scx| format!("{scx} (sched_ext)"));
            return kernel.into_iter().fold(name, |name, kernel| format!("{name}, {kernel}"));
        }
        (_, Family::O1) => "O(1)",
        (_, Family::Cfs { .. }) => "CFS",
        (_, Family::Eevdf { .. }) => "EEVDF",
        (_, Family::Other | Family::Unknown) => return kernel.unwrap_or_default(),
    };
    let doubt = match origin.scheduler {
        Some(_) => "",
        None => ", if no sched_ext scheduler was attached",
    };
    format!("{name} ({}{doubt})", kernel.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(scheduler: Option<&str>, kernel: Option<&str>) -> Origin {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Origin { scheduler: own(scheduler), kernel: own(kernel), ..Origin::default() }
    }

    #[test]
    fn the_family_follows_from_the_origin() {
        for (scheduler, kernel, words) in [
            (Some("kernel"), Some("6.18.44-fc"), "EEVDF (Linux 6.18.44-fc)"),
            (None, Some("6.6.0"), "EEVDF (Linux 6.6.0, if no sched_ext scheduler was attached)"),
            (Some("kernel"), Some("6.5.13"), "CFS (Linux 6.5.13)"),
            (Some("kernel"), Some("2.6.22.5"), "O(1) (Linux 2.6.22.5)"),
            (Some("scx:lavd"), Some("7.2.0"), "lavd (sched_ext), Linux 7.2.0"),
            (Some("cfs@6.1"), None, "cfs@6.1"),
            (None, None, ""),
        ] {
            assert_eq!(describe(&origin(scheduler, kernel)), words);
        }
        assert_eq!(Family::of(&origin(Some("scx:lavd"), Some("7.2.0"))), Family::Other);
        assert_eq!(Family::of(&origin(None, Some("strange"))), Family::Unknown);
        let eevdf = Family::Eevdf { own_slices: true };
        assert_eq!(Family::of(&origin(Some("eevdf@6.18"), None)), eevdf);
        let old = Family::Cfs { gentle: false, debugfs: false };
        assert_eq!(Family::of(&origin(Some("cfs@2.6.27-sle11"), None)), old);
    }

    /// Settings that a scheduler does not have are not advised there: `features.h` and `debug.c` of Linux 6.1 and 7.2.
    #[test]
    fn advice_names_what_there_is() {
        let all = |scheduler: &str| {
            let family = Family::of(&origin(Some("kernel"), Some(scheduler)));
            Rule::ALL.iter().filter_map(|rule| family.advice(*rule)).collect::<String>()
        };
        for word in ["FAIR_SLEEPERS", "wakeup_granularity", "min_granularity", "latency_ns"] {
            assert!(!all("7.2.0").contains(word), "{word}");
        }
        for word in ["RUN_TO_PARITY", "base_slice", "PREEMPT_SHORT"] {
            assert!(!all("6.1.0").contains(word), "{word}");
        }
        assert!(
            !all("6.1.0").contains("NEW_FAIR_SLEEPERS")
                && all("2.6.27").contains("NEW_FAIR_SLEEPERS")
        );
        assert!(!all("6.6.0").contains("PREEMPT_SHORT"));
    }
}
