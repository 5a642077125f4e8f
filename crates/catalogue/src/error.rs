//! Why a published scheduler is not available.

use std::path::PathBuf;

/// Why a scheduler cannot be fetched or built.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The registry has no such package.
    #[error("the Rust registry has no package `{name}`{}; `fairground sched list` names schedulers",
            .nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    NotPublished {
        /// The name that was asked for.
        name: String,
        /// The entry with the most similar name.
        nearest: Option<&'static str>,
    },
    /// The registry has no such version.
    #[error("{name} has no version {version}; published are {}", .published.join(", "))]
    NoVersion {
        /// The scheduler.
        name: String,
        /// The version that was asked for.
        version: String,
        /// The last published ones, newest first.
        published: Vec<String>,
    },
    /// It is not in the cache.
    #[error("{name} is not here: run `fairground sched fetch {name}`")]
    NotFetched {
        /// The scheduler, with the version that was asked for.
        name: String,
    },
    /// An object of the cache is not the one that was built.
    #[error("{} has changed since it was built: run `fairground sched fetch {name}`, which builds it again",
            .path.display())]
    Changed {
        /// The object.
        path: PathBuf,
        /// The scheduler with its version.
        name: String,
    },
    /// Something could not be downloaded.
    #[error(
        "{url} could not be downloaded: {problem}; fetching a scheduler requires a network that reaches \
             index.crates.io and static.crates.io"
    )]
    Download {
        /// The address.
        url: String,
        /// curl's message.
        problem: String,
    },
    /// A download is not what the registry promises.
    #[error("{what} is damaged: its SHA-256 is {found}, the registry's {expected}; try again")]
    Checksum {
        /// The package.
        what: String,
        /// Of the download.
        found: String,
        /// Of the registry.
        expected: String,
    },
    /// The package is made in a way that this program does not know.
    #[error("{package} cannot be built: {problem}")]
    Recipe {
        /// The package and its version.
        package: String,
        /// The part that is missing.
        problem: String,
    },
    /// A package is not what is unpacked: it leads out of its folder, is too large, or is damaged.
    #[error("{package} is not unpacked: {problem}")]
    Unpack {
        /// The package and its version.
        package: String,
        /// The fault.
        problem: String,
    },
    /// The compiler refuses a source.
    #[error("{package}: {clang} does not compile {source_file}:\n{message}")]
    Compile {
        /// The package and its version.
        package: String,
        /// The compiler.
        clang: String,
        /// The source.
        source_file: String,
        /// The compiler's first error.
        message: String,
    },
    /// A program that is needed does not run.
    #[error("`{program}` does not run: {problem}; install it (Debian: apt-get install {package})")]
    Program {
        /// Its name.
        program: &'static str,
        /// Debian's package.
        package: &'static str,
        /// The system's message.
        problem: String,
    },
    /// A file of the cache.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's message.
        error: std::io::Error,
    },
    /// No compiler.
    #[error(transparent)]
    NoCompiler(#[from] fairground_policies::MissingTool),
}

impl FetchError {
    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> FetchError {
        let path = path.to_owned();
        move |error| FetchError::Io { path, error }
    }

    pub(crate) fn unpack(package: &str) -> impl FnOnce(std::io::Error) -> FetchError {
        let package = package.to_owned();
        move |error| FetchError::Unpack { package, problem: error.to_string() }
    }
}
