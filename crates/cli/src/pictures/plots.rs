//! The charts of a page as files, for papers.

use std::path::Path;

use fairground_report::page::Page;
use fairground_session::Failure;

use crate::args::PageArgs;
use crate::export;

/// Makes the folder and sees that files can be written into it, and where the page goes.
pub(crate) fn prepare(args: &PageArgs) -> Result<(), Failure> {
    args.html.as_deref().map(export::check_place).transpose()?;
    let Some(folder) = &args.plots else { return Ok(()) };
    if cfg!(not(feature = "plots")) {
        let message = "--plots is not part of this build";
        let help = "build one with the feature `plots`, as `make build` and `cargo build -p fairground` do";
        return Err(Failure::new(message).help(help));
    }
    let failed = |e| {
        Failure::io(folder.display(), &e)
            .help("--plots takes a folder, in which each chart becomes a file")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    tempfile::tempfile_in(folder).map_err(failed)?;
    Ok(())
}

/// Writes an SVG and a PNG of each drawing. What has such a name is replaced, what has another stays.
#[cfg(feature = "plots")]
pub(super) fn write(folder: &Path, page: &Page) -> Result<(), Failure> {
    for picture in page.pictures().map_err(Failure::new)? {
        let files = [("svg", picture.svg.as_bytes()), ("png", picture.png.as_slice())];
        for (end, bytes) in files {
            let path = folder.join(format!("{}.{end}", picture.name));
            export::write_whole(&path, |sink| sink.write_all(bytes))?;
        }
    }
    Ok(())
}

/// Nothing: [`prepare`] has refused.
#[cfg(not(feature = "plots"))]
pub(super) fn write(_: &Path, _: &Page) -> Result<(), Failure> {
    Ok(())
}
