//! A recording of a real machine: a file or stdin, plain or compressed.

use std::fs;
use std::io::{self, Read};

use fairground_trace::Trace;
use flate2::read::MultiGzDecoder;

use crate::failure::Failure;

/// A recording and its name.
#[derive(Debug)]
pub(crate) struct Recording {
    /// The file's name, or `<stdin>`.
    pub(crate) name: String,
    /// The events.
    pub(crate) trace: Trace,
}

/// A recording larger than this, decompressed, is refused before it fills the memory.
const BYTES_MAX: u64 = 8 << 30;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads a whole recording. What a truncated one still holds is kept; the loss stands in the trace.
pub(crate) fn read_recording(argument: &str) -> Result<Recording, Failure> {
    let (name, bytes) = if argument == "-" {
        ("<stdin>".to_owned(), read_all("<stdin>", io::stdin().lock())?)
    } else {
        let file = fs::File::open(argument).map_err(|e| Failure::io(argument, &e))?;
        (argument.to_owned(), read_all(argument, file)?)
    };
    let (text, cut) =
        if bytes.starts_with(&GZIP_MAGIC) { inflate(&name, &bytes)? } else { (bytes, false) };
    let mut trace = fairground_trace::read(&name, &text[..]).map_err(Failure::new)?;
    trace.loss.truncated |= cut;
    Ok(Recording { name, trace })
}

fn read_all(name: &str, source: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    source.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|e| Failure::io(name, &e))?;
    refuse_too_large(name, &bytes)?;
    Ok(bytes)
}

fn refuse_too_large(name: &str, bytes: &[u8]) -> Result<(), Failure> {
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Failure::new(format_args!("{name}: more than {BYTES_MAX} bytes"))
            .help("cut the recording into pieces, or record a shorter time"));
    }
    Ok(())
}

/// Decompresses as far as the data are sound; true when they end early.
fn inflate(name: &str, bytes: &[u8]) -> Result<(Vec<u8>, bool), Failure> {
    let mut text = Vec::new();
    let outcome = MultiGzDecoder::new(bytes).take(BYTES_MAX + 1).read_to_end(&mut text);
    refuse_too_large(name, &text)?;
    match outcome {
        Ok(_) => Ok((text, false)),
        Err(_) if !text.is_empty() => Ok((text, true)),
        Err(e) => Err(Failure::io(format_args!("{name}: damaged gzip data"), &e)),
    }
}
