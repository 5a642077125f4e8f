//! Any bytes as a recording: an accepted one is a trace with its losses counted.
#![no_main]

mod fixed_hash_seed;

use fairground_trace::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = read("fuzz", bytes) {
        assert!(!error.to_string().is_empty());
    }
});
