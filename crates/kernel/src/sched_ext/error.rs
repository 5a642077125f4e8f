//! Why a scheduler is not in charge.

/// Why an object could not be loaded, told a setting, or attached.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel knows no sched_ext.
    #[error("{name}: the kernel {release} is built without sched_ext (CONFIG_SCHED_CLASS_EXT)")]
    NoSchedExt {
        /// The scheduler.
        name: String,
        /// `uname -r`.
        release: String,
    },
    /// A variable that cannot be changed any more.
    #[error(
        "`{label}` lies in .rodata, which the kernel froze when it loaded the object: set it at the start"
    )]
    Frozen {
        /// The setting.
        label: String,
    },
}
