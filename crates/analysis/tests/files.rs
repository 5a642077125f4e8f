//! A file that is analysed while it is read gives the figures of the trace that it holds.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use fairground_analysis::{Analysis, Options};
use fairground_trace::read_file;
use flate2::read::MultiGzDecoder;

/// A recording of perf, packed or not, as a file of this test.
fn file(name: &str, packed: bool) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/recordings/perf.data.gz");
    let mut bytes = fs::read(path).expect("a recording");
    if !packed {
        let mut plain = Vec::new();
        MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain).expect("gzip");
        bytes = plain;
    }
    let path = std::env::temp_dir().join(format!("fairground-{}-{name}", std::process::id()));
    fs::write(&path, bytes).expect("a file");
    path
}

#[test]
fn figures_are_those_of_the_whole_trace() {
    let interval = Options { interval_ns: Some(1_000_000), ..Options::default() };
    let window = Options { window: Some((0, u64::MAX)), ..Options::default() };
    for (name, packed, options, keeps_events) in [
        ("plain", false, Options::default(), false),
        ("packed", true, Options::default(), true),
        ("interval", false, interval, true),
        ("window", false, window, true),
    ] {
        let path = file(name, packed);
        let open = || File::open(&path).expect("the file");
        let trace = read_file(name, open()).expect("a recording");
        let found = Analysis::of_file(name, open(), &options).expect("a recording");
        fs::remove_file(&path).expect("it is still there");
        assert_eq!(found.analysis, Analysis::of(&trace, &options), "{name}");
        assert_eq!((found.events, !found.trace.is_empty()), (trace.len() as u64, keeps_events));
        assert_eq!(found.trace.tasks(), trace.tasks());
        assert_eq!((found.trace.cpus, &found.trace.loss), (trace.cpus, &trace.loss));
    }
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let path = file("cut", false);
    let bytes = fs::read(&path).expect("the file");
    fs::write(&path, &bytes[..bytes.len() / 2]).expect("a file");
    let whole = read_file("cut", File::open(&path).expect("the file")).map(|_| ());
    let found = Analysis::of_file("cut", File::open(&path).expect("the file"), &Options::default());
    fs::remove_file(&path).expect("it is still there");
    let words = |error: fairground_trace::ReadError| error.to_string();
    assert_eq!(found.map(|_| ()).map_err(words), whole.map_err(words));
}
