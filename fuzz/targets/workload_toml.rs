//! Any text as a workload: an accepted one is written, accepted again, and equal.
#![no_main]

mod fixed_hash_seed;

use fairground_workload::{parse, to_toml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(workload) = parse("fuzz", text) {
        let written = to_toml(&workload);
        assert_eq!(parse("written", &written).as_ref(), Ok(&workload), "{written}");
    }
});
