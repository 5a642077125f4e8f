//! Bytes after the magic of perf.data, in either byte order: refused with an error, or a trace with its losses
//! counted.
#![no_main]

mod fixed_hash_seed;

use fairground_trace::{ReadError, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for magic in [b"PERFILE2", b"2ELIFREP"] {
        let mut file = bytes.to_vec();
        let start = file.len().min(magic.len());
        file[..start].copy_from_slice(&magic[..start]);
        match read("fuzz", &file[..]) {
            // An event takes at least four bytes, and the reader may add a change of a nice value for each of its
            // tasks.
            Ok(trace) => assert!(trace.len() <= 1024 * file.len()),
            Err(error @ ReadError::Io { .. }) => {
                panic!("there is no input that could fail: {error}")
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
