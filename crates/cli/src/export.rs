//! Traces as files of other programs' formats; the end of the name selects the format.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use fairground_scratch as scratch;
use fairground_session::Failure;
use fairground_trace::{Counter, Trace};

use crate::talk;

/// Form of a file, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    TraceDat,
    Text,
    Perfetto,
    Chrome,
    Parquet,
    Arrow,
}

/// The ends of names, for messages.
pub(crate) const ENDS: &str = ".txt or .ftrace (text), .dat (trace-cmd), .perfetto-trace or .pftrace (Perfetto), \
                               .json (Chrome's trace viewer), .parquet, .arrow (tables)";

/// Message of a build without the feature.
const NO_PARQUET: &str = "this build of fairground writes neither Parquet nor Arrow";

impl Form {
    /// The form of a file of that name; `-` is text. `None`: the end of the name says nothing.
    pub(crate) fn of(output: &Path) -> Option<Self> {
        match output.extension().and_then(|extension| extension.to_str()) {
            _ if output == Path::new("-") => Some(Self::Text),
            Some("dat") => Some(Self::TraceDat),
            Some("txt" | "ftrace") => Some(Self::Text),
            Some("perfetto-trace" | "pftrace" | "perfetto") => Some(Self::Perfetto),
            Some("json") => Some(Self::Chrome),
            Some("parquet") => Some(Self::Parquet),
            Some("arrow" | "feather") => Some(Self::Arrow),
            _ => None,
        }
    }

    /// Whether numbers over time have a place in it.
    pub(crate) fn has_counters(self) -> bool {
        matches!(self, Self::Perfetto | Self::Chrome)
    }

    /// Whether this build can write it: said before anything is measured.
    pub(crate) fn check(self) -> Result<(), Failure> {
        match self {
            Self::Parquet | Self::Arrow if !cfg!(feature = "parquet") => Err(Failure::new(
                NO_PARQUET,
            )
            .help("build one that does: cargo build --release -p fairground --features parquet")),
            _ => Ok(()),
        }
    }

    fn write(
        self,
        trace: &Trace,
        counters: &[Counter],
        mut sink: impl Write + Send,
    ) -> io::Result<()> {
        match self {
            Self::Perfetto => fairground_trace::write_perfetto(trace, counters, &mut sink)?,
            Self::Chrome => fairground_trace::write_chrome(trace, counters, &mut sink)?,
            #[cfg(feature = "parquet")]
            Self::Parquet => fairground_trace::write_parquet(trace, &mut sink)?,
            #[cfg(feature = "parquet")]
            Self::Arrow => fairground_trace::write_arrow(trace, &mut sink)?,
            #[cfg(not(feature = "parquet"))]
            Self::Parquet | Self::Arrow => return Err(io::Error::other(NO_PARQUET)),
            Self::TraceDat => fairground_trace::write_trace_dat(trace, &mut sink)?,
            Self::Text => fairground_trace::write_ftrace(trace, &mut sink)?,
        }
        sink.flush()
    }
}

pub(crate) fn write(
    trace: &Trace,
    counters: &[Counter],
    form: Form,
    output: &Path,
) -> Result<(), Failure> {
    write_whole(output, |sink| form.write(trace, counters, sink))
}

/// Whether something is there that is no ordinary file: a pipe, a device.
pub(crate) fn is_special(output: &Path) -> bool {
    std::fs::metadata(output).is_ok_and(|known| !known.is_file() && !known.is_dir())
}

/// Sees that a file can be written there: before anything is measured, for afterwards it would be lost.
pub(crate) fn check_place(output: &Path) -> Result<(), Failure> {
    if output == Path::new("-") || is_special(output) {
        return Ok(());
    }
    if output.is_dir() {
        return Err(Failure::new(format_args!("{}: it is a folder", output.display()))
            .help("give the name of a file"));
    }
    let folder = folder_of(output);
    tempfile::tempfile_in(&folder).map_err(|e| {
        Failure::io(output.display(), &e).help(format_args!(
            "the folder {} must be there, and files must be writable in it",
            folder.display()
        ))
    })?;
    Ok(())
}

/// Writes a file, or to stdout (`-`). A new file is there whole or not at all; what exists and is no ordinary file (a
/// pipe, a device) is written into.
pub(crate) fn write_whole(
    output: &Path,
    content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<(), Failure> {
    let failed = |e: io::Error| Failure::io(output.display(), &e);
    let written = |mut sink: BufWriter<&mut (dyn Write + Send)>| {
        content(&mut sink)?;
        sink.flush()
    };
    if output == Path::new("-") {
        let mut shown = talk::Shown::new(io::stdout());
        return written(BufWriter::new(&mut shown)).map_err(|e| Failure::io("<stdout>", &e));
    }
    if is_special(output) {
        let mut file = File::create(output).map_err(failed)?;
        return written(BufWriter::new(&mut file)).map_err(failed);
    }
    scratch::write_whole(output, |file| written(BufWriter::new(file))).map_err(failed)
}

pub(crate) fn folder_of(output: &Path) -> PathBuf {
    match output.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
