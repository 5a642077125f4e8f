//! Bytes after the key of a Perfetto trace's first packet: refused with an error, or a trace with its losses counted.
#![no_main]

mod fixed_hash_seed;

use fairground_trace::{ReadError, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut file = bytes.to_vec();
    file.splice(..file.len().min(1), [10]);
    match read("fuzz", &file[..]) {
        // A switch takes at least five bytes, and the reader may add a change of a nice value for each of its tasks.
        // Packets may be compressed.
        Ok(trace) => assert!(trace.len() as u64 <= 256 * file.len() as u64 + (16 << 20)),
        Err(error @ ReadError::Io { .. }) => panic!("there is no input that could fail: {error}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
